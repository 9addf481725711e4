package results

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestResultsThatAreNeitherCompleteNorAskForInputAreMisunderstood(t *testing.T) {
	for _, c := range []struct {
		method, raw string
		old, modern string // what is not understood, or nothing
	}{
		{"tools/call", `{"content":[]}`, "", ""},
		{"tools/call", `{"content":[{"type":"text","text":"resultType"}]}`, "", ""},
		{"tools/call", `{"resultType":"complete"}`, "", ""},
		{"tools/call", `{"resultType":""}`, "", ""},
		{"tools/call", `{"resultType":5}`, "", ""}, // an error of Decode
		{"tools/call", `{"resultType":"task"}`, `"task"`, `"task"`},
		{"tools/list", `{"tools":[],"resultType":"task"}`, `"task"`, `"task"`},
		{"tools/call", `{"resultType":"input_required"}`, "input_required", ""},
		{"prompts/get", `{"resultType":"input_required"}`, "input_required", ""},
		{"tools/list", `{"resultType":"input_required"}`, "input_required", "input_required"},
		{"tools/call", ` null `, "null", "null"},
		{"prompts/list", `null`, "null", "null"},
	} {
		for modern, want := range map[bool]string{false: c.old, true: c.modern} {
			err := Check(c.method, []byte(c.raw), modern)
			if want == "" {
				require.NoError(t, err, c.raw)
				continue
			}
			var not *Misunderstood
			require.ErrorAs(t, err, &not, c.raw)
			require.Contains(t, not.What, want)
		}
	}
}

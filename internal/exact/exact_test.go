package exact_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/exact"
)

func TestNumberThatAFloat64HoldsIsOne(t *testing.T) {
	for text, want := range map[string]float64{
		"0": 0, "-0": 0, "0.0e5": 0, "1.0": 1, "1e2": 100, "1.5E+3": 1500, "0.1": 0.1, "0.10": 0.1, "9007199254740992": 1 << 53, "1e22": 1e22, "5e-324": 5e-324,
		"123456789012345": 123456789012345, "-0.30000000000000004": -0.30000000000000004, "18446744073709552000": 1 << 64,
	} {
		value, err := exact.Value([]byte(text))
		require.NoError(t, err)
		require.Equal(t, want, value, text)
	}
}

func TestAnyOtherNumberKeepsItsText(t *testing.T) {
	for _, text := range []string{
		"9007199254740993", "-9007199254740993", "18446744073709551615", "18446744073709551616", "1e400", "-1E400", "1e-400", "4e-324", "1e-999999999", "123456789012345678901234567890",
		"0.1000000000000000055511151231257827", "12345678.123456789012", "9007199254740993.0", "1.00000000000000000001",
	} {
		value, err := exact.Value([]byte(text))
		require.NoError(t, err)
		require.Equal(t, json.Number(text), value)
		for _, in := range []string{text, `[` + text + `]`, `{"a":"b","c":[1,` + text + `,2]}`, strings.Repeat(" ", 7) + text} {
			if _, tooLarge := exact.Float64(text); !tooLarge && !strings.Contains(strings.ToLower(text), "e4") { // which a decoder refuses
				require.True(t, exact.IsNeeded([]byte(in)), in)
			}
		}
	}
}

func TestUsualJSONNeedsNoSecondLook(t *testing.T) {
	for _, text := range []string{
		`{}`, `{"a":[1,2.5,-3e10,1e-9,123456789012345]}`, `"the e-mail of 2026-11-28"`, `{"price":19.99,"at":1732800000}`, strings.Repeat(`{"id":12345,"text":"one-two"},`, 100),
	} {
		require.False(t, exact.IsNeeded([]byte(text)), text)
	}
}

func TestNumberThatIsTooLargeCanBeDecoded(t *testing.T) {
	const text = `{"a":1e400,"b":"1e400 \" 1e400","c":[-1E+999,1e30,` + `"\\",1e500]}`
	require.Equal(t, `{"a":0,"b":"1e400 \" 1e400","c":[0,1e30,"\\",0]}`, string(exact.Decodable([]byte(text))))
}

func TestNumbersAreRestoredWhereAnyValueIsAllowed(t *testing.T) {
	type part struct {
		Meta  map[string]any `json:"_meta"`
		Size  int64          `json:"size"`
		Any   any            `json:"any"`
		Parts []*part        `json:"parts"`
	}
	const text = `{"_meta":{"n":9007199254740993,"one":1.0},"size":9007199254740993,"any":[9007199254740993],"parts":[{"any":9007199254740993},null]}`
	var p part
	require.NoError(t, json.Unmarshal([]byte(text), &p))
	require.NoError(t, exact.Restore(&p, []byte(text)))
	big := json.Number("9007199254740993")
	require.Equal(t, part{Meta: map[string]any{"n": big, "one": 1.0}, Size: 9007199254740993, Any: []any{big}, Parts: []*part{{Any: big}, nil}}, p)
}

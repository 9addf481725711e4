package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

// The report fails for each violation.
func TestVerifierFindsEveryViolation(t *testing.T) {
	result := func(id string) messages.Reply { return &messages.ToolResult{Receipt: messages.Receipt{ID: id}} }
	key := messages.Key{Server: "s", Scope: "a"}
	for name, c := range map[string]struct {
		do   func(v *verifier)
		want [4]int // unanswered, repeated, connections, aboveCap
	}{
		"no violation":             {func(v *verifier) { v.sent("1", false); v.executed("1"); v.replied(result("1")) }, [4]int{}},
		"no reply":                 {func(v *verifier) { v.sent("1", false) }, [4]int{1, 0, 0, 0}},
		"two replies":              {func(v *verifier) { v.sent("1", false); v.executed("1"); v.replied(result("1")); v.replied(result("1")) }, [4]int{1, 0, 0, 0}},
		"reply to an unknown call": {func(v *verifier) { v.replied(result("1")) }, [4]int{0, 0, 1, 0}},
		"ran twice":                {func(v *verifier) { v.sent("1", false); v.executed("1"); v.executed("1"); v.replied(result("1")) }, [4]int{0, 1, 0, 0}},
		"a read ran twice":         {func(v *verifier) { v.sent("1", true); v.executed("1"); v.executed("1"); v.replied(result("1")) }, [4]int{}},
		"a result without a run":   {func(v *verifier) { v.sent("1", false); v.replied(result("1")) }, [4]int{0, 1, 0, 0}},
		"two connections":          {func(v *verifier) { v.opened(key, 1); v.opened(key, 1); v.opened(key, -1); v.opened(key, -1) }, [4]int{0, 0, 1, 0}},
		"left open":                {func(v *verifier) { v.opened(key, 1) }, [4]int{0, 0, 1, 0}},
		"above the cap": {func(v *verifier) {
			for _, scope := range []string{"a", "b", "c"} {
				v.opened(messages.Key{Scope: scope}, 1)
			}
			for _, scope := range []string{"a", "b", "c"} {
				v.opened(messages.Key{Scope: scope}, -1)
			}
		}, [4]int{0, 0, 0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVerifier()
			c.do(v)
			unanswered, repeated, connections, aboveCap := v.check(2)
			require.Equal(t, c.want, [4]int{len(unanswered), len(repeated), len(connections), len(aboveCap)})
			var out bytes.Buffer
			s := &show{showCmd: &showCmd{}, verifier: v}
			claims := []claim{{"a", unanswered}, {"b", repeated}, {"c", connections}, {"d", aboveCap}}
			require.Equal(t, c.want == [4]int{}, s.report(&out, claims), out.String())
		})
	}
}

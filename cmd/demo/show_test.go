package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

func TestShowHoldsItsClaims(t *testing.T) {
	var out bytes.Buffer
	require.Equal(t, exitOK, run([]string{"--duration", "2s", "--agents", "12", "--max-sessions", "8"}, streams{nil, &out, &out}), out.String())
	require.Contains(t, out.String(), "ok        no call ran twice")
}

// The books must not balance when something is wrong.
func TestLedgerFindsWhatIsWrong(t *testing.T) {
	result := func(id string) messages.Reply { return &messages.ToolResult{Receipt: messages.Receipt{ID: id}} }
	key := messages.Key{Server: "s", Scope: "a"}
	for name, c := range map[string]struct {
		do   func(l *ledger)
		want [4]int // unanswered, twice, two, above
	}{
		"all is well":      {func(l *ledger) { l.sent("1", false); l.executed("1"); l.replied(result("1")) }, [4]int{}},
		"no reply":         {func(l *ledger) { l.sent("1", false) }, [4]int{1, 0, 0, 0}},
		"two replies":      {func(l *ledger) { l.sent("1", false); l.executed("1"); l.replied(result("1")); l.replied(result("1")) }, [4]int{1, 0, 0, 0}},
		"foreign reply":    {func(l *ledger) { l.replied(result("1")) }, [4]int{0, 0, 1, 0}},
		"ran twice":        {func(l *ledger) { l.sent("1", false); l.executed("1"); l.executed("1"); l.replied(result("1")) }, [4]int{0, 1, 0, 0}},
		"a read ran twice": {func(l *ledger) { l.sent("1", true); l.executed("1"); l.executed("1"); l.replied(result("1")) }, [4]int{}},
		"made up":          {func(l *ledger) { l.sent("1", false); l.replied(result("1")) }, [4]int{0, 1, 0, 0}},
		"two connections":  {func(l *ledger) { l.opened(key, 1); l.opened(key, 1); l.opened(key, -1); l.opened(key, -1) }, [4]int{0, 0, 1, 0}},
		"left open":        {func(l *ledger) { l.opened(key, 1) }, [4]int{0, 0, 1, 0}},
		"above the cap": {func(l *ledger) {
			for _, scope := range []string{"a", "b", "c"} {
				l.opened(messages.Key{Scope: scope}, 1)
			}
			for _, scope := range []string{"a", "b", "c"} {
				l.opened(messages.Key{Scope: scope}, -1)
			}
		}, [4]int{0, 0, 0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger()
			c.do(l)
			unanswered, twice, two, above := l.check(2)
			require.Equal(t, c.want, [4]int{len(unanswered), len(twice), len(two), len(above)})
			var out bytes.Buffer
			s := &show{showCmd: &showCmd{}, ledger: l}
			claims := []claim{{"a", unanswered}, {"b", twice}, {"c", two}, {"d", above}}
			require.Equal(t, c.want == [4]int{}, s.report(&out, claims), out.String())
		})
	}
}

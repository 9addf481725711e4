package history_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/tests/cluster/history"
)

// handover is a history in which m1 acts for a scope until 3 s, m2 from 5 s to 7 s, and m1 again from 8 s on.
func handover() *history.History {
	act := func(member string, dial int64, call string, from float64) *history.Act {
		return &history.Act{Member: member, Scope: "a", Dial: dial, Call: call, From: at(from), To: at(from + 0.1)}
	}
	h := &history.History{Acts: []*history.Act{
		act("m1", 1, "", 1), act("m1", 1, "1", 2), act("m1", 1, "2", 3),
		act("m2", 1, "", 5), act("m2", 1, "3", 6), act("m2", 1, "4", 7),
		act("m1", 2, "", 8), act("m1", 2, "5", 9),
		{Member: "m3", Scope: "b", Dial: 1, From: at(1), To: at(9)}, // another scope
	}}
	for _, a := range h.Acts {
		if a.Call != "" {
			h.Executions = append(h.Executions, &history.Execution{Call: a.Call, Scope: a.Scope, Tool: history.Read, Member: a.Member, Started: a.From})
		}
	}
	return h
}

func TestMembersThatActOneAfterTheOtherAreAccepted(t *testing.T) {
	h := handover()
	require.Empty(t, h.DoublyActing())
	require.NoError(t, h.Check())
}

func TestMembersThatActAtOnceAreFound(t *testing.T) {
	for name, test := range map[string]struct {
		change func(h *history.History)
		longer time.Duration
		want   string // empty if the history is accepted
	}{
		"an operation after the next dial":     {func(h *history.History) { h.Acts[2].From = at(6.5) }, 1500 * time.Millisecond, "m1 and m2 have both acted for a, for 1.5s"},
		"a dial before the last operation":     {func(h *history.History) { h.Acts[6].From = at(5.5) }, 1500 * time.Millisecond, "m2 and m1 have both acted for a, for 1.5s"},
		"a call that the server has seen late": {func(h *history.History) { h.Executions[1].Started = at(5.5) }, 500 * time.Millisecond, "m1 and m2 have both acted for a, for 500ms"},
		"a call that was under way":            {func(h *history.History) { h.Executions[1].Started = at(5.2) }, 200 * time.Millisecond, ""},
		"a call that its member has begun before it was stopped": {func(h *history.History) {
			h.Executions[1].Started = at(6.2)
			h.Faults = []*history.Fault{{Kind: history.Pause, Member: "m1", At: at(3.1), Until: at(6.1), Settled: at(6.3)}}
		}, 0, ""},
		"a call that its member has begun after it was stopped": {func(h *history.History) {
			h.Acts[2].From, h.Executions[1].Started = at(6.2), at(6.2)
			h.Faults = []*history.Fault{{Kind: history.Pause, Member: "m1", At: at(3.1), Until: at(6.1), Settled: at(6.3)}}
		}, 1200 * time.Millisecond, "m1 and m2 have both acted for a, for 1.2s"},
		"a call that no member has sent": {func(h *history.History) { h.Executions[1].Call = "9" }, 0, "m1 has not reported that it has sent it"},
	} {
		t.Run(name, func(t *testing.T) {
			h := handover()
			test.change(h)
			h.Sort()
			longest := time.Duration(0)
			for _, d := range h.DoublyActing() {
				longest = max(longest, d.For)
			}
			require.Equal(t, test.longer, longest)
			if err := h.Check(); test.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, test.want)
			}
		})
	}
}

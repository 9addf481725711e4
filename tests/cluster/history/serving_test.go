package history_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/tests/cluster/history"
)

// served is a history in which m1 serves the scopes a and b, and m2 does so until 5 s.
func served() *history.History {
	h := &history.History{States: []*history.State{
		{Member: "m1", At: at(0), Serving: true}, {Member: "m2", At: at(0), Serving: true}, {Member: "m2", At: at(5)},
	}}
	for i := range 20 {
		member := "m1"
		if i%4 > 1 {
			member = "m2"
		}
		c := &history.Call{Member: member, Scope: string("ab"[i%2]), Started: at(float64(i) / 2), Ended: at(float64(i)/2 + 0.1), Replies: 1}
		if member == "m2" && i > 8 {
			c.Code = messages.CodeUnavailable
		}
		h.Calls = append(h.Calls, c)
	}
	return h
}

func TestMembersOfTheViewServeAllScopes(t *testing.T) {
	for name, test := range map[string]struct {
		change      func(h *history.History)
		from        float64
		least, most int
		want        string // empty if they do
	}{
		"both":                     {func(h *history.History) { h.States = h.States[:2]; h.Calls = h.Calls[:9] }, 0, 2, 2, ""},
		"one of them from then on": {func(*history.History) {}, 5.5, 1, 1, ""},
		"one of them for a while":  {func(*history.History) {}, 1, 1, 2, ""},
		"one that is stopped": {func(h *history.History) {
			h.Faults = []*history.Fault{{Kind: history.Pause, Member: "m2", At: at(1), Until: at(9)}}
		}, 1, 1, 1, ""},
		"a failure in the view": {func(h *history.History) { h.Calls[13].Code = messages.CodeLost }, 5.5, 1, 1, `of b at m1, which was in the view, was started at`},
		"a call that was not made": {func(h *history.History) {
			h.Calls = append(append(h.Calls[:12:12], h.Calls[13:16]...), h.Calls[17:]...)
		}, 5.5, 1, 1, "nobody has called a at m1"},
		"a failure that began before": {func(h *history.History) { h.Calls[8].Code = messages.CodeLost }, 5.5, 1, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := served()
			test.change(h)
			h.Sort()
			s, errs := h.Serves(at(test.from), at(9))
			require.Equal(t, [2]int{test.least, test.most}, [2]int{s.Least, s.Most})
			require.Positive(t, s.Calls)
			if err := errors.Join(errs...); test.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, test.want)
			}
		})
	}
}

func TestRecoveryIsTheFirstSuccessAfterTheLastFailure(t *testing.T) {
	h, both := &history.History{}, []string{"m1", "m2"}
	call := func(member string, from, to float64, code messages.Code) {
		h.Calls = append(h.Calls, &history.Call{Member: member, Scope: "a", Started: at(from), Ended: at(to), Replies: 1, Code: code})
	}
	call("m1", 1, 2, messages.CodeLost) // before
	call("m1", 10, 10.5, "")
	call("m2", 10, 10.2, "")
	require.Equal(t, 500*time.Millisecond, h.Worked(at(9.999), at(20), both).Round(10*time.Millisecond))
	call("m2", 11, 11.2, messages.CodeUnavailable)
	require.Negative(t, h.Worked(at(10), at(20), both))
	call("m2", 12, 12.5, "")
	require.Equal(t, 500*time.Millisecond, h.Worked(at(10), at(20), both[:1]), "the other member is not asked for")
	require.Equal(t, 200*time.Millisecond, h.Worked(at(10), at(11), both[1:]), "its failure comes later")
	require.Equal(t, 2500*time.Millisecond, h.Worked(at(10), at(20), both))
}

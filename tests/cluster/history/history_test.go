package history_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/tests/cluster/history"
)

// at returns a time of the scenario, in seconds from its beginning.
func at(seconds float64) time.Time {
	return time.Unix(1_000_000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

// scenario returns a history without a fault of the cluster: member m1 is killed at 10 s, and m2
// has opened another session for its scope. Scope b stays on m2. The scenario ends at 20 s.
func scenario() *history.History {
	call := func(id, scope string, start float64, by, session string, generation uint64, count int) *history.Call {
		return &history.Call{
			ID: id, Scope: scope, Tool: history.Add, Member: "m3", Started: at(start), Ended: at(start + 0.5), Deadline: at(start + 5),
			Replies: 1, Supervisor: by, Session: session, Generation: generation, Count: count,
		}
	}
	h := &history.History{
		Calls: []*history.Call{
			call("1", "a", 1, "m1", "s1", 1, 1),
			call("2", "b", 2, "m2", "s2", 1, 1),
			call("3", "a", 11.1, "m2", "s3", 1, 1),
			call("4", "b", 12, "m2", "s2", 1, 2),
		},
		Sessions: []*history.Session{
			{ID: "s1", Scope: "a", Opened: at(1), Used: map[string]time.Time{"m1": at(1)}},
			{ID: "s2", Scope: "b", Opened: at(2), Used: map[string]time.Time{"m2": at(12)}},
			{ID: "s3", Scope: "a", Opened: at(11), Used: map[string]time.Time{"m2": at(11)}},
		},
		Faults: []*history.Fault{{Kind: history.Kill, Member: "m1", At: at(10), Until: at(10), Settled: at(11)}},
		Lease:  2 * time.Second,
		End:    at(20),
	}
	for _, c := range h.Calls {
		h.Acts = append(h.Acts, &history.Act{Member: c.Supervisor, Scope: c.Scope, Dial: int64(c.Session[1]), Call: c.ID, From: c.Started, To: c.Ended})
		h.Executions = append(h.Executions, &history.Execution{
			Call: c.ID, Scope: c.Scope, Tool: c.Tool, Member: c.Supervisor, Session: c.Session, Count: c.Count, Started: c.Started.Add(time.Second / 10),
		})
	}
	return h
}

func TestHistoryWithoutAViolationIsAccepted(t *testing.T) {
	h := scenario()
	h.Sort()
	require.NoError(t, h.Check())
	r := h.Report()
	require.Equal(t, 4, r.Calls)
	require.Equal(t, 4, r.Succeeded)
	require.Equal(t, 2, r.Had)
	require.Equal(t, 1, r.Kept)
	require.Equal(t, 1, r.Bystanders)
	require.Equal(t, 1, r.Undisturbed)
	require.Len(t, r.Recoveries, 1)
	require.Equal(t, 1, r.Recoveries[0].Scopes)
	require.Equal(t, 1600*time.Millisecond, r.Recoveries[0].Worst)
	require.Contains(t, r.String(), "recovery after kill m1")
}

func TestEachViolationIsFound(t *testing.T) {
	fail := func(c *history.Call, code messages.Code, mayHaveRun bool) {
		c.Code, c.MayHaveRun, c.Session, c.Count, c.Generation = code, mayHaveRun, "", 0, 0
	}
	again := func(h *history.History, i int) {
		copied := *h.Executions[i]
		h.Executions = append(h.Executions, &copied)
	}
	for name, test := range map[string]struct {
		change func(h *history.History)
		want   string // empty if the history is accepted
	}{
		"no reply":                   {func(h *history.History) { h.Calls[1].Replies = 0 }, "call 2 got 0 replies"},
		"no reply to a killed agent": {func(h *history.History) { h.Calls[0].Replies, h.Calls[0].Member = 0, "m1" }, ""},
		"two replies":                {func(h *history.History) { h.Calls[1].Replies = 2 }, "call 2 got 2 replies"},
		"recorded twice":             {func(h *history.History) { h.Calls[1].ID = "1" }, "call 1 is recorded twice"},
		"late":                       {func(h *history.History) { h.Calls[3].Ended = at(20.1) }, "call 4 was answered 3.1s after its deadline"},
		"late in a pause": {func(h *history.History) {
			h.Calls[3].Ended = at(20.1)
			h.Faults = append(h.Faults, &history.Fault{Kind: history.Pause, Member: "m3", At: at(12.4), Until: at(13), Settled: at(13)})
		}, ""},
		"success that did not run":   {func(h *history.History) { h.Executions = h.Executions[1:] }, "call 1 has a result"},
		"success of another session": {func(h *history.History) { h.Calls[3].Session = "s3" }, "call 4 has a result"},
		"failure that may have run":  {func(h *history.History) { fail(h.Calls[3], messages.CodeLost, true) }, "scope b did not work"},
		"failure that ran":           {func(h *history.History) { fail(h.Calls[0], messages.CodeClosed, false) }, "call 1 has failed"},
		"ran twice":                  {func(h *history.History) { again(h, 0) }, "call 1 of add ran 2 times"},
		"ran twice, unknown call":    {func(h *history.History) { again(h, 0); h.Executions[0].Call, h.Executions[4].Call = "9", "9" }, "call 9 of add ran 2 times"},
		"safe call ran twice": {func(h *history.History) {
			again(h, 0)
			h.Executions[0].Tool, h.Executions[4].Tool = history.Read, history.Read
		}, ""},
		"safe call ran three times":     {func(h *history.History) { again(h, 0); again(h, 0); h.Executions[0].Tool = history.Read }, "call 1 of read ran 3 times"},
		"two sessions without a change": {func(h *history.History) { h.Sessions[2].Opened = at(9) }, "scope a had two sessions for 1s, while"},
		"two sessions of a control": {func(h *history.History) {
			h.Sessions = append(h.Sessions, &history.Session{ID: "s4", Scope: "b", Opener: "m2", Opened: at(5), Ended: at(6)})
		}, ""},
		"two sessions, the other one of another member": {func(h *history.History) {
			h.Sessions = append(h.Sessions, &history.Session{ID: "s4", Scope: "b", Opener: "m1", Opened: at(5), Ended: at(6)})
		}, "scope b had two sessions for 1s, while"},
		"two sessions with calls": {func(h *history.History) {
			h.Sessions = append(h.Sessions, &history.Session{ID: "s4", Scope: "b", Opener: "m2", Opened: at(1.5), Ended: at(2.5)})
			h.Executions[1].Session, h.Calls[1].Session, h.Sessions[1].Opened = "s4", "s4", at(1)
		}, "scope b had two sessions for 1s, while"},
		"two sessions, a control that stays": {func(h *history.History) {
			h.Sessions = append(h.Sessions, &history.Session{ID: "s4", Scope: "b", Opener: "m2", Opened: at(18), Used: map[string]time.Time{"m2": at(18)}})
		}, "scope b has two sessions at the end"},
		"two sessions at the end":    {func(h *history.History) { h.Faults[0].Kind = history.Leave }, "scope a has two sessions at the end"},
		"two sessions for a while":   {func(h *history.History) { h.Faults[0].Kind, h.Sessions[0].Ended = history.Leave, at(12) }, ""},
		"generation of two sessions": {func(h *history.History) { h.Shared = true }, "generation 1 of a is both session s1 and s3"},
		"generation grows":           {func(h *history.History) { h.Shared, h.Calls[2].Generation = true, 2 }, ""},
		"generation shrinks": {func(h *history.History) {
			h.Shared, h.Calls[0].Generation, h.Calls[2].Generation = true, 3, 2
		}, "generations 3 and 2 of a are not in the order"},
		"sent after a pause": {func(h *history.History) {
			h.Faults = append(h.Faults, &history.Fault{Kind: history.Pause, Member: "m2", At: at(10.5), Until: at(11), Settled: at(13), Rejoined: at(12)})
		}, "call 3 was sent by m2 700ms after the fault pause began"},
		"sent after a pause, in flight before": {func(h *history.History) {
			h.Faults = append(h.Faults, &history.Fault{Kind: history.Pause, Member: "m2", At: at(11.15), Until: at(11.16), Settled: at(11.5), Rejoined: at(11.4)})
			h.Calls = append(h.Calls, &history.Call{ID: "5", Scope: "a", Member: "m3", Started: at(13), Ended: at(14), Deadline: at(18), Replies: 1, Supervisor: "m2", Session: "s3", Generation: 1, Count: 2})
			h.Executions = append(h.Executions, &history.Execution{Call: "5", Scope: "a", Tool: history.Add, Member: "m2", Session: "s3", Count: 2, Started: at(13)})
			h.Acts = append(h.Acts, &history.Act{Member: "m2", Scope: "a", Dial: 's', Call: "5", From: at(13), To: at(14)})
		}, ""},
		"sent while cut off": {func(h *history.History) {
			h.Faults = append(h.Faults, &history.Fault{Kind: history.Cut, Member: "m2", At: at(8), Until: at(11.5), Settled: at(11.5)})
		}, "call 3 was sent by m2 3.2s after the fault cut began"},
		"sent while etcd was down": {func(h *history.History) {
			h.Faults = append(h.Faults, &history.Fault{Kind: history.Down, At: at(8), Until: at(11.5), Settled: at(11.5)})
		}, "call 3 was sent by m2 3.2s after the fault down began"},
		"sent while the store was down": {func(h *history.History) {
			h.Faults = append(h.Faults, &history.Fault{Kind: history.StoreDown, At: at(8), Until: at(11.5), Settled: at(11.5)})
		}, ""},
		"does not recover": {func(h *history.History) { h.Calls, h.Executions = h.Calls[:2], h.Executions[:2] }, "scope a did not work after the fault kill of m1"},
	} {
		t.Run(name, func(t *testing.T) {
			h := scenario()
			test.change(h)
			h.Sort()
			if err := h.Check(); test.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, test.want)
			}
		})
	}
}

package tests

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// C1, C9
func TestLostCallIsNotReplayedAndTheSessionIsResumed(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.send(call("a", "count")).ok()
		lost := h.send(call("a", "hang"))
		synctest.Wait()
		h.server.breakConnection("a", true)
		require.True(t, lost.fails(messages.CodeLost).MayHaveRun)
		r := h.send(call("a", "count"))
		require.Equal(t, "2", r.text(), "the state was kept")
		require.EqualValues(t, 1, r.ok().Generation)
		e := awaitEvent(h, func(*messages.SessionRestarted) bool { return true })
		require.True(t, e.Attached)
	})
}

// C1
func TestSessionThatIsGoneAfterALossGetsANewGeneration(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.send(call("a", "count")).ok()
		h.server.expire("a")
		h.server.breakConnection("a", true)
		require.EqualValues(t, 2, h.send(call("a", "count")).ok().Generation)
	})
}

// C2
func TestLostCallIsReplayedWhenThatIsSafe(t *testing.T) {
	for name, op := range map[string]messages.Operation{
		"read-only tool":    call("a", "slow/ro"),
		"caller's word":     call("a", "slow", replay(messages.ReplayAlways)),
		"read by protocol":  &messages.ListTools{Header: messages.To("s", "a")},
		"not safe":          call("a", "slow"),
		"safe, but forbids": call("a", "slow/ro", replay(messages.ReplayNever)),
	} {
		for _, listed := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				inFakeTime(t, supervisor.Config{}, func(h *harness) {
					h.send(&messages.Open{Header: messages.To("s", "a")}).reply()
					h.server.set(func() { h.server.listed = listed })
					p := h.send(op)
					if name != "read by protocol" {
						synctest.Wait()
					}
					h.server.breakConnection("a", true)
					switch name {
					case "not safe", "safe, but forbids":
						f := p.fails(messages.CodeLost)
						require.False(t, f.Replayed)
						require.True(t, f.MayHaveRun)
					default:
						_, is := p.reply().(messages.Result)
						require.True(t, is, "%v", p.reply())
					}
				})
			})
		}
	}
}

// C2: a call was lost, and its session is closed before it is repeated.
func TestLostCallThatIsNotRepeatedIsNotSaidToBeUnsent(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		p := h.send(call("a", "hang/ro"))
		synctest.Wait()
		h.server.set(func() { h.server.dial = slowDial(time.Minute, nil) })
		h.server.breakConnection("a", true)
		synctest.Wait()
		h.send(&messages.CloseScope{Scope: "a"}).reply()
		f := p.fails(messages.CodeClosed)
		require.True(t, f.MayHaveRun)
		require.Equal(t, "the call was lost, and its session was closed before it was repeated: connection reset", f.Detail)
	})
}

// C3
func TestCallOnAConnectionThatDiedUnnoticedRunsOnTheNext(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.send(call("a", "count")).ok()
		h.server.breakConnection("a", false)
		require.Equal(t, "2", h.send(call("a", "count")).text())
	})
}

// C10
func TestEachCallIsTreatedByWhatHappenedToIt(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		slow := h.calls(20, "a", "slow")
		hang := h.calls(4, "a", "hang", within(5*time.Second))
		synctest.Wait()
		h.server.expire("a")
		refused := h.calls(40, "a", "count")
		for _, p := range slow {
			require.Equal(t, "done", p.text())
		}
		for _, p := range hang {
			p.fails(messages.CodeDeadline)
		}
		for _, p := range refused {
			require.EqualValues(t, 2, p.ok().Generation)
		}
		require.Equal(t, 2, h.dials.dialed())
	})
}

// C5: a call that ignores its context is not waited for without end.
func TestConnectionWhoseCallDoesNotReturnIsReplaced(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		p := h.send(call("a", "stuck", within(time.Second)))
		p.fails(messages.CodeDeadline)
		time.Sleep(6 * time.Second) // synctest
		requireEvents[*messages.SessionLost](h, 1)
		h.send(call("a", "count")).ok()
	})
}

// G2
func TestHookThatPanicsFailsItsCallAlone(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.send(call("a", "panic")).fails(messages.CodeInternal)
		require.Equal(t, "1", h.send(call("a", "count")).text())
		require.Equal(t, 1, h.dials.dialed())
	})
}

// C2: a call that was lost on an evicted session and waits for its successor may have run.
func TestLostCallThatIsHandedBackMayHaveRun(t *testing.T) {
	inFakeTime(t, supervisor.Config{MaxSessions: 1}, func(h *harness) {
		lost := h.send(call("a", "hang", replay(messages.ReplayAlways), within(time.Hour)))
		synctest.Wait()
		h.send(call("b", "hang", within(time.Minute))) // this evicts the session of scope a
		synctest.Wait()
		h.server.breakConnection("a", false)
		synctest.Wait()
		h.cancel(lost)
		require.True(t, lost.fails(messages.CodeCancelled).MayHaveRun)
	})
}

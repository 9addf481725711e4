package tests

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// B1
func TestExpiredSessionIsRebuiltAndItsCallReplayed(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		require.Equal(t, "1", h.send(call("a", "count")).text())
		h.server.expire("a")
		began := time.Now()
		r := h.send(call("a", "count")).ok()
		require.EqualValues(t, 2, r.Generation)
		require.True(t, r.Replayed)
		require.Zero(t, time.Since(began), "expiry restarts at once")
		require.False(t, h.send(call("a", "count")).ok().Replayed)
		requireEvents[*messages.SessionExpired](h, 1)
		requireEvents[*messages.SessionRestarted](h, 1)
	})
}

// B3
func TestReplayThatExpiresAgainIsTheCallersFailure(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.send(call("a", "count")).ok()
		h.server.set(func() { h.server.forgetful = true })
		f := h.send(call("a", "count")).fails(messages.CodeExpired)
		require.True(t, f.Replayed)
		require.False(t, f.MayHaveRun)
		require.EqualValues(t, 2, f.Generation)
		h.server.set(func() { h.server.forgetful = false })
		h.send(call("a", "count")).ok()
	})
}

// B4, B5
func TestCallOfTheOldSessionGetsItsResultAndItsReportIsIgnored(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		slow, late := h.send(call("a", "slow")), h.send(call("a", "late", replay(messages.ReplayNever)))
		synctest.Wait()
		h.server.expire("a")
		next := h.send(call("a", "count"))
		synctest.Wait()
		require.False(t, next.answered(), "one live session at a time: the old call has its grace")
		require.Equal(t, "done", slow.text())
		require.EqualValues(t, 1, slow.ok().Generation)
		require.Equal(t, "1", next.text())
		require.False(t, late.answered())
		late.fails(messages.CodeExpired)
		require.EqualValues(t, 2, h.send(call("a", "count")).ok().Generation)
		requireEvents[*messages.SessionExpired](h, 1)
	})
}

// B5
func TestCallOfTheOldSessionIsCutWhenItsGraceIsOver(t *testing.T) {
	inFakeTime(t, supervisor.Config{DrainTimeout: 3 * time.Second}, func(h *harness) {
		hang := h.send(call("a", "hang"))
		synctest.Wait()
		h.server.expire("a")
		began := time.Now()
		next := h.send(call("a", "count"))
		require.True(t, hang.fails(messages.CodeLost).MayHaveRun)
		require.Equal(t, "1", next.text())
		require.Equal(t, 3*time.Second, time.Since(began))
	})
}

// B6
func TestExpiryIsNoticedByEveryOperation(t *testing.T) {
	for name, op := range map[string]messages.Operation{
		"list": &messages.ListTools{Header: messages.To("s", "a")},
		"ping": &messages.Ping{Header: messages.To("s", "a")},
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, supervisor.Config{}, func(h *harness) {
				h.send(call("a", "count")).ok()
				h.server.expire("a")
				r := h.send(op).reply().(messages.Result).GetReceipt()
				require.EqualValues(t, 2, r.Generation)
				require.True(t, r.Replayed)
			})
		})
	}
}

// B5, B6: a session is restarted for another reason, and then a request on its old connection finds that the server does not
// know the session.
func TestSessionThatIsFoundExpiredAfterItsRestartIsNotResumed(t *testing.T) {
	for _, late := range []messages.Operation{&messages.ListTools{}, &messages.Ping{}} {
		t.Run(late.Method(), func(t *testing.T) {
			var returned atomic.Bool
			hooks := faults.Hooks{BeforeCall: func(_ context.Context, _ messages.Key, op messages.Operation) error {
				if op.Method() != late.Method() || returned.Load() {
					return nil
				}
				time.Sleep(2 * time.Second) // synctest: until the session has restarted
				returned.Store(true)
				return &mcpbridge.Error{Class: mcpbridge.Expired, Session: mcpbridge.Gone, Sent: true}
			}}
			cfg := hooks.Config(supervisor.Config{CloseTimeout: 3 * time.Second, DrainTimeout: 3 * time.Second})
			cfg.Servers = []mcpbridge.Server{{Name: "alive", URL: "http://alive.invalid", KeepAlive: 3 * time.Second}}
			inFakeTime(t, cfg, func(h *harness) {
				key := messages.Key{Server: "alive", Scope: "a"}
				h.send(call("a", "stuck", on("alive"), within(time.Second))).fails(messages.CodeDeadline)
				time.Sleep(2 * time.Second) // synctest: until the keepalive ping is due
				h.send(&messages.ListTools{Header: messages.Header{Key: key}})
				time.Sleep(time.Second) // synctest
				requireEvents[*messages.SessionRestarting](h, 1)
				require.False(t, returned.Load())
				require.EqualValues(t, 2, h.send(call("a", "count", on("alive"))).ok().Generation)
				require.True(t, returned.Load())
				h.server.set(func() { require.Nil(t, h.server.dialed[key].Resume) })
			})
		})
	}
}

// B7
func TestSessionThatExpiresWhileDrainingIsNotRebuilt(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		slow := h.send(call("a", "slow"))
		synctest.Wait()
		closed := h.send(&messages.CloseScope{Scope: "a"})
		synctest.Wait()
		h.server.expire("a")
		require.Equal(t, "done", slow.text())
		require.Equal(t, 1, closed.reply().(*messages.Closed).Sessions)
		require.Equal(t, 1, h.dials.dialed())
	})
}

// B9, guarantee 6
func TestErrorsThatAreNotAboutTheSessionNeverRestartIt(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		r := h.send(call("a", "fail")).ok()
		require.True(t, r.Result.IsError)
		h.send(call("a", "refuse")).fails(messages.CodeInvalid)
		require.Equal(t, "1", h.send(call("a", "count")).text())
		require.Equal(t, 1, h.dials.dialed())
		require.Zero(t, countEvents[*messages.SessionRestarting](h))
	})
}

// Guarantee 5: the caller can forbid the replay.
func TestCallerMayForbidEveryReplay(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.send(call("a", "count")).ok()
		h.server.expire("a")
		f := h.send(call("a", "count", replay(messages.ReplayNever))).fails(messages.CodeExpired)
		require.False(t, f.Replayed)
		require.Equal(t, "1", h.send(call("a", "count")).text())
	})
}

// H-B7: two instances behind a balancer, each of which knows its own sessions only.
func TestServerWhoseSessionsExpireAtOnceIsNamedAndDialedEverMoreSeldom(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.send(call("a", "count")).ok()
		time.Sleep(time.Minute) // synctest
		h.server.set(func() { h.server.forgetful = true })
		named := 0
		for range 300 {
			f, is := h.send(call("a", "count")).reply().(*messages.Failure)
			require.True(t, is)
			if f.Code == messages.CodeUnavailable {
				require.Contains(t, f.Detail, "sessions of this server expire at once: is it balanced without affinity?")
				named++
			} else {
				require.ErrorIs(t, f, messages.CodeExpired)
			}
			time.Sleep(time.Second) // synctest
		}
		require.GreaterOrEqual(t, named, 297)
		require.Less(t, h.dials.dialed(), 60, "in five minutes")
		require.NotEmpty(t, h.session("a").Cause)
		h.server.set(func() { h.server.forgetful = false })
		time.Sleep(30 * time.Second) // synctest
		h.send(call("a", "count")).ok()
	})
}

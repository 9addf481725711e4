package tests

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// B1
func TestExpiredSessionIsRebuiltAndItsCallReplayed(t *testing.T) {
	imagine(t, supervisor.Config{}, func(w *world) {
		require.Equal(t, "1", w.send(call("a", "count")).text())
		w.fake.expire("a")
		began := time.Now()
		r := w.send(call("a", "count")).ok()
		require.EqualValues(t, 2, r.Generation)
		require.True(t, r.Replayed)
		require.Zero(t, time.Since(began), "expiry restarts at once")
		require.False(t, w.send(call("a", "count")).ok().Replayed)
		happened[*messages.SessionExpired](w, 1)
		happened[*messages.SessionRestarted](w, 1)
	})
}

// B2
func TestManyCallsThatFindTheSessionExpiredCauseOneRebuild(t *testing.T) {
	imagine(t, supervisor.Config{}, func(w *world) {
		w.send(call("a", "count")).ok()
		w.fake.expire("a")
		for _, p := range w.calls(200, "a", "count") {
			require.EqualValues(t, 2, p.ok().Generation)
		}
		require.Equal(t, 2, w.watch.dialed())
		happened[*messages.SessionExpired](w, 1)
	})
}

// B3
func TestReplayThatExpiresAgainIsTheCallersFailure(t *testing.T) {
	imagine(t, supervisor.Config{}, func(w *world) {
		w.send(call("a", "count")).ok()
		w.fake.set(func() { w.fake.forgetful = true })
		f := w.send(call("a", "count")).fails(messages.CodeExpired)
		require.True(t, f.Replayed)
		require.False(t, f.MayHaveRun)
		require.EqualValues(t, 2, f.Generation)
		w.fake.set(func() { w.fake.forgetful = false })
		w.send(call("a", "count")).ok()
	})
}

// B4, B5
func TestCallOfTheOldSessionEndsInPeaceAndItsReportIsIgnored(t *testing.T) {
	imagine(t, supervisor.Config{}, func(w *world) {
		slow := w.send(call("a", "slow"))
		synctest.Wait()
		w.fake.expire("a")
		next := w.send(call("a", "count"))
		synctest.Wait()
		require.False(t, next.answered(), "one live session at a time: the old call has its grace")
		require.Equal(t, "done", slow.text())
		require.EqualValues(t, 1, slow.ok().Generation)
		require.Equal(t, "1", next.text())
		happened[*messages.SessionExpired](w, 1)
	})
}

// B5
func TestCallOfTheOldSessionIsCutWhenItsGraceIsOver(t *testing.T) {
	imagine(t, supervisor.Config{DrainTimeout: 3 * time.Second}, func(w *world) {
		hang := w.send(call("a", "hang"))
		synctest.Wait()
		w.fake.expire("a")
		began := time.Now()
		next := w.send(call("a", "count"))
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
			imagine(t, supervisor.Config{}, func(w *world) {
				w.send(call("a", "count")).ok()
				w.fake.expire("a")
				r := w.send(op).reply().(messages.Result).GetReceipt()
				require.EqualValues(t, 2, r.Generation)
				require.True(t, r.Replayed)
			})
		})
	}
}

// B7
func TestSessionThatExpiresWhileDrainingIsNotRebuilt(t *testing.T) {
	imagine(t, supervisor.Config{}, func(w *world) {
		slow := w.send(call("a", "slow"))
		synctest.Wait()
		closed := w.send(&messages.CloseScope{Scope: "a"})
		synctest.Wait()
		w.fake.expire("a")
		require.Equal(t, "done", slow.text())
		require.Equal(t, 1, closed.reply().(*messages.Closed).Sessions)
		require.Equal(t, 1, w.watch.dialed())
	})
}

// B9, guarantee 6
func TestErrorsThatAreNotAboutTheSessionNeverRestartIt(t *testing.T) {
	imagine(t, supervisor.Config{}, func(w *world) {
		r := w.send(call("a", "fail")).ok()
		require.True(t, r.Result.IsError)
		w.send(call("a", "refuse")).fails(messages.CodeInvalid)
		require.Equal(t, "1", w.send(call("a", "count")).text())
		require.Equal(t, 1, w.watch.dialed())
		require.Zero(t, count[*messages.SessionRestarting](w))
	})
}

// Guarantee 5: the caller may forbid it.
func TestCallerMayForbidEveryReplay(t *testing.T) {
	imagine(t, supervisor.Config{}, func(w *world) {
		w.send(call("a", "count")).ok()
		w.fake.expire("a")
		f := w.send(call("a", "count", replay(messages.ReplayNever))).fails(messages.CodeExpired)
		require.False(t, f.Replayed)
		require.Equal(t, "1", w.send(call("a", "count")).text())
	})
}

// Finding B7: two instances behind a balancer, each knowing its own sessions only.
func TestServerWhoseSessionsExpireAtOnceIsNamedAndDialedEverMoreSeldom(t *testing.T) {
	imagine(t, supervisor.Config{}, func(w *world) {
		w.send(call("a", "count")).ok()
		time.Sleep(time.Minute) // synctest
		w.fake.set(func() { w.fake.forgetful = true })
		named := 0
		for range 300 {
			f, is := w.send(call("a", "count")).reply().(*messages.Failure)
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
		require.Less(t, w.watch.dialed(), 60, "in five minutes")
		require.NotEmpty(t, w.session("a").Cause)
		w.fake.set(func() { w.fake.forgetful = false })
		time.Sleep(30 * time.Second) // synctest
		w.send(call("a", "count")).ok()
	})
}

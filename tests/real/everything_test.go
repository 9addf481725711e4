//go:build real

package real

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// The tools of the reference server that are used here.
const (
	echo   = "echo"                           // read-only
	toggle = "toggle-simulated-logging"       // keeps state, and says what it was
	fetch  = "gzip-file-as-resource"          // idempotent, gets a URL
	slow   = "trigger-long-running-operation" // read-only, takes as long as it is told
)

var hello = arguments{"message": "hello"}

func TestStateIsKeptAndItsLossIsTold(t *testing.T) {
	each(t, legacy, supervisor.Config{}, func(w *world) {
		for _, was := range []string{"Started", "Stopped", "Started"} {
			require.Contains(t, w.send(call("a", toggle, nil)).text(1), was)
		}
		require.Contains(t, w.send(call("b", toggle, nil)).text(1), "Started", "scopes do not see each other's")
		w.kill()
		w.revive()
		require.Contains(t, w.send(call("a", toggle, nil)).text(2), "Started")
		require.Contains(t, w.send(call("b", toggle, nil)).text(2), "Started")
		require.Contains(t, w.send(call("a", toggle, nil)).text(2), "Stopped")
		require.Contains(t, w.send(call("b", toggle, nil)).text(2), "Stopped")
	})
}

func TestServerThatIsKilledBetweenCallsIsReplaced(t *testing.T) {
	each(t, legacy, supervisor.Config{}, func(w *world) {
		for generation := range uint64(2) {
			require.Equal(t, "Echo: hello", w.send(call("a", echo, hello)).text(generation+1))
			w.kill()
			w.revive()
		}
		require.Equal(t, "Echo: hello", w.send(call("a", echo, hello)).text(3))
	})
}

func TestCallsOfAKilledServerAreLostOrReplayed(t *testing.T) {
	each(t, legacy, supervisor.Config{}, func(w *world) {
		s := w.newSite()
		get := func(path string, r messages.Replay) *pending {
			p := w.send(call("a", fetch, arguments{"name": "page.gz", "data": s.URL + path}, replay(r)))
			w.until("the server has asked for "+path, func() bool { return s.visits(path) == 1 })
			return p
		}
		never := get("/wait/never", messages.ReplayNever)
		idempotent := get("/wait/idempotent", messages.ReplaySafe)
		always := get("/wait/always", messages.ReplayAlways)
		w.kill()
		f := never.fails(messages.CodeLost)
		require.True(t, f.MayHaveRun)
		require.False(t, f.Replayed)
		s.release()
		w.revive()
		require.True(t, idempotent.ok(2).Replayed)
		require.True(t, always.ok(2).Replayed)
		require.Equal(t, 1, s.visits("/wait/never"))
		require.Equal(t, 2, s.visits("/wait/idempotent"))
		require.Equal(t, 2, s.visits("/wait/always"))
		require.False(t, w.send(call("a", echo, hello)).ok(2).Replayed)
	})
}

func TestCallThatIsGivenUpHarmsNoOther(t *testing.T) {
	each(t, everything, supervisor.Config{}, func(w *world) {
		minute := arguments{"duration": 60, "steps": 1}
		cancelled := w.send(call("a", slow, minute, named("slow")))
		require.Equal(t, "Echo: hello", w.send(call("a", echo, hello)).text(1))
		w.system.Root.Send(w.sup.PID(), &messages.Cancel{Key: messages.Key{Server: "s", Scope: "a"}, ID: "slow"})
		cancelled.fails(messages.CodeCancelled)
		w.send(call("a", slow, minute, within(200*time.Millisecond))).fails(messages.CodeDeadline)
		done := w.send(call("a", slow, arguments{"duration": 0.2, "steps": 2}))
		require.Contains(t, done.text(1), "completed")
		require.Zero(t, count[*messages.SessionRestarting](w))
	})
}

func TestScopeThatIsClosedStartsAnew(t *testing.T) {
	each(t, everything, supervisor.Config{}, func(w *world) {
		require.Contains(t, w.send(call("a", toggle, nil)).text(1), "Started")
		require.Contains(t, w.send(call("b", toggle, nil)).text(1), "Started")
		closed := w.send(&messages.CloseScope{Scope: "a"}).reply().(*messages.Closed)
		require.Equal(t, 1, closed.Sessions)
		require.Empty(t, closed.Left)
		require.Contains(t, w.send(call("a", toggle, nil)).text(2), "Started")
		require.Contains(t, w.send(call("a", toggle, nil)).text(2), "Stopped")
		require.Contains(t, w.send(call("b", toggle, nil)).text(1), "Stopped")
	})
}

func TestMoreScopesThanTheCapAreAllServed(t *testing.T) {
	each(t, everything, supervisor.Config{MaxSessions: 2}, func(w *world) {
		said := map[string]*pending{}
		for i := range 30 {
			message := fmt.Sprint("message ", i)
			said[message] = w.send(call(fmt.Sprint(i%4), echo, arguments{"message": message}))
		}
		for message, p := range said {
			require.Equal(t, "Echo: "+message, text(t, p.returns()))
		}
		require.LessOrEqual(t, len(w.send(&messages.Inspect{}).reply().(*messages.Snapshot).Sessions), 2)
		require.GreaterOrEqual(t, count[*messages.SessionEvicted](w), 2)
	})
}

// Its timers keep the process alive when its input has ended.
func TestProcessThatDoesNotEndByItselfIsEnded(t *testing.T) {
	w := newWorld(t)
	w.start(supervisor.Config{}, w.serve("s", everything, stdio))
	require.Contains(t, w.send(call("a", toggle, nil)).text(1), "Started")
	processes := w.servers()
	require.Len(t, processes, 1)
	closed := w.send(&messages.CloseAll{}).reply().(*messages.Closed)
	require.Equal(t, 1, closed.Sessions)
	require.Empty(t, closed.Left)
	require.True(t, allGone(processes))
}

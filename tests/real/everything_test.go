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
	echo     = "echo"                           // read-only
	toggle   = "toggle-simulated-logging"       // keeps state, and returns the previous state
	fetchURL = "gzip-file-as-resource"          // idempotent, fetches a URL
	slow     = "trigger-long-running-operation" // read-only, takes the time that is its argument
)

var hello = arguments{"message": "hello"}

func TestStateIsKeptAndItsLossIsTold(t *testing.T) {
	overEachTransport(t, legacy, supervisor.Config{}, func(h *harness) {
		for _, was := range []string{"Started", "Stopped", "Started"} {
			require.Contains(t, h.send(call("a", toggle, nil)).text(1), was)
		}
		require.Contains(t, h.send(call("b", toggle, nil)).text(1), "Started", "scopes do not see each other's")
		h.killServers()
		h.restartServers()
		require.Contains(t, h.send(call("a", toggle, nil)).text(2), "Started")
		require.Contains(t, h.send(call("b", toggle, nil)).text(2), "Started")
		require.Contains(t, h.send(call("a", toggle, nil)).text(2), "Stopped")
		require.Contains(t, h.send(call("b", toggle, nil)).text(2), "Stopped")
	})
}

func TestServerThatIsKilledBetweenCallsIsReplaced(t *testing.T) {
	overEachTransport(t, legacy, supervisor.Config{}, func(h *harness) {
		for generation := range uint64(2) {
			require.Equal(t, "Echo: hello", h.send(call("a", echo, hello)).text(generation+1))
			h.killServers()
			h.restartServers()
		}
		require.Equal(t, "Echo: hello", h.send(call("a", echo, hello)).text(3))
	})
}

func TestCallsOfAKilledServerAreLostOrReplayed(t *testing.T) {
	overEachTransport(t, legacy, supervisor.Config{}, func(h *harness) {
		s := h.newSite()
		get := func(path string, r messages.Replay) *sentCommand {
			p := h.send(call("a", fetchURL, arguments{"name": "page.gz", "data": s.URL + path}, replay(r)))
			h.eventually("the server has asked for "+path, func() bool { return s.visits(path) == 1 })
			return p
		}
		never := get("/wait/never", messages.ReplayNever)
		idempotent := get("/wait/idempotent", messages.ReplaySafe)
		always := get("/wait/always", messages.ReplayAlways)
		h.killServers()
		f := never.fails(messages.CodeLost)
		require.True(t, f.MayHaveRun)
		require.False(t, f.Replayed)
		s.release()
		h.restartServers()
		require.True(t, idempotent.ok(2).Replayed)
		require.True(t, always.ok(2).Replayed)
		require.Equal(t, 1, s.visits("/wait/never"))
		require.Equal(t, 2, s.visits("/wait/idempotent"))
		require.Equal(t, 2, s.visits("/wait/always"))
		require.False(t, h.send(call("a", echo, hello)).ok(2).Replayed)
	})
}

func TestCallThatIsGivenUpHarmsNoOther(t *testing.T) {
	overEachTransport(t, everything, supervisor.Config{}, func(h *harness) {
		minute := arguments{"duration": 60, "steps": 1}
		cancelled := h.send(call("a", slow, minute, named("slow")))
		require.Equal(t, "Echo: hello", h.send(call("a", echo, hello)).text(1))
		h.system.Root.Send(h.sup.PID(), &messages.Cancel{Key: messages.Key{Server: "s", Scope: "a"}, ID: "slow"})
		cancelled.fails(messages.CodeCancelled)
		h.send(call("a", slow, minute, within(200*time.Millisecond))).fails(messages.CodeDeadline)
		done := h.send(call("a", slow, arguments{"duration": 0.2, "steps": 2}))
		require.Contains(t, done.text(1), "completed")
		require.Zero(t, countEvents[*messages.SessionRestarting](h))
	})
}

func TestScopeThatIsClosedStartsAnew(t *testing.T) {
	overEachTransport(t, everything, supervisor.Config{}, func(h *harness) {
		require.Contains(t, h.send(call("a", toggle, nil)).text(1), "Started")
		require.Contains(t, h.send(call("b", toggle, nil)).text(1), "Started")
		closed := h.send(&messages.CloseScope{Scope: "a"}).reply().(*messages.Closed)
		require.Equal(t, 1, closed.Sessions)
		require.Empty(t, closed.Left)
		require.Contains(t, h.send(call("a", toggle, nil)).text(2), "Started")
		require.Contains(t, h.send(call("a", toggle, nil)).text(2), "Stopped")
		require.Contains(t, h.send(call("b", toggle, nil)).text(1), "Stopped")
	})
}

func TestMoreScopesThanTheCapAreAllServed(t *testing.T) {
	overEachTransport(t, everything, supervisor.Config{MaxSessions: 2}, func(h *harness) {
		said := map[string]*sentCommand{}
		for i := range 30 {
			message := fmt.Sprint("message ", i)
			said[message] = h.send(call(fmt.Sprint(i%4), echo, arguments{"message": message}))
		}
		for message, p := range said {
			require.Equal(t, "Echo: "+message, text(t, p.returns()))
		}
		require.LessOrEqual(t, len(h.send(&messages.Inspect{}).reply().(*messages.Snapshot).Sessions), 2)
		require.GreaterOrEqual(t, countEvents[*messages.SessionEvicted](h), 2)
	})
}

// The timers of the server keep the process alive when its input has ended.
func TestProcessThatDoesNotEndByItselfIsEnded(t *testing.T) {
	h := newHarness(t)
	h.start(supervisor.Config{}, h.serve("s", everything, stdio))
	require.Contains(t, h.send(call("a", toggle, nil)).text(1), "Started")
	processes := h.servers()
	require.Len(t, processes, 1)
	closed := h.send(&messages.CloseAll{}).reply().(*messages.Closed)
	require.Equal(t, 1, closed.Sessions)
	require.Empty(t, closed.Left)
	require.True(t, allEnded(processes))
}

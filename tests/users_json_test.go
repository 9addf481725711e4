package tests

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// slow is encoded by code of the user that takes long.
type slow struct {
	takes  time.Duration
	begun  *atomic.Int32
	panics bool
}

func (s slow) MarshalJSON() ([]byte, error) {
	s.begun.Add(1)
	if time.Sleep(s.takes); s.panics {
		panic("planted")
	}
	return []byte("1"), nil
}

// withSetup returns a server with a call that is made as a session opens.
func withSetup(name string, arguments any) mcpbridge.Server {
	srv := serverAt(name, "http://fake.invalid")
	srv.Setup = []*mcp.CallToolParams{{Name: "login", Arguments: arguments}}
	return srv
}

// The MarshalJSON of a new configuration runs before anything of it holds, and delays no caller.
func TestReloadWaitsForTheUsersJSONOutsideOfTheActor(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.send(call("a", "count")).ok()
		reloading := func(limit time.Duration, arguments slow) (answered chan error) {
			answered = make(chan error)
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), limit)
				defer cancel()
				_, err := h.sup.Reload(ctx, []mcpbridge.Server{withSetup("s", arguments)})
				answered <- err
			}()
			time.Sleep(time.Second)
			return answered
		}
		var begun atomic.Int32
		gaveUp := reloading(5*time.Second, slow{takes: time.Minute, begun: &begun})
		require.NotZero(t, begun.Load())
		p := h.send(call("a", "count"))
		require.Equal(t, "2", p.text())
		require.Zero(t, p.took())
		require.ErrorIs(t, <-gaveUp, context.DeadlineExceeded)
		time.Sleep(2 * time.Minute)
		require.Equal(t, []string{"s", "other"}, h.sup.Servers(), "nothing has changed")
		require.Equal(t, "3", h.send(call("a", "count")).text())

		require.NoError(t, <-reloading(time.Minute, slow{panics: true, begun: &begun}), "it fails the dial, not the reload")
		require.Equal(t, []string{"s"}, h.sup.Servers())
	})
}

// A MarshalJSON that panics fails what needs its text, and not Start.
func TestStartSurvivesAndWaitsForTheUsersJSON(t *testing.T) {
	var begun atomic.Int32
	can := &mcp.ClientCapabilities{Experimental: map[string]any{"x": slow{takes: time.Second, begun: &begun}}}
	inFakeTime(t, supervisor.Config{Capabilities: can, Servers: []mcpbridge.Server{withSetup("setup", slow{takes: time.Second, begun: &begun, panics: true})}}, func(h *harness) {
		before := begun.Load()
		require.NotZero(t, before)
		p := h.send(call("a", "count"))
		p.ok()
		require.Zero(t, p.took())
		require.Equal(t, before, begun.Load())
	})
}

// Whether a handler could be asked anything is found out without the encoding of what is declared.
func TestABindingDoesNotWaitForTheUsersJSON(t *testing.T) {
	var begun atomic.Int32
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		handler := h.system.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}))
		defer h.system.Root.Stop(handler)
		can := &mcp.ClientCapabilities{Extensions: map[string]any{"x": slow{takes: time.Minute, begun: &begun}}}
		bound := h.send(&messages.Bind{Scope: "a", Handler: handler, Capabilities: can})
		require.IsType(t, &messages.Bound{}, bound.reply())
		require.Zero(t, bound.took())
		require.Zero(t, begun.Load())
		require.IsType(t, &messages.Bound{}, h.send(&messages.Bind{Scope: "a"}).reply())
	})
}

package tests

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// serverOf returns the snapshot of a server.
func (h *harness) serverOf(name string) messages.ServerSnapshot {
	h.t.Helper()
	all := h.send(&messages.Inspect{Server: name}).reply().(*messages.Snapshot).Servers
	require.Len(h.t, all, 1)
	return all[0]
}

// withoutLoad returns a snapshot without the load.
func withoutLoad(s messages.ServerSnapshot) messages.ServerSnapshot {
	s.Load = messages.Load{}
	return s
}

// The server was down, and is back. Without Forget, the waiting calls wait for the next
// probe, which hangs; with it they dial at once.
func TestForgetMakesTheNextDialAtOnce(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.openSessions(100)
		h.server.set(func() { h.server.dial = failingDial(unavailableError("connection refused")) })
		h.breakConnections(100)
		var all []*sentCommand
		for i := range 100 {
			all = append(all, h.send(call(scopeName(i), "count", within(10*time.Minute))))
		}
		time.Sleep(20*time.Second + 7*time.Millisecond) // synctest
		require.Equal(t, messages.HealthDown, h.serverOf("s").Health)
		h.server.set(func() {
			h.server.dial = func(ctx context.Context, _ dial.Request) error { <-ctx.Done(); return ctx.Err() }
		})
		time.Sleep(3 * time.Second) // synctest: probes that hang
		h.server.set(func() { h.server.dial = nil })
		began := time.Now()
		h.send(&messages.Forget{ID: "7", Server: "s"}).done()
		for _, p := range all {
			p.ok()
		}
		require.Zero(t, time.Since(began))
		require.Equal(t, messages.HealthUp, h.serverOf("s").Health)
	})
}

// The strategy has given up sessions. After Forget they dial again, and begin with the
// first delay.
func TestForgetEndsTheBackoffOfEachSession(t *testing.T) {
	inFakeTime(t, supervisor.Config{Budget: 1}, func(h *harness) {
		refused := &mcpbridge.Error{Class: mcpbridge.Unavailable, Server: mcpbridge.Present, Detail: "set-up call failed"}
		h.server.dial = failingDial(refused)
		for i := range 200 { // several steps of the registry
			h.send(call(scopeName(i), "count")).fails(messages.CodeUnavailable)
			h.send(call(scopeName(i), "count")).fails(messages.CodeUnavailable)
		}
		require.Positive(t, h.send(call(scopeName(7), "count")).fails(messages.CodeUnavailable).RetryAfter)
		h.server.set(func() { h.server.dial = nil })
		began := time.Now()
		h.send(&messages.Forget{Server: "s"}).done()
		require.Zero(t, h.inspect().States[messages.StateBroken])
		h.openSessions(200)
		require.Zero(t, time.Since(began))
	})
}

// Credentials that were refused are sent again, although they are the same.
func TestForgetSendsRefusedCredentialsAgain(t *testing.T) {
	var refuses atomic.Bool
	refuses.Store(true)
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.server.dial = func(_ context.Context, req dial.Request) error {
			switch {
			case req.Refused != nil:
				return req.Refused
			case refuses.Load():
				return &mcpbridge.Error{Class: mcpbridge.Unauthorized, Server: mcpbridge.Present, Detail: "401"}
			}
			return nil
		}
		h.send(call("a", "count")).fails(messages.CodeUnauthorized)
		refuses.Store(false)
		h.send(call("a", "count")).fails(messages.CodeUnauthorized)
		h.send(&messages.Forget{Server: "s"}).done()
		h.send(call("a", "count")).ok()
	})
}

// Open sessions notice nothing, and other servers are not forgotten.
func TestForgetTouchesNoOpenSessionAndNoOtherServer(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		slow := h.send(call("a", "slow"))
		h.server.set(func() { h.server.dial = failingDialOf("other") })
		down := h.send(call("a", "count", on("other"), within(time.Minute)))
		synctest.Wait()
		h.send(&messages.Forget{Server: "s"}).done()
		require.Equal(t, "done", slow.text())
		require.EqualValues(t, 1, h.send(call("a", "count")).ok().Generation)
		require.Equal(t, messages.HealthDown, h.serverOf("other").Health)
		require.Equal(t, messages.HealthUnknown, h.serverOf("s").Health)

		require.Contains(t, h.send(&messages.Forget{ID: "9", Server: "none"}).fails(messages.CodeUnknownServer).Detail, `"none"`)
		h.send(&messages.Forget{}).fails(messages.CodeUnknownServer)
		asValue[*messages.Done](h, messages.Forget{Server: "other"})
		h.server.set(func() { h.server.dial = nil })
		down.ok()
	})
}

// Inspect lists each configured server with its health, also without sessions.
func TestInspectListsConfiguredServersWithTheirHealth(t *testing.T) {
	cfg := supervisor.Config{Servers: []mcpbridge.Server{{Name: "unused", URL: "http://unused.invalid"}}}
	inFakeTime(t, cfg, func(h *harness) {
		names := func() (all []string) {
			for _, one := range h.inspect().Servers {
				all = append(all, one.Name)
			}
			return all
		}
		require.Equal(t, []string{"other", "s", "unused"}, names())
		require.Equal(t, messages.ServerSnapshot{Name: "unused", Health: messages.HealthUnknown}, h.serverOf("unused"))

		opened := time.Now()
		h.send(call("a", "count")).ok()
		require.Equal(t, messages.ServerSnapshot{Name: "s", Health: messages.HealthUp, Since: opened, Sessions: 1, States: map[messages.State]int{messages.StateReady: 1}}, withoutLoad(h.serverOf("s")))
		time.Sleep(time.Minute) // synctest
		h.send(call("b", "count")).ok()
		require.Equal(t, messages.ServerSnapshot{Name: "s", Health: messages.HealthUp, Since: opened, Sessions: 2, States: map[messages.State]int{messages.StateReady: 2}}, withoutLoad(h.serverOf("s")))

		h.server.set(func() { h.server.dial = failingDial(unavailableError("connection refused")) })
		wentDown := time.Now()
		p := h.send(call("a", "count", on("other"), within(time.Hour)))
		time.Sleep(5 * time.Second) // synctest
		other := h.serverOf("other")
		require.Equal(t, messages.HealthDown, other.Health)
		require.Equal(t, wentDown, other.Since)
		require.Contains(t, other.Cause, "connection refused")
		require.WithinDuration(t, time.Now(), other.RetryAt, time.Second)
		require.Equal(t, 1, other.Sessions)
		require.Equal(t, map[messages.State]int{messages.StateWaiting: 1}, other.States)
		text, err := json.Marshal(other)
		require.NoError(t, err)
		require.Contains(t, string(text), `{"name":"other","health":"down","since":"`)
		require.Contains(t, string(text), `","cause":"`)
		require.Contains(t, string(text), `,"sessions":1,"states":{"waiting":1},"load":{"inFlight":0,"waiting":1,"succeeded":0,`)

		h.server.set(func() {
			h.server.dial = func(ctx context.Context, _ dial.Request) error { <-ctx.Done(); return ctx.Err() }
		})
		time.Sleep(1500 * time.Millisecond) // synctest
		require.Equal(t, 1, h.serverOf("other").States[messages.StateConnecting])
		h.server.set(func() { h.server.dial = nil })
		back := p.ok()
		require.NotNil(t, back)
		require.True(t, h.serverOf("other").Since.After(wentDown))
		require.Empty(t, h.serverOf("other").Cause)
		require.Len(t, h.send(&messages.Inspect{Server: "none"}).reply().(*messages.Snapshot).Servers, 0)
		require.Equal(t, []string{"other", "s", "unused"}, names())
	})
}

// After a reload, the servers are the new ones. What was not changed keeps its health.
func TestInspectListsTheServersOfTheLastReload(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.server.set(func() { h.server.dial = failingDialOf("s") })
		h.send(call("a", "count", within(time.Second))).fails(messages.CodeUnavailable)
		h.send(call("a", "count", on("other"))).ok()
		before := h.serverOf("s")
		require.Equal(t, messages.HealthDown, before.Health)
		_, err := h.sup.Reload(context.Background(), []mcpbridge.Server{
			{Name: "s", URL: "http://fake.invalid"}, {Name: "other", URL: "http://elsewhere.invalid"}, {Name: "new", URL: "http://fake.invalid"},
		})
		require.NoError(t, err)
		require.Equal(t, before.Since, h.serverOf("s").Since)
		require.Equal(t, before.Cause, h.serverOf("s").Cause)
		require.Equal(t, messages.HealthDown, h.serverOf("new").Health, "its URL is the same")
		require.Equal(t, messages.ServerSnapshot{Name: "other", Health: messages.HealthUnknown}, withoutLoad(h.serverOf("other")), "its URL has changed")
		_, err = h.sup.Reload(context.Background(), []mcpbridge.Server{{Name: "new", URL: "http://fake.invalid"}})
		require.NoError(t, err)
		require.Len(t, h.inspect().Servers, 1)
		h.server.set(func() { h.server.dial = nil })
	})
}

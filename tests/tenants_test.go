package tests

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// tenants is a configuration in which the tenant is the scope up to the first "/".
func tenants(quota int, cfg supervisor.Config) supervisor.Config {
	cfg.Tenant, cfg.MaxSessionsPerTenant = supervisor.ScopePrefix("/"), quota
	return cfg
}

// dialsTake makes each dial to the fake server take some time.
func (f *fakeServer) dialsTake(d time.Duration) {
	f.set(func() {
		f.dial = func(ctx context.Context, _ dial.Request) error {
			select {
			case <-time.After(d):
				return nil
			case <-ctx.Done():
				return unavailableError("too slow")
			}
		}
	})
}

func TestTenantThatFloodsEvictsOnlyItsOwnSessionsAndDelaysNobody(t *testing.T) {
	const dial = 100 * time.Millisecond
	inFakeTime(t, tenants(4, supervisor.Config{MaxSessions: 20, MaxDials: 2}), func(h *harness) {
		h.server.dialsTake(dial)
		var quiet []string
		for i := range 9 {
			quiet = append(quiet, fmt.Sprintf("quiet-%d/%d", i%3, i/3))
			h.send(call(quiet[i], "count")).ok()
		}
		var flood []*sentCommand
		for i := range 300 {
			flood = append(flood, h.send(call(fmt.Sprint("noisy/", i), "count")))
		}
		for round := range 10 {
			for _, scope := range quiet {
				p := h.send(call(scope, "count"))
				require.EqualValues(t, 1, p.ok().Generation)
				require.Zero(t, p.took())
			}
			// A new session has to wait for one dial that runs, and for its own. One of a tenant
			// at its quota may have to wait for one more dial while an old session closes.
			p := h.send(call(fmt.Sprintf("quiet-%d/new-%d", round%3, round), "count", on("other")))
			require.LessOrEqual(t, p.took(), 2*dial, round)
			p = h.send(call(fmt.Sprint("another/", round), "count"))
			require.LessOrEqual(t, p.took(), 3*dial, round)
		}
		for _, p := range flood {
			p.ok()
		}
		synctest.Wait()
		for event := range h.seen {
			if e, is := event.(*messages.SessionEvicted); is {
				require.Equal(t, messages.EvictTenantQuota, e.Reason)
				require.NotContains(t, quiet, e.Key.Scope) // a new one is evicted for the next new one
			}
		}
		for _, tenant := range []string{"noisy", "another", "quiet-0", "quiet-1", "quiet-2"} {
			require.LessOrEqual(t, h.dials.mostOpenOf("tenant "+tenant), 4, tenant)
		}
		for _, s := range h.inspect().Sessions {
			require.Equal(t, tenantOf(s.Key), s.Tenant)
		}
	})
}

func TestTenantAtItsQuotaOfBusySessionsWaitsAndIsBusyAtTheDeadline(t *testing.T) {
	inFakeTime(t, tenants(2, supervisor.Config{}), func(h *harness) {
		busy := []*sentCommand{h.send(call("t/1", "hang", within(30*time.Second))), h.send(call("t/2", "hang", within(30*time.Second), on("other")))}
		synctest.Wait()
		early, patient := h.send(call("t/3", "count", within(5*time.Second))), h.send(call("t/4", "count", within(40*time.Second)))
		require.Equal(t, "1", h.send(call("u/1", "count")).text()) // of another tenant
		require.Contains(t, early.fails(messages.CodeBusy).Detail, "no other session of the tenant could be closed to make room for this one (MaxSessionsPerTenant)")
		require.Equal(t, 5*time.Second, early.took())
		for _, p := range busy { // a busy session is drained, and nothing of it is cut
			p.fails(messages.CodeDeadline)
			require.Equal(t, 30*time.Second, p.took())
		}
		patient.ok()
		require.Less(t, patient.took(), 31*time.Second)
	})
}

func TestTenantHasAsManyWaitingCallsAsTheSessionsOfItsQuotaMayHave(t *testing.T) {
	inFakeTime(t, tenants(2, supervisor.Config{MaxInFlight: 1, MaxWaiting: 1}), func(h *harness) {
		h.server.dialsTake(time.Second)
		var waiting []*sentCommand
		for i := range 4 {
			waiting = append(waiting, h.send(call(fmt.Sprint("t/", i), "count")))
		}
		f := h.send(call("t/5", "count")).fails(messages.CodeBusy)
		require.Contains(t, f.Detail, "4 calls of all sessions of the tenant are waiting")
		h.send(call("u/1", "count")).ok()
		for _, p := range waiting {
			p.ok()
		}
	})
}

func TestTenantWhoseServerIsDownKeepsItsSessionsOnOtherServers(t *testing.T) {
	inFakeTime(t, tenants(3, supervisor.Config{}), func(h *harness) {
		h.send(call("t/1", "count", on("other"))).ok()
		h.send(call("t/2", "count", on("other"))).ok()
		h.server.set(func() {
			h.server.dial = func(_ context.Context, req dial.Request) error {
				if req.Key.Server == "s" {
					return unavailableError("connection refused")
				}
				return nil
			}
		})
		failing := []*sentCommand{h.send(call("t/0", "count", within(20*time.Second)))}
		time.Sleep(time.Second) // now the server is known to be down
		for i := range 20 {
			failing = append(failing, h.send(call(fmt.Sprint("t/", i), "count", within(20*time.Second))))
		}
		for range 10 { // the probes need one slot, and for a moment two
			time.Sleep(time.Second)
			h.send(call("t/2", "count", on("other"))).ok()
			require.EqualValues(t, 1, h.send(call("t/2", "count", on("other"))).ok().Generation)
		}
		for _, p := range failing {
			p.fails(messages.CodeUnavailable)
		}
	})
}

// The bound of sessions without a connection is common to all. Who exceeds it loses its own.
func TestTenantWithManySessionsWithoutAConnectionLosesOnlyItsOwn(t *testing.T) {
	cfg := tenants(2, supervisor.Config{Servers: []mcpbridge.Server{{Name: "process", Command: "none"}}})
	inFakeTime(t, cfg, func(h *harness) {
		spawn := func(scope string) {
			for _, release := range []bool{false, true} {
				cmd := pin("process", scope)
				cmd.Release = release
				require.IsType(t, &messages.Pinned{}, h.send(cmd).reply())
			}
		}
		spawn("quiet/1")
		for i := range 1100 {
			spawn(fmt.Sprint("noisy/", i))
		}
		synctest.Wait()
		snap := h.send(&messages.Inspect{Limit: -1}).reply().(*messages.Snapshot)
		require.LessOrEqual(t, snap.Total, 1025, "the latest may have been pinned when the bound was looked at")
		counts := map[string]int{}
		for _, s := range snap.Sessions {
			counts[s.Tenant]++
		}
		require.Equal(t, map[string]int{"quiet": 1, "noisy": snap.Total - 1}, counts)
	})
}

func TestTenantsFunctionThatPanicsMakesOneTenant(t *testing.T) {
	cfg := supervisor.Config{MaxSessionsPerTenant: 1, Tenant: func(k messages.Key) string {
		if strings.HasPrefix(k.Scope, "bad") {
			panic("no such tenant")
		}
		return "" // without a quota
	}}
	inFakeTime(t, cfg, func(h *harness) {
		for _, scope := range []string{"a", "b", "bad-1", "bad-2"} {
			h.send(call(scope, "count")).ok()
		}
		e := awaitEvent(h, func(*messages.SessionEvicted) bool { return true })
		require.Equal(t, "bad-1", e.Key.Scope)
		require.Equal(t, 3, h.inspect().Open)
		require.Equal(t, "?", h.session("bad-2").Tenant)
		require.Empty(t, h.session("a").Tenant)
	})
}

func TestScopePrefixIsNeverEmpty(t *testing.T) {
	for scope, want := range map[string]string{"acme/1/2": "acme", "acme": "acme", "/1": "/1", "default": "default"} {
		require.Equal(t, want, supervisor.ScopePrefix("/")(messages.Key{Scope: scope}))
	}
	require.Equal(t, "acme/1", supervisor.ScopePrefix("")(messages.Key{Scope: "acme/1"}))
}

// seen yields the events so far.
func (h *harness) seen(yield func(messages.Event) bool) {
	h.mu.Lock()
	events := h.events
	h.mu.Unlock()
	for _, e := range events {
		if !yield(e) {
			return
		}
	}
}

package tests

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// The tenants of a server with PerKey take turns, however many endpoints their keys lead to and
// whichever of these are down. The limits of the server apply: MaxDials to each endpoint, and
// MaxSessions to all of them together.
func TestTenantsTakeTurnsAtTheEndpointsOfTheirKeys(t *testing.T) {
	t.Run("quota", func(t *testing.T) { tenantsTakeTurns(t, 3, messages.EvictTenantQuota) })
	t.Run("cap", func(t *testing.T) { tenantsTakeTurns(t, 1000, messages.EvictServerCap) })
}

func tenantsTakeTurns(t *testing.T, quota int, reason messages.EvictReason) {
	t.Helper()
	const dial = 100 * time.Millisecond
	base := mcpbridge.Server{Name: "keyed", URL: "https://keyed.invalid", Limits: mcpbridge.Limits{MaxDials: 2, MaxSessions: 9, CallTimeout: time.Minute}}
	srv := keyed(base, func(s *mcpbridge.Server, scope string) error {
		if tenant, user, _ := strings.Cut(scope, "/"); tenant == "quiet" {
			s.URL += "/quiet"
		} else {
			s.URL += "/" + tenant + "-" + user[len(user)-1:]
		}
		return nil
	})
	inFakeTime(t, tenants(quota, supervisor.Config{Servers: []mcpbridge.Server{srv}}), func(h *harness) {
		var mu sync.Mutex
		running, all, most := map[string]int{}, 0, 0
		h.server.set(func() {
			h.server.dial = addressed(&srv, func(_ context.Context, url string) error {
				mu.Lock()
				running[url]++
				all++
				most = max(most, all)
				tooMany := running[url] > 2
				mu.Unlock()
				time.Sleep(dial) // synctest
				mu.Lock()
				defer mu.Unlock()
				running[url]--
				all--
				if tooMany {
					t.Errorf("more than MaxDials dials to %s at once", url)
				}
				if strings.Contains(url, "down") || strings.HasSuffix(url, "noisy-7") {
					return unavailableError("connection refused")
				}
				return nil
			})
		})
		var flood, lost []*sentCommand
		for i := range 100 {
			p := h.send(call(fmt.Sprint("noisy/", i), "count", on("keyed")))
			if i%10 == 7 {
				lost = append(lost, p)
			} else {
				flood = append(flood, p)
			}
			lost = append(lost, h.send(call(fmt.Sprint("down/", i), "count", on("keyed"))))
		}
		synctest.Wait()
		for round := range 20 {
			p := h.send(call(fmt.Sprint("quiet/", round), "count", on("keyed")))
			require.LessOrEqual(t, p.took(), 4*dial, round)
		}
		for _, p := range flood {
			p.ok()
		}
		for _, p := range lost {
			p.fails(messages.CodeUnavailable)
		}
		mu.Lock()
		defer mu.Unlock()
		require.Greater(t, most, 2, "endpoints are dialed at the same time")
		for _, tenant := range []string{"noisy", "down", "quiet"} {
			require.LessOrEqual(t, h.dials.mostOpenOf("tenant "+tenant), min(quota, 9), tenant)
		}
		for event := range h.seen {
			if e, is := event.(*messages.SessionEvicted); is {
				require.Equal(t, reason, e.Reason)
			}
		}
	})
}

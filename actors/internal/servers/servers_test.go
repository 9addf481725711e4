package servers

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/internal/relay"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// A reload replaces the servers that have changed. Those whose limits have changed stay.
func TestAReloadReplacesTheServersThatHaveChanged(t *testing.T) {
	cfg := &contract.Config{Config: protocol.Config{
		Servers:     []mcpbridge.Server{{Name: "same", URL: "http://a"}, {Name: "changed", URL: "http://a"}, {Name: "limited", URL: "http://a"}, {Name: "removed", URL: "http://a"}},
		MaxSessions: 10, MaxInFlight: 5, MaxDials: 1, Random: rand.Float64, Logger: relay.NewLogger(zerolog.Nop()),
	}}
	of := table.New(nil, table.Tenants{})
	s := New(cfg, of, NewGate(cfg))
	before := of.Servers
	limited := mcpbridge.Server{Name: "limited", URL: "http://a", Limits: mcpbridge.Limits{MaxInFlight: 7}}
	next := s.Next([]mcpbridge.Server{{Name: "same", URL: "http://a"}, {Name: "changed", URL: "http://b"}, limited, {Name: "added", URL: "http://a"}}, map[string]string{"added": "class"})
	require.Len(t, before, 4)
	require.NotNil(t, before["removed"], "they are used until they are replaced")
	replaced := s.Replace(next)
	slices.Sort(replaced)
	require.Equal(t, []string{"changed", "removed"}, replaced)
	require.Len(t, of.Servers, 4)
	require.Same(t, before["same"], of.Servers["same"])
	require.Same(t, before["limited"], of.Servers["limited"])
	require.Equal(t, 7, of.Servers["limited"].Resolved.MaxInFlight)
	require.NotSame(t, before["changed"], of.Servers["changed"])
	require.Equal(t, "class", of.Servers["added"].Class)
}

func TestLimitsOfAServerAreThoseOfTheSupervisorUnlessItHasItsOwn(t *testing.T) {
	cfg := &contract.Config{Config: protocol.Config{MaxInFlight: 5, MaxWaiting: 6, IdleTimeout: 7}}
	require.Equal(t, &mcpbridge.Limits{MaxInFlight: 5, MaxWaiting: 6, IdleTimeout: 7}, LimitsOf(cfg, mcpbridge.Limits{}))
	require.Equal(t, &mcpbridge.Limits{MaxSessions: 1, MaxInFlight: 2, MaxWaiting: 1 << 24}, LimitsOf(cfg, mcpbridge.Limits{MaxSessions: 1, MaxInFlight: 2, MaxWaiting: -1, IdleTimeout: -1}))
}

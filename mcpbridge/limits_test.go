package mcpbridge_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

func TestLimitsAreNoDifferenceBetweenServers(t *testing.T) {
	one := mcpbridge.Server{Name: "s", URL: "http://localhost/mcp"}
	two := one
	two.Limits = mcpbridge.Limits{MaxSessions: 3, CallTimeout: time.Minute}
	require.True(t, one.Same(&two))
	require.Equal(t, one.Endpoint(), two.Endpoint())
	two.NoStream = true
	require.False(t, one.Same(&two))
}

func TestWrongLimitIsNamed(t *testing.T) {
	require.NoError(t, mcpbridge.Limits{}.Validate())
	require.NoError(t, mcpbridge.Limits{MaxWaiting: -1, IdleTimeout: -1, CallTimeout: -1}.Validate())
	for want, l := range map[string]mcpbridge.Limits{
		"maxInFlight: -2 is negative: -1 is no limit":      {MaxInFlight: -2},
		"drainTimeout: -2ns is negative: -1ns is no limit": {DrainTimeout: -2},
	} {
		require.EqualError(t, l.Validate(), want)
	}
	server := mcpbridge.Server{Name: "s", Command: "x", Limits: mcpbridge.Limits{MaxDials: -2}}
	require.EqualError(t, server.Validate(), "limits.maxDials: -2 is negative: -1 is no limit")
}

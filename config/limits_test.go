package config_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

func TestLimitsOfAServerAreRead(t *testing.T) {
	file, err := parse(`
mcpServers:
  a:
    command: x
    limits:
      maxSessions: 8
      maxInFlight: 2
      maxWaiting: -1
      maxDials: 1
      idleTimeout: -1ns
      connectTimeout: 1m
      callTimeout: 5m
      drainTimeout: 1s
      closeTimeout: 2s
      handlerTimeout: 3s
      maxRepeats: 9
      bounds:
        - perMinute: 60
        - {tool: "send_*", shared: true, total: 5, inFlight: 1}
  b:
    command: x
    limits: {bounds: []}
supervisor: {maxRepeats: 20, bounds: [{total: 100}]}
`)
	require.NoError(t, err)
	require.Equal(t, mcpbridge.Limits{
		MaxSessions: 8, MaxInFlight: 2, MaxWaiting: -1, MaxDials: 1, IdleTimeout: -1, ConnectTimeout: time.Minute,
		CallTimeout: 5 * time.Minute, DrainTimeout: time.Second, CloseTimeout: 2 * time.Second, HandlerTimeout: 3 * time.Second, MaxRepeats: 9,
		Bounds: []mcpbridge.Bound{{PerMinute: 60}, {Tool: "send_*", Shared: true, Total: 5, InFlight: 1}},
	}, file.Supervisor.Servers[0].Limits)
	require.Equal(t, mcpbridge.Limits{Bounds: []mcpbridge.Bound{}}, file.Supervisor.Servers[1].Limits)
	require.Equal(t, []mcpbridge.Bound{{Total: 100}}, file.Supervisor.Bounds)
	require.Equal(t, 20, file.Supervisor.MaxRepeats)
}

func TestWrongLimitsAreNamedWithTheirLine(t *testing.T) {
	for limits, want := range map[string]string{
		"{\n\"maxDials\": 2,\n\"maxSessions\": -2}": `line 3: mcpServers.a.limits.maxSessions: -2 is negative: -1 is no limit`,
		"{\n\"idleTimeout\": \"-5s\"}":              `line 2: mcpServers.a.limits.idleTimeout: -5s is negative: -1ns is no limit`,
		"{\n\"callTimeout\": 5}":                    `line 2: mcpServers.a.limits.callTimeout: want a duration such as "30s"`,
		"{\n\"maxSession\": 5}":                     `line 2: mcpServers.a.limits.maxSession: is not a field: did you mean "maxSessions"?`,
		"{\n\"keepAlive\": \"5s\"}":                 `line 2: mcpServers.a.limits.keepAlive: is not a field; the fields are bounds, callTimeout`,
		"{\n\"bounds\": [{\"total\": 1},\n{}]}":     `line 3: mcpServers.a.limits.bounds[1]: perMinute, total and inFlight are all 0: it bounds nothing`,
		"{\n\"bounds\": [{\"total\": -1}]}":         `line 2: mcpServers.a.limits.bounds[0]: total: -1 is negative: 0 is no bound`,
		"{\n\"bounds\": [{\"tool\": \"[\"}]}":       `line 2: mcpServers.a.limits.bounds[0]: tool: "[" is not a pattern: syntax error in pattern`,
		"{\n\"bounds\": [{\"perminute\": 1}]}":      `line 2: mcpServers.a.limits.bounds[0].perminute: is not a field: did you mean "perMinute"?`,
		"{\n\"bounds\": {}}":                        `line 2: mcpServers.a.limits.bounds: is an object, want a list`,
		"{\n\"maxRepeats\": -2}":                    `line 2: mcpServers.a.limits.maxRepeats: -2 is negative: -1 is no limit`,
		"5":                                         `line 1: mcpServers.a.limits: is a number, want an object`,
	} {
		_, err := parse(`{"mcpServers": {"a": {"command": "x", "limits": ` + limits + `}}}`)
		require.ErrorContains(t, err, want)
	}
}

func TestTenantsAreAPrefixOfTheScope(t *testing.T) {
	file, err := parse(`{"mcpServers": {"a": {"command": "x"}}, "supervisor": {"maxSessionsPerTenant": 5, "tenantSeparator": "::"}}`)
	require.NoError(t, err)
	require.Equal(t, 5, file.Supervisor.MaxSessionsPerTenant)
	require.Equal(t, "acme", file.Supervisor.Tenant(messages.Key{Scope: "acme::1::2"}))
	file, err = parse(`{"mcpServers": {"a": {"command": "x"}}}`)
	require.NoError(t, err)
	require.Nil(t, file.Supervisor.Tenant)

	for settings, want := range map[string]string{
		"{\n\"maxSessionsPerTenant\": 5}":   "line 2: supervisor.maxSessionsPerTenant: needs tenantSeparator",
		"{\n\"tenantSeparator\": \"\"}":     "line 2: supervisor.tenantSeparator: is empty",
		"{\n\"tenantSeparator\": 5}":        "line 2: supervisor.tenantSeparator: is a number, want a string",
		"{\n\"maxSessionPerTenants\": 5\n}": `did you mean "maxSessionsPerTenant"?`,
	} {
		_, err := parse(`{"mcpServers": {"a": {"command": "x"}}, "supervisor": ` + settings + `}`)
		require.ErrorContains(t, err, want)
	}
}

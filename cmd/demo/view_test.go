package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

func TestEventsAreDescribedInWords(t *testing.T) {
	stamp := messages.Stamp{Key: messages.Key{Server: "web", Scope: "a"}}
	for want, event := range map[string]messages.Event{
		"web/a restarts at once, attempt 1": &messages.SessionRestarting{Stamp: stamp, Attempt: 1},
		"web/a restarts in 37ms, attempt 2": &messages.SessionRestarting{Stamp: stamp, Attempt: 2, Delay: 37 * time.Millisecond},
		"web/a restarts in 1ms, attempt 3":  &messages.SessionRestarting{Stamp: stamp, Attempt: 3, Delay: 1200 * time.Microsecond},
		"web/a call_replayed":               &messages.CallReplayed{Stamp: stamp},
	} {
		require.Equal(t, want, describe(event))
	}
	require.Equal(t, "1 call, 2 calls", calls(1)+", "+calls(2))
}

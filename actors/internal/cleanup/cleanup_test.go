package cleanup

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox/mailboxtest"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// After a bug, the actor waits for the connections that are being closed: they use its slot. If it has not begun, it gives up.
func TestAfterABugTheActorWaitsForWhatItCloses(t *testing.T) {
	left := []contract.Leftover{{Resume: &mcpbridge.Resume{SessionID: "one"}}}
	for _, closes := range []bool{true, false} {
		registry, read := mailboxtest.New()
		a := &cleanup{
			Child:    contract.Child{Config: &contract.Config{}, Registry: registry, Limits: new(mcpbridge.Limits)},
			sessions: Sessions{Leftovers: left}, closes: closes, bug: &actors.Fault{Cause: &mcpbridge.Error{Detail: "a bug"}},
		}
		a.onStarted()
		if !closes {
			require.Len(t, (*read)[0].(*contract.SessionClosed).Leftovers, 1)
			continue
		}
		require.Empty(t, *read)
		a.state(&leftoversClosed{count: 1})
		require.Equal(t, &mailboxtest.Inbox{&contract.SessionClosed{CleanedUp: 1}}, read)
	}
}

package cleanup

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// inbox has what the registry is sent.
type inbox []any

func (b *inbox) InvokeUserMessage(msg any) { *b = append(*b, msg) }
func (*inbox) InvokeSystemMessage(any)     {}
func (*inbox) EscalateFailure(_, _ any)    {}

// After a bug, the actor waits for the connections that are being closed: they use its slot. If it has not begun, it gives up.
func TestAfterABugTheActorWaitsForWhatItCloses(t *testing.T) {
	left := []contract.Leftover{{Resume: &mcpbridge.Resume{SessionID: "one"}}}
	for _, closes := range []bool{true, false} {
		read, registry := new(inbox), new(mailbox.Mailbox)
		registry.RegisterHandlers(read, actor.NewSynchronizedDispatcher(1))
		a := &cleanup{
			Child: contract.Child{Config: &contract.Config{}, Registry: registry, Limits: new(mcpbridge.Limits)},
			work:  Work{Leftovers: left}, closes: closes, bug: &actors.Fault{Cause: &mcpbridge.Error{Detail: "a bug"}},
		}
		a.onStarted()
		if !closes {
			require.Len(t, (*read)[0].(*contract.SessionClosed).Leftovers, 1)
			continue
		}
		require.Empty(t, *read)
		a.state(&leftoversClosed{count: 1})
		require.Equal(t, &inbox{&contract.SessionClosed{CleanedUp: 1}}, read)
	}
}

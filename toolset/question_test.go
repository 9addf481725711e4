package toolset

import (
	"context"
	"runtime"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

func TestQuestionThatEndsWithItsCallIsNoRefusal(t *testing.T) {
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		answered, result := make(chan struct{}), make(chan error, 1)
		p := &Policy{Ask: func(ctx context.Context, _ Proposal) (Decision, error) {
			defer close(answered)
			cancel()
			return Decision{}, ctx.Err()
		}}
		p.mu.Lock() // the answer comes before the call waits for it
		go func() {
			_, err := p.ask(ctx, &Tool{}, &messages.CallTool{Params: &mcp.CallToolParams{}})
			result <- err
		}()
		<-answered
		for range 10 {
			runtime.Gosched()
		}
		p.mu.Unlock()
		require.ErrorIs(t, <-result, messages.CodeCancelled)
	}
}

package bridge

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// dialTest opens a session with a server named "test".
func dialTest(t *testing.T, srv *mcpbridge.Server) (dial.Conn, *mcpbridge.Error) {
	t.Helper()
	b := New([]mcpbridge.Server{*srv}, nil)
	t.Cleanup(b.Close)
	c, err := b.Dial(context.Background(), dial.Request{Key: messages.Key{Server: "test"}, Down: func(*mcpbridge.Error) {}})
	return c, mcpbridge.AsError(err)
}

// A process that ends during the handshake is unavailable, whatever it has
// answered before: it may work the next time.
func TestProcessThatEndsDuringTheHandshakeIsUnavailable(t *testing.T) {
	acts := []string{"die", "quitter"}
	if runtime.GOOS == "linux" { // elsewhere it is unknown whether the process has read the ping
		acts = append(acts, "waverer")
	}
	for _, act := range acts {
		t.Run(act, func(t *testing.T) {
			for range 20 {
				c, e := dialTest(t, server(act))
				if c != nil { // the last one may get that far, and is found dead then
					_, err := c.Do(context.Background(), &messages.Ping{})
					e = mcpbridge.AsError(err)
					require.Equal(t, mcpbridge.Broken, e.Session)
					require.NoError(t, c.Close(context.Background()))
				}
				require.Equal(t, messages.CodeUnavailable, e.Class.Code(), "%v", e)
				require.Contains(t, e.Detail, "exited with status")
			}
		})
	}
}

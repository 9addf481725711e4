//go:build linux

package mcpbridge

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

// dialTest opens a session with a server named "test".
func dialTest(t *testing.T, srv *Server) (Conn, *Error) {
	t.Helper()
	b := New([]Server{*srv}, nil)
	t.Cleanup(b.Close)
	c, err := b.Dial(context.Background(), DialRequest{Key: messages.Key{Server: "test"}, Down: func(*Error) {}})
	return c, AsError(err)
}

// A process that ends during the handshake is unavailable, whatever it has
// answered before: it may work the next time.
func TestProcessThatEndsDuringTheHandshakeIsUnavailable(t *testing.T) {
	for _, act := range []string{"die", "quitter", "waverer"} {
		t.Run(act, func(t *testing.T) {
			for range 20 {
				c, e := dialTest(t, server(act))
				if c != nil { // the last one may get that far, and is found dead then
					_, err := c.Do(context.Background(), &messages.Ping{})
					e = AsError(err)
					require.Equal(t, Broken, e.Session)
					require.NoError(t, c.Close(context.Background()))
				}
				require.Equal(t, messages.CodeUnavailable, e.Class.Code(), "%v", e)
				require.Contains(t, e.Detail, "exited with status")
			}
		})
	}
}

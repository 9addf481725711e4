package bridge

import (
	"context"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/internal/introduction"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/messages"
)

// The control that replaces a session has said what the dial says, and so the dial adopts it. A session that is resumed
// has said what it said first.
func TestControlSaysOfItselfWhatItsSessionDoes(t *testing.T) {
	s := newSessions(refusals["400, text"])
	srv := s.server()
	base := srv
	srv.PerKey = func(ctx context.Context, _ messages.Key) (mcpbridge.Server, error) {
		one := base
		if in := introduction.Of(ctx); in != nil {
			one.ClientInfo = in.ClientInfo
		}
		return one, nil
	}
	b := New([]mcpbridge.Server{srv}, nil)
	s.bridge = b
	t.Cleanup(b.Close)
	req := dial.Request{Key: messages.Key{Server: "test"}, Down: func(*mcpbridge.Error) {}}
	said := func(name string) *messages.Introduction {
		return &messages.Introduction{ClientInfo: &mcp.Implementation{Name: name, Version: "1"}}
	}
	open := func(name string) dial.Conn {
		req.Introduction = said(name)
		c, err := b.Dial(t.Context(), req)
		require.NoError(t, err)
		require.Equal(t, name, c.(*conn).at.ClientInfo.Name)
		return c
	}
	c := open("ann")
	require.Equal(t, introduction.Declared("", said("ann")), c.Info().Declared)
	req.Resume = c.Resume()
	require.Equal(t, c.Info().Declared, req.Resume.Declared)
	require.NoError(t, c.Detach(t.Context()))

	attached := open("bob")
	require.True(t, attached.Info().Attached)
	require.Equal(t, introduction.Declared("", said("ann")), attached.Info().Declared)
	require.NoError(t, attached.Detach(t.Context()))

	s.forget()
	next := open("ann")
	require.False(t, next.Info().Attached)
	require.Equal(t, introduction.Declared("", said("ann")), next.Info().Declared)
	require.Equal(t, 1, s.count(rpc.MethodInitialize), "that of the control")
	require.NoError(t, next.Close(t.Context()))
}

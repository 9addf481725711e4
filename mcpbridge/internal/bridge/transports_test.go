package bridge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/tap"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/transport"
	"github.com/mcpactor/mcpactor/messages"
)

func TestServersAreReachedByTheTransportOfTheTable(t *testing.T) {
	for want, config := range map[string]mcpbridge.Server{
		"*stdio.Server":      {Command: "x"},
		"*memory.Server":     {InMemory: new(mcp.Server)},
		"*streamable.Server": {URL: "http://x"},
		"*sse.Server":        {URL: "http://x", Transport: mcpbridge.TransportSSE},
	} {
		require.Equal(t, want, fmt.Sprintf("%T", newTransport(&config)))
	}
}

// loopback is all that it takes to add a transport for which the SDK, or somebody else, has an
// mcp.Transport: here one to a server in memory.
type loopback struct {
	transport.Defaults
	server *mcp.Server
	write  error // of a call that has arrived nevertheless
}

func (l *loopback) Connect(session *transport.Session) (transport.Conn, error) {
	near, far := mcp.NewInMemoryTransports()
	if _, err := l.server.Connect(session.Cut, far, nil); err != nil {
		return nil, err
	}
	return tap.New(l.Config, session, late{near, l.write}, nil), nil
}

// late is a transport whose Write may fail when a call has arrived.
type late struct {
	mcp.Transport
	write error
}

func (l late) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := l.Transport.Connect(ctx)
	return lateConnection{c, l.write}, err
}

type lateConnection struct {
	mcp.Connection
	write error
}

func (c lateConnection) Write(ctx context.Context, msg jsonrpc.Message) error {
	err := c.Connection.Write(ctx, msg)
	if req, ok := msg.(*jsonrpc.Request); ok && req.Method == "tools/call" {
		err = errors.Join(err, c.write)
	}
	return err
}

// A transport need not know how far a message got. Then a call counts as sent.
func TestCallWhoseWriteFailsMayHaveRun(t *testing.T) {
	config := mcpbridge.Server{Name: "test"}
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	runs := make(chan struct{}, 1)
	mcp.AddTool(server, &mcp.Tool{Name: "tool"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
		runs <- struct{}{}
		<-ctx.Done()
		return &mcp.CallToolResult{}, nil, nil
	})
	b := New(nil, nil)
	at := &endpoint{dialect: new(dialect), Server: config, newest: &loopback{transport.Defaults{Config: &config}, server, io.ErrClosedPipe}}
	c, e := b.opener.dial(t.Context(), at, attempt{})
	require.Nil(t, e)
	_, err := c.Do(t.Context(), toolCall())
	<-runs
	require.Equal(t, mcpbridge.Lost, mcpbridge.AsError(err).Class)
	require.True(t, mcpbridge.AsError(err).MayHaveRun())
	require.NoError(t, c.Close(t.Context()))
}

func TestTransportIsOneType(t *testing.T) {
	config := mcpbridge.Server{Name: "test"}
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "tool"}, func(context.Context, *mcp.CallToolRequest, any) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	})
	b := New(nil, nil)
	at := &endpoint{dialect: new(dialect), Server: config, newest: &loopback{transport.Defaults{Config: &config}, server, nil}}
	downs := make(chan *mcpbridge.Error, 1)
	c, e := b.opener.dial(t.Context(), at, attempt{Request: dial.Request{Down: func(e *mcpbridge.Error) { downs <- e }}})
	require.Nil(t, e)
	_, err := c.Do(t.Context(), toolCall())
	require.NoError(t, err)
	_, err = c.Do(t.Context(), &messages.ReadResource{Params: &mcp.ReadResourceParams{URI: "x://y"}})
	require.Equal(t, mcpbridge.Alive, mcpbridge.AsError(err).Session, "an error is an answer")

	for session := range server.Sessions() {
		session.Close()
	}
	require.Equal(t, mcpbridge.Broken, (<-downs).Session, "its end is reported")
	_, err = c.Do(t.Context(), toolCall())
	// The transport may still take a request for a moment, which is lost then.
	require.Contains(t, []mcpbridge.Class{mcpbridge.NotSent, mcpbridge.Lost}, mcpbridge.AsError(err).Class)
	require.Equal(t, mcpbridge.Broken, mcpbridge.AsError(err).Session)
	require.NoError(t, c.Close(t.Context()))
}

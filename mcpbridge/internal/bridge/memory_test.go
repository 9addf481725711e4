package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/messages"
)

// clumsy returns a server in memory whose tool "panic" panics.
func clumsy(value any) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "clumsy"}, nil)
	s.AddTool(&mcp.Tool{Name: "tool", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{}, nil
	})
	s.AddTool(&mcp.Tool{Name: "panic", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		panic(value)
	})
	return s
}

func TestPanicOfAServerInMemoryFailsItsCallAlone(t *testing.T) {
	var log strings.Builder
	server := clumsy("over " + "first-secret")
	b := New([]mcpbridge.Server{{Name: "test", InMemory: server}}, nil)
	b.LogTo(slog.New(slog.NewTextHandler(&log, nil)))
	for range 3 { // dials
		c, err := b.Dial(t.Context(), dial.Request{Key: messages.Key{Server: "test"}, Down: func(e *mcpbridge.Error) { t.Errorf("down: %v", e) }})
		require.NoError(t, err)
		_, err = c.Do(t.Context(), &messages.CallTool{Params: &mcp.CallToolParams{Name: "panic"}})
		e := mcpbridge.AsError(err)
		require.Equal(t, mcpbridge.ServerError, e.Class)
		require.Equal(t, mcpbridge.Alive, e.Session)
		require.True(t, e.Sent)
		require.Equal(t, "panic: over first-secret", e.Detail)
		_, err = c.Do(t.Context(), toolCall())
		require.NoError(t, err)
		require.NoError(t, c.Close(t.Context()))
	}
	require.Equal(t, 3, strings.Count(log.String(), `level=ERROR msg="handler of an in-memory server panicked" server=test reason=string stack=`))
	require.NotContains(t, log.String(), "first-secret")
	require.Equal(t, 3, strings.Count(log.String(), "memory.recovering.func1("), "each panic went through one middleware")
}

// A session that is not ours is as it would be without us: the panic is for whoever connected it.
func TestPanicOfAServerInMemoryIsLeftToOtherSessions(t *testing.T) {
	server, boom := clumsy(errors.New("boom")), errors.New("unchanged")
	b := New([]mcpbridge.Server{{Name: "test", InMemory: server}}, nil)
	c, err := b.Dial(t.Context(), dial.Request{Key: messages.Key{Server: "test"}})
	require.NoError(t, err)
	defer c.Close(t.Context())
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler { // the outermost
		return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
			defer func() {
				if recover() != nil {
					result, err = nil, boom
				}
			}()
			return next(ctx, method, req)
		}
	})
	near, far := mcp.NewInMemoryTransports()
	theirs, err := server.Connect(t.Context(), far, nil)
	require.NoError(t, err)
	defer theirs.Close()
	client, err := mcp.NewClient(&mcp.Implementation{Name: "other"}, nil).Connect(t.Context(), near, nil)
	require.NoError(t, err)
	defer client.Close()
	_, err = client.CallTool(t.Context(), &mcp.CallToolParams{Name: "panic"})
	require.ErrorContains(t, err, "unchanged")
}

// inFrontOf returns a server in memory that announces changes, with something in front of its handlers.
func inFrontOf(front func(ctx context.Context, method string) error) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "fronted"}, &mcp.ServerOptions{
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		Capabilities: &mcp.ServerCapabilities{
			Tools: &mcp.ToolCapabilities{ListChanged: true}, Resources: &mcp.ResourceCapabilities{Subscribe: true},
		},
	})
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if err := front(ctx, method); err != nil {
				return nil, err
			}
			return next(ctx, method, req)
		}
	})
	return s
}

func TestSlowServerInMemoryAnnouncesAllChanges(t *testing.T) {
	for _, slow := range []string{rpc.MethodListen} {
		t.Run(slow, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := inFrontOf(func(_ context.Context, method string) error {
					if method == slow {
						time.Sleep(time.Second)
					}
					return nil
				})
				var heard []string // by one goroutine
				b := New([]mcpbridge.Server{{Name: "test", InMemory: server}}, nil)
				c, err := b.Dial(t.Context(), dial.Request{Key: messages.Key{Server: "test"}, Heard: func(n messages.Notification, _ messages.Operation) {
					heard = append(heard, fmt.Sprintf("%T", n))
				}})
				require.NoError(t, err)
				addTool := func() {
					server.AddTool(&mcp.Tool{Name: "tool", InputSchema: map[string]any{"type": "object"}}, nil)
					time.Sleep(time.Minute) // the SDK announces it after a moment
				}
				addTool()
				_, err = c.Do(t.Context(), &messages.Subscribe{URI: "file:///a"})
				require.NoError(t, err)
				require.NoError(t, server.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: "file:///a"}))
				addTool()
				require.NoError(t, c.Close(t.Context()))
				require.Equal(t, []string{"*messages.ToolsChanged", "*messages.ResourceUpdated", "*messages.ToolsChanged"}, heard)
			})
		})
	}
}

func TestSubscriptionThatIsNotAcknowledgedEndsNoDial(t *testing.T) {
	for name, test := range map[string]struct {
		listen func(context.Context) error
		after  time.Duration
	}{
		"refused": {func(context.Context) error { return errors.New("no") }, 0},
		"silent":  {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				server := inFrontOf(func(ctx context.Context, method string) error {
					if method == rpc.MethodListen {
						return test.listen(ctx)
					}
					return nil
				})
				c, err := New([]mcpbridge.Server{{Name: "test", InMemory: server}}, nil).Dial(t.Context(), dial.Request{Key: messages.Key{Server: "test"}})
				require.NoError(t, err)
				require.Equal(t, test.after, time.Since(began))
				require.NoError(t, c.Close(t.Context()))
			})
		})
	}
}

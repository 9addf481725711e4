package toolset_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
)

// losing is a dialer whose first connection that runs a call breaks before the answer.
type losing struct {
	dial.Dialer
	lost atomic.Bool
}

func (l *losing) Dial(ctx context.Context, req dial.Request) (dial.Conn, error) {
	conn, err := l.Dialer.Dial(ctx, req)
	if err != nil {
		return nil, err
	}
	return &losingConn{conn, l}, nil
}

type losingConn struct {
	dial.Conn
	of *losing
}

func (c *losingConn) Do(ctx context.Context, op messages.Operation) (messages.Result, error) {
	result, err := c.Conn.Do(ctx, op)
	if _, is := op.(*messages.CallTool); is && c.of.lost.CompareAndSwap(false, true) {
		return nil, &mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Broken, Detail: "a test broke the connection", Sent: true}
	}
	return result, err
}

// hinting is a server with a tool that it says is read-only, as long as it is said to be so.
type hinting struct {
	*server
	says atomic.Bool
	ran  atomic.Int32
}

func newHinting() *hinting {
	s := &hinting{server: newServer("s0", "a")}
	s.mcp.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			result, err := next(ctx, method, req)
			if method == "tools/call" {
				s.ran.Add(1)
			}
			if list, is := result.(*mcp.ListToolsResult); is {
				tool := *list.Tools[0]
				tool.Annotations = &mcp.ToolAnnotations{ReadOnlyHint: s.says.Load()}
				list.Tools = []*mcp.Tool{&tool}
			}
			return result, err
		}
	})
	return s
}

// Guarantee 5: what was listed on another session, or in another process, never permits a replay. The session of the
// call has to say so.
func TestHintsOfASharedOrStoredListPermitNoReplay(t *testing.T) {
	for name, test := range map[string]struct {
		stored, stays bool
	}{
		"shared":                 {},
		"stored":                 {stored: true},
		"shared, and said again": {stays: true},
		"stored, and said again": {stored: true, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			s, l, store := newHinting(), new(losing), &resume.Memory{}
			cfg := dial.Wrap(supervisor.Config{Store: store}, func(d dial.Dialer) dial.Dialer {
				l.Dialer = d
				return l
			})
			serve := func(srv *mcpbridge.Server) { srv.InMemory = s.mcp }
			list := func(_ context.Context, c *crowd) {
				s.says.Store(true)
				require.Equal(c, "s0__a", c.tools("lister"))
				synctest.Wait()
			}
			call := func(ctx context.Context, c *crowd) {
				s.says.Store(test.stays)
				set, err := c.of("caller").Tools(ctx)
				require.NoError(c, err)
				require.Len(c, set.Tools, 1)
				require.True(c, set.Tools[0].Annotations.ReadOnlyHint, "the list of the other session says that it may run twice")
				_, err = c.of("caller").Call(ctx, "s0__a", nil)
				if test.stays {
					require.NoError(c, err)
					require.EqualValues(c, 2, s.ran.Load())
					return
				}
				var f *messages.Failure
				require.ErrorAs(c, err, &f)
				require.Equal(c, messages.CodeLost, f.Code)
				require.True(c, f.MayHaveRun)
				require.EqualValues(c, 1, s.ran.Load())
			}
			if test.stored {
				gather(t, 1, cfg, serve, list)
				gather(t, 1, cfg, serve, call)
				return
			}
			gather(t, 1, cfg, serve, func(ctx context.Context, c *crowd) {
				list(ctx, c)
				call(ctx, c)
			})
		})
	}
}

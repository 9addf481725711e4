package bridge

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// maxLinger is how long a stream of events stays open after its answer.
const maxLinger = time.Second

// An answer is a stream of events, which may end a little later. Its connection is used
// again all the same.
func TestConnectionsOfAnswersAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		inner := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
		var connected atomic.Bool
		var late, cut atomic.Int32
		web := newPipes()
		defer web.Close()
		go web.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			inner.ServeHTTP(w, r)
			if !connected.Load() || r.Method != http.MethodPost {
				return
			}
			w.(http.Flusher).Flush()
			select {
			case <-time.After(maxLinger / 2):
				late.Add(1)
			case <-r.Context().Done():
				cut.Add(1)
			}
		}))
		wire := &http.Transport{DialContext: web.dial}
		defer wire.CloseIdleConnections()
		b := New([]mcpbridge.Server{{Name: "test", URL: "http://test", NoStream: true, HTTPClient: &http.Client{Transport: wire}}}, nil)
		c, err := b.Dial(t.Context(), dial.Request{Key: messages.Key{Server: "test"}, Down: func(e *mcpbridge.Error) { t.Errorf("down: %v", e) }})
		require.NoError(t, err)
		defer func() { require.NoError(t, c.Close(context.Background())) }()
		synctest.Wait() // the connections of the handshake are idle
		connected.Store(true)
		dialed := web.dialed.Load()
		for range 20 {
			began := time.Now()
			ctx, cancel := context.WithCancel(t.Context())
			_, err := c.Do(ctx, &messages.Ping{})
			cancel() // as who has the answer does
			require.NoError(t, err)
			require.Zero(t, time.Since(began), "the end of the stream is not waited for")
			time.Sleep(maxLinger)
			synctest.Wait()
		}
		require.Zero(t, web.dialed.Load()-dialed)
		require.EqualValues(t, 20, late.Load(), "streams that end by themselves")
		require.Zero(t, cut.Load())
	})
}

// pipes is a server and the network to it, within the bubble of a test.
type pipes struct {
	http.Server
	conns  chan net.Conn
	closed chan struct{}
	dialed atomic.Int32
}

func newPipes() *pipes {
	return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// serve serves until the server is closed.
func (p *pipes) serve(h http.Handler) {
	p.Handler = h
	p.Serve(pipeListener{p})
}

// dial is for [http.Transport].
func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	p.dialed.Add(1)
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type pipeListener struct{ *pipes }

func (l pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l pipeListener) Close() error {
	close(l.closed)
	return nil
}

func (l pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func TestStreamThatStaysOpenAfterItsAnswerIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		c := s.attach(t)
		var cut atomic.Int64
		began := time.Now()
		s.answer("tools/call", func(req *http.Request) (*http.Response, error) {
			context.AfterFunc(req.Context(), func() { cut.Store(int64(time.Since(began))) })
			return stays("data: " + done + "\n\n")(req)
		})
		e, _ := do(c)
		require.Nil(t, e)
		require.Zero(t, time.Since(began), "the answer is not waited for")
		synctest.Wait()
		require.Zero(t, cut.Load())
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, time.Second, time.Duration(cut.Load()))

		began = time.Now() // now it is known of the server
		e, _ = do(c)
		require.Nil(t, e)
		synctest.Wait()
		require.Zero(t, time.Since(began))
		require.Zero(t, cut.Load())
		require.NoError(t, c.Close(context.Background()))
	})
}

func TestNothingIsSentForWhoHasGivenUp(t *testing.T) {
	s := newScript()
	c := s.attach(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		_, err := c.Do(ctx, &messages.CallTool{Params: &mcp.CallToolParams{Name: "x"}})
		require.Equal(t, mcpbridge.Cancelled, mcpbridge.AsError(err).Class)
		require.False(t, mcpbridge.AsError(err).Sent)
	}
	require.Empty(t, s.ids("tools/call"))
	require.NoError(t, c.Close(t.Context()))
}

func TestClosingCutsWhatAnAnswerHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		c := s.attach(t)
		s.answer("tools/call", stays("data: "+done+"\n\n"))
		e, _ := do(c)
		require.Nil(t, e)
		require.NoError(t, c.Close(context.Background())) // else the bubble does not end
	})
}

package bridge

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// An answer is a stream of events, which may end a little later. Its connection is used
// again all the same.
func TestConnectionsOfAnswersAreKept(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	inner := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	answered, idle := make(chan struct{}), make(chan net.Conn, 100)
	var connected atomic.Bool
	var opened atomic.Int32
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(w, r)
		if connected.Load() && r.Method == http.MethodPost {
			w.(http.Flusher).Flush()
			select {
			case <-answered: // the client has the answer, and the stream is open
			case <-r.Context().Done():
			}
		}
	}))
	web.Config.ConnState = func(c net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			opened.Add(1)
		case http.StateIdle, http.StateClosed:
			if connected.Load() {
				idle <- c
			}
		}
	}
	web.Start()
	defer web.Close()
	b := New([]mcpbridge.Server{{Name: "test", URL: web.URL, NoStream: true}}, nil)
	defer b.Close()
	c, err := b.Dial(t.Context(), mcpbridge.DialRequest{Key: messages.Key{Server: "test"}, Down: func(e *mcpbridge.Error) { t.Errorf("down: %v", e) }})
	require.NoError(t, err)
	connected.Store(true)
	before := opened.Load()
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := c.Do(ctx, &messages.Ping{})
		cancel() // as who has the answer does
		require.NoError(t, err)
		select {
		case answered <- struct{}{}:
			<-idle
		case <-idle: // it was cut
		}
	}
	connected.Store(false)
	require.LessOrEqual(t, opened.Load()-before, int32(2))
	require.NoError(t, c.Close(t.Context()))
}

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

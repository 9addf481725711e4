package bridge

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

// flood is what a server says again and again, while it takes no answers. The format gets a number.
type flood struct {
	format string
	most   int // how much of it there is; 0 is no end
	said   atomic.Int64
}

// floods are requests, which have no end, and notifications.
func floods() map[string]*flood {
	many := 2000
	if testing.Short() {
		many = 200
	}
	const large = `{"jsonrpc":"2.0","id":%d,"method":"ping","params":{"_meta":{"x":"`
	return map[string]*flood{
		"pings":             {format: `{"jsonrpc":"2.0","id":%d,"method":"ping"}`},
		"pings with texts":  {format: `{"jsonrpc":"2.0","id":"%d","method":"ping","params":null}`},
		"large pings":       {format: large + string(bytes.Repeat([]byte("x"), 1<<20)) + `"}}}`},
		"unknown requests":  {format: `{"jsonrpc":"2.0","id":%d,"method":"x/unknown"}`},
		"questions":         {format: `{"jsonrpc":"2.0","id":%d,"method":"elicitation/create","params":{"message":"?"}}`},
		"roots":             {format: `{"jsonrpc":"2.0","id":%d,"method":"roots/list"}`},
		"the same question": {format: `{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"message":"?","_meta":{"x":%d}}}`, most: many},
		"logs":              {format: `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":%d}}`, most: many},
		"changes":           {format: `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"x":%d}}}`, most: many},
		"unknown messages":  {format: `{"jsonrpc":"2.0","method":"notifications/unknown","params":{"x":%d}}`, most: many},
		"unusual messages":  {format: `{"jsonrpc":"2.0","method":"notifications/progress","params":%d}`, most: many},
	}
}

// next returns what the server says next, or nil when it has said all and the connection has ended.
func (f *flood) next(ended <-chan struct{}) []byte {
	select {
	case <-ended:
		return nil
	default:
	}
	n := int(f.said.Add(1))
	if f.most > 0 && n > f.most {
		f.said.Add(-1)
		<-ended
		return nil
	}
	return fmt.Appendf(nil, f.format, n)
}

// events is a stream of the flood.
type events struct {
	*flood
	ended <-chan struct{}
	rest  []byte
}

func (e *events) Read(p []byte) (int, error) {
	if len(e.rest) == 0 {
		next := e.next(e.ended)
		if next == nil {
			return 0, io.EOF
		}
		e.rest = fmt.Appendf(nil, "data: %s\n\n", next)
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// answers returns a stream of events of the flood, which ends with its request.
func (f *flood) answers(req *http.Request) (*http.Response, error) {
	resp := outbound.Respond(req, http.StatusOK, outbound.TypeSSE, nil)
	resp.Body, resp.ContentLength = io.NopCloser(&events{flood: f, ended: req.Context().Done()}), -1
	return resp, nil
}

// untaken are POSTs that are never answered.
type untaken struct{ now, most atomic.Int64 }

func (u *untaken) answers(req *http.Request) (*http.Response, error) {
	u.most.Store(max(u.most.Load(), u.now.Add(1)))
	defer u.now.Add(-1)
	<-req.Context().Done()
	return nil, req.Context().Err()
}

// measured returns how much more memory and goroutines there are than before.
func measured() func() (mb int, goroutines int) {
	heap := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc >> 20)
	}
	before, goroutines := heap(), runtime.NumGoroutine()
	return func() (int, int) { return heap() - before, runtime.NumGoroutine() - goroutines }
}

// requireBounded lets a server flood for a while, and requires that it gets little of us.
func (f *flood) requireBounded(t *testing.T) {
	t.Helper()
	grown := measured()
	for range 2 {
		time.Sleep(wire.AnswerTime / 5)
		synctest.Wait()
		mb, goroutines := grown()
		require.Less(t, mb, 150)
		require.Less(t, goroutines, 1000)
	}
	if f.most == 0 {
		require.Less(t, f.said.Load(), int64(1000))
	} else {
		require.EqualValues(t, f.most, f.said.Load(), "none of it harms")
	}
}

func bored(ctx context.Context, _ messages.Request, _ messages.Operation) messages.Answer {
	<-ctx.Done()
	return &messages.Refusal{Reason: "bored"}
}

// C13 over a pipe, where a session ends whose server does not take the answers.
func TestFloodOverAPipeIsBounded(t *testing.T) {
	for name, f := range floods() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				p := asking(bored)
				p.answered = nil
				c, e := p.dial(t.Context(), 2<<20)
				require.Nil(t, e)
				p.answered = make(chan []byte) // from here on it reads no answer
				go func() {
					for next := f.next(ctx.Done()); next != nil; next = f.next(ctx.Done()) {
						if _, err := p.out.Write(append(next, '\n')); err != nil {
							return
						}
					}
				}()
				f.requireBounded(t)
				require.Zero(t, p.downs.Load())
				if f.most > 0 && name != "the same question" {
					_, err := c.Do(t.Context(), toolCall())
					require.NoError(t, err)
				}
				time.Sleep(2 * wire.AnswerTime)
				synctest.Wait()
				require.Equal(t, f.most == 0, p.downs.Load() == 1)
				cancel()
				go func() { // the end of a process ends its pipes
					for range p.answered {
					}
				}()
				require.NoError(t, c.Close(context.Background()))
				close(p.answered)
			})
		})
	}
}

// C13 over streamable HTTP, where the server loses the stream at most: calls have streams of their own.
func TestFloodOverStreamsIsBounded(t *testing.T) {
	for name, f := range floods() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, posts := newScript(), new(untaken)
				s.answer(http.MethodPost, posts.answers)
				s.answer(http.MethodGet, f.answers)
				c := s.attach(t)
				f.requireBounded(t)
				for range 3 {
					_, err := c.Do(t.Context(), toolCall())
					require.NoError(t, err)
					time.Sleep(wire.AnswerTime)
					mb, goroutines := measured()()
					require.Less(t, mb, 100)
					require.Less(t, goroutines, 1000)
				}
				require.LessOrEqual(t, posts.most.Load(), int64(16))
				require.Empty(t, s.downs)
				require.NoError(t, c.Close(context.Background()))
			})
		})
	}
}

// C13 on the stream that answers a call, which ends the call.
func TestFloodInPlaceOfAnAnswerIsBounded(t *testing.T) {
	for name, f := range floods() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, posts := newScript(), new(untaken)
				s.answer(http.MethodPost, posts.answers)
				s.answer("tools/call", f.answers, nil)
				c := s.attach(t)
				var e *mcpbridge.Error
				go func() {
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					_, err := c.Do(ctx, toolCall())
					e = mcpbridge.AsError(err)
				}()
				f.requireBounded(t)
				time.Sleep(3 * wire.AnswerTime)
				synctest.Wait()
				if f.most == 0 {
					require.NotNil(t, e)
					require.Equal(t, mcpbridge.Protocol, e.Class)
					require.Equal(t, wire.ErrUntaken.Error(), e.Detail)
					require.True(t, e.Sent)
				}
				require.LessOrEqual(t, posts.most.Load(), int64(16))
				s.answer("tools/call", nil)
				_, err := c.Do(t.Context(), toolCall())
				require.NoError(t, err)
				require.Empty(t, s.downs)
				require.NoError(t, c.Close(context.Background()))
			})
		})
	}
}

// stream is a server over HTTP+SSE without a socket.
type stream struct {
	events *io.PipeWriter
	flood  *flood
	ended  <-chan struct{}
	posts  untaken
	once   sync.Once
}

func (s *stream) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet {
		r, w := io.Pipe()
		s.events, s.ended = w, req.Context().Done()
		context.AfterFunc(req.Context(), func() { w.Close() })
		go fmt.Fprint(w, "event: endpoint\ndata: /messages\n\n")
		resp := outbound.Respond(req, http.StatusOK, outbound.TypeSSE, nil)
		resp.Body, resp.ContentLength = r, -1
		return resp, nil
	}
	msg := rpc.Parse(rpc.BodyOf(readable(req)))
	switch {
	case msg.Method == rpc.MethodInitialize:
		go fmt.Fprintf(s.events, `data: {"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2024-11-05","capabilities":{}}}`+"\n\n", msg.ID)
	case msg.IsAnswer():
		return s.posts.answers(req)
	case msg.IsCall():
		go func() {
			fmt.Fprintf(s.events, `data: {"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`+"\n\n", msg.ID)
			s.once.Do(func() { io.Copy(s.events, &events{flood: s.flood, ended: s.ended}) })
		}()
	}
	return outbound.Respond(req, http.StatusAccepted, "", nil), nil
}

// C13 over HTTP+SSE, whose stream is the session.
func TestFloodOverHTTPAndSSEIsBounded(t *testing.T) {
	for name, f := range floods() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var downs atomic.Int32
				s := &stream{flood: f}
				srv := mcpbridge.Server{Name: "test", URL: "http://test/sse", Transport: mcpbridge.TransportSSE, HTTPClient: &http.Client{Transport: s}}
				c, err := New([]mcpbridge.Server{srv}, &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{}, RootsV2: &mcp.RootCapabilities{}}).Dial(t.Context(), dial.Request{
					Key: messages.Key{Server: "test"}, Ask: bored, Down: func(*mcpbridge.Error) { downs.Add(1) },
				})
				require.NoError(t, err)
				_, err = c.Do(t.Context(), toolCall())
				require.NoError(t, err)
				f.requireBounded(t)
				time.Sleep(3 * wire.AnswerTime)
				synctest.Wait()
				require.Equal(t, f.most == 0, downs.Load() == 1)
				require.LessOrEqual(t, s.posts.most.Load(), int64(16))
				require.NoError(t, c.Close(context.Background()))
			})
		})
	}
}

package bridge

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"

	"github.com/mcpactor/mcpactor/internal/bridge/rpc"
)

const testSession = "made-up-session-4711"

// answering makes the response to a request.
type answering func(req *http.Request) (*http.Response, error)

// RoundTrip answers a request.
func (f answering) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// script is an HTTP server without a socket. It answers well, and has no
// stream, but for what it is told.
type script struct {
	mu       sync.Mutex
	told     map[string]answering // by JSON-RPC method, or HTTP method
	requests []*http.Request
	times    []time.Time
	downs    []*mcpbridge.Error
	call     string // the id of the last call of a tool
}

func newScript() *script { return &script{told: map[string]answering{}} }

// answer says how requests of a kind are answered, one after the other and
// the last way for ever. Nil is well.
func (s *script) answer(kind string, ways ...answering) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told[kind] = ways[0]
	if len(ways) > 1 {
		s.told[kind] = func(req *http.Request) (*http.Response, error) {
			s.answer(kind, ways[1:]...)
			return ways[0](req)
		}
	}
}

// RoundTrip answers a request.
func (s *script) RoundTrip(req *http.Request) (*http.Response, error) {
	if trace := httptrace.ContextClientTrace(req.Context()); trace != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
	req = readable(req)
	msg := rpc.Parse(rpc.BodyOf(req))
	kind := cmp.Or(msg.Method, req.Method)
	s.mu.Lock()
	s.requests, s.times = append(s.requests, req), append(s.times, time.Now())
	how := s.told[kind]
	if kind == "tools/call" {
		s.call = string(msg.ID)
	}
	req = req.WithContext(context.WithValue(req.Context(), lastCall{}, s.call))
	s.mu.Unlock()
	switch {
	case how != nil:
		return how(req)
	case kind == http.MethodGet:
		return answer(req, http.StatusMethodNotAllowed, "", nil), nil
	case msg.IsCall():
		return answer(req, http.StatusOK, typeJSON, []byte(`{"jsonrpc":"2.0","id":`+string(msg.ID)+`,"result":{"content":[]}}`)), nil
	}
	return answer(req, http.StatusAccepted, "", nil), nil
}

// readable returns a request whose body can be read more than once.
func readable(req *http.Request) *http.Request {
	if req.GetBody != nil || req.Body == nil {
		return req
	}
	body, _ := io.ReadAll(req.Body)
	r := *req
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return &r
}

// seen returns the requests of an HTTP method, and when they came.
func (s *script) seen(method string) (requests []*http.Request, times []time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, req := range s.requests {
		if req.Method == method {
			requests, times = append(requests, req), append(times, s.times[i])
		}
	}
	return requests, times
}

// attach dials by attaching: that takes no handshake but a ping.
func (s *script) attach(t *testing.T, change ...func(*mcpbridge.Server, *mcpbridge.Resume)) mcpbridge.Conn {
	t.Helper()
	srv := mcpbridge.Server{Name: "test", URL: "http://test/mcp", HTTPClient: &http.Client{Transport: s}}
	resume := mcpbridge.Resume{SessionID: testSession, Server: &mcp.InitializeResult{ProtocolVersion: protocolLegacy}}
	for _, f := range change {
		f(&srv, &resume)
	}
	resume.Endpoint, resume.Identity = fingerprintOf(srv.URL), (&endpoint{Server: srv}).identity(resume.SessionID, "")
	c, err := New([]mcpbridge.Server{srv}, nil).Dial(context.Background(), mcpbridge.DialRequest{
		Key: messages.Key{Server: "test"}, Resume: &resume, Down: func(e *mcpbridge.Error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.downs = append(s.downs, e)
		},
	})
	require.NoError(t, err)
	require.True(t, c.Info().Attached)
	return c
}

// lastCall marks the id of the last call, for what answers it elsewhere.
type lastCall struct{}

// says is a response. %s in the body is the request's id, or that of the last call.
func says(status int, kind, body string, headers ...string) answering {
	return func(req *http.Request) (*http.Response, error) {
		last, _ := req.Context().Value(lastCall{}).(string)
		id := cmp.Or(string(rpc.Parse(rpc.BodyOf(req)).ID), last)
		resp := answer(req, status, kind, []byte(strings.ReplaceAll(body, "%s", id)))
		for _, h := range headers {
			if name, value, ok := strings.Cut(h, ":"); ok {
				resp.Header.Set(name, strings.TrimSpace(value))
			}
		}
		return resp, nil
	}
}

// then is says with a body that ends with an error, or stays open if that is nil.
func then(end error, how answering) answering {
	return func(req *http.Request) (*http.Response, error) {
		resp, err := how(req)
		after := iotest.ErrReader(end)
		if end == nil {
			after = open{req.Context()}
		}
		resp.Body = io.NopCloser(io.MultiReader(resp.Body, after))
		return resp, err
	}
}

// open is the rest of a stream that stays open.
type open struct{ context.Context }

func (o open) Read([]byte) (int, error) {
	<-o.Done()
	return 0, o.Err()
}

func stays(events string) answering { return then(nil, says(200, typeSSE, events)) }

func breaks(events string) answering {
	return then(io.ErrUnexpectedEOF, says(200, typeSSE, events))
}

func fails(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }

// ping is an event: a request of the server, which is answered by a POST.
func ping(id string) string {
	return `data: {"jsonrpc":"2.0","id":"` + id + `","method":"ping"}` + "\n\n"
}

// pongs returns the ids of the requests of the server that were answered.
func (s *script) pongs() (ids string) {
	posts, _ := s.seen(http.MethodPost)
	for _, req := range posts {
		if msg := rpc.Parse(rpc.BodyOf(req)); msg.Method == "" {
			ids += strings.Trim(string(msg.ID), `"`)
		}
	}
	return ids
}

// onStream opens a session whose stream is answered so, and lets an hour pass.
func onStream(t *testing.T, check func(t *testing.T, s *script, c mcpbridge.Conn), ways ...answering) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.answer(http.MethodGet, ways...)
		c := s.attach(t)
		defer c.Close(context.Background())
		time.Sleep(time.Hour)
		synctest.Wait()
		check(t, s, c)
		require.NoError(t, c.Close(context.Background()))
	})
}

func TestCutStreamIsOpenedAgainAfterItsLastWholeEvent(t *testing.T) {
	half, _, _ := strings.Cut(ping("c"), "method")
	onStream(t, func(t *testing.T, s *script, c mcpbridge.Conn) {
		gets, _ := s.seen(http.MethodGet)
		var after []string
		for _, req := range gets {
			after = append(after, req.Header.Get(headerEvent))
			require.Equal(t, testSession, req.Header.Get(headerSession))
			require.Equal(t, protocolLegacy, req.Header.Get(headerProtocol))
		}
		require.Equal(t, []string{"", "1", "2", "2", "2"}, after)
		require.Equal(t, "abc", s.pongs())
		require.Empty(t, s.downs)
	}, breaks("id: 1\n"+ping("a")), says(200, typeSSE, ": beat\n\nid: 2\r\n"+ping("b")+half), breaks(half), fails, stays(ping("c")))
}

func TestServerSaysHowSoonItsStreamIsOpenedAgain(t *testing.T) {
	for retry, want := range map[string]time.Duration{"3000": 3 * time.Second, "3600000": streamRetryMax} {
		onStream(t, func(t *testing.T, s *script, c mcpbridge.Conn) {
			_, times := s.seen(http.MethodGet)
			require.Len(t, times, 5)
			for i := range 4 {
				require.Equal(t, want, times[i+1].Sub(times[i]))
			}
		}, breaks("retry: "+retry+"\n"), breaks(""), breaks(ping("a")), breaks("retry: soon\n\nretry: -1\n\n"), stays(""))
	}
}

func TestRefusedStreamIsOpenedAgainMoreAndMoreSlowly(t *testing.T) {
	refusals := []answering{
		says(401, "", ""), says(403, "", ""), says(409, "", ""), says(429, "", ""), fails, says(500, "", ""),
		says(503, "text/html", "<html>"), says(502, "", ""), breaks(""),
	}
	onStream(t, func(t *testing.T, s *script, c mcpbridge.Conn) {
		_, times := s.seen(http.MethodGet)
		require.Len(t, times, len(refusals)+2)
		for i, delay := 0, streamRetryMin; i <= len(refusals)-1; i, delay = i+1, min(2*delay, streamRetryMax) {
			gap := times[i+1].Sub(times[i])
			require.GreaterOrEqual(t, gap, delay/2)
			require.Less(t, gap, 3*delay/2)
		}
		require.Equal(t, 7*time.Second, times[len(refusals)+1].Sub(times[len(refusals)]))
		require.Equal(t, "a", s.pongs())
		require.Empty(t, s.downs)
	}, append(refusals, says(429, "", "", "Retry-After: 7"), stays(ping("a")))...)
}

func TestServerWithoutAStreamIsAskedOnce(t *testing.T) {
	for name, refusal := range map[string]answering{
		"405": says(405, "", ""), "404": says(404, "", "session not found"), "400": says(400, "", ""),
		"302": says(302, "", "", "Location: http://other/"), "page": says(200, "text/html", "<html>"), "202": says(202, "", ""),
	} {
		t.Run(name, func(t *testing.T) {
			onStream(t, func(t *testing.T, s *script, c mcpbridge.Conn) {
				gets, _ := s.seen(http.MethodGet)
				require.Len(t, gets, 1)
				e, _ := do(c)
				require.Nil(t, e)
				require.Empty(t, s.downs)
			}, refusal)
		})
	}
}

func TestStreamTellsOfAnExpiryOnce(t *testing.T) {
	onStream(t, func(t *testing.T, s *script, c mcpbridge.Conn) {
		require.Len(t, s.downs, 1)
		require.Equal(t, mcpbridge.Gone, s.downs[0].Session)
		s.answer("tools/call", says(404, "", ""))
		e, _ := do(c)
		require.Equal(t, mcpbridge.Expired, e.Class)
		require.NoError(t, c.Close(context.Background()))
		require.Len(t, s.downs, 1)
		gets, _ := s.seen(http.MethodGet)
		require.Len(t, gets, 3)
		deletes, _ := s.seen(http.MethodDelete)
		require.Empty(t, deletes, "there is nothing to end")
	}, breaks(""), says(503, "", ""), says(404, "", ""))
}

func TestStreamPassesWholeEventsHoweverTheyCome(t *testing.T) {
	events := "id: 1\n" + ping("a") + ": beat\r\n\r\n" + "id: 2\ndata: x\ndata: y\n\n"
	for name, reader := range map[string]func(io.Reader) io.Reader{
		"at once": func(r io.Reader) io.Reader { return r }, "by bytes": iotest.OneByteReader,
		"by halves": iotest.HalfReader, "with the error": iotest.DataErrReader,
	} {
		for _, size := range []int{1, 7, 4096} {
			ctx, cancel := context.WithCancel(t.Context())
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://test/mcp", nil)
			require.NoError(t, err)
			s := &stream{x: &exchanger{srv: &mcpbridge.Server{}, conn: &conn{cut: t.Context()}}, ctx: ctx, req: req}
			s.body = io.NopCloser(reader(strings.NewReader(events + "id: 3\ndata: ha")))
			var got strings.Builder
			for p := make([]byte, size); got.Len() < len(events); {
				n, err := s.Read(p)
				require.NoError(t, err)
				got.Write(p[:n])
			}
			cancel()
			n, err := s.Read(make([]byte, size))
			require.Zero(t, n)
			require.Equal(t, io.EOF, err)
			require.Equal(t, events, got.String(), name)
			require.Equal(t, "2", s.lastID)
			require.True(t, s.Empty())
		}
	}
}

func TestEventThatIsTooLargeCutsTheStream(t *testing.T) {
	small := func(srv *mcpbridge.Server, _ *mcpbridge.Resume) { srv.MaxResult = 100 }
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.answer(http.MethodGet, stays(ping("a")+"data: "+strings.Repeat("x", 100)), stays(ping("b")))
		c := s.attach(t, small)
		time.Sleep(time.Minute)
		synctest.Wait()
		gets, _ := s.seen(http.MethodGet)
		require.Len(t, gets, 2)
		require.Equal(t, "ab", s.pongs())
		require.Empty(t, s.downs)
		require.NoError(t, c.Close(context.Background()))
	})
}

func TestStreamWhoseTypeIsMalformedIsReadAllTheSame(t *testing.T) {
	onStream(t, func(t *testing.T, s *script, c mcpbridge.Conn) {
		require.Equal(t, "a", s.pongs())
		require.Empty(t, s.downs)
	}, then(nil, says(200, typeSSE+"; charset", ping("a"))))
}

// The first session of a server waits for its stream, and the handshake of the next
// goes on while it is opened.
func TestStreamIsOpenedBesideTheHandshakeWhereOneIsExpected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const welcome = `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"` + protocolLegacy + `","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`
		s := newScript()
		s.answer(rpc.MethodInitialize, says(200, typeJSON, welcome, headerSession+": "+testSession))
		b := New([]mcpbridge.Server{{Name: "test", URL: "http://test/mcp", ProtocolVersion: protocolLegacy, HTTPClient: &http.Client{Transport: s}}}, nil)
		var took []time.Duration
		open := func(get answering) {
			s.answer(http.MethodGet, get)
			began := time.Now()
			c, err := b.Dial(t.Context(), mcpbridge.DialRequest{Key: messages.Key{Server: "test"}, Down: func(e *mcpbridge.Error) { t.Errorf("down: %v", e) }})
			require.NoError(t, err)
			took = append(took, time.Since(began))
			e, _ := do(c)
			require.Nil(t, e)
			require.NoError(t, c.Close(t.Context()))
		}
		const soon = streamWait / 2
		after := func(d time.Duration, how answering) answering {
			return func(req *http.Request) (*http.Response, error) {
				if !sleep(req.Context(), d) {
					return nil, req.Context().Err()
				}
				return how(req)
			}
		}
		s.answer(rpc.MethodInitialized, after(soon, says(202, "", "")))
		open(after(soon, stays(""))) // one after the other
		open(after(soon, stays(""))) // side by side
		open(after(soon, says(405, "", "")))
		open(after(soon, says(405, "", ""))) // no longer expected
		open(after(time.Hour, stays("")))    // finding B9: its headers are held back
		open(after(time.Hour, stays("")))    // which is known by now
		require.Equal(t, []time.Duration{2 * soon, soon, soon, 2 * soon, soon + streamWait, soon}, took)
		b.Close()
	})
}

func TestSessionOpensThoughItsStreamIsNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		b := New([]mcpbridge.Server{{Name: "test", URL: "http://test/mcp", HTTPClient: &http.Client{Transport: s}}}, nil)
		b.servers["test"].streams.Store(true)
		s.answer(http.MethodGet, func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		})
		resume := &mcpbridge.Resume{SessionID: testSession, Server: &mcp.InitializeResult{ProtocolVersion: protocolLegacy}, Endpoint: fingerprintOf("http://test/mcp")}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		c, err := b.Dial(ctx, mcpbridge.DialRequest{Key: messages.Key{Server: "test"}, Resume: resume, Down: func(e *mcpbridge.Error) { t.Errorf("down: %v", e) }})
		require.NoError(t, err)
		require.LessOrEqual(t, time.Since(began), streamWait)
		e, _ := do(c)
		require.Nil(t, e)
		require.NoError(t, c.Close(ctx))
		b.Close()
	})
}

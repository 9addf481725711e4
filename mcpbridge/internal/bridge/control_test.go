package bridge

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/doubt"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/messages"
)

// sessions is a server that opens sessions, and refuses those that it does not know.
type sessions struct {
	unknown answering            // how a request of an unknown session is answered
	call    answering            // how a call of a known one is; nil is well
	ways    map[string]answering // how other requests are; nil is well
	sameID  bool                 // all sessions have one id

	bridge *Bridge // that has dialed last

	mu    sync.Mutex
	known []string
	log   []string // the methods that came, each with the number of its session
	all   int
}

func newSessions(unknown answering) *sessions { return &sessions{unknown: unknown} }

// RoundTrip answers a request.
func (s *sessions) RoundTrip(req *http.Request) (*http.Response, error) {
	req = readable(req)
	msg := rpc.Parse(rpc.BodyOf(req))
	method := msg.Method
	if req.Method != http.MethodPost {
		method = req.Method
	}
	s.mu.Lock()
	id := req.Header.Get(outbound.HeaderSession)
	known := slices.Contains(s.known, id)
	s.log = append(s.log, method+" "+id)
	way, onCall := s.ways[method], s.call
	if method == rpc.MethodInitialize && way == nil {
		s.all++
		id = fmt.Sprintf("session-number-%d", s.all)
		if s.sameID {
			id = "session-number-1"
		}
		s.known = append(s.known, id)
	}
	if method == http.MethodDelete && known {
		s.known = slices.DeleteFunc(s.known, func(one string) bool { return one == id })
	}
	s.mu.Unlock()
	switch {
	case method == rpc.MethodInitialize && way == nil:
		return says(200, outbound.TypeJSON, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}`, outbound.HeaderSession+": "+id)(req)
	case way != nil:
		return way(req)
	case method == http.MethodGet:
		return says(405, "", "")(req)
	case !known:
		return s.unknown(req)
	case method == "tools/call" && onCall != nil:
		return onCall(req)
	case method == "tools/list":
		return says(200, outbound.TypeJSON, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[]}}`)(req)
	case msg.IsCall():
		return says(200, outbound.TypeJSON, done)(req)
	}
	return says(202, "", "")(req)
}

// answers sets how calls of known sessions, and other requests, are answered from now on,
// and forgets what came before.
func (s *sessions) answers(call answering, ways map[string]answering) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.call, s.ways, s.log = call, ways, nil
}

// knows returns how many sessions the server knows.
func (s *sessions) knows() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.known)
}

// forget has the server forget all sessions.
func (s *sessions) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known, s.log = nil, nil
}

// count returns how often a method came.
func (s *sessions) count(method string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.log {
		if strings.HasPrefix(one, method+" ") {
			n++
		}
	}
	return n
}

func (s *sessions) server() mcpbridge.Server {
	return mcpbridge.Server{Name: "test", URL: "http://test/mcp", ProtocolVersion: protocolLegacy, NoStream: true, HTTPClient: &http.Client{Transport: s}}
}

// dial opens a session, and calls it once: then it is not fresh any more.
func (s *sessions) dial(t *testing.T, change ...func(*mcpbridge.Server)) (c *conn, downs func() []*mcpbridge.Error) {
	t.Helper()
	srv := s.server()
	for _, f := range change {
		f(&srv)
	}
	b := New([]mcpbridge.Server{srv}, nil)
	s.bridge = b
	var mu sync.Mutex
	var all []*mcpbridge.Error
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	opened, err := b.Dial(ctx, dial.Request{Key: messages.Key{Server: "test"}, Down: func(e *mcpbridge.Error) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, e)
	}})
	require.NoError(t, err)
	e, _ := do(opened)
	if s.call == nil {
		require.Nil(t, e)
	}
	t.Cleanup(b.Close)
	return opened.(*conn), func() []*mcpbridge.Error {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// redial opens the session of the same key again, as its actor does.
func redial(t *testing.T, s *sessions, c *conn) *conn {
	t.Helper()
	next, err := s.bridge.Dial(t.Context(), dial.Request{Key: c.key, Down: func(*mcpbridge.Error) {}})
	require.NoError(t, err)
	return next.(*conn)
}

// refusals are answers to requests of a session that is unknown, but for those that are
// certain by themselves.
var refusals = map[string]answering{
	"400, text":             says(400, "text/html", "Invalid or missing session ID"),
	"400, JSON-RPC":         says(400, outbound.TypeJSON, failure("null", "-32000", "Bad Request: No valid session ID provided")),
	"400, in German":        says(400, "", "Unbekannte Sitzung"),
	"400, nothing":          says(400, "", ""),
	"401":                   says(401, "", "Unauthorized: Session not found"),
	"404, own id":           says(404, outbound.TypeJSON, failure("%s", "-32001", "Session not found")),
	"422":                   says(422, "", "Unexpected message, expect initialize request"),
	"200, own id":           says(200, outbound.TypeJSON, failure("%s", "-32602", "Invalid or expired session")),
	"200, no id":            says(200, outbound.TypeJSON, failure("null", "-32005", "session not found")),
	"200, as an event":      says(200, outbound.TypeSSE, "data: "+failure("%s", "-32000", "Not connected")+"\n\n"),
	"200, unknown method":   says(200, outbound.TypeJSON, failure("%s", "-32601", "Method not found")),
	"500":                   says(500, outbound.TypeJSON, `{"error":"No valid session ID"}`),
	"599, HTML, in Finnish": says(599, "text/html", "<p>istunto on päättynyt</p>"),
}

// H-B1 to H-B3: whatever the words of the refusal are.
func TestUnknownSessionIsFoundOutByChecksAndControl(t *testing.T) {
	for name, refusal := range refusals {
		t.Run(name, func(t *testing.T) {
			s := newSessions(refusal)
			c, downs := s.dial(t)
			s.forget()
			var group sync.WaitGroup
			errs := make(chan *mcpbridge.Error, 20)
			for range cap(errs) {
				group.Go(func() {
					e, _ := do(c)
					errs <- e
				})
			}
			group.Wait()
			close(errs)
			for e := range errs {
				require.Equal(t, mcpbridge.Gone, e.Session, "%v", e)
				if !e.Sent { // a check was refused before
					require.Equal(t, mcpbridge.NotSent, e.Class, "%v", e)
				} else if strings.HasPrefix(name, "5") { // it may come after the call has run
					require.Equal(t, mcpbridge.Lost, e.Class, "%v", e)
				} else {
					require.Equal(t, mcpbridge.Expired, e.Class, "%v", e)
				}
			}
			require.Len(t, downs(), 1)
			require.Equal(t, 1, s.count(rpc.MethodInitialize), "one control")
			require.LessOrEqual(t, s.count("ping"), 4, "one check, that of the control, the first once more, and as a session that was never issued")

			next := redial(t, s, c)
			require.False(t, next.Info().Attached)
			require.Equal(t, 1, s.count(rpc.MethodInitialize), "the control's session is adopted")
			e, _ := do(next)
			require.Nil(t, e)
			require.Eventually(t, func() bool { return s.count(http.MethodDelete) == 1 }, 10*time.Second, time.Millisecond, "the old id gets a DELETE")
			require.NoError(t, next.Close(t.Context()))
			require.NoError(t, c.Close(t.Context()))
			require.Zero(t, s.knows())
		})
	}
}

// H-B4: the same words and codes from a session that lives.
func TestRefusalOfASessionThatLivesIsTheCallersOwn(t *testing.T) {
	for name, refusal := range refusals {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSessions(says(404, "", ""))
				c, downs := s.dial(t)
				s.answers(refusal, nil)
				for range 20 {
					e, _ := do(c)
					require.NotNil(t, e)
					require.Equal(t, mcpbridge.Alive, e.Session, "%v", e)
					require.NotContains(t, []mcpbridge.Class{mcpbridge.Expired, mcpbridge.Lost, mcpbridge.NotSent}, e.Class)
				}
				require.Equal(t, 1, s.count("tools/list"), "the verdict holds for a while")
				require.Zero(t, s.count(rpc.MethodInitialize))
				time.Sleep(doubt.AliveFor + time.Second)
				do(c)
				require.Equal(t, 2, s.count("tools/list"))
				require.Empty(t, downs())
				require.NoError(t, c.Close(context.Background()))
			})
		})
	}
}

// What a server says to every request of every session is not about the session.
func TestRefusalThatANewSessionGetsAsWellIsNotAboutTheSession(t *testing.T) {
	for name, ways := range map[string]map[string]answering{
		"opening is refused":     {rpc.MethodInitialize: says(401, "", "no"), "ping": says(401, "", "no"), "tools/list": says(401, "", "no")},
		"the checks are refused": {"ping": says(401, "", "no"), "tools/list": says(401, "", "no")},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSessions(says(404, "", ""))
			c, downs := s.dial(t)
			s.answers(says(401, "", "no"), ways)
			for range 5 {
				e, _ := do(c)
				require.Equal(t, mcpbridge.Unauthorized, e.Class, "%v", e)
				require.Equal(t, mcpbridge.Alive, e.Session)
			}
			require.Equal(t, 1, s.count(rpc.MethodInitialize), "one control")
			require.Empty(t, downs())
			s.answers(nil, nil)
			e, _ := do(c)
			require.Nil(t, e, "the session goes on")
			require.NoError(t, c.Close(t.Context()))
			require.Zero(t, s.knows(), "the second session is ended")
		})
	}
}

func TestDoubtThatCannotBeSettledLeavesTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSessions(says(404, "", ""))
		c, downs := s.dial(t)
		for name, way := range map[string]answering{
			"no answer": func(req *http.Request) (*http.Response, error) {
				<-req.Context().Done()
				return nil, req.Context().Err()
			},
			"another refusal": says(403, "", ""),
		} {
			time.Sleep(time.Hour) // pauses are over
			s.answers(says(400, "", ""), map[string]answering{"ping": way, "tools/list": way})
			began := time.Now()
			e, _ := do(c)
			require.Equal(t, mcpbridge.Invalid, e.Class, name)
			require.Equal(t, mcpbridge.Alive, e.Session, name)
			require.True(t, e.MayHaveRun(), name)
			require.LessOrEqual(t, time.Since(began), verdictTimeout, name)
			for range 3 {
				do(c)
			}
			require.Equal(t, 1, s.count("ping"), "%s: it is not asked again at once", name)
			time.Sleep(doubt.PauseMax)
			do(c)
			require.Equal(t, 2, s.count("ping"), name)
		}
		require.Empty(t, downs())
		s.answers(nil, nil)
		require.NoError(t, c.Close(context.Background()))
	})
}

func TestNobodyWaitsForAVerdictPastItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSessions(says(404, "", ""))
		c, _ := s.dial(t)
		s.answers(says(400, "", "why"), map[string]answering{"ping": func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Do(ctx, toolCall())
		require.Equal(t, mcpbridge.Invalid, mcpbridge.AsError(err).Class, "its own error, while there is time")
		require.NoError(t, ctx.Err())
		s.answers(nil, nil)
		require.NoError(t, c.Close(context.Background()))
	})
}

// The session that a control has opened does not stay.
func TestSecondSessionIsEndedWhenNobodyAdoptsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSessions(says(400, "", ""))
		c, downs := s.dial(t)
		s.forget()
		e, _ := do(c)
		require.Equal(t, mcpbridge.Expired, e.Class)
		require.Len(t, downs(), 1)
		require.Equal(t, 1, s.knows())
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		require.Zero(t, s.knows())
		require.NoError(t, c.Close(context.Background()))
	})
}

// H-B6: the server does not know a session for a moment after initialize.
func TestNewSessionThatIsNotKnownYetIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSessions(says(404, "", "not found"))
		var opened time.Time
		late := func(req *http.Request) (*http.Response, error) {
			if time.Since(opened) < time.Second {
				return says(404, "", "not found")(req)
			}
			return says(200, outbound.TypeJSON, done)(req)
		}
		opened = time.Now()
		s.ways = map[string]answering{"tools/call": late}
		c, downs := s.dial(t)
		require.Less(t, time.Since(opened), (2 * time.Second))
		require.Empty(t, downs())
		require.Equal(t, 1, s.count(rpc.MethodInitialize))
		require.NoError(t, c.Close(context.Background()))
	})
}

// Attaching is judged by the same rule: a refusal of the session that is about something
// else keeps it, and one that another session does not get gives it up.
func TestAttachIsJudgedByChecksAndControl(t *testing.T) {
	for name, refusal := range refusals {
		t.Run(name, func(t *testing.T) {
			s := newSessions(refusal)
			c, _ := s.dial(t)
			resume := c.Resume()
			require.NoError(t, c.Detach(t.Context()))

			s.answers(nil, map[string]answering{"ping": refusal, "tools/list": refusal, rpc.MethodInitialize: says(403, "", "not now")})
			if name == "200, unknown method" { // it has no ping
				s.answers(nil, map[string]answering{"ping": says(403, "", "no"), "tools/list": refusal, rpc.MethodInitialize: says(403, "", "not now")})
			}
			_, err := s.bridge.Dial(t.Context(), dial.Request{Key: c.key, Resume: resume, Down: func(*mcpbridge.Error) {}})
			require.Error(t, err)
			require.Equal(t, 1, s.knows(), "it is kept")

			s.answers(nil, nil)
			attached, err := s.bridge.Dial(t.Context(), dial.Request{Key: c.key, Resume: resume, Down: func(*mcpbridge.Error) {}})
			require.NoError(t, err)
			require.True(t, attached.Info().Attached)
			require.NoError(t, attached.Detach(t.Context()))

			s.forget()
			other, err := s.bridge.Dial(t.Context(), dial.Request{Key: c.key, Resume: resume, Down: func(*mcpbridge.Error) {}})
			require.NoError(t, err)
			require.Equal(t, name == "200, unknown method", other.Info().Attached, "this one may have no ping, and the next call finds it out")
			require.Equal(t, !other.Info().Attached, s.count(rpc.MethodInitialize) == 1)
			require.NoError(t, other.Close(t.Context()))
		})
	}
}

// H-B8: a server that refuses the first request with a temporary error.
func TestServerThatRefusesDiscoveryForTheMomentIsInitialized(t *testing.T) {
	for _, status := range []int{408, 429, 500, 502, 503} {
		s := newSessions(says(404, "", ""))
		s.ways = map[string]answering{rpc.MethodDiscover: says(status, "", "")}
		newest := func(srv *mcpbridge.Server) { srv.ProtocolVersion = "" }
		c, _ := s.dial(t, newest)
		require.Empty(t, c.at.version(nil), "that says nothing of what it speaks")
		require.NoError(t, c.Close(t.Context()))
	}
}

// H-A5: the annotations are discarded.
func TestHintsAreUnlearnedWhenAChangeMayHaveBeenMissed(t *testing.T) {
	c := &conn{}
	c.callbacks.hints.set([]*mcp.Tool{{Name: "t", Annotations: &mcp.ToolAnnotations{IdempotentHint: true}}}, c.callbacks.hints.changed())
	c.Missed(&mcp.NotificationSubscriptions{ToolsListChanged: true})
	safe, known := c.Hint("t")
	require.False(t, safe || known)
}

// A server may refuse the stream before the session is open.
func TestNothingIsAskedDuringTheHandshake(t *testing.T) {
	c := &conn{}
	c.Doubt(http.MethodGet, nil)
	require.False(t, c.doubts.machine.IsRunning())
}

// H-B11: a process that refuses everything counts as broken, because there is no second
// session to ask.
func TestProcessThatRefusesEverythingCountsAsBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lists = `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}`
		p := &puppet{says: map[string]string{rpc.MethodInitialize: lists}}
		c, e := p.dial(t.Context(), 1<<20)
		require.Nil(t, e)
		e, _ = do(c)
		require.Nil(t, e)
		synctest.Wait()
		const notConnected = `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"Not connected"}}`
		p.says = map[string]string{"tools/call": notConnected}
		e, _ = do(c)
		require.Equal(t, mcpbridge.ServerError, e.Class, "%v", e)
		require.Equal(t, mcpbridge.Alive, e.Session, "it lists its tools")

		time.Sleep(time.Minute)
		synctest.Wait()
		p.says = map[string]string{"tools/call": notConnected, "ping": notConnected}
		e, _ = do(c)
		require.Equal(t, mcpbridge.Alive, e.Session, "it may have no ping")

		time.Sleep(time.Minute)
		synctest.Wait()
		p.says = map[string]string{"tools/call": notConnected, "tools/list": notConnected}
		e, _ = do(c)
		require.Equal(t, mcpbridge.Lost, e.Class, "%v", e)
		require.Equal(t, mcpbridge.Broken, e.Session)
		require.NoError(t, c.Close(context.Background()))
	})
}

// H-B5: each stream is opened, sends an event, and ends.
func TestStreamThatEndsAtOnceIsOpenedLessOftenAndMakesTheSessionDoubtful(t *testing.T) {
	for name, dead := range map[string]bool{"a session that lives": false, "a dead one": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSessions(says(400, "", "no such session"))
				s.ways = map[string]answering{http.MethodGet: breaks(": hello\n\n")}
				c, downs := s.dial(t, func(srv *mcpbridge.Server) { srv.NoStream = false })
				if dead {
					s.forget()
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				require.Less(t, s.count(http.MethodGet), 300)
				require.Equal(t, dead, len(downs()) == 1)
				require.NoError(t, c.Close(context.Background()))
			})
		})
	}
}

// H-B10: the URL is configured for streamable HTTP.
func TestServerThatHasOnlySSEIsSpokenToOverSSE(t *testing.T) {
	server := newTools()
	inner := mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return server }, nil)
	var mu sync.Mutex
	var log []string
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		log = append(log, r.Method+" "+r.URL.Path)
		mu.Unlock()
		inner.ServeHTTP(w, r)
	}))
	defer web.Close()
	b := New([]mcpbridge.Server{{Name: "test", URL: web.URL + "/sse"}}, nil)
	defer b.Close()
	for range 2 {
		c, err := b.Dial(t.Context(), dial.Request{Key: messages.Key{Server: "test"}, Down: func(*mcpbridge.Error) {}})
		require.NoError(t, err)
		e, _ := do(c)
		require.Nil(t, e)
		require.NoError(t, c.Close(t.Context()))
	}
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, "POST /sse", log[0])
	refused := 0
	for i, one := range log {
		if one == "GET /sse" && refused == 0 {
			refused = i
		}
	}
	require.LessOrEqual(t, refused, 2, "discovery and initialize, once: it is remembered")
}

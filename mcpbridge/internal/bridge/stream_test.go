package bridge

import (
	"context"
	"net/http"
	"strings"
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

// attach dials by attaching: that takes no handshake but a ping. The answers to questions wait.
func (s *script) attach(t *testing.T, change ...func(*mcpbridge.Server, *mcpbridge.Resume)) dial.Conn {
	t.Helper()
	srv := mcpbridge.Server{Name: "test", URL: "http://test/mcp", HTTPClient: &http.Client{Transport: s}}
	resume := mcpbridge.Resume{SessionID: testSession, Server: &mcp.InitializeResult{ProtocolVersion: protocolLegacy}}
	for _, f := range change {
		f(&srv, &resume)
	}
	resume.Endpoint, resume.Identity = fingerprintOf(srv.URL), (&endpoint{Server: srv}).identity(resume.SessionID, "")
	c, err := New([]mcpbridge.Server{srv}, asking(nil).capabilities).Dial(context.Background(), dial.Request{
		Key: messages.Key{Server: "test"}, Resume: &resume, Ask: bored, Down: func(e *mcpbridge.Error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.downs = append(s.downs, e)
		},
	})
	require.NoError(t, err)
	require.True(t, c.Info().Attached)
	return c
}

// onStream opens a session whose stream is answered so, and lets an hour pass.
func onStream(t *testing.T, check func(t *testing.T, s *script, c dial.Conn), ways ...answering) {
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
	onStream(t, func(t *testing.T, s *script, c dial.Conn) {
		gets, _ := s.seen(http.MethodGet)
		var after []string
		for _, req := range gets {
			after = append(after, req.Header.Get(outbound.HeaderEvent))
			require.Equal(t, testSession, req.Header.Get(outbound.HeaderSession))
			require.Equal(t, protocolLegacy, req.Header.Get(outbound.HeaderProtocol))
		}
		require.Equal(t, []string{"", "1", "2", "2", "2"}, after)
		require.Equal(t, "abc", s.pongs())
		require.Empty(t, s.downs)
	}, breaks("id: 1\n"+ping("a")), says(200, outbound.TypeSSE, ": beat\n\nid: 2\r\n"+ping("b")+half), breaks(half), fails, stays(ping("c")))
}

func TestServerSaysHowSoonItsStreamIsOpenedAgain(t *testing.T) {
	for retry, want := range map[string]time.Duration{"3000": 3 * time.Second, "3600000": (30 * time.Second)} {
		onStream(t, func(t *testing.T, s *script, c dial.Conn) {
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
	onStream(t, func(t *testing.T, s *script, c dial.Conn) {
		_, times := s.seen(http.MethodGet)
		require.Len(t, times, len(refusals)+2)
		for i, delay := 0, (500 * time.Millisecond); i <= len(refusals)-1; i, delay = i+1, min(2*delay, (30*time.Second)) {
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
			onStream(t, func(t *testing.T, s *script, c dial.Conn) {
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
	onStream(t, func(t *testing.T, s *script, c dial.Conn) {
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

func TestEventThatIsTooLargeIsSkipped(t *testing.T) {
	small := func(srv *mcpbridge.Server, _ *mcpbridge.Resume) { srv.MaxResult = 100 }
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.answer(http.MethodGet, stays(ping("a")+"data: "+strings.Repeat("x", 1000)+"\n\n"+ping("b")))
		conn := s.attach(t, small)
		time.Sleep(time.Minute)
		synctest.Wait()
		gets, _ := s.seen(http.MethodGet)
		require.Len(t, gets, 1)
		require.ElementsMatch(t, []byte("ab"), []byte(s.pongs())) // they are answered at the same time
		require.Empty(t, s.downs)
		require.NoError(t, conn.Close(context.Background()))
	})
}

func TestStreamWhoseTypeIsMalformedIsReadAllTheSame(t *testing.T) {
	onStream(t, func(t *testing.T, s *script, c dial.Conn) {
		require.Equal(t, "a", s.pongs())
		require.Empty(t, s.downs)
	}, then(nil, says(200, outbound.TypeSSE+"; charset", ping("a"))))
}

// The first session of a server waits for its stream, and the handshake of the next
// goes on while it is opened.
func TestStreamIsOpenedBesideTheHandshakeWhereOneIsExpected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const welcome = `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"` + protocolLegacy + `","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`
		s := newScript()
		s.answer(rpc.MethodInitialize, says(200, outbound.TypeJSON, welcome, outbound.HeaderSession+": "+testSession))
		b := New([]mcpbridge.Server{{Name: "test", URL: "http://test/mcp", ProtocolVersion: protocolLegacy, HTTPClient: &http.Client{Transport: s}}}, nil)
		var took []time.Duration
		open := func(get answering) {
			s.answer(http.MethodGet, get)
			began := time.Now()
			c, err := b.Dial(t.Context(), dial.Request{Key: messages.Key{Server: "test"}, Down: func(e *mcpbridge.Error) { t.Errorf("down: %v", e) }})
			require.NoError(t, err)
			took = append(took, time.Since(began))
			e, _ := do(c)
			require.Nil(t, e)
			require.NoError(t, c.Close(t.Context()))
		}
		const soon = (300 * time.Millisecond) / 2
		after := func(d time.Duration, how answering) answering {
			return func(req *http.Request) (*http.Response, error) {
				if !wire.Sleep(req.Context(), d) {
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
		open(after(time.Hour, stays("")))    // H-B9: its headers are held back
		open(after(time.Hour, stays("")))    // the delay is known by now
		require.Equal(t, []time.Duration{2 * soon, soon, soon, 2 * soon, soon + (300 * time.Millisecond), soon}, took)
		b.Close()
	})
}

func TestSessionOpensThoughItsStreamIsNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		b := New([]mcpbridge.Server{{Name: "test", URL: "http://test/mcp", HTTPClient: &http.Client{Transport: s}}}, nil)
		attach := func() dial.Conn {
			resume := &mcpbridge.Resume{SessionID: testSession, Server: &mcp.InitializeResult{ProtocolVersion: protocolLegacy}, Endpoint: fingerprintOf("http://test/mcp")}
			c, err := b.Dial(t.Context(), dial.Request{Key: messages.Key{Server: "test"}, Resume: resume})
			require.NoError(t, err)
			return c
		}
		s.answer(http.MethodGet, stays("")) // so that the next session expects a stream
		require.NoError(t, attach().Detach(t.Context()))
		s.answer(http.MethodGet, func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		})
		resume := &mcpbridge.Resume{SessionID: testSession, Server: &mcp.InitializeResult{ProtocolVersion: protocolLegacy}, Endpoint: fingerprintOf("http://test/mcp")}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		c, err := b.Dial(ctx, dial.Request{Key: messages.Key{Server: "test"}, Resume: resume, Down: func(e *mcpbridge.Error) { t.Errorf("down: %v", e) }})
		require.NoError(t, err)
		require.LessOrEqual(t, time.Since(began), (300 * time.Millisecond))
		e, _ := do(c)
		require.Nil(t, e)
		require.NoError(t, c.Close(ctx))
		b.Close()
	})
}

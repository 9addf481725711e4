package bridge

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
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
	"github.com/mcpactor/mcpactor/messages"
)

// streamOf is a stream of a server, open until its end or the end of its request.
func streamOf() (write io.WriteCloser, how answering) {
	in, out := io.Pipe()
	return out, func(req *http.Request) (*http.Response, error) {
		context.AfterFunc(req.Context(), func() { in.CloseWithError(context.Canceled) })
		resp := outbound.Respond(req, http.StatusOK, outbound.TypeSSE, nil)
		resp.Body, resp.ContentLength = in, -1
		return resp, nil
	}
}

// asked makes calls, and returns what each comes to, when all requests have been sent.
func asked(s *script, c dial.Conn, n int) (ids []string, results []chan string) {
	before := len(s.ids("tools/call"))
	for range n {
		result := make(chan string, 1)
		go func() {
			text, e := told(c)
			if e != nil {
				text = e.Error()
			}
			result <- text
		}()
		results = append(results, result)
		synctest.Wait()
	}
	return s.ids("tools/call")[before:], results
}

func TestResponseAfterA202ComesOnTheStandaloneStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		stream, how := streamOf()
		s.answer(http.MethodGet, how)
		s.answer("tools/call", says(202, "", ""))
		c := s.attach(t)
		ids, results := asked(s, c, 3)
		require.Len(t, ids, 3)
		time.Sleep(time.Second)
		fmt.Fprintf(stream, "data: %s\n\n", saying(ids[1], "second"))
		require.Equal(t, "second", <-results[1])
		fmt.Fprintf(stream, "data: %s\n\n", saying(ids[1], "again")) // nobody waits for it
		fmt.Fprintf(stream, "data: %s\n\n", failure(`"`+ids[2]+`"`, "-32000", "oops"))
		fmt.Fprintf(stream, "data: %s\n\n", saying(ids[0], "first"))
		require.Equal(t, "first", <-results[0])
		require.Equal(t, "server_error: oops", <-results[2])
		require.Len(t, s.ids("tools/call"), 3)
		gets, _ := s.seen(http.MethodGet)
		require.Len(t, gets, 1)
		require.NoError(t, c.Close(context.Background()))
	})
}

// Nobody keeps a server from sending the response first.
func TestResponseThatOvertakesIts202IsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		stream, how := streamOf()
		s.answer(http.MethodGet, how)
		s.answer("tools/call", func(req *http.Request) (*http.Response, error) {
			fmt.Fprintf(stream, "data: %s\n\n", saying(string(rpc.Parse(rpc.BodyOf(req)).ID), "own"))
			time.Sleep(time.Second / 2)
			return says(202, "", "")(req)
		}, func(req *http.Request) (*http.Response, error) {
			fmt.Fprintf(stream, "data: %s\n\n", saying(string(rpc.Parse(rpc.BodyOf(req)).ID), "wrong"))
			return says(200, outbound.TypeJSON, saying("%s", "right"))(req)
		})
		c := s.attach(t)
		for _, want := range []string{"own", "right"} {
			text, e := told(c)
			require.Nil(t, e)
			require.Equal(t, want, text)
		}
		require.NoError(t, c.Close(context.Background()))
		time.Sleep(time.Minute)
	})
}

func TestStreamIsOpenedForAResponseAfterA202(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		first, one := streamOf()
		second, two := streamOf()
		s.answer(http.MethodGet, says(405, "", ""), one, two, says(409, "", ""))
		s.answer("tools/call", says(202, outbound.TypeJSON, "{}"))
		c := s.attach(t)
		ids, results := asked(s, c, 2)
		io.WriteString(first, ping("a"))
		fmt.Fprintf(first, "data: %s\n\n", saying(ids[0], "first"))
		require.Equal(t, "first", <-results[0])
		synctest.Wait()
		require.Equal(t, "a", s.pongs())
		fmt.Fprintf(second, "data: %s\n\n", saying(ids[1], "second")) // the other call has opened it
		require.Equal(t, "second", <-results[1])
		require.NoError(t, c.Close(context.Background()))
	})
}

// The responses to several calls come on one stream, which the session has, or which the first call has opened.
func TestResponseOnAStreamThatIsTooLargeFailsItsCallAlone(t *testing.T) {
	for name, first := range map[string][]answering{"of the session": nil, "of a call": {says(405, "", "")}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript()
				stream, how := streamOf()
				s.answer(http.MethodGet, append(first, how, says(409, "", ""))...)
				s.answer("tools/call", says(202, "", ""))
				c := s.attach(t, func(srv *mcpbridge.Server, _ *mcpbridge.Resume) { srv.MaxResult = 4 << 10 })
				ids, results := asked(s, c, 3)
				large := strings.Repeat("x", 5<<10)
				io.WriteString(stream, "data: {\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":{\"x\":\""+large+"\"}}\n\n")
				fmt.Fprintf(stream, "data: %s\n\n", saying(ids[1], large))
				require.Equal(t, "protocol: the result has more than 4096 bytes (maxResult)", <-results[1])
				fmt.Fprintf(stream, "data: %s\n\n", saying(ids[2], "third"))
				require.Equal(t, "third", <-results[2])
				fmt.Fprintf(stream, "data: %s\n\n", saying(ids[0], large))
				require.Equal(t, "protocol: the result has more than 4096 bytes (maxResult)", <-results[0])
				gets, _ := s.seen(http.MethodGet)
				require.Len(t, gets, 1+len(first))
				require.Empty(t, s.downs)
				require.NoError(t, c.Close(context.Background()))
			})
		})
	}
}

func TestCallThatIsAnsweredWith202AndHasNoStreamMayHaveRun(t *testing.T) {
	comesTo(t, func(t *testing.T, s *script, e *mcpbridge.Error) {
		require.Equal(t, mcpbridge.Protocol, e.Class, "%v", e)
		require.Contains(t, e.Detail, "no stream on which the response can come")
		require.True(t, e.MayHaveRun())
		require.Equal(t, mcpbridge.Alive, e.Session)
		require.Len(t, s.ids("tools/call"), 1)
	}, says(202, "", ""), nil)
}

func TestCallThatIsAnsweredWith202AndNothingMoreMayHaveRunAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.answer(http.MethodGet, stays(""))
		s.answer("tools/call", says(202, "", ""))
		c := s.attach(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := c.Do(ctx, toolCall())
		e := mcpbridge.AsError(err)
		require.Equal(t, mcpbridge.Deadline, e.Class)
		require.True(t, e.MayHaveRun())
		require.NoError(t, c.Close(context.Background()))
	})
}

// Without a 202 a response on another stream is that of an old connection, or of a server that mixes up
// its calls.
func TestResponseOnTheStreamOfAnotherCallIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		stream, how := streamOf()
		other, slow := streamOf()
		s.answer(http.MethodGet, stays(""))
		s.answer("tools/call", how, slow)
		c := s.attach(t)
		ids, results := asked(s, c, 2)
		fmt.Fprintf(stream, "data: %s\n\n", saying(ids[1], "wrong"))
		fmt.Fprintf(stream, "data: %s\n\n", saying(ids[0], "first"))
		require.Equal(t, "first", <-results[0])
		fmt.Fprintf(other, "data: %s\n\n", saying(ids[1], "second"))
		require.Equal(t, "second", <-results[1])
		require.Zero(t, c.(*conn).Strays.Load(), "the connection has sent it")
		require.NoError(t, c.Close(context.Background()))
	})
}

func TestResponseWhoseStreamBrokeOffComesOnTheStandaloneStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		stream, how := streamOf()
		s.answer(http.MethodGet, how, says(503, "", ""))
		s.answer("tools/call", breaks("id: 1\nretry: 60000\ndata:\n\n"))
		c := s.attach(t)
		ids, results := asked(s, c, 1)
		fmt.Fprintf(stream, "data: %s\n\n", saying(ids[0], "late"))
		require.Equal(t, "late", <-results[0])
		require.NoError(t, c.Close(context.Background()))
	})
}

func TestAnswerThatBrokeOffIsNotResumedWhereThereIsNoStream(t *testing.T) {
	for _, status := range []int{400, 405} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript()
				s.answer(http.MethodGet, says(status, "", ""))
				s.answer("tools/call", breaks("id: 1\ndata:\n\nid: 2\ndata: {"))
				c := s.attach(t)
				began := time.Now()
				e, late := do(c)
				require.False(t, late)
				require.Equal(t, mcpbridge.Lost, e.Class, "%v", e)
				require.Less(t, time.Since(began), 200*time.Millisecond)
				gets, _ := s.seen(http.MethodGet)
				require.Len(t, gets, 2)
				require.Equal(t, "1", gets[1].Header.Get(outbound.HeaderEvent))
				require.NoError(t, c.Close(context.Background()))
			})
		})
	}
}

// A call whose answer is open goes on.
func TestAnswerThatBrokeOffIsNotResumedOnASessionThatHasExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		open, how := streamOf()
		s.answer("tools/call", breaks("id: 1\nretry: 60000\ndata:\n\n"), how, says(404, "", ""))
		c := s.attach(t)
		_, broken := asked(s, c, 1)
		ids, going := asked(s, c, 1)
		time.Sleep(time.Second)
		require.Empty(t, broken[0])
		_, expired := asked(s, c, 1)
		require.Contains(t, <-expired[0], "expired")
		synctest.Wait()
		require.Contains(t, <-broken[0], "lost: its answer broke off, and the session expired")
		fmt.Fprintf(open, "data: %s\n\n", saying(ids[0], "own"))
		require.Equal(t, "own", <-going[0])
		gets, _ := s.seen(http.MethodGet)
		require.Len(t, gets, 1)
		require.NoError(t, c.Close(context.Background()))
	})
}

func TestGarbageOnTheStandaloneStreamCostsNoCall(t *testing.T) {
	for name, garbage := range map[string]string{
		"no JSON": "data: hello\n\n", "no message": "data: {}\n\n", "a batch": "data: []\n\n", "half": "data: {\"jsonrpc\":\"2.0\n\n",
		"a line": "hello\n\n", "null": "data: null\n\n", "deep": "data: " + strings.Repeat("[", 2000) + "\n\n", "too large": "data: " + strings.Repeat("x", 64<<10) + "\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript()
				stream, how := streamOf()
				answer, call := streamOf()
				s.answer(http.MethodGet, how, stays(ping("b")))
				s.answer("tools/call", call)
				c := s.attach(t, func(srv *mcpbridge.Server, _ *mcpbridge.Resume) { srv.MaxResult = 32 << 10 })
				ids, results := asked(s, c, 1)
				io.WriteString(stream, garbage)
				time.Sleep(time.Second)
				stream.Close()
				time.Sleep(time.Minute)
				fmt.Fprintf(answer, "data: %s\n\n", saying(ids[0], "own"))
				require.Equal(t, "own", <-results[0])
				require.Equal(t, "b", s.pongs(), "the stream is opened again")
				require.Empty(t, s.downs)
				require.NoError(t, c.Close(context.Background()))
			})
		})
	}
}

func TestBodiesThatOtherClientsRead(t *testing.T) {
	own := saying("%s", "own")
	for name, body := range map[string]string{
		"byte order mark":        "\ufeff" + own,
		"array of one":           "[" + own + "]",
		"mark, blanks, array":    "\ufeff \n[ " + own + " ]\n",
		"with a notification":    `[{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}},` + own + "]",
		"id as text":             strings.Replace(own, "%s", `"%s"`, 1),
		"id with a zero":         strings.Replace(own, "%s", `%s.0`, 1),
		"stray before the own":   "[" + saying("4", "stray") + "," + own + "]",
		"on several lines":       strings.ReplaceAll(own, ",", ",\n"),
		"array on several lines": "[" + strings.ReplaceAll(own, ",", ",\n") + "," + saying("4", "stray") + "]",
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript()
			s.answer("tools/call", says(200, outbound.TypeJSON, body))
			c := s.attach(t)
			text, e := told(c)
			require.Nil(t, e)
			require.Equal(t, "own", text)
			require.NoError(t, c.Close(t.Context()))
		})
	}
	comesTo(t, func(t *testing.T, _ *script, e *mcpbridge.Error) {
		require.Equal(t, mcpbridge.Alive, e.Session, "%v", e)
		require.True(t, e.MayHaveRun())
	}, says(200, outbound.TypeJSON, "["+saying("4", "stray")+","+saying("5", "stray")+"]"), nil)
}

// Other clients use the id that the server has sent last.
func TestSessionWhoseIDChangesWithEveryAnswerIsFollowed(t *testing.T) {
	s, n := newScript(), 0
	s.answer("tools/call", func(req *http.Request) (*http.Response, error) {
		if n > 0 && req.Header.Get(outbound.HeaderSession) != fmt.Sprint("session-", n) {
			return says(404, "", "")(req)
		}
		n++
		return says(200, outbound.TypeJSON, saying("%s", "own"), fmt.Sprint(outbound.HeaderSession, ": session-", n))(req)
	})
	c := s.attach(t)
	for range 3 {
		text, e := told(c)
		require.Nil(t, e)
		require.Equal(t, "own", text)
	}
	require.Equal(t, "session-3", c.Resume().SessionID)
	require.NoError(t, c.Close(t.Context()))
	deletes, _ := s.seen(http.MethodDelete)
	require.Equal(t, "session-3", deletes[0].Header.Get(outbound.HeaderSession))
}

// rotating is a server that gives a session another id with each 2xx, and knows only the last one.
type rotating struct {
	*script
	mu    sync.Mutex
	last  int
	sleep func(req *http.Request) // before the answer
}

func (r *rotating) RoundTrip(req *http.Request) (*http.Response, error) {
	req = readable(req)
	r.sleep(req)
	r.mu.Lock()
	defer r.mu.Unlock()
	opens := rpc.Parse(rpc.BodyOf(req)).Method == rpc.MethodInitialize || rpc.Parse(rpc.BodyOf(req)).Method == rpc.MethodDiscover
	if !opens && req.Header.Get(outbound.HeaderSession) != fmt.Sprint("session-", r.last) {
		return says(404, "", "")(req)
	}
	resp, err := r.script.RoundTrip(req)
	if err == nil && resp.StatusCode < 300 {
		r.last++
		resp.Header.Set(outbound.HeaderSession, fmt.Sprint("session-", r.last))
	}
	return resp, err
}

func TestSessionWhoseIDChangesFromItsOpeningOnIsFollowed(t *testing.T) {
	for name, slow := range map[string]string{"at once": "", "a slow notification": "notifications/initialized", "a slow stream": http.MethodGet} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript().opening()
				s.answer(http.MethodGet, stays(""))
				var downs atomic.Int32
				r := &rotating{script: s, sleep: func(req *http.Request) {
					if slow != "" && cmp.Or(rpc.Parse(rpc.BodyOf(req)).Method, req.Method) == slow {
						time.Sleep(time.Second * 3 / 4)
					}
				}}
				b := New([]mcpbridge.Server{{Name: "test", URL: "http://test/mcp", HTTPClient: &http.Client{Transport: r}}}, nil)
				c, err := b.Dial(t.Context(), dial.Request{Key: messages.Key{Server: "test"}, Down: func(*mcpbridge.Error) { downs.Add(1) }})
				require.NoError(t, err)
				for range 10 { // one after the other: answers that cross do not show which id is the last
					e, _ := do(c)
					require.Nil(t, e)
				}
				require.NoError(t, c.Close(t.Context()))
				require.Zero(t, downs.Load())
				time.Sleep(time.Second) // the slow request ends
			})
		})
	}
}

// dialScript opens a session.
func dialScript(t *testing.T, s *script) (dial.Conn, error) {
	t.Helper()
	srv := mcpbridge.Server{Name: "test", URL: "http://test/mcp", HTTPClient: &http.Client{Transport: s}}
	return New([]mcpbridge.Server{srv}, nil).Dial(t.Context(), dial.Request{Key: messages.Key{Server: "test"}, Down: func(*mcpbridge.Error) {}})
}

// A server that gives every answer an id has given one to the answer to server/discover, too.
func TestSessionHasTheIDOfItsInitialize(t *testing.T) {
	s := newScript()
	s.answer(rpc.MethodDiscover, says(200, outbound.TypeJSON, failure("%s", "-32601", "no"), outbound.HeaderSession+": none"))
	s.answer(rpc.MethodInitialize, says(200, outbound.TypeJSON,
		`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`, outbound.HeaderSession+": own"))
	c, err := dialScript(t, s)
	require.NoError(t, err)
	require.Equal(t, "own", c.Resume().SessionID)
	e, _ := do(c)
	require.Nil(t, e)
	posts, _ := s.seen(http.MethodPost)
	require.Equal(t, "own", posts[len(posts)-1].Header.Get(outbound.HeaderSession))
	require.NoError(t, c.Close(t.Context()))
}

func TestServerOfTheProtocolBeforeTheFirstIsUsed(t *testing.T) {
	for name, kind := range map[string]string{"JSON": outbound.TypeJSON, "SSE": outbound.TypeSSE} {
		t.Run(name, func(t *testing.T) {
			s := newScript()
			s.answer(rpc.MethodDiscover, says(200, outbound.TypeJSON, failure("%s", "-32601", "no")))
			body := `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion": "2024-10-07","capabilities":{},"serverInfo":{"name":"2024-10-07","version":"2024-10-07"}}}`
			if kind == outbound.TypeSSE {
				body = "data: " + body + "\n\n"
			}
			s.answer(rpc.MethodInitialize, says(200, kind, body))
			c, err := dialScript(t, s)
			require.NoError(t, err)
			require.Equal(t, "2024-11-05", c.Info().Server.ProtocolVersion)
			require.Equal(t, &mcp.Implementation{Name: "2024-10-07", Version: "2024-10-07"}, c.Info().Server.ServerInfo)
			require.NoError(t, c.Close(t.Context()))
		})
	}
}

func TestResultThatIsNotUnderstoodMayHaveRun(t *testing.T) {
	for result, detail := range map[string]string{
		`null`:                               "the result is null",
		`{"resultType":"task","content":[]}`: `"task"`,
		`{"resultType":"input_required"}`:    "input_required",
	} {
		for kind, format := range map[string]string{outbound.TypeJSON: "%s", outbound.TypeSSE: "data: %s\n\n"} {
			body := fmt.Sprintf(format, `{"jsonrpc":"2.0","id":%s,"result":`+result+`}`)
			comesTo(t, func(t *testing.T, _ *script, e *mcpbridge.Error) {
				require.NotNil(t, e, result)
				require.Equal(t, mcpbridge.Protocol, e.Class)
				require.Contains(t, e.Detail, detail)
				require.True(t, e.MayHaveRun())
				require.Equal(t, mcpbridge.Alive, e.Session)
			}, says(200, kind, body), nil)
		}
	}
}

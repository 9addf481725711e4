package bridge

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/internal/freeport"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

// httpAnswer is what a server answers to a call: once, and to each attempt to
// resume the answer that broke off.
type httpAnswer struct {
	status int
	kind   string
	header string // "Name: value", beside the content type
	body   string
	cut    bool // the body ends with an error
	again  int
	rest   string
}

// check makes a call that is answered so, and another one that is answered
// well. Time passes only where something waits for it.
func (w httpAnswer) check(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		c := s.attach(t)
		defer c.Close(context.Background())
		way := says(100+int(uint(w.status-100)%900), w.kind, w.body, w.header)
		if w.cut {
			way = then(io.ErrUnexpectedEOF, way)
		}
		s.answer("tools/call", way)
		s.answer(http.MethodGet, says(100+int(uint(w.again-100)%900), outbound.TypeSSE, w.rest))
		e, late := do(c)
		s.answer("tools/call", nil)
		if e != nil {
			requirePresentable(t, e)
			status := 100 + int(uint(w.status-100)%900)
			isPage := e.Class == mcpbridge.NotSent && wire.IsMissing(status) && strings.Contains(w.body, "<") // a page in place of the server's answer
			require.True(t, isPage || e.Sent || e.Class == mcpbridge.Protocol && outbound.IsMoved(status), "%v", e)
			require.True(t, isPage || e.Class != mcpbridge.NotSent)
			if late { // then the server wanted it so
				require.Contains(t, w.body+w.rest, "retry", "%v", e)
			}
		}
		if e == nil || !e.Session.HasEnded() {
			_, err := c.Do(t.Context(), new(messages.Open))
			require.NoError(t, err, "after %v", e)
			again, _ := do(c)
			require.Nil(t, again, "after %v", e)
		}
		require.NoError(t, c.Close(context.Background()))
		require.LessOrEqual(t, len(s.downs), 1)
	})
}

func TestWhatACallComesTo(t *testing.T) {
	const done = `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`
	primed, large := "id: 1\nretry: 5\ndata:\n\n", strings.Repeat("x", 5<<10)
	tooLarge := &mcpbridge.Error{Class: mcpbridge.Protocol, Detail: "more than 4096 bytes (maxResult)"}
	for name, c := range map[string]struct {
		call   answering
		want   *mcpbridge.Error // nil is a result
		resume answering
	}{
		"JSON":                    {call: says(200, "application/json; charset=utf-8", done)},
		"SSE":                     {call: says(200, outbound.TypeSSE, "data: "+done+"\n\n")},
		"another id":              {says(200, outbound.TypeJSON, `{"jsonrpc":"2.0","id":3,"result":5}`), &mcpbridge.Error{Class: mcpbridge.Protocol, Detail: "id of another request"}, nil},
		"error without an id":     {says(200, outbound.TypeJSON, failure("null", "-32000", "oops")), &mcpbridge.Error{Class: mcpbridge.ServerError, Detail: "oops"}, nil},
		"error of the parameters": {says(200, outbound.TypeJSON, failure("%s", "-32602", "oops")), &mcpbridge.Error{Class: mcpbridge.Invalid, Detail: "oops"}, nil},
		"error over SSE":          {says(200, outbound.TypeSSE, "data: "+failure("%s", "-32603", "oops")+"\n\n"), &mcpbridge.Error{Class: mcpbridge.ServerError, Detail: "oops"}, nil},
		"no JSON":                 {says(200, outbound.TypeJSON, "<html>"), &mcpbridge.Error{Class: mcpbridge.Protocol, Detail: "no JSON-RPC response"}, nil},
		"no result":               {says(200, outbound.TypeJSON, `{"jsonrpc":"2.0","id":%s}`), &mcpbridge.Error{Class: mcpbridge.Protocol}, nil},
		"a request":               {says(200, outbound.TypeJSON, `{"jsonrpc":"2.0","id":%s,"method":"ping"}`), &mcpbridge.Error{Class: mcpbridge.Protocol, Detail: "no JSON-RPC response"}, nil},
		"text/json":               {call: says(200, "text/json", done)},
		"text/plain":              {call: says(200, "text/plain; charset=utf-8", done)},
		"text/html, no page":      {call: says(200, "text/html", done)},
		"two types":               {call: says(200, "application/json, text/event-stream", done)},
		"no type":                 {call: says(200, "", done)},
		"no type, another id":     {says(200, "", `{"jsonrpc":"2.0","id":3,"result":5}`), &mcpbridge.Error{Class: mcpbridge.Protocol, Detail: `content type ""`}, nil},
		"JSON, no end":            {call: then(nil, says(200, outbound.TypeJSON, done))},
		"JSON, blanks, no end":    {call: then(nil, says(200, outbound.TypeJSON, done+" \r\n"))},
		"JSON, a batch, no end":   {call: then(nil, says(200, outbound.TypeJSON, "["+done+"]"))},
		"JSON, cut after it":      {call: then(io.ErrUnexpectedEOF, says(200, outbound.TypeJSON, done))},
		"a page":                  {says(200, "text/html", "<html>"), &mcpbridge.Error{Class: mcpbridge.Protocol, Detail: `content type "text/html"`}, nil},
		"404":                     {says(404, "", ""), &mcpbridge.Error{Class: mcpbridge.Expired, Session: mcpbridge.Gone, Detail: "404"}, nil},
		"410":                     {says(410, "", ""), &mcpbridge.Error{Class: mcpbridge.Expired, Session: mcpbridge.Gone, Detail: "410"}, nil},
		"400, unknown session":    {says(400, "", "unknown session "+testSession), &mcpbridge.Error{Class: mcpbridge.Invalid, Detail: "unknown session …"}, nil},
		"400":                     {says(400, "", "why?"), &mcpbridge.Error{Class: mcpbridge.Invalid, Detail: "400 Bad Request: why?"}, nil},
		"401":                     {says(401, "", ""), &mcpbridge.Error{Class: mcpbridge.Unauthorized, Detail: "401"}, nil},
		"403":                     {says(403, "", ""), &mcpbridge.Error{Class: mcpbridge.Unauthorized, Detail: "403"}, nil},
		"407":                     {says(407, "", ""), &mcpbridge.Error{Class: mcpbridge.Unauthorized, Detail: "407"}, nil},
		"429":                     {says(429, "", "", "Retry-After: 7"), &mcpbridge.Error{Class: mcpbridge.RateLimited, RetryAfter: 7 * time.Second, Detail: "429"}, nil},
		"429, with a date":        {says(429, "", "", "Retry-After: Sat, 01 Jan 2000 00:01:00 GMT"), &mcpbridge.Error{Class: mcpbridge.RateLimited, RetryAfter: time.Minute}, nil},
		"500":                     {says(500, "text/html", "<html>"), &mcpbridge.Error{Class: mcpbridge.ServerError, Detail: "500 Internal Server Error"}, nil},
		"503":                     {says(503, "", "", "Retry-After: 7"), &mcpbridge.Error{Class: mcpbridge.ServerError, Session: mcpbridge.Unheard, RetryAfter: 7 * time.Second}, nil},
		"302":                     {says(302, "", ""), &mcpbridge.Error{Class: mcpbridge.Protocol, Detail: "302 Found"}, nil},
		"cut":                     {then(io.ErrUnexpectedEOF, says(200, outbound.TypeJSON, done[:20])), &mcpbridge.Error{Session: mcpbridge.Broken, Detail: "unexpected EOF"}, nil},
		"too large":               {then(nil, says(200, outbound.TypeJSON, large)), tooLarge, nil},
		"too large, over SSE":     {stays("data: " + large), tooLarge, nil},
		"too large, after an id":  {stays(primed + "data: " + large), tooLarge, nil},
		"SSE, ends":               {says(200, outbound.TypeSSE, ": so\n\n"), &mcpbridge.Error{Detail: "without a response"}, nil},
		"SSE, cut":                {breaks("data: " + done[:20]), &mcpbridge.Error{Session: mcpbridge.Broken}, nil},
		"SSE, resumed":            {breaks(primed + "data: {"), nil, says(200, outbound.TypeSSE, "data: "+done+"\n\n")},
		"SSE, expired":            {breaks(primed), &mcpbridge.Error{Session: mcpbridge.Gone, Detail: "the session expired: 404"}, says(404, "", "")},
		"SSE, refused":            {breaks(primed), &mcpbridge.Error{Session: mcpbridge.Broken, Detail: "could not be resumed: unauthorized"}, says(401, "", "")},
		"SSE, unreachable":        {breaks(primed), &mcpbridge.Error{Session: mcpbridge.Broken, Detail: "unexpected EOF"}, fails},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript()
				conn := s.attach(t, func(srv *mcpbridge.Server, _ *mcpbridge.Resume) { srv.MaxResult = 4 << 10 })
				defer conn.Close(context.Background())
				other := make(chan *mcpbridge.Error)
				s.answer("tools/call", func(req *http.Request) (*http.Response, error) {
					<-other
					return says(200, outbound.TypeJSON, done)(req)
				})
				go func() {
					e, _ := do(conn)
					other <- e
				}()
				synctest.Wait()
				s.answer("tools/call", c.call, nil)
				s.answer(http.MethodGet, c.resume)
				e, late := do(conn)
				require.False(t, late)
				if c.want == nil {
					require.Nil(t, e)
				} else {
					c.want.Sent, c.want.Err, c.want.Server = true, e.Err, e.Server
					c.want.Status, c.want.Code, c.want.Own, c.want.Doubt = e.Status, e.Code, e.Own, e.Doubt
					c.want.Remedy, c.want.Shared = e.Remedy, e.Shared
					require.Contains(t, e.Detail, c.want.Detail)
					c.want.Detail = e.Detail
					require.Equal(t, c.want, e)
					requirePresentable(t, e)
				}
				other <- nil
				if e := <-other; c.want == nil || c.want.Session == mcpbridge.Alive {
					require.Nil(t, e, "what fails one call fails no other")
					if c.want != nil {
						time.Sleep(c.want.RetryAfter)
					}
					e, _ = do(conn)
					require.Nil(t, e)
				}
				require.Equal(t, c.want != nil && c.want.Session == mcpbridge.Gone, len(s.downs) == 1)
				gets, _ := s.seen(http.MethodGet)
				for _, get := range gets[1:] {
					require.Equal(t, "1", get.Header.Get(outbound.HeaderEvent))
				}
				require.LessOrEqual(t, len(gets), 1+3)
			})
		})
	}
}

func TestCallWithoutASessionIDDoesNotExpire(t *testing.T) {
	s := newScript()
	c := s.attach(t, func(_ *mcpbridge.Server, r *mcpbridge.Resume) { r.SessionID = "" })
	require.Nil(t, c.Resume())
	s.answer("tools/call", says(404, "", "session not found"), nil)
	e, _ := do(c)
	require.Equal(t, mcpbridge.Unavailable, e.Class)
	require.Contains(t, e.Detail, "404 Not Found")
	require.NoError(t, c.Close(context.Background()))
	require.Empty(t, s.downs)
	deletes, _ := s.seen(http.MethodDelete)
	require.Empty(t, deletes)
}

func TestCallOnABrokenConnectionIsLostOnceItWasSent(t *testing.T) {
	for name, c := range map[string]struct {
		serve func(conn *net.TCPConn) // nil: nobody listens
		class mcpbridge.Class
	}{
		"refused": {nil, mcpbridge.NotSent},
		"reset":   {func(conn *net.TCPConn) { conn.SetLinger(0) }, mcpbridge.Lost},
		"closed":  {func(*net.TCPConn) {}, mcpbridge.Lost},
		"cut": {func(conn *net.TCPConn) {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{")
		}, mcpbridge.Lost},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := freeport.Listen("127.0.0.1") // nobody else gets its port
			require.NoError(t, err)
			defer l.Close()
			if c.serve == nil {
				l.Close()
			}
			go func() {
				if conn, err := l.Accept(); err == nil {
					http.ReadRequest(bufio.NewReader(conn))
					c.serve(conn.(*net.TCPConn))
					conn.Close()
				}
			}()
			wire := &http.Transport{DisableKeepAlives: true}
			s := newScript()
			conn := s.attach(t, func(srv *mcpbridge.Server, _ *mcpbridge.Resume) {
				srv.URL = "http://" + l.Addr().String()
				srv.HTTPClient.Transport = answering(func(req *http.Request) (*http.Response, error) {
					req = readable(req)
					if rpc.Parse(rpc.BodyOf(req)).Method == "tools/call" {
						return wire.RoundTrip(req)
					}
					return s.RoundTrip(req)
				})
			})
			e, _ := do(conn)
			require.Equal(t, c.class, e.Class, "%v", e)
			require.Equal(t, mcpbridge.Broken, e.Session)
			require.Equal(t, c.class == mcpbridge.Lost, e.Sent)
			require.NotContains(t, e.Detail, "http://", "a URL may have secrets")
			require.NoError(t, conn.Close(context.Background()))
		})
	}
}

// H-F1: which answers to DELETE mean that the session has ended.
func TestClosingMayBeTriedAgain(t *testing.T) {
	const example = `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`
	same := func(status int) answering { return says(status, "", "no") }
	withoutID := func(how answering) answering { // only requests of a session are refused as the DELETE was
		return func(req *http.Request) (*http.Response, error) {
			if req.Header.Get(outbound.HeaderSession) == "" {
				return says(400, "", "which session?")(req)
			}
			return how(req)
		}
	}
	for name, c := range map[string]struct {
		way, ping answering
		want      string // empty: it is over
	}{
		"200": {same(200), nil, ""}, "204": {says(204, "", ""), nil, ""}, "404": {same(404), nil, ""}, "410": {same(410), nil, ""},
		"405": {same(405), nil, ""}, "501": {same(501), nil, ""},
		"500":                                 {says(500, "", testSession), nil, "it answered 500 Internal Server Error"},
		"503":                                 {same(503), nil, "it answered 503 Service Unavailable"},
		"429":                                 {same(429), same(429), "it answered 429 Too Many Requests"},
		"408":                                 {same(408), same(408), "it answered 408 Request Timeout"},
		"407":                                 {same(407), same(407), "it answered 407"},
		"unreachable":                         {fails, nil, "unexpected EOF"},
		"400 to an id that is not known":      {says(400, "", "Invalid or missing session ID"), says(400, outbound.TypeJSON, example), ""},
		"400 to a session that lives":         {same(400), nil, "it answered 400 Bad Request: no"},
		"400, and the ping says another code": {says(400, outbound.TypeJSON, example), says(400, outbound.TypeJSON, failure("%s", "-32600", "no")), "it answered 400"},
		"400, and the ping is not answered":   {same(400), fails, "it answered 400"},
		"400, and the ping is too much":       {same(400), same(429), "it answered 400"},
		"422 to an id that is not known":      {same(422), same(422), ""},
		"401 to everything":                   {same(401), same(401), "it answered 401 Unauthorized: no"},
		"403 to everything":                   {same(403), same(403), "it answered 403 Forbidden"},
		"403 to a DELETE":                     {same(403), nil, "it answered 403"},
		"401 to an id that is not known":      {same(401), withoutID(same(401)), ""},
		"a redirect to another origin":        {says(307, "", "", "Location: http://other/"), nil, "307 Temporary Redirect: http://test redirects to http://other"},
		"a redirect to a page":                {says(302, "", "", "Location: /login"), nil, "it answered 302 Found: a DELETE is not sent again"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript()
			conn := s.attach(t)
			s.answer(http.MethodDelete, c.way, nil)
			s.answer("ping", c.ping)
			if err := conn.Close(context.Background()); c.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.want)
				require.NotContains(t, err.Error(), testSession)
				require.NoError(t, conn.Close(context.Background()))
			}
			deletes, _ := s.seen(http.MethodDelete)
			require.Equal(t, testSession, deletes[0].Header.Get(outbound.HeaderSession))
			require.Equal(t, protocolLegacy, deletes[0].Header.Get(outbound.HeaderProtocol))
			require.NoError(t, conn.Close(context.Background()))
			again, _ := s.seen(http.MethodDelete)
			require.Len(t, again, len(deletes), "it has been ended")
		})
	}
}

// H-F1: the credentials are refreshed for the DELETE, and not for a check.
func TestEndOfASessionIsAuthorizedOnce(t *testing.T) {
	p, s := refilled("old", "other"), newScript()
	c := s.attach(t, with(p))
	s.answer(http.MethodDelete, refused)
	s.answer("ping", refused)
	require.ErrorContains(t, c.Close(context.Background()), "it answered 401 Unauthorized: who are you?")
	require.Equal(t, 1, p.refreshed())
	require.Equal(t, []string{"old", "other"}, s.tokens(http.MethodDelete))
}

func TestEndOfASessionIsSentWhereItIsMounted(t *testing.T) {
	for _, status := range []int{301, 302, 307, 308} {
		s := newScript()
		c := s.attach(t)
		s.answer(http.MethodDelete, says(status, "", "", "Location: /mcp/"), says(503, "", ""), says(status, "", "", "Location: /mcp/"), says(204, "", ""))
		require.ErrorContains(t, c.Close(context.Background()), "503")
		require.NoError(t, c.Close(context.Background()))
		deletes, _ := s.seen(http.MethodDelete)
		require.Len(t, deletes, 4)
		require.Equal(t, "http://test/mcp/", deletes[3].URL.String())
		require.Equal(t, testSession, deletes[3].Header.Get(outbound.HeaderSession))
	}
}

func FuzzHTTPAnswer(f *testing.F) {
	const (
		done     = `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`
		notified = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`
		asked    = `{"jsonrpc":"2.0","id":%s,"method":"ping"}`
	)
	for _, body := range []string{
		done, "", "null", "7", "[" + done + "]", "[]", "{}", `{"jsonrpc":"1.0","id":%s,"result":{}}`, notified, asked,
		`{"jsonrpc":"2.0","id":4,"result":{}}`, `{"jsonrpc":"2.0","id":"3","result":{}}`, `{"jsonrpc":"2.0","id":%s}`,
		`{"jsonrpc":"2.0","id":99999999999999999999999999,"result":{}}`, `{"jsonrpc":"2.0","id":3e0,"result":{}}`,
		`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"` + "\xff\\u0000" + testSession + `"}]}}`,
		`{"jsonrpc":"2.0","id":%s,"result":` + strings.Repeat(`{"content":`, 300) + "[]" + strings.Repeat("}", 300) + "}",
		`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"` + testSession + `"}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"\u001b[2J"}}`, done + done, " " + done + "\n",
	} {
		f.Add(200, outbound.TypeJSON, "", body, false, 405, "")
		f.Add(200, outbound.TypeSSE, "", "data: "+body+"\n\n", false, 405, "")
		f.Add(400, outbound.TypeJSON, "", body, true, 405, "")
	}
	for _, form := range []string{
		"404 session not found", "400 Invalid or missing session ID " + testSession, "404 <html><body>Not Found</body></html>",
		"404 " + failure("null", "-32001", "Session not found"), "404 " + failure(`"server-error"`, "-32600", "Session not found"),
		"400 " + failure("3", "-32000", "Bad Request: No valid session ID provided"), `401 {"error":"invalid_session","message":"Unknown session id"}`,
		"101 ", "204 ", "202 ", "206 " + done, "304 ", "407 ", "410 ", "500 " + done, "999 \x1b\xff",
	} {
		var status int
		fmt.Sscan(form, &status)
		for _, kind := range []string{outbound.TypeJSON, "text/plain", "text/html; charset=utf-8"} {
			f.Add(status, kind, "Retry-After: 7", form[4:], false, status, form[4:])
		}
		f.Add(200, outbound.TypeSSE, "", "id: 1\ndata:\n\n", true, status, form[4:])
	}
	for _, kind := range []string{"", "text/html", "application/json; charset", "Application/JSON;x=\"", "text/event-stream; x"} {
		f.Add(200, kind, "Content-Encoding: gzip", done, false, 200, "")
	}
	for _, header := range []string{"Location: /", "Location: http://other/", "Location: %", "Retry-After: 7"} {
		for _, status := range []int{200, 302, 307, 503} {
			f.Add(status, outbound.TypeJSON, header, done, false, 200, "")
		}
	}
	for _, rest := range []string{
		"data: " + done + "\n\n", "id: 2\ndata:\n\n", ": nothing\n\n", "nonsense\n\n", "id: 2\nretry: 86400001\ndata:\n\n", "data: " + done,
	} {
		f.Add(200, outbound.TypeSSE, "", ": a comment\nid: 1\nretry: 5\ndata: "+notified+"\n\ndata: "+asked+"\n\ndata: {", true, 200, rest)
		f.Add(200, outbound.TypeSSE, "", "event: x\r\nid: 1\r\ndata: x\r\n\r\n", false, 200, rest)
		f.Add(200, outbound.TypeSSE, "", rest, false, 503, rest)
	}
	f.Fuzz(func(t *testing.T, status int, kind, header, body string, cut bool, again int, rest string) {
		httpAnswer{status, kind, header, body, cut, again, rest}.check(t)
	})
}

// A server that does not speak the version it is asked for says which it does.
func TestVersionThatIsRefusedIsAgreedOnAnew(t *testing.T) {
	const (
		refused = `{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"],"requested":"x"}}}`
		found   = `{"jsonrpc":"2.0","id":%s,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}`
	)
	s := newScript()
	s.answer(rpc.MethodDiscover, says(400, outbound.TypeJSON, refused), says(200, outbound.TypeJSON, found))
	srv := mcpbridge.Server{Name: "test", URL: "http://test/mcp", HTTPClient: &http.Client{Transport: s}}
	c, err := New([]mcpbridge.Server{srv}, nil).Dial(t.Context(), dial.Request{Key: messages.Key{Server: "test"}, Down: func(e *mcpbridge.Error) { t.Errorf("down: %v", e) }})
	require.NoError(t, err)
	require.Equal(t, "2026-07-28", c.Info().Server.ProtocolVersion)
	require.True(t, c.Info().Stateless)
	require.NoError(t, c.Close(t.Context()))
	var asked []string
	for _, req := range s.requests {
		asked = append(asked, rpc.Parse(rpc.BodyOf(req)).Method)
	}
	require.Equal(t, []string{rpc.MethodDiscover, rpc.MethodDiscover}, asked, "and not in the old way")
}

// H-D7: the notifications of cancelled calls use few connections to a server that hangs. A
// server that does not hang gets all of them.
func TestNotificationsOfCancelledCallsAreSentAFewAtATime(t *testing.T) {
	for name, hangs := range map[string]bool{"it hangs": true, "it answers": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const calls = 100
				s := newScript()
				c := s.attach(t)
				var sent, most, now atomic.Int32
				s.answer("tools/call", func(req *http.Request) (*http.Response, error) {
					<-req.Context().Done()
					return nil, req.Context().Err()
				})
				s.answer(rpc.MethodCancelled, func(req *http.Request) (*http.Response, error) {
					sent.Add(1)
					most.Store(max(most.Load(), now.Add(1)))
					defer now.Add(-1)
					if hangs {
						<-req.Context().Done()
						return nil, req.Context().Err()
					}
					return says(202, "", "")(req)
				})
				for range calls {
					go func() {
						ctx, cancel := context.WithTimeout(context.Background(), time.Second)
						defer cancel()
						c.Do(ctx, toolCall())
					}()
				}
				time.Sleep(time.Minute)
				require.LessOrEqual(t, most.Load(), int32(16))
				if !hangs {
					require.EqualValues(t, calls, sent.Load())
				}
				require.NoError(t, c.Close(context.Background()))
			})
		})
	}
}

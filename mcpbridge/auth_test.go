package mcpbridge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

// purse is the credentials of a test: a token, and how to get the next one.
type purse struct {
	mu        sync.Mutex
	token     string
	refreshes int
	next      func(ctx context.Context, req *http.Request, resp *http.Response) (string, error)
}

// refilled is a purse whose next token is as given.
func refilled(token, next string) *purse {
	return &purse{token: token, next: func(context.Context, *http.Request, *http.Response) (string, error) { return next, nil }}
}

func (p *purse) Credentials(context.Context, messages.Key) (Credentials, error) { return p, nil }

func (p *purse) Headers(context.Context) (http.Header, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return http.Header{"authorization": {"Bearer " + p.token}}, nil
}

func (p *purse) Refresh(ctx context.Context, req *http.Request, resp *http.Response) error {
	p.mu.Lock()
	p.refreshes++
	p.mu.Unlock()
	token, err := p.next(ctx, req, resp)
	if err == nil {
		p.set(token)
	}
	return err
}

func (p *purse) set(token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.token = token
}

func (p *purse) refreshed() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refreshes
}

// unless answers what a request with the token gets, and refuses any other.
func unless(token string, refusal, how answering) answering {
	return func(req *http.Request) (*http.Response, error) {
		if req.Header.Get("Authorization") == "Bearer "+token {
			return how(req)
		}
		return refusal(req)
	}
}

// tokens returns the tokens of the requests of a kind, one after the other.
func (s *script) tokens(kind string) (tokens []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, req := range s.requests {
		if method := parse(bodyOf(req)).Method; method == kind || method == "" && req.Method == kind {
			tokens = append(tokens, strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer "))
		}
	}
	return tokens
}

// with sets the authenticator of a server.
func with(a Authenticator) func(*Server, *Resume) {
	return func(srv *Server, _ *Resume) { srv.Auth = a }
}

var (
	works   = says(200, typeJSON, `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`)
	refused = says(401, "", "who are you?", `Www-Authenticate: Bearer`)
	expired = says(401, typeJSON, `{"error":"invalid_token","error_description":"The session expired"}`, `Www-Authenticate: Bearer error="invalid_token"`)
	tooLow  = says(403, "", "", `Www-Authenticate: Bearer error="insufficient_scope", scope="files:write"`)
)

func TestRefusedCredentialsAreRefreshedAndTheRequestIsRepeatedOnce(t *testing.T) {
	for name, refusal := range map[string]answering{"401": refused, "401 about the token": expired, "403 about the scope": tooLow} {
		t.Run(name, func(t *testing.T) {
			p := refilled("old", "new")
			var challenge, said, carried string
			p.next = func(ctx context.Context, req *http.Request, resp *http.Response) (string, error) {
				body, err := io.ReadAll(resp.Body)
				challenge, said, carried = resp.Header.Get("Www-Authenticate"), string(body), req.Header.Get("Authorization")
				require.Nil(t, req.Body)
				return "new", errors.Join(err, ctx.Err())
			}
			s := newScript()
			c := s.attach(t, with(p))
			s.answer("tools/call", unless("new", refusal, works))
			for range 3 {
				e, _ := do(c)
				require.Nil(t, e)
			}
			require.Equal(t, 1, p.refreshed())
			require.Equal(t, []string{"old", "new", "new", "new"}, s.tokens("tools/call"))
			require.Contains(t, challenge, "Bearer")
			require.Equal(t, "Bearer old", carried)
			require.True(t, name != "401" || said == "who are you?")
			posts, _ := s.seen(http.MethodPost)
			first, second := posts[1], posts[2]
			require.Equal(t, string(bodyOf(first)), string(bodyOf(second)), "the body is repeated intact")
			for _, req := range []*http.Request{first, second} {
				sent, err := io.ReadAll(req.Body)
				require.NoError(t, err)
				require.Equal(t, string(bodyOf(req)), string(sent))
				require.Equal(t, testSession, req.Header.Get(headerSession))
			}
			require.NoError(t, c.Close(context.Background()))
			require.Equal(t, []string{"new"}, s.tokens("DELETE"))
			require.Empty(t, s.downs)
		})
	}
}

func TestRefusalsThatAreNotOfTheCredentialsAreNotRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		refusal answering
		class   Class
	}{
		"403":                 {says(403, "", "not you", "Www-Authenticate: Bearer"), Unauthorized},
		"407":                 {says(407, "", ""), Unauthorized},
		"400":                 {says(400, "", ""), Invalid},
		"404":                 {says(404, "", ""), Expired},
		"401 about a session": {says(401, typeJSON, `{"error":"invalid_session"}`), Expired},
		"rmcp":                {says(401, "", "Unauthorized: Session not found"), Expired},
	} {
		t.Run(name, func(t *testing.T) {
			p, s := refilled("old", "new"), newScript()
			conn := s.attach(t, with(p))
			s.answer("tools/call", c.refusal)
			e, _ := do(conn)
			require.Equal(t, c.class, e.Class, "%v", e)
			require.Equal(t, c.class == Expired, len(s.downs) == 1)
			require.Zero(t, p.refreshed())
			require.Len(t, s.tokens("tools/call"), 1)
			require.NoError(t, conn.Close(context.Background()))
		})
	}
}

// Each of many calls that are refused at once is repeated, after one refresh.
func TestManyRefusalsAtOnceCauseOneRefresh(t *testing.T) {
	const n = 64
	for name, help := range map[string]bool{"it helps": true, "it fails": false} {
		t.Run(name, func(t *testing.T) {
			p, s := refilled("old", "new"), newScript()
			if !help {
				p.next = func(context.Context, *http.Request, *http.Response) (string, error) {
					return "", errors.New("the well is dry")
				}
			}
			c := s.attach(t, with(p))
			var arrived sync.WaitGroup
			arrived.Add(n)
			s.answer("tools/call", unless("new", func(req *http.Request) (*http.Response, error) {
				arrived.Done()
				arrived.Wait()
				return refused(req)
			}, works))
			results := make(chan *Error, n)
			for range n {
				go func() {
					e, _ := do(c)
					results <- e
				}()
			}
			for range n {
				e := <-results
				if help {
					require.Nil(t, e)
				} else {
					require.Equal(t, Unauthorized, e.Class)
					require.Contains(t, e.Detail, "401 Unauthorized, and the credentials could not be refreshed: the well is dry")
				}
			}
			require.Equal(t, 1, p.refreshed())
			require.NoError(t, c.Close(context.Background()))
		})
	}
}

func TestSecondRefusalIsTheCallers(t *testing.T) {
	p, s := refilled("old", "new"), newScript()
	c := s.attach(t, with(p))
	s.answer("tools/call", refused)
	for n := range 3 {
		e, _ := do(c)
		require.Equal(t, Unauthorized, e.Class)
		require.Equal(t, Alive, e.Session)
		require.Equal(t, "401 Unauthorized: who are you?", e.Detail)
		require.Equal(t, n+1, p.refreshed())
		require.Len(t, s.tokens("tools/call"), 2*(n+1))
	}
	s.answer("tools/call", works)
	e, _ := do(c)
	require.Nil(t, e)
	require.NoError(t, c.Close(context.Background()))
}

// The expiry of a session is not hidden by the refresh before it.
func TestSessionThatExpiredIsFoundOutWithNewCredentials(t *testing.T) {
	p, s := refilled("old", "new"), newScript()
	c := s.attach(t, with(p))
	s.answer("tools/call", unless("new", refused, says(401, "", "Unauthorized: Session not found")))
	e, _ := do(c)
	require.Equal(t, Expired, e.Class)
	require.Equal(t, 1, p.refreshed())
	require.Len(t, s.downs, 1)
	require.NoError(t, c.Close(context.Background()))
}

// A caller stops waiting at its deadline. The refresh goes on, for the others, until
// the session is closed.
func TestRefreshThatHangsHoldsNobodyPastItsDeadline(t *testing.T) {
	for name, ends := range map[string]bool{"it ends": true, "the session is closed": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, s := refilled("old", "new"), newScript()
				got := make(chan string)
				var life context.Context
				p.next = func(ctx context.Context, _ *http.Request, _ *http.Response) (string, error) {
					life = ctx
					select {
					case token := <-got:
						return token, nil
					case <-ctx.Done():
						return "", ctx.Err()
					}
				}
				c := s.attach(t, with(p))
				s.answer("tools/call", unless("new", refused, works))
				patient := make(chan *Error, 1)
				hasty, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				began := time.Now()
				_, err := c.Do(hasty, toolCall())
				e := AsError(err)
				require.Equal(t, Deadline, e.Class, "%v", e)
				require.False(t, e.Sent, "it was refused")
				require.Equal(t, time.Second, time.Since(began))
				go func() {
					e, _ := do(c)
					patient <- e
				}()
				synctest.Wait()
				require.NoError(t, life.Err())
				if ends {
					got <- "new"
					require.Nil(t, <-patient)
					require.NoError(t, life.Err())
				}
				require.NoError(t, c.Close(context.Background()))
				if !ends {
					e := <-patient
					require.Equal(t, NotSent, e.Class, "%v", e)
					require.Error(t, life.Err())
				}
				require.Equal(t, 1, p.refreshed())
			})
		})
	}
}

// panicking is credentials whose methods panic.
type panicking struct{ in string }

func (p *panicking) Credentials(context.Context, messages.Key) (Credentials, error) {
	p.at("Credentials")
	return p, nil
}

func (p *panicking) Headers(context.Context) (http.Header, error) {
	p.at("Headers")
	return http.Header{"Authorization": {"Bearer hush-hush-hush"}}, nil
}

func (p *panicking) Refresh(context.Context, *http.Request, *http.Response) error {
	p.at("Refresh")
	return nil
}

func (p *panicking) at(method string) {
	if p.in == method {
		panic(method + " of hush-hush-hush")
	}
}

func TestCredentialsThatPanicFailTheirCallAlone(t *testing.T) {
	for _, method := range []string{"Headers", "Refresh"} {
		t.Run(method, func(t *testing.T) {
			p, s := new(panicking), newScript()
			c := s.attach(t, with(p))
			s.answer("tools/call", refused)
			p.in = method
			e, _ := do(c)
			require.Equal(t, Internal, e.Class, "%v", e)
			require.Contains(t, e.Detail, "panic: "+method+" of …")
			require.False(t, e.Sent)
			p.in = ""
			s.answer("tools/call", works)
			e, _ = do(c)
			require.Nil(t, e)
			require.NoError(t, c.Close(context.Background()))
		})
	}
	_, err := New([]Server{{Name: "test", URL: "http://test", Auth: &panicking{"Credentials"}}}, nil).
		Dial(context.Background(), DialRequest{Key: messages.Key{Server: "test"}})
	require.Equal(t, Internal, AsError(err).Class)
}

func TestHeadersThatCannotBeSentFailTheirCallAlone(t *testing.T) {
	for name, c := range map[string]struct {
		headers http.Header
		err     error
		want    string
	}{
		"error":    {nil, errors.New("no token for you"), "no credentials: no token for you"},
		"newline":  {http.Header{"Authorization": {"Bearer hush-hush\n"}}, nil, `the header "Authorization" the value has a control character`},
		"reserved": {http.Header{"mcp-session-id": {"hush-hush"}}, nil, `the header "mcp-session-id" is set by the connection itself`},
		"name":     {http.Header{"a b": {"hush-hush"}}, nil, `the header "a b" is no name of a header`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript()
			var wrong atomic.Bool
			conn := s.attach(t, with(headersFunc(func(context.Context) (http.Header, error) {
				if wrong.Load() {
					return c.headers, c.err
				}
				return nil, nil
			})))
			wrong.Store(true)
			e, _ := do(conn)
			require.Equal(t, Unauthorized, e.Class)
			require.Equal(t, Alive, e.Session)
			require.False(t, e.Sent)
			require.Contains(t, e.Detail, c.want)
			require.NotContains(t, e.Detail, "hush")
			require.ErrorContains(t, conn.Close(context.Background()), "ending the session on the server: ")
			wrong.Store(false)
			require.Empty(t, s.tokens("tools/call"), "nothing is sent")
			require.NoError(t, conn.Close(context.Background()), "it may be tried again")
			require.Len(t, s.tokens("DELETE"), 1)
		})
	}
}

// headersFunc is credentials that are not refreshed.
type headersFunc func(ctx context.Context) (http.Header, error)

func (f headersFunc) Credentials(context.Context, messages.Key) (Credentials, error) { return f, nil }

func (f headersFunc) Headers(ctx context.Context) (http.Header, error)             { return f(ctx) }
func (f headersFunc) Refresh(context.Context, *http.Request, *http.Response) error { return nil }

func TestCredentialsGoToTheOriginOfTheURLOnly(t *testing.T) {
	p, s := refilled("old", "new"), newScript()
	c := s.attach(t, with(p), func(srv *Server, _ *Resume) {
		srv.Headers = map[string]string{"X-Token": "hush", "Authorization": "Basic less"}
	})
	var hops []answering
	for _, at := range []string{"/moved", "http://other/mcp", "https://test/mcp", "http://test:8080/mcp"} {
		hops = append(hops, says(307, "", "", "Location: "+at))
	}
	s.answer("tools/call", append(hops, refused)...)
	e, _ := do(c)
	require.Equal(t, Unauthorized, e.Class)
	require.Zero(t, p.refreshed(), "another origin says nothing about our credentials")
	require.NoError(t, c.Close(context.Background()))
	seen := map[string]string{}
	for _, req := range s.requests {
		seen[req.Method+" "+req.URL.String()] = req.Header.Get("X-Token") + req.Header.Get("Authorization")
	}
	require.Equal(t, map[string]string{
		"GET http://test/mcp": "hushBearer old", "POST http://test/mcp": "hushBearer old", "POST http://test/moved": "hushBearer old",
		"POST http://other/mcp": "", "POST https://test/mcp": "", "POST http://test:8080/mcp": "",
		"DELETE http://test/mcp": "hushBearer old",
	}, seen)
}

// The session was cut before, and is ended on the server all the same.
func TestEndOfASessionIsAuthorized(t *testing.T) {
	p, s := refilled("old", "new"), newScript()
	p.next = func(ctx context.Context, _ *http.Request, _ *http.Response) (string, error) { return "new", ctx.Err() }
	c := s.attach(t, with(p))
	require.NoError(t, c.Detach(context.Background()))
	s.answer(http.MethodDelete, unless("new", refused, says(204, "", "")))
	require.NoError(t, c.Close(context.Background()))
	require.Equal(t, []string{"old", "new"}, s.tokens("DELETE"))
}

func TestStreamIsAuthorized(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := refilled("old", "new"), newScript()
		s.answer(http.MethodGet, unless("new", refused, stays(ping("a"))))
		c := s.attach(t, with(p))
		synctest.Wait()
		require.Equal(t, []string{"old", "new"}, s.tokens("GET"))
		require.Equal(t, "a", s.pongs())
		require.NoError(t, c.Close(context.Background()))
	})
}

// A refresh may ask a person. A stream that is refused does so once, and has the
// next call do it again.
func TestStreamThatIsRefusedAsksForCredentialsOnce(t *testing.T) {
	for name, err := range map[string]error{"fails": errors.New("nobody is there"), "does not help": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, s := refilled("old", "other"), newScript()
				p.next = func(context.Context, *http.Request, *http.Response) (string, error) { return "other", err }
				s.answer(http.MethodGet, unless("new", refused, stays("")))
				c := s.attach(t, with(p))
				time.Sleep(time.Hour)
				require.Equal(t, 1, p.refreshed())
				require.Greater(t, len(s.tokens("GET")), 60)
				s.answer("tools/call", unless("new", refused, works))
				p.next = func(context.Context, *http.Request, *http.Response) (string, error) { return "new", nil }
				e, _ := do(c)
				require.Nil(t, e)
				time.Sleep(time.Minute)
				gets := s.tokens("GET")
				require.Equal(t, "new", gets[len(gets)-1])
				require.Equal(t, 2, p.refreshed())
				require.NoError(t, c.Close(context.Background()))
			})
		})
	}
}

func TestAnswerThatBrokeOffIsResumedWithNewCredentials(t *testing.T) {
	p, s := refilled("old", "new"), newScript()
	c := s.attach(t, with(p))
	s.answer("tools/call", breaks("id: 1\nretry: 5\ndata:\n\n"))
	s.answer(http.MethodGet, unless("new", refused, says(200, typeSSE, "data: "+done+"\n\n")))
	e, _ := do(c)
	require.Nil(t, e)
	require.Equal(t, 1, p.refreshed())
	require.NoError(t, c.Close(context.Background()))
}

func TestRequestWhoseBodyIsGoneIsNotRepeated(t *testing.T) {
	p := refilled("old", "new")
	at := New([]Server{{Name: "test", URL: "http://test", Auth: p}}, nil).servers["test"]
	a := &authorizer{base: refused, srv: &at.Server, url: at.url, credentials: p, seen: new(discovery), sentByAll: &at.sent, cut: t.Context(), connecting: t.Context()}
	req := httptest.NewRequest(http.MethodPost, "http://test", strings.NewReader("{}"))
	resp, err := a.RoundTrip(req)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, "who are you?", string(body))
	require.Zero(t, p.refreshed())
}

// A refusal that was looked into is given back whole, however long it is, and with
// the error at its end.
func TestBodyOfARefusalStaysIntact(t *testing.T) {
	p := refilled("old", "new")
	at := New([]Server{{Name: "test", URL: "http://test", Auth: p}}, nil).servers["test"]
	a := &authorizer{srv: &at.Server, url: at.url, credentials: p, seen: new(discovery), sentByAll: &at.sent, cut: t.Context(), connecting: t.Context()}
	for _, size := range []int{0, 10, maxRefusal, maxRefusal + 1, 3 * maxRefusal} {
		for _, end := range []error{io.EOF, io.ErrUnexpectedEOF} {
			text := strings.Repeat("session not found ", size/18+1)[:size]
			a.base = then(end, says(401, "", text))
			req := httptest.NewRequest(http.MethodGet, "http://test", nil)
			req.Header.Set(headerSession, testSession)
			resp, err := a.RoundTrip(req)
			if size < 18 { // it does not say so
				require.NoError(t, err)
				require.Equal(t, 401, resp.StatusCode)
				continue
			}
			require.NoError(t, err)
			got, err := io.ReadAll(resp.Body)
			require.Equal(t, text, string(got))
			require.Equal(t, errors.Is(end, io.EOF), err == nil)
		}
	}
}

// What a server repeats in its refusals: the token, those before it, and one that
// another begins with.
func TestTokensAreInNoErrorText(t *testing.T) {
	p, s := refilled("first-token", "first-token-and-more"), newScript()
	echo := func(status int) answering {
		return func(req *http.Request) (*http.Response, error) {
			return says(status, "", "no, "+req.Header.Get("Authorization")+", you, after first-token, first-token-and-more and third-token")(req)
		}
	}
	c := s.attach(t, with(p))
	s.answer("tools/call", unless("first-token-and-more", refused, works))
	e, _ := do(c)
	require.Nil(t, e)
	p.set("third-token")
	for _, status := range []int{400, 401, 403, 404, 429, 500} {
		s.answer("tools/call", echo(status))
		e, _ := do(c)
		require.NotContains(t, e.Detail, "token")
		require.NotContains(t, e.Detail, "-and-more")
		requirePresentable(t, e)
	}
	s.answer("tools/call", says(200, typeJSON, rpc("%s", "-32000", "first-token-and-more is wrong")))
	e, _ = do(c)
	require.NotContains(t, e.Detail, "token")
	p.next = func(context.Context, *http.Request, *http.Response) (string, error) {
		return "", errors.New(strings.Repeat("x", maxDetail-10) + "third-token")
	}
	s.answer("tools/call", refused)
	e, _ = do(c)
	require.NotContains(t, e.Detail, "third")
	requirePresentable(t, e)
	c.Close(context.Background())
}

// What a provider sends with its context is no part of the call.
func TestContextOfCredentialsEndsWithTheRequestAndHasNothingOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		var hangs atomic.Bool
		c := s.attach(t, with(headersFunc(func(ctx context.Context) (http.Header, error) {
			require.Nil(t, httptrace.ContextClientTrace(ctx))
			inner, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			if hangs.Load() {
				<-inner.Done()
				return nil, inner.Err()
			}
			return nil, nil
		})))
		hangs.Store(true)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := c.Do(ctx, toolCall())
		require.Equal(t, Deadline, AsError(err).Class)
		require.False(t, AsError(err).Sent)
		require.Equal(t, time.Second, time.Since(began))
		hangs.Store(false)
		e, _ := do(c)
		require.Nil(t, e)
		require.NoError(t, c.Close(context.Background()))
	})
}

func TestRecentValuesAreBounded(t *testing.T) {
	var r recent
	for i := range 100 {
		require.True(t, r.add(fmt.Sprint("a-long-value-", i), 10))
		require.False(t, r.add(fmt.Sprint("a-long-value-", i), 10))
		require.Len(t, r.values, min(i+1, 10))
		require.Equal(t, r.values[len(r.values)-1], fmt.Sprint("a-long-value-", i))
	}
}

// What is sent without credentials costs no more than before.
func TestServerWithoutHeadersCostsNothing(t *testing.T) {
	at := New([]Server{{Name: "test", URL: "http://test"}}, nil).servers["test"]
	resp := new(http.Response)
	a := &authorizer{base: answering(func(*http.Request) (*http.Response, error) { return resp, nil }), srv: &at.Server, url: at.url}
	req := httptest.NewRequest(http.MethodPost, "http://test", nil)
	require.Zero(t, testing.AllocsPerRun(100, func() { a.RoundTrip(req) }))
}

// opening answers a handshake of the protocol before the newest.
func (s *script) opening() *script {
	s.answer(methodDiscover, says(200, typeJSON, rpc("%s", "-32601", "no such method")))
	s.answer(methodInitialize, says(200, typeJSON, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"`+protocolLegacy+`","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`, headerSession+": "+testSession))
	return s
}

// dial opens a session.
func (s *script) dial(ctx context.Context, auth Authenticator) (Conn, *Error) {
	srv := Server{Name: "test", URL: "http://test/mcp", HTTPClient: &http.Client{Transport: s}, Auth: auth}
	c, err := New([]Server{srv}, nil).Dial(ctx, DialRequest{Key: messages.Key{Server: "test"}, Down: func(*Error) {}})
	return c, AsError(err)
}

func TestDialThatIsNotAuthorizedSaysSo(t *testing.T) {
	lost := errors.New("the password is lost")
	for name, c := range map[string]struct {
		auth      Authenticator
		purse     *purse
		want      string
		refreshes int
	}{
		"no credentials": {
			AuthenticatorFunc(func(context.Context, messages.Key) (Credentials, error) { return nil, lost }), nil,
			"no credentials: the password is lost", 0,
		},
		"no headers": {
			headersFunc(func(context.Context) (http.Header, error) { return nil, lost }), nil,
			"no credentials: the password is lost", 0,
		},
		"none for this key": {
			AuthenticatorFunc(func(context.Context, messages.Key) (Credentials, error) { return nil, nil }), nil,
			"401 Unauthorized: who are you?", 0,
		},
		"no refresh": {
			nil, &purse{next: func(context.Context, *http.Request, *http.Response) (string, error) { return "", lost }},
			"the credentials could not be refreshed: the password is lost", 1,
		},
		"no use": {nil, refilled("old", "other"), "401 Unauthorized: who are you?", 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript()
			for _, kind := range []string{methodDiscover, methodInitialize, methodInitialized, "GET"} {
				s.answer(kind, refused)
			}
			if c.purse != nil {
				c.auth = c.purse
			}
			_, e := s.dial(context.Background(), c.auth)
			require.Equal(t, Unauthorized, e.Class, "%v", e)
			require.Equal(t, Alive, e.Session)
			require.Contains(t, e.Detail, c.want)
			if c.purse != nil {
				require.Equal(t, c.refreshes, c.purse.refreshed())
			}
			if strings.Contains(c.want, "lost") {
				require.ErrorIs(t, e, lost)
			}
		})
	}
}

// Some servers refuse what is sent before initialize as if it were not authorized.
func TestServerThatRefusesDiscoveryIsAskedInTheOldWay(t *testing.T) {
	s := newScript().opening()
	s.answer(methodDiscover, says(401, "", "Unauthorized: Session not found"))
	p := refilled("old", "new")
	p.next = func(context.Context, *http.Request, *http.Response) (string, error) {
		return "", errors.New("it is for ever")
	}
	c, e := s.dial(context.Background(), p)
	require.Nil(t, e)
	require.NoError(t, c.Close(context.Background()))
}

// A person who logs in takes longer than a server may take to answer.
func TestSlowRefreshIsNotTakenForASilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript().opening()
		for _, kind := range []string{methodDiscover, methodInitialize} {
			s.answer(kind, unless("new", refused, s.told[kind]))
		}
		p := refilled("old", "new")
		p.next = func(context.Context, *http.Request, *http.Response) (string, error) {
			time.Sleep(time.Minute)
			return "new", nil
		}
		c, e := s.dial(context.Background(), p)
		require.Nil(t, e)
		require.Equal(t, []string{"old", "new"}, s.tokens(methodDiscover))
		require.Equal(t, []string{"new"}, s.tokens(methodInitialize))
		require.NoError(t, c.Close(context.Background()))
	})
}

func TestRefreshOfADialEndsWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.answer(methodDiscover, refused)
		p := refilled("old", "new")
		p.next = func(ctx context.Context, _ *http.Request, _ *http.Response) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		began := time.Now()
		_, e := s.dial(ctx, p)
		require.Equal(t, Unavailable, e.Class, "%v", e)
		require.Contains(t, e.Detail, "timed out")
		require.Less(t, time.Since(began), time.Minute+time.Second)
	})
}

// bank is an MCP server that knows whose token is whose, and that nobody may use the
// session of another.
type bank struct {
	*httptest.Server
	handler http.Handler

	mu     sync.Mutex
	issued map[string]int    // how many tokens each scope was given: the last one is good
	owners map[string]string // of sessions
	wrong  []string
}

func openBank(t *testing.T, handler http.Handler) *bank {
	b := &bank{handler: handler, issued: map[string]int{}, owners: map[string]string{}}
	b.Server = httptest.NewServer(b)
	t.Cleanup(func() {
		b.CloseClientConnections() // those of a test that failed
		b.Close()
	})
	return b
}

// issue returns a token of a scope, with which all before it end.
func (b *bank) issue(scope string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.issued[scope]++
	return fmt.Sprintf("token-of-%s-%d", scope, b.issued[scope])
}

func (b *bank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	parts := strings.Split(token, "-")
	b.mu.Lock()
	scope, id := "", r.Header.Get(headerSession)+r.URL.Query().Get("sessionid")
	if len(parts) == 4 && token == fmt.Sprintf("token-of-%s-%d", parts[2], b.issued[parts[2]]) {
		scope = parts[2]
	}
	if owner := b.owners[id]; id != "" && owner != "" && len(parts) == 4 && owner != parts[2] {
		b.wrong = append(b.wrong, "the session of "+owner+" was used by "+parts[2])
	}
	if scope != r.Header.Get("X-Scope") && scope != "" {
		b.wrong = append(b.wrong, "the token of "+scope+" was used by "+r.Header.Get("X-Scope"))
	}
	b.mu.Unlock()
	if scope == "" {
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		http.Error(w, "no, "+token, http.StatusUnauthorized)
		return
	}
	b.handler.ServeHTTP(&owned{w, b, scope}, r)
}

// forget ends the sessions of a scope.
func (b *bank) forget(scope string) {
	b.mu.Lock()
	owners := maps.Clone(b.owners)
	b.mu.Unlock()
	for id, owner := range owners {
		if owner == scope {
			req := httptest.NewRequest(http.MethodDelete, "/", nil)
			req.Header.Set(headerSession, id)
			b.handler.ServeHTTP(httptest.NewRecorder(), req)
		}
	}
}

// owned notes whose session an answer opens.
type owned struct {
	http.ResponseWriter
	b     *bank
	scope string
}

func (o *owned) note() {
	o.b.mu.Lock()
	defer o.b.mu.Unlock()
	if id := o.Header().Get(headerSession); id != "" && o.b.owners[id] == "" {
		o.b.owners[id] = o.scope
	}
}

func (o *owned) WriteHeader(status int) {
	o.note()
	o.ResponseWriter.WriteHeader(status)
}

func (o *owned) Write(p []byte) (int, error) {
	o.note()
	return o.ResponseWriter.Write(p)
}

func (o *owned) Flush() { o.ResponseWriter.(http.Flusher).Flush() }

// account is an authenticator that gets the tokens of each scope from a bank.
type account struct{ *bank }

func (a account) Credentials(_ context.Context, key messages.Key) (Credentials, error) {
	return &accountCredentials{bank: a.bank, scope: key.Scope, token: a.issue(key.Scope)}, nil
}

type accountCredentials struct {
	bank  *bank
	scope string

	mu    sync.Mutex
	token string
}

func (a *accountCredentials) Headers(context.Context) (http.Header, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return http.Header{"Authorization": {"Bearer " + a.token}, "X-Scope": {a.scope}}, nil
}

func (a *accountCredentials) Refresh(context.Context, *http.Request, *http.Response) error {
	token := a.bank.issue(a.scope)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.token = token
	return nil
}

func newTools() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "bank", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "tool", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
	})
	return server
}

// life is a scope that calls, and whose session is attached to and expires meanwhile,
// and whose tokens end while its calls run.
func (b *bank) life(bridge *Bridge, scope string) error {
	dial := func(resume *Resume) (Conn, error) {
		key := messages.Key{Server: "test", Scope: scope}
		return bridge.Dial(context.Background(), DialRequest{Key: key, Resume: resume, Down: func(*Error) {}})
	}
	c, err := dial(nil)
	for round := range 4 {
		if err != nil {
			return err
		}
		results := make(chan *Error, 16)
		for i := range cap(results) {
			go func() {
				if i%4 == 0 {
					b.issue(scope) // the one in use ends
				}
				e, _ := do(c)
				results <- e
			}()
		}
		for range cap(results) {
			if e := <-results; e != nil && e.Class != Unauthorized { // it may have ended twice
				err = errors.Join(err, e)
			}
		}
		if e, _ := do(c); e != nil {
			err = errors.Join(err, e)
		}
		resume := c.Resume()
		err = errors.Join(err, c.Detach(context.Background()))
		if round == 2 {
			b.forget(scope)
		}
		next, failure := dial(resume)
		if failure == nil && next.Info().Attached != (round != 2) {
			failure = fmt.Errorf("round %d: attached: %v", round, next.Info().Attached)
		}
		c, err = next, errors.Join(err, failure)
	}
	if err != nil {
		return err
	}
	return c.Close(context.Background())
}

// No scope sends the token, or uses the session, of another.
func TestScopesNeverShareTokensOrSessions(t *testing.T) {
	server := newTools()
	b := openBank(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	bridge := New([]Server{{Name: "test", URL: b.URL, Auth: account{b}, ProtocolVersion: protocolLegacy}}, nil)
	defer bridge.Close()
	scopes := []string{"a", "b", "c", "d"}
	results := make(chan error, len(scopes))
	for _, scope := range scopes {
		go func() { results <- b.life(bridge, scope) }()
	}
	for range scopes {
		require.NoError(t, <-results)
	}
	require.Empty(t, b.wrong)
	require.Len(t, b.owners, 2*len(scopes))
}

func TestLegacySSEIsAuthorized(t *testing.T) {
	server := newTools()
	b := openBank(t, mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return server }, nil))
	p := refilled("none", "")
	p.next = func(context.Context, *http.Request, *http.Response) (string, error) { return b.issue("a"), nil }
	bridge := New([]Server{{Name: "test", URL: b.URL, Transport: TransportSSE, Auth: p, Headers: map[string]string{"X-Scope": "a"}}}, nil)
	defer bridge.Close()
	key := messages.Key{Server: "test"}
	c, err := bridge.Dial(context.Background(), DialRequest{Key: key, Down: func(*Error) {}})
	require.NoError(t, err)
	require.Equal(t, 1, p.refreshed(), "the GET was refused")
	for n := range 3 {
		b.issue("a")
		e, _ := do(c)
		require.Nil(t, e)
		require.Equal(t, n+2, p.refreshed())
	}
	p.next = func(context.Context, *http.Request, *http.Response) (string, error) {
		return "", errors.New("the well is dry")
	}
	b.issue("a")
	e, _ := do(c)
	require.Equal(t, Unauthorized, e.Class)
	require.Contains(t, e.Detail, "the well is dry")
	require.NotContains(t, e.Detail, "token-of")
	p.set(b.issue("a"))
	e, _ = do(c)
	require.Nil(t, e, "what fails one call fails no other")
	require.NoError(t, c.Close(context.Background()))

	b.issue("a")
	_, err = bridge.Dial(context.Background(), DialRequest{Key: key, Down: func(*Error) {}})
	require.Equal(t, Unauthorized, AsError(err).Class, "%v", err)
	require.ErrorContains(t, err, "the well is dry")
	require.Empty(t, b.wrong)
}

package bridge

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/messages"
)

// with sets the authenticator of a server.
func with(a mcpbridge.Authenticator) func(*mcpbridge.Server, *mcpbridge.Resume) {
	return func(srv *mcpbridge.Server, _ *mcpbridge.Resume) { srv.Auth = a }
}

var (
	works   = says(200, outbound.TypeJSON, `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`)
	refused = says(401, "", "who are you?", `Www-Authenticate: Bearer`)
	expired = says(401, outbound.TypeJSON, `{"error":"invalid_token","error_description":"The session expired"}`, `Www-Authenticate: Bearer error="invalid_token"`)
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
			require.Equal(t, string(rpc.BodyOf(first)), string(rpc.BodyOf(second)), "the body is repeated intact")
			for _, req := range []*http.Request{first, second} {
				sent, err := io.ReadAll(req.Body)
				require.NoError(t, err)
				require.Equal(t, string(rpc.BodyOf(req)), string(sent))
				require.Equal(t, testSession, req.Header.Get(outbound.HeaderSession))
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
		class   mcpbridge.Class
	}{
		"403": {says(403, "", "not you", "Www-Authenticate: Bearer"), mcpbridge.Unauthorized},
		"407": {says(407, "", ""), mcpbridge.Unauthorized},
		"400": {says(400, "", ""), mcpbridge.Invalid},
		"404": {says(404, "", ""), mcpbridge.Expired},
	} {
		t.Run(name, func(t *testing.T) {
			p, s := refilled("old", "new"), newScript()
			conn := s.attach(t, with(p))
			s.answer("tools/call", c.refusal)
			e, _ := do(conn)
			require.Equal(t, c.class, e.Class, "%v", e)
			require.Equal(t, c.class == mcpbridge.Expired, len(s.downs) == 1)
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
			results := make(chan *mcpbridge.Error, n)
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
					require.Equal(t, mcpbridge.Unauthorized, e.Class)
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
		require.Equal(t, mcpbridge.Unauthorized, e.Class)
		require.Equal(t, mcpbridge.Alive, e.Session)
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
	p, s := refilled("old", "new"), newSessions(says(401, "", "Unauthorized: Session not found"))
	c, downs := s.dial(t, func(srv *mcpbridge.Server) { srv.Auth = p })
	s.forget()
	e, _ := do(c)
	require.Equal(t, mcpbridge.Expired, e.Class)
	require.Equal(t, 1, p.refreshed())
	require.Len(t, downs(), 1)
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
				patient := make(chan *mcpbridge.Error, 1)
				hasty, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				began := time.Now()
				_, err := c.Do(hasty, toolCall())
				e := mcpbridge.AsError(err)
				require.Equal(t, mcpbridge.Deadline, e.Class, "%v", e)
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
					require.Equal(t, mcpbridge.NotSent, e.Class, "%v", e)
					require.Error(t, life.Err())
				}
				require.Equal(t, 1, p.refreshed())
			})
		})
	}
}

// panicking is credentials whose methods panic.
type panicking struct{ in string }

func (p *panicking) Credentials(context.Context, messages.Key) (mcpbridge.Credentials, error) {
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
			require.Equal(t, mcpbridge.Internal, e.Class, "%v", e)
			require.Contains(t, e.Detail, "panic: "+method+" of …")
			require.False(t, e.Sent)
			p.in = ""
			s.answer("tools/call", works)
			e, _ = do(c)
			require.Nil(t, e)
			require.NoError(t, c.Close(context.Background()))
		})
	}
	_, err := New([]mcpbridge.Server{{Name: "test", URL: "http://test", Auth: &panicking{"Credentials"}}}, nil).
		Dial(context.Background(), dial.Request{Key: messages.Key{Server: "test"}})
	require.Equal(t, mcpbridge.Internal, mcpbridge.AsError(err).Class)
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
			require.Equal(t, mcpbridge.Unauthorized, e.Class)
			require.Equal(t, mcpbridge.Alive, e.Session)
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

func (f headersFunc) Credentials(context.Context, messages.Key) (mcpbridge.Credentials, error) {
	return f, nil
}

func (f headersFunc) Headers(ctx context.Context) (http.Header, error)             { return f(ctx) }
func (f headersFunc) Refresh(context.Context, *http.Request, *http.Response) error { return nil }

package bridge

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
)

// H-E1: no credentials are sent to the target of a redirect with another origin.
func TestCredentialsGoToTheOriginOfTheURLOnly(t *testing.T) {
	for _, elsewhere := range []string{"http://other/mcp", "https://test/mcp", "http://test:8080/mcp", "//other", "http://test@other/"} {
		p, s := refilled("old", "new"), newScript()
		c := s.attach(t, with(p), func(srv *mcpbridge.Server, _ *mcpbridge.Resume) {
			srv.Headers = map[string]string{"X-Token": "hush", "Authorization": "Basic less"}
		})
		s.answer("tools/call", says(307, "", "", "Location: /moved"), says(308, "", "", "Location: "+elsewhere), works)
		e, _ := do(c)
		require.Equal(t, mcpbridge.Protocol, e.Class)
		require.Contains(t, e.Detail, "308 Permanent Redirect: http://test redirects to http")
		require.Contains(t, e.Detail, "which is another origin")
		require.NoError(t, c.Close(context.Background()))
		seen := map[string]string{}
		for _, req := range s.requests {
			seen[req.Method+" "+req.URL.String()] = req.Header.Get("X-Token") + req.Header.Get("Authorization")
		}
		require.Equal(t, map[string]string{
			"GET http://test/mcp": "hushBearer old", "POST http://test/mcp": "hushBearer old", "POST http://test/moved": "hushBearer old",
			"DELETE http://test/mcp": "hushBearer old",
		}, seen)
	}
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
	s.answer(http.MethodGet, unless("new", refused, says(200, outbound.TypeSSE, "data: "+done+"\n\n")))
	e, _ := do(c)
	require.Nil(t, e)
	require.Equal(t, 1, p.refreshed())
	require.NoError(t, c.Close(context.Background()))
}

// What a server repeats in its refusals: the token, those before it, and one that
// another begins with.
func TestTokensAreInNoErrorText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
		s.answer("tools/call", says(200, outbound.TypeJSON, failure("%s", "-32000", "first-token-and-more is wrong")))
		e, _ = do(c)
		require.NotContains(t, e.Detail, "token")
		p.next = func(context.Context, *http.Request, *http.Response) (string, error) {
			return "", errors.New(strings.Repeat("x", redact.MaxDetail-10) + "third-token")
		}
		s.answer("tools/call", refused)
		e, _ = do(c)
		require.NotContains(t, e.Detail, "third")
		requirePresentable(t, e)
		c.Close(context.Background())
	})
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
		require.Equal(t, mcpbridge.Deadline, mcpbridge.AsError(err).Class)
		require.False(t, mcpbridge.AsError(err).Sent)
		require.Equal(t, time.Second, time.Since(began))
		hangs.Store(false)
		e, _ := do(c)
		require.Nil(t, e)
		require.NoError(t, c.Close(context.Background()))
	})
}

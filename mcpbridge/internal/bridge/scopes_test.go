package bridge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/challenge"
)

// lacks refuses a request for scopes that its token lacks.
func lacks(scopes string) answering {
	return says(403, "", "", fmt.Sprintf(`Www-Authenticate: Bearer error="insufficient_scope", scope=%q`, scopes))
}

// H-E6: each set of missing scopes is requested once, for the calls and the stream of a
// session together.
func TestMissingScopesAreAskedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := refilled("old", "other"), newScript()
		s.answer(http.MethodGet, lacks("x y"))
		c := s.attach(t, with(p))
		time.Sleep(time.Hour)
		require.Equal(t, 1, p.refreshed(), "by the stream alone, in an hour")
		require.Greater(t, len(s.tokens("GET")), 60)
		for _, scopes := range []string{"y x", "x y x", "  x   y"} {
			s.answer("tools/call", lacks(scopes))
			e, _ := do(c)
			require.Equal(t, mcpbridge.Unauthorized, e.Class)
			require.Contains(t, e.Detail, "403 Forbidden")
		}
		require.Equal(t, 1, p.refreshed(), "it is the same set")
		s.answer("tools/call", lacks("z"))
		for range 3 {
			do(c)
		}
		require.Equal(t, 2, p.refreshed(), "it is another one")
		s.answer("tools/call", refused, lacks("z"))
		do(c)
		require.Equal(t, 3, p.refreshed(), "a new login")
		do(c)
		do(c)
		require.Equal(t, 4, p.refreshed(), "may have others")
		require.NoError(t, c.Close(context.Background()))
	})
}

func TestMissingScopesThatCannotBeHadAreAskedForOnce(t *testing.T) {
	p, s := refilled("old", "other"), newScript()
	p.next = func(context.Context, *http.Request, *http.Response) (string, error) { return "", errors.New("denied") }
	s.answer("tools/call", lacks("x"))
	c := s.attach(t, with(p))
	e, _ := do(c)
	require.Contains(t, e.Detail, "could not be refreshed: denied")
	for range 3 {
		e, _ = do(c)
		require.Equal(t, mcpbridge.Unauthorized, e.Class)
	}
	require.Equal(t, 1, p.refreshed())
	require.NoError(t, c.Close(context.Background()))
}

func TestServerThatMakesUpScopesIsNotFollowedForEver(t *testing.T) {
	p, s := refilled("old", "other"), newScript()
	c := s.attach(t, with(p))
	for i := range 3 * challenge.MaxSets {
		s.answer("tools/call", lacks(fmt.Sprint("scope-", i)))
		do(c)
	}
	require.Equal(t, challenge.MaxSets, p.refreshed())
	require.NoError(t, c.Close(context.Background()))
}

// stingy is a handler that always logs in, and never gets the scopes.
type stingy struct{ logins int }

func (h *stingy) TokenSource(context.Context) (oauth2.TokenSource, error) {
	return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: fmt.Sprint("token-", h.logins)}), nil
}

func (h *stingy) Authorize(context.Context, *http.Request, *http.Response) error {
	h.logins++
	return nil
}

// H-E6: the same over all sessions that share a login.
func TestMissingScopesOfASharedLoginAreAskedForOnce(t *testing.T) {
	h := new(stingy)
	shared := mcpbridge.OAuth(auth.OAuthHandler(h))
	for range 5 {
		s := newScript()
		s.answer("tools/call", lacks("x"))
		c := s.attach(t, with(shared))
		for range 3 {
			e, _ := do(c)
			require.Equal(t, mcpbridge.Unauthorized, e.Class)
		}
		require.NoError(t, c.Close(context.Background()))
	}
	require.Equal(t, 1, h.logins)
}

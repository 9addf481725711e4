package mcpbridge

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/mcpactor/mcpactor/messages"
)

// Bearer returns an [Authenticator] for tokens: each request has the header Authorization with
// "Bearer " and the token of its key.
//
// token returns the token of a key. It is called for each dial, with an empty refused. After the
// server has refused a token, it is called with that token as refused, and returns another one. ctx
// is that of [Authenticator.Credentials] or of [Credentials.Refresh]. An error or an
// empty token fails the dial or the request with class [Unauthorized]. The text of the error must
// not contain secrets.
//
// When the servers are reloaded, a server that gets the same result of Bearer keeps its sessions.
func Bearer(token func(ctx context.Context, key messages.Key, refused string) (string, error)) Authenticator {
	return &tokens{token}
}

// tokens is the result of Bearer.
type tokens struct {
	token func(ctx context.Context, key messages.Key, refused string) (string, error)
}

// Credentials returns the credentials of a session.
func (b *tokens) Credentials(ctx context.Context, key messages.Key) (Credentials, error) {
	c := &tokenOfKey{from: b, key: key}
	return c, c.Refresh(ctx, nil, nil)
}

// tokenOfKey are credentials: the token of one session.
type tokenOfKey struct {
	from *tokens
	key  messages.Key

	mu    sync.Mutex
	token string // the current token; empty before the first one
}

func (c *tokenOfKey) now() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.token
}

// Headers returns the header with the token.
func (c *tokenOfKey) Headers(context.Context) (http.Header, error) {
	return http.Header{"Authorization": {"Bearer " + c.now()}}, nil
}

// Refresh gets another token.
func (c *tokenOfKey) Refresh(ctx context.Context, _ *http.Request, _ *http.Response) error {
	token, err := c.from.token(ctx, c.key, c.now())
	if err == nil && token == "" {
		err = errors.New("the token is empty")
	}
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token = token
	return nil
}

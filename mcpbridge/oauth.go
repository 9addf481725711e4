package mcpbridge

import (
	"context"
	"crypto"
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/auth/extauth"
	"golang.org/x/oauth2"

	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/internal/oauthresource"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/challenge"
	"github.com/mcpactor/mcpactor/messages"
)

// OAuthCredentials are [Credentials] that come from an OAuth handler of the SDK, which gets
// tokens by an authorization code, by client credentials, or in another way. See [OAuth].
//
// A handler is called from one goroutine at a time. Authorize runs once for all sessions
// that wait for it. Its context ends when no session waits any longer. After Authorize has
// succeeded, its context does not end, because the handler may refresh tokens with it.
type OAuthCredentials struct {
	handler auth.OAuthHandler
	turn    chan struct{}       // has an element while the handler is called
	scopes  challenge.Requested // guarded by turn

	mu      sync.Mutex
	last    boundToken     // the last one of the handler; zero after it has authorized
	running *authorization // or nil
}

// authorization is one call of Authorize, for all sessions that wait for it.
type authorization struct {
	cancel  context.CancelFunc
	waiting int
	done    chan struct{}
	err     error // set before done is closed
}

// BoundTokenSource is implemented by an [oauth2.TokenSource] whose tokens can be bound to a key (DPoP, RFC 9449).
type BoundTokenSource interface {
	oauth2.TokenSource
	// BoundToken returns a token and, if its type is DPoP, the key that it is bound to. It is called in place of Token.
	BoundToken() (*oauth2.Token, crypto.Signer, error)
}

// boundToken is a token, or nil, and the key that it is bound to, or nil.
type boundToken struct {
	*oauth2.Token
	key crypto.Signer
}

// errNoKey is the error of a token that is bound to a key that its source does not give.
var errNoKey = errors.New("the token is bound to a key (DPoP), which its source does not give: see mcpbridge.BoundTokenSource")

// typeDPoP is the type of a token that is bound to a key. It is the scheme of its header as well.
const typeDPoP = "DPoP"

// OAuth returns credentials that come from an OAuth handler. Requests carry them as a
// bearer token, or as a token with a proof of the key that it is bound to: see
// [BoundTokenSource]. Call OAuth once for each handler. As the value of [Server.Auth], the
// credentials are used for all keys of the server. An [Authenticator] may also return them,
// for the keys that share a login. If a handler has a method Equal(auth.OAuthHandler) bool, that says whether a server with another
// handler is the same when the servers are reloaded.
//
// For the handlers of the SDK, the metadata of the resource (RFC 9728) is looked for with [http.DefaultTransport], at public
// addresses and at that of the server, since these handlers take only metadata that names the URL of the server, byte for
// byte. Metadata counts if it names the origin of the URL and the beginning of its path.
func OAuth(h auth.OAuthHandler) *OAuthCredentials {
	return &OAuthCredentials{handler: h, turn: make(chan struct{}, 1)}
}

// errNotMade is the error of credentials that were not made with OAuth, or without a handler.
var errNotMade = errors.New("has no handler: make it with mcpbridge.OAuth")

func (o *OAuthCredentials) made() bool { return o != nil && o.handler != nil && o.turn != nil }

// Credentials returns o, whatever the key.
func (o *OAuthCredentials) Credentials(context.Context, messages.Key) (Credentials, error) {
	return o, nil
}

// Headers returns the header with the token of the handler, or nothing if the handler has
// no token.
func (o *OAuthCredentials) Headers(ctx context.Context) (http.Header, error) {
	headers, _, err := o.BoundHeaders(ctx)
	return headers, err
}

// BoundHeaders returns what Headers does, and the key that the token is bound to, or nil.
func (o *OAuthCredentials) BoundHeaders(ctx context.Context) (http.Header, crypto.Signer, error) {
	t, err := o.token(ctx)
	if err != nil || t.Token == nil {
		return nil, nil, err
	}
	scheme := "Bearer"
	if t.key != nil {
		scheme = typeDPoP
	}
	return http.Header{"Authorization": {scheme + " " + t.AccessToken}}, t.key, nil
}

// token asks the handler for its token. While the handler is busy, for example with a
// person who logs in, token returns the last token if that is still valid.
func (o *OAuthCredentials) token(ctx context.Context) (boundToken, error) {
	if !o.made() {
		return boundToken{}, errNotMade
	}
	select {
	case o.turn <- struct{}{}:
	default:
		o.mu.Lock()
		last := o.last
		o.mu.Unlock()
		if last.Valid() {
			return last, nil
		}
		select {
		case o.turn <- struct{}{}:
		case <-ctx.Done():
			return boundToken{}, ctx.Err()
		}
	}
	type answer struct {
		token boundToken
		err   error
	}
	answered := make(chan answer, 1)
	go func() {
		token, err := func() (boundToken, error) {
			defer func() { <-o.turn }()
			return guard.Call(o.ask)
		}()
		answered <- answer{token, err}
	}()
	select {
	case a := <-answered:
		return a.token, a.err
	case <-ctx.Done():
		return boundToken{}, ctx.Err()
	}
}

// ask gets the token of the handler, or none if the handler has none and has to authorize.
// It may block without a bound. The caller must hold turn.
func (o *OAuthCredentials) ask() (t boundToken, err error) {
	// The handler may keep the context, which must therefore not end.
	source, err := o.handler.TokenSource(context.Background())
	if err != nil || source == nil {
		return boundToken{}, err
	}
	if bound, is := source.(BoundTokenSource); is {
		t.Token, t.key, err = bound.BoundToken()
	} else {
		t.Token, err = source.Token()
	}
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused) && refused.ErrorCode == "invalid_grant":
		return boundToken{}, nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return boundToken{}, nil // the handler has made it with a context that has ended
	case err != nil:
		return boundToken{}, err
	case t.Token == nil || t.AccessToken == "":
		return boundToken{}, nil
	case !strings.EqualFold(t.Type(), typeDPoP):
		t.key = nil
	case t.key == nil:
		return boundToken{}, errNoKey
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = t
	return t, nil
}

// Refresh calls Authorize of the handler, unless the handler already has another token than
// the one that was refused.
func (o *OAuthCredentials) Refresh(ctx context.Context, req *http.Request, resp *http.Response) error {
	if !o.made() {
		return errNotMade
	}
	o.mu.Lock()
	a := o.running
	if a == nil {
		a = &authorization{done: make(chan struct{})}
		o.running = a
		var wanted context.Context
		wanted, a.cancel = context.WithCancel(context.Background())
		go o.authorize(wanted, a, req, resp)
	}
	a.waiting++
	o.mu.Unlock()
	select {
	case <-a.done:
		return a.err
	case <-ctx.Done():
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if a.waiting--; a.waiting == 0 && o.running == a {
		o.running = nil
		a.cancel()
	}
	return ctx.Err()
}

func (o *OAuthCredentials) authorize(wanted context.Context, a *authorization, req *http.Request, resp *http.Response) {
	a.err = errors.New("it did not return") // if it calls runtime.Goexit
	defer func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.running == a {
			o.running = nil
		}
		if a.err != nil {
			a.cancel()
		}
		close(a.done)
	}()
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-wanted.Done():
		a.err = wanted.Err()
		return
	}
	_, a.err = guard.Call(func() (none struct{}, err error) {
		t, _ := o.ask() // if that fails, the handler authorizes
		if _, refused, _ := strings.Cut(req.Header.Get("Authorization"), " "); t.Token != nil && t.AccessToken != refused {
			return none, nil
		}
		scopes, lacksScopes := challenge.MissingScopes(resp)
		if lacksScopes && !o.scopes.Add(scopes, accessOf(t)) {
			return none, errors.New("the missing scopes were asked for before")
		}
		err = o.callHandler(wanted, req, resp)
		o.mu.Lock()
		o.last = boundToken{}
		o.mu.Unlock()
		if lacksScopes {
			t, _ = o.ask() // without a token, requests carry none
			o.scopes[scopes] = accessOf(t)
		}
		return none, err
	})
}

// callHandler calls Authorize of the handler. Those of the SDK get help with metadata that they would not take.
func (o *OAuthCredentials) callHandler(ctx context.Context, req *http.Request, resp *http.Response) error {
	switch o.handler.(type) {
	case *auth.AuthorizationCodeHandler, *extauth.ClientCredentialsHandler:
		return oauthresource.Authorize(ctx, http.DefaultClient, o.handler, req, resp)
	}
	return o.handler.Authorize(ctx, req, resp)
}

// accessOf returns the text of a token, or nothing for none.
func accessOf(t boundToken) string {
	if t.Token == nil {
		return ""
	}
	return t.AccessToken
}

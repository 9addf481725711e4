// Package login logs in to hosted servers by OAuth, and keeps the logins in files that processes share.
//
// The login itself is that of the SDK: discovery, registration, PKCE. This package asks the person, keeps what came of
// it, and refreshes tokens for all processes of the user.
package login

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/mcpactor/mcpactor/internal/oauthresource"
	"github.com/mcpactor/mcpactor/internal/visible"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// Asking says when a person is asked to log in.
type Asking int

const (
	// Never is for a program that nobody watches.
	Never Asking = iota
	// Waiting makes the request wait for the person, and uses no login of before.
	Waiting
	// Once opens the browser once, and fails the request in the meantime.
	Once
)

// Options say how a person logs in.
type Options struct {
	// Off is true for a server that has no login.
	Off bool
	// Remedy says what a person has to do, in words.
	Remedy string
	Asking Asking
	// Err gets the address to log in at.
	Err io.Writer
	// Timeout is how long the person may take.
	Timeout time.Duration
	// ClientID is that of this program at the authorization server. If it is empty, it is that of the last login, or the
	// program registers itself.
	ClientID, ClientSecret string
	// Redirect is where the browser comes back to, on this machine. Port 0 is any. Defaults to http://127.0.0.1:0/callback.
	Redirect string
	// Only are the scopes to ask for in place of those that the server names. None is no restriction.
	Only []string
	// Scopes are asked for besides.
	Scopes []string
	// Done is called after a login in the background. It may be nil.
	Done func()
}

// Login is the login at one server. It is the handler of [mcpbridge.OAuth], which calls it from one goroutine at a time.
type Login struct {
	Options
	server string
	file   file
	last   *oauth2.Token // from the file; nil before it was read
	asked  bool          // the browser was opened
	worked atomic.Bool   // somebody has logged in
}

var _ auth.OAuthHandler = (*Login)(nil)

// New returns the login at the server with a URL.
func New(server string, o Options) (*Login, error) {
	f, err := fileOf(server)
	if err != nil {
		return nil, err
	}
	return &Login{Options: o, server: server, file: f}, nil
}

// Forget forgets the login at a server, and reports whether there was one.
func Forget(server string) (found bool, err error) {
	f, err := fileOf(server)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
	defer cancel()
	unlock, _, err := f.lock(ctx, refreshing) // a refresh would write the file again
	if err != nil {
		return false, err
	}
	defer unlock()
	return f.remove()
}

// Kept reports whether a login at a server is kept.
func Kept(server string) bool {
	f, err := fileOf(server)
	if err != nil {
		return false
	}
	token, err := f.token()
	return err == nil && token != nil
}

// hostOf names a server to a person.
func hostOf(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return "the server"
	}
	return u.Host
}

// Worked reports whether somebody has logged in since New.
func (l *Login) Worked() bool { return l.worked.Load() }

// TokenSource returns l.
func (l *Login) TokenSource(context.Context) (oauth2.TokenSource, error) { return l, nil }

// Token returns a valid token, or nil if there is none. It refreshes one that has expired.
func (l *Login) Token() (*oauth2.Token, error) {
	if l.last.Valid() {
		return l.last, nil
	}
	if l.Asking == Waiting && !l.Worked() {
		return nil, nil
	}
	token, err := l.file.token()
	if err != nil || token == nil {
		return nil, err
	}
	if !token.Valid() {
		return l.refresh("")
	}
	l.last = token
	return token, nil
}

// refresh returns a token that is not the refused one, or nil. Of all processes, one refreshes a token: a refresh token
// that is used twice can end the login.
func (l *Login) refresh(refused string) (*oauth2.Token, error) {
	l.last = nil
	ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
	defer cancel()
	unlock, _, err := l.file.lock(ctx, refreshing)
	if err != nil {
		return nil, err
	}
	defer unlock()
	kept, err := l.file.read()
	switch {
	case err != nil || kept == nil || kept.Token == nil:
		return nil, err
	case kept.Token.Valid() && kept.Token.AccessToken != refused:
		l.last = kept.Token // another process has refreshed it
		return l.last, nil
	case kept.Token.RefreshToken == "":
		return nil, nil
	}
	renewed, err := kept.refresh(ctx)
	if hasEnded(err) {
		ended := *kept
		ended.Token = nil
		return nil, l.file.write(&ended)
	}
	if err != nil {
		return nil, &mcpbridge.Error{Class: mcpbridge.Unauthorized, Detail: "the token could not be refreshed: " + causeOf(err), Remedy: "try again when the authorization server of " + hostOf(l.server) + " works"}
	}
	l.last = renewed.Token
	return l.last, l.file.write(renewed)
}

// Authorize gets another token than that of a request which the server has refused, or asks the person.
func (l *Login) Authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	why, refused := "nobody has logged in", tokenOf(req)
	switch {
	case resp.StatusCode == http.StatusForbidden:
		why = "the login lacks the scopes " + scopesOf(resp)
	case refused != "" || l.Asking != Waiting:
		token, err := l.refresh(refused)
		if err != nil || token != nil {
			return err
		}
		if refused != "" {
			why = "the login has expired"
		}
	}
	switch {
	case l.Asking == Waiting:
		if err := l.inBrowser(ctx, req, resp); err != nil {
			return &mcpbridge.Error{Class: mcpbridge.Unauthorized, Detail: causeOf(err), Remedy: l.Remedy}
		}
		l.worked.Store(true)
		return nil
	case l.Asking == Once && (!l.asked || l.worked.Swap(false)):
		l.asked = true
		go l.inBackground(req, resp)
	}
	return &mcpbridge.Error{Class: mcpbridge.Unauthorized, Detail: why, Remedy: l.Remedy}
}

// Offer has a person log in at a server that has asked for no login so far, and reports whether the server has one.
func (l *Login) Offer(ctx context.Context) (offered bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.server, nil)
	if err != nil {
		return false, err
	}
	if found, _ := oauthresource.Find(ctx, web, req.URL, nil); found == nil {
		return false, nil
	}
	return true, l.Authorize(ctx, req, &http.Response{StatusCode: http.StatusUnauthorized, Body: http.NoBody})
}

// inBackground has a person log in while requests fail. Of all processes one asks, and the others wait for what comes of it.
func (l *Login) inBackground(req *http.Request, resp *http.Response) {
	unlock, waited, err := l.file.lock(context.Background(), loggingIn)
	if err == nil {
		defer unlock()
		token, _ := l.file.token()
		switch {
		case token != nil && token.AccessToken != tokenOf(req): // another process has logged in
		case waited:
			return
		default:
			err = l.inBrowser(context.Background(), req, resp)
		}
	}
	if err != nil {
		fmt.Fprintf(l.Err, "mcpactor: the login at %s has failed: %s\n", hostOf(l.server), causeOf(err))
		return
	}
	l.worked.Store(true)
	if l.Done != nil {
		l.Done()
	}
}

// tokenOf returns the token that a request carries, or "".
func tokenOf(req *http.Request) string {
	return strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
}

// scopesOf returns the scopes that a refusal names.
func scopesOf(resp *http.Response) string {
	challenges, err := oauthex.ParseWWWAuthenticate(resp.Header.Values("WWW-Authenticate"))
	if err != nil {
		return ""
	}
	for _, c := range challenges {
		if scope := c.Params["scope"]; scope != "" {
			return scope
		}
	}
	return ""
}

// quoting has the texts after which errors of the SDK quote an authorization server, whose answer may have secrets.
var quoting = []string{"registration response: ", "registration error response: ", "registration failed with status"}

// causeOf returns the text of an error, without what an authorization server says in it.
func causeOf(err error) string {
	if answer, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		text := answer.ErrorCode
		if text == "" && answer.Response != nil {
			text = answer.Response.Status
		}
		return "the authorization server refuses: " + visible.Detail(text)
	}
	text := err.Error()
	for _, quote := range quoting {
		if before, _, quotes := strings.Cut(text, quote); quotes {
			text = before + strings.TrimRight(quote, ": ")
		}
	}
	return visible.Detail(text)
}

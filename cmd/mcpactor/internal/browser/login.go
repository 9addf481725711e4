// Package browser has a person log in to hosted servers by OAuth, in the browser. Package login keeps the logins, in files that the
// processes of the user share.
//
// The login itself is that of the SDK: discovery, registration, PKCE. This package asks the person, and says how this program is known.
package browser

import (
	"cmp"
	"context"
	"crypto"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"golang.org/x/oauth2"

	"github.com/mcpactor/mcpactor/login"
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
	// ClientID is that of a client that the user has registered at the authorization server. If it is empty, the program is known
	// by its client document, as the client of the last login if the user had named that, or it registers itself.
	ClientID, ClientSecret string
	// Document is the URL of the client document. Defaults to [DefaultDocument].
	Document string
	// Redirect is where the browser comes back to, on this machine. Port 0 is any. Defaults to one that the client document has,
	// otherwise to http://127.0.0.1:0/callback.
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
	kept   *login.Login  // of a person
	tokens *login.Login  // kept, or that of a client with credentials of its own
	client *login.Client // of tokens, or nil
	last   *oauth2.Token // nil before there was one
	asked  bool          // the browser was opened
	worked atomic.Bool   // somebody has logged in
}

var (
	_ auth.OAuthHandler          = (*Login)(nil)
	_ mcpbridge.BoundTokenSource = (*Login)(nil)
)

// New returns the login at the server with a URL.
func New(server string, o Options) (*Login, error) {
	l := &Login{Options: o, server: server}
	l.Document = cmp.Or(o.Document, DefaultDocument)
	var err error
	l.kept, err = l.loginOf(nil)
	l.tokens = l.kept
	return l, err
}

// loginOf returns the login of a client with credentials of its own, or that of a person.
func (l *Login) loginOf(machine *login.Record) (*login.Login, error) {
	folder, err := folderOf()
	if err != nil {
		return nil, err
	}
	cfg := login.Config{ID: l.server, Store: folder, Remedy: l.Remedy}
	if machine != nil {
		cfg.Grant, cfg.Scopes = login.ClientCredentials{Client: clientOf(machine)}, machine.Client.Scopes
	}
	return login.New(cfg)
}

// folderOf returns the folder of logins in the configuration folder of the user.
func folderOf() (login.Folder, error) {
	folder, err := os.UserConfigDir()
	return login.Folder(filepath.Join(folder, "mcpactor", "logins")), err
}

// clientOf returns the client that a machine has logged in with. Its secret goes to no other authorization server.
func clientOf(r *login.Record) login.Client {
	return login.Client{ID: r.Client.ClientID, Secret: r.Client.ClientSecret, KeyFile: r.KeyFile, Issuer: r.Issuer}
}

// Forget forgets the login at a server, and reports whether there was one.
func Forget(server string) (found bool, err error) {
	l, err := New(server, Options{})
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
	defer cancel()
	return l.kept.Forget(ctx)
}

// Kept reports whether a login at a server is kept, and by which way it was made, or nothing if that is not known.
func Kept(server string) (way string, kept bool) {
	l, err := New(server, Options{})
	if err != nil {
		return "", false
	}
	r, err := l.kept.Kept(context.Background())
	if err != nil || r == nil || r.Token == nil {
		return "", false
	}
	return r.Way, true
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
	token, _, err := l.BoundToken()
	return token, err
}

// BoundToken returns what Token returns, and the key that the token is bound to, or nil.
func (l *Login) BoundToken() (*oauth2.Token, crypto.Signer, error) {
	if l.Asking == Waiting && !l.Worked() {
		return nil, nil, nil
	}
	if !l.last.Valid() {
		if err := l.adopt(context.Background()); err != nil {
			return nil, nil, err
		}
	}
	token, key, err := l.tokens.BoundToken()
	l.last = token
	return token, key, err
}

// adopt makes l use what is kept now: since it has looked, a person may have logged in, or a client with credentials of its own.
func (l *Login) adopt(ctx context.Context) error {
	r, err := l.kept.Kept(ctx)
	if err != nil {
		return err
	}
	if r == nil || !r.Machine {
		l.tokens, l.client = l.kept, nil
		return nil
	}
	if client := clientOf(r); l.client == nil || *l.client != client {
		l.client = &client
		l.tokens, err = l.loginOf(r)
	}
	return err
}

// Authorize gets another token than that of a request which the server has refused, or asks the person.
func (l *Login) Authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	l.last = nil
	waits := l.Asking == Waiting
	err := error(&mcpbridge.Error{Class: mcpbridge.Unauthorized, Detail: "nobody has logged in", Remedy: l.Remedy})
	if !waits || req.Header.Get("Authorization") != "" {
		if err := l.adopt(ctx); err != nil {
			return err
		}
		if err = l.tokens.Authorize(ctx, req, resp); !errors.Is(err, login.ErrNeeded) {
			return err
		}
	}
	switch {
	case waits:
		if err := l.inBrowser(ctx, req, resp); err != nil {
			failed := &mcpbridge.Error{Class: mcpbridge.Unauthorized, Detail: causeOf(err), Remedy: l.Remedy}
			if own, ok := errors.AsType[*remedied](err); ok {
				failed.Detail, failed.Remedy = own.text, own.remedy
			}
			return failed
		}
		l.worked.Store(true)
		return nil
	case l.Asking == Once && (!l.asked || l.worked.Swap(false)):
		l.asked = true
		go l.inBackground(req, resp)
	}
	return err
}

// Offer has a person log in at a server that has asked for no login so far, and reports whether the server has one.
func (l *Login) Offer(ctx context.Context) (offered bool, err error) { return offer(ctx, l, l.server) }

// inBackground has a person log in while requests fail. Of all processes one asks, and the others wait for what comes of it.
func (l *Login) inBackground(req *http.Request, resp *http.Response) {
	ctx := context.Background()
	unlock, waited, err := lock(ctx, l.server)
	if err == nil {
		defer unlock()
		_, refused, _ := strings.Cut(req.Header.Get("Authorization"), " ")
		r, _ := l.kept.Kept(ctx)
		switch {
		case r != nil && r.Token != nil && r.Token.AccessToken != refused: // another process has logged in
		case waited:
			return
		default:
			err = l.inBrowser(ctx, req, resp)
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

// lockPatience is how long to wait for another process that refreshes. It takes less.
const lockPatience = time.Minute

// lock waits until no other process has a person log in at a server, and reports whether it had to wait. The lock ends with the process.
func lock(ctx context.Context, server string) (unlock func(), waited bool, err error) {
	folder, err := folderOf()
	if err == nil {
		err = os.MkdirAll(string(folder), 0o700)
	}
	if err != nil {
		return nil, false, err
	}
	name := fmt.Sprintf("%x.login.lock", sha256.Sum256([]byte(server)))
	l := flock.New(filepath.Join(string(folder), name), flock.SetPermissions(0o600))
	locked, err := l.TryLock()
	if waited = !locked; waited && err == nil {
		_, err = l.TryLockContext(ctx, 20*time.Millisecond)
	}
	if err != nil {
		return nil, waited, fmt.Errorf("the lock of the login: %w", err)
	}
	return func() { l.Unlock() }, waited, nil //nolint:errcheck // it ends with the process
}

// quoting has the texts after which errors of the SDK quote an authorization server, whose answer may have secrets.
var quoting = []string{"registration response: ", "registration error response: ", "registration failed with status"}

// causeOf returns the text of an error, without what an authorization server says in it.
func causeOf(err error) string {
	text := login.CauseOf(err)
	for _, quote := range quoting {
		if before, _, quotes := strings.Cut(text, quote); quotes {
			text = before + strings.TrimRight(quote, ": ")
		}
	}
	return text
}

package login

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/mcpactor/mcpactor/internal/oauthresource"
)

// authorization is a login that a person is asked for, in a browser.
type authorization struct {
	Options
	server   string
	file     file
	redirect *url.URL // to the listener
	listener net.Listener
	resource string
	state    string
	answers  chan url.Values // gets one
	done     chan struct{}
	err      error // set before done is closed
}

// defaultRedirect is where the browser comes back to: a free port of this machine.
const defaultRedirect = "http://127.0.0.1:0/callback"

// inBrowser has a person log in, and keeps the login. req is the request that the server has refused with resp.
func (l *Login) inBrowser(ctx context.Context, req *http.Request, resp *http.Response) (err error) {
	ctx, cancel := context.WithTimeout(ctx, l.Timeout)
	defer cancel()
	a := &authorization{Options: l.Options, server: l.server, file: l.file, answers: make(chan url.Values, 1), done: make(chan struct{})}
	kept, _ := l.file.read()
	if kept != nil && kept.Given && a.ClientID == "" {
		a.ClientID, a.ClientSecret, a.Redirect = kept.Client.ClientID, kept.Client.ClientSecret, kept.Client.RedirectURL
	}
	if kept != nil && resp.StatusCode == http.StatusForbidden { // scopes are missing: the others stay
		a.Scopes = append(slices.Clone(a.Scopes), kept.Client.Scopes...)
	}
	if resp.StatusCode == http.StatusForbidden { // the call needs more than what was asked for
		a.Only = nil
	}
	if a.redirect, err = url.Parse(cmp.Or(a.Redirect, defaultRedirect)); err != nil {
		return err
	}
	if a.listener, err = net.Listen("tcp", a.redirect.Host); err != nil {
		return err
	}
	server := &http.Server{Handler: a, ReadHeaderTimeout: 10 * time.Second}
	defer func() {
		a.err = err
		close(a.done)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		server.Shutdown(ctx) //nolint:errcheck // the browser has got its page, or does not want it
		a.listener.Close()   //nolint:errcheck // Shutdown closes it, if it was served
	}()
	if a.redirect.Port() == "0" {
		_, port, _ := net.SplitHostPort(a.listener.Addr().String())
		a.redirect.Host = net.JoinHostPort(a.redirect.Hostname(), port)
	}
	handler, err := auth.NewAuthorizationCodeHandler(a.config(func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
		to, err := url.Parse(args.URL)
		if err != nil || to.Scheme != "https" && to.Scheme != "http" {
			return nil, errors.New("the authorization server names an address that is no web page")
		}
		a.state, a.resource = to.Query().Get("state"), to.Query().Get("resource")
		go server.Serve(a.listener) //nolint:errcheck // it ends with the login
		fmt.Fprintf(a.Err, "mcpactor: log in at %s in the browser. If none opens, this is the address:\n%s\n", hostOf(a.server), args.URL)
		open(args.URL)
		return a.wait(ctx)
	}))
	if err != nil {
		return err
	}
	return oauthresource.Authorize(ctx, web, handler, req, resp)
}

// config returns the configuration of the SDK's handler.
func (a *authorization) config(fetch auth.AuthorizationCodeFetcher) *auth.AuthorizationCodeHandlerConfig {
	c := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: a.redirect.String(), AuthorizationCodeFetcher: fetch, Client: web,
		RequestRefreshToken: true, AcceptUnadvertisedIss: true,
		ScopeFilter: func(found []string) []string {
			if len(a.Only) > 0 {
				found = a.Only
			}
			for _, scope := range a.Scopes {
				if !slices.Contains(found, scope) {
					found = append(slices.Clone(found), scope)
				}
			}
			return found
		},
		NewTokenSource: func(_ context.Context, c *oauth2.Config, token *oauth2.Token) (oauth2.TokenSource, error) {
			r := &record{Server: a.server, Resource: a.resource, Client: c, Given: a.ClientID != "", Token: token}
			ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
			defer cancel()
			unlock, _, err := a.file.lock(ctx, refreshing)
			if err != nil {
				return nil, err
			}
			defer unlock()
			return oauth2.StaticTokenSource(token), a.file.write(r)
		},
	}
	if a.ClientID == "" {
		c.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "mcpactor", RedirectURIs: []string{c.RedirectURL}, TokenEndpointAuthMethod: "none",
			GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		}}
		return c
	}
	c.PreregisteredClient = &oauthex.ClientCredentials{ClientID: a.ClientID}
	if a.ClientSecret != "" {
		c.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: a.ClientSecret}
	}
	return c
}

// errorCode matches the codes of OAuth. What else a browser brings is not shown.
var errorCode = regexp.MustCompile(`^[a-z_]{1,64}$`)

// wait waits for the browser to come back.
func (a *authorization) wait(ctx context.Context) (*auth.AuthorizationResult, error) {
	select {
	case answer := <-a.answers:
		switch code := answer.Get("error"); {
		case errorCode.MatchString(code):
			return nil, fmt.Errorf("the authorization server refuses: %s", code)
		case answer.Get("code") == "":
			return nil, errors.New("the authorization server refuses")
		}
		return &auth.AuthorizationResult{Code: answer.Get("code"), State: answer.Get("state"), Iss: answer.Get("iss")}, nil
	case <-ctx.Done():
		return nil, errors.New("nobody has logged in in time")
	}
}

// ServeHTTP takes the answer of the authorization server, which the browser brings, and says what came of it. It takes none with
// another state: that is the answer to another login, or one that somebody else has made up.
func (a *authorization) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	answer := r.URL.Query()
	if r.Method != http.MethodGet || r.URL.Path != a.redirect.Path {
		http.NotFound(w, r)
		return
	}
	if answer.Get("state") != a.state {
		http.Error(w, "This is no answer to the login that mcpactor waits for.", http.StatusBadRequest)
		return
	}
	select {
	case a.answers <- answer:
	default: // a second answer changes nothing
	}
	select {
	case <-a.done:
	case <-r.Context().Done():
		return
	}
	if a.err != nil {
		http.Error(w, "The login has failed: mcpactor says why where it runs.", http.StatusForbidden)
		return
	}
	fmt.Fprintln(w, "You are logged in. You can close this window.")
}

// open opens a browser. If there is none, the person opens the address.
func open(address string) {
	command := []string{"xdg-open"}
	switch runtime.GOOS {
	case "darwin":
		command = []string{"open"}
	case "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	cmd := exec.Command(command[0], append(command[1:], address)...)
	if cmd.Start() == nil {
		go cmd.Wait() //nolint:errcheck // the person sees whether it has opened
	}
}

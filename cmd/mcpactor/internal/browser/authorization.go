package browser

import (
	"cmp"
	"context"
	"crypto"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/mcpactor/mcpactor/internal/oauthresource"
	"github.com/mcpactor/mcpactor/internal/proof"
	"github.com/mcpactor/mcpactor/internal/visible"
	"github.com/mcpactor/mcpactor/login"
)

// authorization is a login that a person is asked for, in a browser.
type authorization struct {
	Options
	server   string
	kept     *login.Login
	issuer   string // and the token endpoint, of the authorization server that was checked; empty if it has no metadata
	endpoint string
	way      string // in which this program is known
	web      *http.Client
	key      crypto.Signer // for tokens that are bound to it
	bound    bool          // the MCP server asks for such a token
	redirect *url.URL      // to the listener
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
	a := &authorization{Options: l.Options, server: l.server, kept: l.kept, answers: make(chan url.Values, 1), done: make(chan struct{})}
	kept, _ := l.kept.Kept(ctx)
	if kept != nil && resp.StatusCode == http.StatusForbidden { // scopes are missing: the others stay
		a.Scopes = append(slices.Clone(a.Scopes), kept.Client.Scopes...)
	}
	if resp.StatusCode == http.StatusForbidden { // the call needs more than what was asked for
		a.Only = nil
	}
	found, err := discover(ctx, req.URL, resp.Header)
	if err != nil {
		return err
	}
	if a.web, err = a.client(found, resp.Header); err != nil {
		return err
	}
	if found.server != nil {
		a.issuer, a.endpoint = found.server.Issuer, found.server.TokenEndpoint
	}
	moved := hasMoved(kept, found.server, req.URL)
	if moved && a.ClientID == kept.Client.ClientID {
		before := hostOf(cmp.Or(kept.Issuer, kept.Client.Endpoint.TokenURL))
		return &remedied{
			fmt.Sprintf("the client %q has logged in at %s, and the server uses %s now", a.ClientID, before, hostOf(a.issuer)),
			"register another one there, or run mcpactor logout first",
		}
	}
	own := kept != nil && kept.Given && !kept.Machine && !moved
	if err := a.choose(ctx, choice{server: found.server, given: a.ClientID != "", kept: own, document: a.Document}, kept); err != nil {
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
	return oauthresource.Authorize(ctx, oauthresource.Web, handler, req, resp)
}

// client returns a client for the authorization server. If the MCP server asks for tokens that are bound to a key (RFC 9449), or the
// authorization server knows them, it has a key of its own. The SDK has no such client (go-sdk#1139), and checks no addresses that one
// with a Transport dials: it has to ask for metadata that was found before.
func (a *authorization) client(found discovered, refusal http.Header) (_ *http.Client, err error) {
	if found.resource == nil || found.server == nil {
		return oauthresource.Web, nil
	}
	a.bound = found.resource.DPOPBoundAccessTokensRequired || proof.Asks(refusal)
	if !a.bound && len(found.server.DPoP) == 0 {
		return oauthresource.Web, nil
	}
	if a.key, err = proof.NewKey(); err != nil {
		return nil, err
	}
	c := *oauthresource.Web
	c.Transport = &proof.Transport{Key: a.key, Asked: a.bound}
	return &c, nil
}

// choose chooses the way in which this program is known, says so, and listens where the browser comes back to.
func (a *authorization) choose(ctx context.Context, c choice, kept *login.Record) (err error) {
	a.way, err = c.way()
	if a.Document != DefaultDocument && !c.given && !c.takesDocument() { // a person has named it
		fmt.Fprintf(a.Err, "mcpactor: the client document %s is not used: the authorization server takes none\n", c.document)
	}
	if a.way == byDocument {
		if c.defect = a.useDocument(ctx); c.defect != nil {
			fmt.Fprintf(a.Err, "mcpactor: the client document %s is not used: %s\n", c.document, visible.Detail(c.defect.Error()))
			a.way, err = c.way()
		}
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Err, "mcpactor: %s\n", c.said(a.way))
	if a.way == byDocument {
		return nil
	}
	if a.way == byGiven && !c.given {
		a.ClientID, a.ClientSecret, a.Redirect = kept.Client.ClientID, kept.Client.ClientSecret, kept.Client.RedirectURL
	}
	redirect, err := url.Parse(cmp.Or(a.Redirect, defaultRedirect))
	if err == nil {
		a.listener, a.redirect, err = listen(redirect)
	}
	return err
}

// useDocument fetches the client document, and listens where it lets the browser come back to.
func (a *authorization) useDocument(ctx context.Context) error {
	redirects, err := fetchDocument(ctx, a.Document)
	if err == nil && a.Redirect != "" {
		redirects, err = only(redirects, a.Redirect)
	}
	if err == nil {
		a.listener, a.redirect, err = listenAt(redirects)
	}
	return err
}

// config returns the configuration of the SDK's handler.
func (a *authorization) config(fetch auth.AuthorizationCodeFetcher) *auth.AuthorizationCodeHandlerConfig {
	c := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: a.redirect.String(), AuthorizationCodeFetcher: fetch, Client: a.web,
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
			if a.endpoint != "" && c.Endpoint.TokenURL != a.endpoint { // the SDK has asked for the metadata again
				return nil, errors.New("the server has changed its authorization server during the login")
			}
			if c.ClientSecret == "" {
				c.Endpoint.AuthStyle = oauth2.AuthStyleInParams // the SDK leaves that of a client document open
			}
			r := &login.Record{Server: a.server, Resource: a.resource, Issuer: a.issuer, Client: c, Way: a.way, Given: a.way == byGiven, Token: token}
			switch is := strings.EqualFold(token.Type(), "DPoP"); {
			case is && a.key != nil:
				var err error
				if r.Key, err = proof.FormatKey(a.key); err != nil {
					return nil, err
				}
			case a.bound:
				return nil, errors.New("the server asks for a token that is bound to a key (DPoP), and the authorization server gives none")
			}
			ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
			defer cancel()
			return oauth2.StaticTokenSource(token), a.kept.Keep(ctx, r)
		},
	}
	switch a.way { // no other way is tried, so that the person is told the right one
	case byDocument:
		c.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: a.Document}
	case byRegistration:
		c.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "mcpactor", RedirectURIs: []string{c.RedirectURL}, TokenEndpointAuthMethod: "none",
			GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		}}
	default:
		c.PreregisteredClient = &oauthex.ClientCredentials{ClientID: a.ClientID, Issuer: a.issuer}
		if a.ClientSecret != "" {
			c.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: a.ClientSecret}
		}
	}
	return c
}

// wait waits for the browser to come back.
func (a *authorization) wait(ctx context.Context) (*auth.AuthorizationResult, error) {
	select {
	case answer := <-a.answers:
		switch code := answer.Get("error"); {
		case oauthresource.IsErrorCode(code):
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

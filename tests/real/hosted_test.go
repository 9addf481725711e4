//go:build real

package real

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/freeport"
	"github.com/mcpactor/mcpactor/internal/proof/prooftest"
)

// account is the name of the person who logs in.
const account = "somebody"

// hosting says how a server asks for a login.
type hosting struct {
	provider                    // Issuer, Audience and the clients that are always there are set by newHosted
	proofs   *prooftest.Checker // that come with access tokens; nil takes tokens as they are
	machines bool               // get tokens, too
}

// hosted is an MCP server that asks for a login at an authorization server, and the program mcpactor with a home of its own.
type hosted struct {
	*harness
	url      string     // of the MCP server
	from     *authority // of its tokens, as its metadata says; guarded by moving
	moving   sync.Mutex
	proofs   *prooftest.Checker
	machines *machines
	redirect string // of the client "given"
	program  string
	config   string   // a file with the server
	env      []string // of the program
	server   *mcp.Server
	refused  sync.Map // access tokens that are valid, and that the MCP server refuses
}

// newHosted starts both servers.
func newHosted(t *testing.T, w hosting) *hosted {
	t.Helper()
	h := newHarness(t)
	o := &hosted{harness: h, program: h.mcpactor(), config: filepath.Join(h.dir, "servers.json"), proofs: w.proofs}
	mux := http.NewServeMux()
	site := httptest.NewServer(mux)
	h.t.Cleanup(func() {
		site.CloseClientConnections()
		site.Close()
		for session := range o.server.Sessions() { // they could not be ended without a login
			session.Close()
		}
	})
	o.url = site.URL + "/mcp"
	address, err := freeport.Addr("127.0.0.1")
	require.NoError(h.t, err)
	o.redirect = "http://" + address + "/back"
	if w.machines {
		o.machines = h.newMachines(w.Ahead)
		w.Clients = append(w.Clients, o.machines.clients()...)
		w.Trusted = []string{o.machines.issuer.URL, o.machines.identity.URL}
	}
	o.move(w.provider)

	o.server = mcp.NewServer(&mcp.Implementation{Name: "hosted", Version: "1"}, nil)
	mcp.AddTool(o.server, &mcp.Tool{Name: "who"}, func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: req.Extra.TokenInfo.UserID}}}, nil, nil
	})
	const metadata = "/.well-known/oauth-protected-resource/mcp"
	mux.HandleFunc(metadata, func(w http.ResponseWriter, r *http.Request) {
		auth.ProtectedResourceMetadataHandler(&oauthex.ProtectedResourceMetadata{
			Resource: o.url, AuthorizationServers: []string{o.authority().URL}, ScopesSupported: []string{"mcp"}, DPOPBoundAccessTokensRequired: o.proofs != nil,
		}).ServeHTTP(w, r)
	})
	protect := auth.RequireBearerToken(o.verify, &auth.RequireBearerTokenOptions{ResourceMetadataURL: site.URL + metadata, Scopes: []string{"mcp"}})
	handler := protect(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return o.server }, nil))
	if o.proofs != nil {
		o.proofs.Origin, o.proofs.Ahead = site.URL, time.Duration(w.Ahead)*time.Second
		handler = o.bound(site.URL+metadata, handler)
	}
	mux.Handle("/mcp", handler)

	// The browser of this machine notes what it is to open.
	browser := "#!/bin/sh\nprintf %s \"$1\" > '" + h.dir + "/opening' && mv '" + h.dir + "/opening' '" + h.dir + "/opened'\n"
	require.NoError(h.t, os.MkdirAll(filepath.Join(h.dir, "bin"), 0o700))
	require.NoError(h.t, os.WriteFile(filepath.Join(h.dir, "bin", "xdg-open"), []byte(browser), 0o700))
	file, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"hosted": map[string]string{"url": o.url}}})
	require.NoError(h.t, err)
	require.NoError(h.t, os.WriteFile(o.config, file, 0o600))
	o.env = append(os.Environ(), "HOME="+h.dir, "XDG_CONFIG_HOME=", "XDG_CACHE_HOME=", "PATH="+h.dir+"/bin:"+os.Getenv("PATH"))
	return o
}

// move has tokens come from a new authorization server.
func (o *hosted) move(p provider) {
	o.t.Helper()
	p.Audience = o.url
	if p.AccessSeconds == 0 {
		p.AccessSeconds = 3600
	}
	p.Clients = append([]map[string]any{
		{"client_id": "given", "redirect_uris": []string{o.redirect}, "token_endpoint_auth_method": "none", "application_type": "native", "grant_types": []string{"authorization_code", "refresh_token"}},
		{"client_id": "resource", "client_secret": "secret of the resource", "redirect_uris": []string{}, "response_types": []string{}, "grant_types": []string{}},
	}, p.Clients...)
	o.use(o.newAuthority(p))
}

// use has tokens come from an authorization server.
func (o *hosted) use(a *authority) {
	o.moving.Lock()
	defer o.moving.Unlock()
	o.from = a
}

// authority returns where tokens come from.
func (o *hosted) authority() *authority {
	o.moving.Lock()
	defer o.moving.Unlock()
	return o.from
}

// introspect asks the authorization server about a token.
func (o *hosted) introspect(ctx context.Context, token string) (map[string]any, error) {
	return o.authority().post(ctx, "/token/introspection", url.Values{"token": {token}, "client_id": {"resource"}, "client_secret": {"secret of the resource"}})
}

// verify asks the authorization server whether a token is valid, and for this server. The user is the client, if there is no person.
func (o *hosted) verify(ctx context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	said, err := o.introspect(ctx, token)
	if err != nil {
		return nil, err
	}
	_, bound := said["cnf"]
	if _, refused := o.refused.Load(token); refused || said["active"] != true || said["aud"] != o.url || bound != (o.proofs != nil) {
		return nil, auth.ErrInvalidToken
	}
	user, person := said["sub"].(string)
	if !person {
		user = said["client_id"].(string)
	}
	return &auth.TokenInfo{UserID: user, Scopes: strings.Fields(said["scope"].(string)), Expiration: time.Unix(int64(said["exp"].(float64)), 0)}, nil
}

// bound passes requests on whose token is bound to the key of their proof. It refuses the others with a challenge for such a token.
func (o *hosted) bound(metadata string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refuse := func(code string) {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`DPoP error=%q, algs="ES256", resource_metadata=%q, scope="mcp"`, code, metadata))
			http.Error(w, code, http.StatusUnauthorized)
		}
		w.Header().Set("Date", time.Now().Add(o.proofs.Ahead).UTC().Format(http.TimeFormat))
		token, is := strings.CutPrefix(r.Header.Get("Authorization"), "DPoP ")
		said, err := o.introspect(r.Context(), token)
		if err != nil || !is || said["active"] != true {
			refuse("invalid_token")
			return
		}
		thumbprint, code := o.proofs.Check(w, r, token)
		bound, _ := said["cnf"].(map[string]any)
		switch {
		case code != "":
			refuse(code)
		case bound["jkt"] != thumbprint:
			refuse(prooftest.IsInvalid)
		default:
			r.Header.Set("Authorization", "Bearer "+token) // which the SDK's check takes
			next.ServeHTTP(w, r)
		}
	})
}

// run runs the program to its end.
func (o *hosted) run(args ...string) (stdout, stderr string, status int) {
	o.t.Helper()
	var out, log bytes.Buffer
	cmd := exec.Command(o.program, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = o.env, &out, &log
	if err := cmd.Run(); err != nil {
		require.IsType(o.t, &exec.ExitError{}, err)
	}
	return out.String(), log.String(), cmd.ProcessState.ExitCode()
}

// call calls the tool.
func (o *hosted) call(flags ...string) (stdout, stderr string, status int) {
	o.t.Helper()
	return o.run(append(append([]string{"call", "--config", o.config}, flags...), "hosted", "who")...)
}

// login logs in, and returns what the program says. back changes the address that the browser comes back to.
func (o *hosted) login(back func(*url.URL), flags ...string) (stderr, page string, status int) {
	o.t.Helper()
	address, wait := o.startLogin(flags...)
	page = o.browse(address, back)
	stderr, status = wait()
	require.Contains(o.t, stderr, "\n"+address+"\n", "the address is printed as well")
	return stderr, page, status
}

// startLogin starts a login, and returns the address of which the browser is told.
func (o *hosted) startLogin(flags ...string) (address string, wait func() (stderr string, status int)) {
	o.t.Helper()
	var log bytes.Buffer
	server := o.url
	if slices.Contains(flags, "--config") {
		server = "hosted"
	}
	cmd := exec.Command(o.program, append([]string{"login", server}, flags...)...)
	cmd.Env, cmd.Stdout, cmd.Stderr = o.env, &log, &log
	require.NoError(o.t, cmd.Start())
	wait = func() (string, int) {
		cmd.Wait()
		return log.String(), cmd.ProcessState.ExitCode()
	}
	o.t.Cleanup(func() {
		cmd.Process.Kill()
		wait() // again, unless the test has failed
	})
	return o.opened(), wait
}

// opened returns the address that a browser was opened with.
func (o *hosted) opened() (address string) {
	o.t.Helper()
	file := filepath.Join(o.dir, "opened")
	o.eventually("a browser is opened", func() bool {
		data, err := os.ReadFile(file)
		address = string(data)
		return err == nil
	})
	require.NoError(o.t, os.Remove(file))
	return address
}

var (
	action = regexp.MustCompile(`<form[^>]* action="([^"]*)"`)
	hidden = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)"`)
)

// browse does what a person does in a browser: it logs in, consents, and comes back. It returns the last page.
func (h *harness) browse(address string, back func(*url.URL)) string {
	h.t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(h.t, err)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	browser := &http.Client{Jar: jar, Transport: transport, CheckRedirect: func(req *http.Request, _ []*http.Request) error {
		if back != nil && req.URL.Query().Has("code") {
			back(req.URL)
		}
		return nil
	}}
	resp, err := browser.Get(address)
	for range 5 {
		require.NoError(h.t, err)
		data, err := io.ReadAll(resp.Body)
		require.NoError(h.t, err)
		resp.Body.Close()
		form := action.FindSubmatch(data)
		if form == nil {
			return string(data)
		}
		fields := url.Values{"login": {account}, "password": {"any"}}
		for _, field := range hidden.FindAllSubmatch(data, -1) {
			fields.Set(string(field[1]), html.UnescapeString(string(field[2])))
		}
		to, err := resp.Request.URL.Parse(html.UnescapeString(string(form[1])))
		require.NoError(h.t, err)
		resp, err = browser.PostForm(to.String(), fields)
		require.NoError(h.t, err)
	}
	require.Fail(h.t, "the pages of the login do not end")
	return ""
}

// kept is what the program has written of a login.
type kept struct {
	Client struct{ ClientID string }
	Token  struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
	}
}

// logins returns the files of logins.
func (o *hosted) logins() []string {
	files, err := filepath.Glob(filepath.Join(o.dir, ".config", "mcpactor", "logins", "*"))
	require.NoError(o.t, err)
	var logins []string
	for _, file := range files {
		if !strings.HasSuffix(file, ".lock") {
			logins = append(logins, file)
		}
	}
	return logins
}

// kept returns the login that is kept.
func (o *hosted) kept() (k kept) {
	o.t.Helper()
	files := o.logins()
	require.Len(o.t, files, 1)
	data, err := os.ReadFile(files[0])
	require.NoError(o.t, err)
	require.NoError(o.t, json.Unmarshal(data, &k))
	return k
}

// revoke ends the login at the authorization server.
func (o *hosted) revoke() {
	o.t.Helper()
	_, err := o.authority().post(context.Background(), "/token/revocation", url.Values{"token": {o.kept().Token.Refresh}, "client_id": {o.kept().Client.ClientID}})
	require.NoError(o.t, err)
}

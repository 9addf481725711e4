//go:build real

package real

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
)

// account is the name of the person who logs in.
const account = "somebody"

// hosted is an MCP server that asks for a login at an authorization server, and the program mcpactor with a home of its own.
type hosted struct {
	*harness
	url      string // of the MCP server
	issuer   string
	redirect string // of the client "given"
	program  string
	config   string   // a file with the server
	env      []string // of the program
	server   *mcp.Server
	refused  sync.Map // access tokens that are valid, and that the MCP server refuses
}

// newHosted starts both servers. Access tokens last for some seconds.
func newHosted(t *testing.T, seconds int) *hosted {
	t.Helper()
	h := newHarness(t)
	o := &hosted{harness: h, program: h.mcpactor(), config: filepath.Join(h.dir, "servers.json")}
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
	script, err := filepath.Abs("servers/authorization.mjs")
	require.NoError(h.t, err)
	o.issuer = h.startRemote([]string{script}, map[string]string{"ACCESS_SECONDS": fmt.Sprint(seconds), "RESOURCE": o.url, "REDIRECT": o.redirect})

	o.server = mcp.NewServer(&mcp.Implementation{Name: "hosted", Version: "1"}, nil)
	mcp.AddTool(o.server, &mcp.Tool{Name: "who"}, func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: req.Extra.TokenInfo.UserID}}}, nil, nil
	})
	const metadata = "/.well-known/oauth-protected-resource/mcp"
	mux.Handle(metadata, auth.ProtectedResourceMetadataHandler(&oauthex.ProtectedResourceMetadata{
		Resource: o.url, AuthorizationServers: []string{o.issuer}, ScopesSupported: []string{"mcp"},
	}))
	protect := auth.RequireBearerToken(o.verify, &auth.RequireBearerTokenOptions{ResourceMetadataURL: site.URL + metadata, Scopes: []string{"mcp"}})
	mux.Handle("/mcp", protect(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return o.server }, nil)))

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

// post sends a form to the authorization server.
func (o *hosted) post(ctx context.Context, path string, form url.Values) (map[string]any, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.issuer+path, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var answer map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return answer, nil
}

// verify asks the authorization server whether a token is valid, and for this server.
func (o *hosted) verify(ctx context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	said, err := o.post(ctx, "/token/introspection", url.Values{"token": {token}, "client_id": {"resource"}, "client_secret": {"secret of the resource"}})
	if err != nil {
		return nil, err
	}
	if _, refused := o.refused.Load(token); refused || said["active"] != true || said["aud"] != o.url {
		return nil, auth.ErrInvalidToken
	}
	return &auth.TokenInfo{
		UserID: said["sub"].(string), Scopes: strings.Fields(said["scope"].(string)),
		Expiration: time.Unix(int64(said["exp"].(float64)), 0),
	}, nil
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
func (o *hosted) browse(address string, back func(*url.URL)) string {
	o.t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(o.t, err)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	browser := &http.Client{Jar: jar, Transport: transport, CheckRedirect: func(req *http.Request, _ []*http.Request) error {
		if back != nil && !strings.HasPrefix(req.URL.String(), o.issuer) {
			back(req.URL)
		}
		return nil
	}}
	resp, err := browser.Get(address)
	for range 5 {
		require.NoError(o.t, err)
		data, err := io.ReadAll(resp.Body)
		require.NoError(o.t, err)
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
		require.NoError(o.t, err)
		resp, err = browser.PostForm(to.String(), fields)
		require.NoError(o.t, err)
	}
	require.Fail(o.t, "the pages of the login do not end")
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
	_, err := o.post(context.Background(), "/token/revocation", url.Values{"token": {o.kept().Token.Refresh}, "client_id": {o.kept().Client.ClientID}})
	require.NoError(o.t, err)
}

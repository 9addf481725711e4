//go:build linux

package bridge

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/messages"
)

// Whatever only a change of the configuration can mend is said with its remedy.
func TestPermanentMistakeNamesItsRemedy(t *testing.T) {
	serve := func(handle http.HandlerFunc) *mcpbridge.Server {
		s := httptest.NewServer(handle)
		t.Cleanup(s.Close)
		return &mcpbridge.Server{URL: s.URL + "/mcp"}
	}
	says := func(status int, kind, body string) *mcpbridge.Server {
		return serve(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			w.Write([]byte(body))
		})
	}
	with := func(srv *mcpbridge.Server, change func(*mcpbridge.Server)) *mcpbridge.Server {
		change(srv)
		return srv
	}
	encrypted := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(encrypted.Close)
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte("no program"), 0o600))
	script := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(script, []byte("no program"), 0o700))
	const (
		endpoint = "check its URL: is it the server's MCP endpoint?"
		program  = "check command: it is looked up in PATH, or is the path of a program that may be executed"
		none     = "give credentials: a header such as Authorization, or Auth in Go"
		stdio    = "check its command and arguments: is this an MCP server that speaks over stdio?"
		ended    = "check its command, arguments and environment: it ended before it spoke MCP"
	)
	covered := map[string]bool{}
	for name, c := range map[string]struct {
		srv  *mcpbridge.Server
		want string
	}{
		"no such command":      {&mcpbridge.Server{Command: "no-such-command"}, program},
		"no such path":         {&mcpbridge.Server{Command: "/no/such/command"}, program},
		"not executable":       {&mcpbridge.Server{Command: text}, program},
		"no program":           {&mcpbridge.Server{Command: script}, program},
		"arguments too":        {&mcpbridge.Server{Command: "no-such-command -y @x/mcp"}, "put the arguments into args: command is the name or the path of the program alone"},
		"prints and ends":      {&mcpbridge.Server{Command: "echo", Args: []string{"hello"}}, ended},
		"complains and ends":   {&mcpbridge.Server{Command: "sh", Args: []string{"-c", "echo missing API_KEY >&2; exit 1"}}, ended},
		"ends with a status":   {server("die"), ended},
		"prints what it reads": {&mcpbridge.Server{Command: "cat"}, stdio},
		"no such folder":       {&mcpbridge.Server{Command: "cat", Dir: "/no/such/folder"}, "check the working directory (Dir, or cwd in a file)"},
		"a file, no folder":    {&mcpbridge.Server{Command: "cat", Dir: text}, "check the working directory (Dir, or cwd in a file)"},
		"no records":           {&mcpbridge.Server{Command: "cat", Cleanup: mcpbridge.Cleanup{Command: "true", Records: text}}, "check the directory for the records of the cleanup (Records, or records in a file): only its user may access it"},
		"no such host":         {&mcpbridge.Server{URL: "http://nowhere.invalid"}, "check the host in its URL"},
		"unknown authority":    {&mcpbridge.Server{URL: encrypted.URL}, "check the certificate of the server: its host is that of its URL, and its authority is one that the system trusts, or HTTPClient in Go"},
		"not encrypted":        {with(says(200, "text/plain", ""), func(s *mcpbridge.Server) { s.URL = strings.Replace(s.URL, "http", "https", 1) }), "the server does not encrypt: its URL has to begin with http"},
		"404":                  {says(404, "text/plain", "not found"), endpoint},
		"405":                  {says(405, "text/plain", ""), endpoint},
		"501":                  {says(501, "text/html", "<html>"), endpoint},
		"410":                  {says(410, "text/html", "<html>"), endpoint},
		"a web page":           {says(200, "text/html", "<html>"), endpoint},
		"JSON of another kind": {says(200, outbound.TypeJSON, `{"ok":true}`), endpoint},
		"400 of another kind":  {says(400, "text/plain", "Bad Request"), endpoint},
		"another origin": {serve(func(w http.ResponseWriter, req *http.Request) {
			http.Redirect(w, req, "http://other.invalid/", http.StatusPermanentRedirect)
		}), "give the URL of the server itself"},
		"to a login page":  {serve(func(w http.ResponseWriter, req *http.Request) { http.Redirect(w, req, "/login", http.StatusFound) }), "give the URL of the server itself"},
		"401":              {says(401, "text/plain", ""), none},
		"403":              {says(403, "text/html", "<html>"), none},
		"401 with headers": {with(says(401, "", ""), func(s *mcpbridge.Server) { s.Headers = map[string]string{"Authorization": "Bearer x"} }), "check the credentials in its headers"},
		"401 with Auth":    {with(says(401, "", ""), func(s *mcpbridge.Server) { s.Auth = noAuth(nil) }), "log in, or give other credentials: a header, or Auth in Go"},
		"Auth without any": {with(says(401, "", ""), func(s *mcpbridge.Server) { s.Auth = noAuth(errors.New("nobody has logged in")) }), "log in, or give other credentials: a header, or Auth in Go"},
		"its own remedy": {with(says(401, "", ""), func(s *mcpbridge.Server) {
			s.Auth = noAuth(&mcpbridge.Error{Detail: "nobody has logged in", Remedy: "run: log-in"})
		}), "run: log-in"},
		"of a refusal": {with(says(401, "", ""), func(s *mcpbridge.Server) {
			s.Auth = refusing{&mcpbridge.Error{Detail: "it has expired", Remedy: "run: log-in"}}
		}), "run: log-in"},
		"407":                {says(407, "", ""), "the proxy wants credentials: put them into the URL in HTTP_PROXY or HTTPS_PROXY"},
		"no MCP on stdout":   {server("babbler"), stdio},
		"unknown protocol":   {server("future"), "update the server or this program, or set protocolVersion in a file"},
		"SSE, but a page":    {with(says(200, "text/html", "<html>"), func(s *mcpbridge.Server) { s.Transport = mcpbridge.TransportSSE }), endpoint},
		"SSE, but not found": {with(says(404, "text/plain", ""), func(s *mcpbridge.Server) { s.Transport = mcpbridge.TransportSSE }), endpoint},
	} {
		t.Run(name, func(t *testing.T) {
			c.srv.Name, c.srv.ProtocolVersion = "test", protocolLegacy
			_, e := dialTest(t, c.srv)
			require.NotNil(t, e)
			require.Equal(t, c.want, e.Remedy, "%v", e)
			require.Zero(t, e.RetryAfter)
			require.NotContains(t, e.Detail, e.Remedy)
			require.True(t, strings.HasSuffix(e.Error(), "; "+e.Remedy))
			covered[e.Remedy] = true
		})
	}
	covered["set protocolVersion to 2025-11-25, or let the tool return InputRequests"] = true // by the next test
	for _, mistake := range remedies {
		require.True(t, covered[mistake.remedy], "no test has the mistake: %s", mistake.remedy)
	}
}

// A process that ends at once may end before, while or after the first request is written.
func TestProcessThatEndsBeforeItSpeaksIsQuoted(t *testing.T) {
	for name, srv := range map[string]*mcpbridge.Server{
		"stdout": {Command: "echo", Args: []string{"hello"}}, "no end of line": {Command: "printf", Args: []string{"hello"}},
		"stderr": {Command: "sh", Args: []string{"-c", "echo hello >&2; exit 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			srv.Name = "test"
			for range 10 {
				_, e := dialTest(t, srv)
				require.NotNil(t, e)
				require.Equal(t, "hello", e.Quote, "%v", e)
			}
		})
	}
}

// The URL of an open session is right, whatever answers there for a while.
func TestRefusalOfAnOpenSessionDoesNotBlameTheURL(t *testing.T) {
	s := newSessions(says(404, "", ""))
	c, _ := s.dial(t)
	s.answers(says(501, "text/html", "<html>"), nil)
	e, _ := do(c)
	require.Equal(t, 501, e.Status)
	require.Empty(t, e.Remedy)
	s.answers(nil, nil)
	require.NoError(t, c.Close(t.Context()))
}

func TestProcessThatDoesNotAnswerIsNamedWhenTheDialTimesOut(t *testing.T) {
	b := New([]mcpbridge.Server{{Name: "x", Command: "sh", Args: []string{"-c", "echo waits for a login >&2; exec sleep 100"}}}, nil)
	defer b.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := b.Dial(ctx, dial.Request{Key: messages.Key{Server: "x"}, Down: func(*mcpbridge.Error) {}})
	require.Equal(t, "timed out while connecting: the process runs, and does not answer", mcpbridge.AsError(err).Detail)
	require.Equal(t, "waits for a login", mcpbridge.AsError(err).Quote)
}

// In memory and over stdio, a server of the Go SDK speaks 2026-07-28, in which servers send no requests.
func TestToolThatElicitsAsBefore20260728FailsWithTheRemedy(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "x", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "ask", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		_, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "who?"})
		return &mcp.CallToolResult{}, err
	})
	for version, want := range map[string]string{"": "set protocolVersion to 2025-11-25, or let the tool return InputRequests", protocolLegacy: ""} {
		b := New([]mcpbridge.Server{{Name: "x", InMemory: server, ProtocolVersion: version}}, &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{}})
		defer b.Close()
		c, err := b.Dial(t.Context(), dial.Request{
			Key: messages.Key{Server: "x"}, Down: func(*mcpbridge.Error) {},
			Ask: func(context.Context, messages.Request, messages.Operation) messages.Answer {
				return &messages.Elicited{Result: &mcp.ElicitResult{Action: "accept"}}
			},
		})
		require.NoError(t, err)
		_, err = c.Do(t.Context(), &messages.CallTool{Params: &mcp.CallToolParams{Name: "ask"}})
		if want == "" {
			require.NoError(t, err)
		} else {
			require.Equal(t, want, mcpbridge.AsError(err).Remedy, "%v", err)
		}
		require.NoError(t, c.Close(context.Background()))
	}
}

// What may pass by itself has no remedy.
func TestOutageHasNoRemedy(t *testing.T) {
	says := func(status int, body string) *mcpbridge.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", outbound.TypeJSON)
			w.WriteHeader(status)
			w.Write([]byte(body))
		}))
		t.Cleanup(s.Close)
		return &mcpbridge.Server{URL: s.URL}
	}
	for name, srv := range map[string]*mcpbridge.Server{
		"nobody listens": {URL: "http://127.0.0.1:1"}, "500": says(500, ""), "502": says(502, ""), "503": says(503, ""), "429": says(429, ""),
		"an error": says(400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}`),
	} {
		t.Run(name, func(t *testing.T) {
			srv.Name, srv.ProtocolVersion = "test", protocolLegacy
			_, e := dialTest(t, srv)
			require.NotNil(t, e)
			require.Empty(t, e.Remedy, "%v", e)
		})
	}
}

// noAuth has credentials that are refused, or none.
func noAuth(err error) mcpbridge.Authenticator {
	return mcpbridge.AuthenticatorFunc(func(context.Context, messages.Key) (mcpbridge.Credentials, error) { return nothing{err}, nil })
}

// refusing are credentials that are refused, and cannot be refreshed.
type refusing struct{ err error }

func (r refusing) Credentials(context.Context, messages.Key) (mcpbridge.Credentials, error) {
	return r, nil
}

func (refusing) Headers(context.Context) (http.Header, error) { return http.Header{}, nil }

func (r refusing) Refresh(context.Context, *http.Request, *http.Response) error { return r.err }

type nothing struct{ err error }

func (n nothing) Headers(context.Context) (http.Header, error) { return http.Header{}, n.err }

func (n nothing) Refresh(context.Context, *http.Request, *http.Response) error {
	return errors.New("the refresh token is not valid any more")
}

// A proxy that buffers keeps the header of the response as well.
func TestEventStreamThatBringsNoBytesIsNamedWhenTheDialTimesOut(t *testing.T) {
	const want = "timed out while connecting: the event stream brings no bytes; does a proxy buffer it? (nginx: proxy_buffering off)"
	for name, c := range map[string]struct {
		srv     mcpbridge.Server
		flushes bool
		want    string
	}{
		"HTTP+SSE":           {mcpbridge.Server{Transport: mcpbridge.TransportSSE}, false, want},
		"HTTP+SSE, a header": {mcpbridge.Server{Transport: mcpbridge.TransportSSE}, true, want},
		"tried as the older": {mcpbridge.Server{}, false, "405 Method Not Allowed; over HTTP+SSE: " + want},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if req.Method != http.MethodGet {
					w.WriteHeader(http.StatusMethodNotAllowed)
					return
				}
				w.Header().Set("Content-Type", outbound.TypeSSE)
				if c.flushes {
					w.(http.Flusher).Flush()
				}
				<-req.Context().Done()
			}))
			defer s.Close()
			c.srv.Name, c.srv.URL = "x", s.URL
			b := New([]mcpbridge.Server{c.srv}, nil)
			defer b.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			_, err := b.Dial(ctx, dial.Request{Key: messages.Key{Server: "x"}, Down: func(*mcpbridge.Error) {}})
			e := mcpbridge.AsError(err)
			require.Equal(t, mcpbridge.Unavailable, e.Class)
			require.Equal(t, c.want, e.Detail)
		})
	}
}

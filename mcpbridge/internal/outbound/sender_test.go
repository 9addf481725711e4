package outbound

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/bridgetest"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/transport"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// out returns the sender of a session whose requests are answered so.
func out(t testing.TB, config mcpbridge.Server, base http.RoundTripper) *Sender {
	t.Helper()
	if config.URL == "" {
		config.URL = "http://test/mcp"
	}
	client := NewClient(&config)
	client.transport = base
	return NewSender(client, &transport.Session{Cut: context.Background()})
}

// H-F1, H-C7: a redirect on the same origin is followed. Any other redirect is an error
// that names both origins.
func TestRedirectsOnTheSameOriginAreFollowed(t *testing.T) {
	const body = `{"jsonrpc":"2.0","method":"x"}`
	for name, c := range map[string]struct {
		method string
		status int
		to     string
		want   string // the URL; else what is said
	}{
		"POST, 307":                 {"POST", 307, "/mcp/", "http://test/mcp/"},
		"POST, 308":                 {"POST", 308, "http://test:80/v2?a=b", "http://test:80/v2?a=b"},
		"POST, 301":                 {"POST", 301, "HTTP://TEST/mcp/", "http://TEST/mcp/"},
		"POST, 302, slash":          {"POST", 302, "/mcp/", "http://test/mcp/"},
		"POST, 302, page":           {"POST", 302, "/login", "302 Found: a POST is not sent again after this status"},
		"POST, 303":                 {"POST", 303, "/mcp/", "303 See Other: a POST is not sent again"},
		"POST, no location":         {"POST", 307, "", "307 Temporary Redirect: it does not say where to"},
		"POST, malformed":           {"POST", 307, "http://[hush", "307 Temporary Redirect: where to is malformed"},
		"POST, user":                {"POST", 307, "http://me:hush@test/mcp/", "http://test/mcp/"},
		"GET, 303":                  {"GET", 303, "/other", "http://test/other"},
		"GET, 302":                  {"GET", 302, "other", "http://test/other"},
		"DELETE, 301":               {"DELETE", 301, "/mcp/", "http://test/mcp/"},
		"DELETE, 302, page":         {"DELETE", 302, "/login", "302 Found: a DELETE is not sent again"},
		"POST, another host":        {"POST", 307, "http://other/hush", "http://test redirects to http://other, which is another origin: nothing is sent there"},
		"POST, another port":        {"POST", 308, "http://test:81/", "http://test redirects to http://test:81, which is another origin"},
		"POST, another scheme":      {"POST", 301, "https://test/", "http://test redirects to https://test, which is another origin"},
		"GET, another host":         {"GET", 302, "//other:80", "http://test redirects to http://other, which is another origin"},
		"DELETE, no host at all":    {"DELETE", 307, "http:///x", "http://test redirects to http://, which is another origin"},
		"POST, another scheme kind": {"POST", 307, "javascript:hush", "http://test redirects to javascript://, which is another origin"},
	} {
		t.Run(name, func(t *testing.T) {
			var hops []*http.Request
			s := out(t, mcpbridge.Server{}, bridgetest.Answering(func(req *http.Request) (*http.Response, error) {
				data, err := io.ReadAll(req.Body)
				require.NoError(t, err)
				require.Equal(t, body, string(data))
				if hops = append(hops, req); len(hops) == 1 {
					return bridgetest.Says(c.status, "text/html", "<hush>", "Location: "+c.to)(req)
				}
				return bridgetest.Says(200, "", "there")(req)
			}))
			req := httptest.NewRequest(c.method, "http://test/mcp", nil)
			req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(body)), nil }
			req.Body, _ = req.GetBody()
			req.Header.Set(HeaderSession, bridgetest.SessionID)
			resp, err := s.Send(req)
			require.NoError(t, err)
			said, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			if !strings.Contains(c.want, " ") {
				require.Equal(t, "there", string(said))
				require.Len(t, hops, 2)
				require.Equal(t, c.method, hops[1].Method)
				require.Equal(t, c.want, hops[1].URL.String())
				require.Equal(t, bridgetest.SessionID, hops[1].Header.Get(HeaderSession))
				return
			}
			require.Len(t, hops, 1)
			e := wire.Refusal{Status: resp.StatusCode, Header: resp.Header, Body: said, OfSession: true}.Judge()
			require.Equal(t, mcpbridge.Protocol, e.Class)
			require.Contains(t, e.Detail, c.want)
			require.NotContains(t, e.Detail, "hush")
			require.Empty(t, resp.Header.Get("Location"))
		})
	}
}

func TestRedirectsAreBounded(t *testing.T) {
	hops := 0
	s := out(t, mcpbridge.Server{}, bridgetest.Answering(func(req *http.Request) (*http.Response, error) {
		hops++
		return bridgetest.Says(307, "", "", fmt.Sprint("Location: /", hops))(req)
	}))
	resp, err := s.Send(httptest.NewRequest("GET", "http://test/mcp", nil))
	require.NoError(t, err)
	said, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, "stopped after 10 redirects", string(said))
	require.Equal(t, 11, hops)
}

func TestCheckRedirectOfTheHTTPClientIsHonoured(t *testing.T) {
	for name, c := range map[string]struct {
		check func(req *http.Request, via []*http.Request) error
		want  string
	}{
		"follows": {func(*http.Request, []*http.Request) error { return nil }, "there"},
		"last":    {func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, "CheckRedirect of the HTTP client does not follow it"},
		"refuses": {func(*http.Request, []*http.Request) error { return errors.New("never") }, "CheckRedirect of the HTTP client refuses: never"},
		"panics":  {func(*http.Request, []*http.Request) error { panic("oops") }, "CheckRedirect of the HTTP client refuses: internal: panic: oops"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			s := out(t, mcpbridge.Server{HTTPClient: &http.Client{CheckRedirect: func(req *http.Request, via []*http.Request) error {
				asked = append(asked, via[0].URL.Path+" "+req.URL.Path)
				return c.check(req, via)
			}}}, bridgetest.Answering(func(req *http.Request) (*http.Response, error) {
				if req.URL.Path == "/there" {
					return bridgetest.Says(200, "", "there")(req)
				}
				return bridgetest.Says(307, "", "", "Location: /there")(req)
			}))
			resp, err := s.Send(httptest.NewRequest("GET", "http://test/mcp", nil))
			require.NoError(t, err)
			said, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Equal(t, c.want, string(said))
			require.Equal(t, []string{"/mcp /there"}, asked)
		})
	}
	// Nor can it lead to another origin.
	s := out(t, mcpbridge.Server{HTTPClient: &http.Client{CheckRedirect: func(req *http.Request, _ []*http.Request) error {
		req.URL.Host = "other"
		return nil
	}}}, bridgetest.Says(307, "", "", "Location: /there"))
	_, err := s.Send(httptest.NewRequest("GET", "http://test/mcp", nil))
	require.ErrorContains(t, err, "http://test names http://other for requests, which is another origin: nothing is sent there")
}

func TestOriginsAreComparedAsOneReadsThem(t *testing.T) {
	for text, want := range map[string]string{
		"http://a/x": "http://a", "HTTP://A:80": "http://a", "https://a:443/": "https://a", "https://a:80": "https://a:80",
		"http://[::1]:80": "http://[::1]", "http://[::1]:8080": "http://[::1]:8080", "http://u:p@a": "http://a", "http://a:": "http://a",
	} {
		u, err := url.Parse(text)
		require.NoError(t, err)
		require.Equal(t, want, originOf(u))
	}
}

// A panic of a transport may quote what it was given.
func TestPanicOfATransportHasNoSecrets(t *testing.T) {
	const secret = "hush-hush-hush"
	s := out(t, mcpbridge.Server{Headers: map[string]string{"X-Token": secret}}, bridgetest.Answering(func(req *http.Request) (*http.Response, error) {
		panic(strings.Repeat("x", redact.MaxDetail-15) + req.Header.Get("X-Token"))
	}))
	_, err := s.Send(httptest.NewRequest("GET", "http://test/mcp", nil))
	e := mcpbridge.AsError(err)
	require.Equal(t, mcpbridge.Internal, e.Class)
	require.NotContains(t, e.Detail, "hush")
}

// H-E1: whatever the redirects of a server are, nothing of a session is sent to another
// origin, and no POST or DELETE becomes a GET.
func FuzzRedirects(f *testing.F) {
	const body = "the arguments"
	for _, to := range []string{
		"/mcp/", "//other/", `\\other\`, `/\other`, "http://other", "https://test", "http://test:81/", "http://test@other/", "http://test%00@other",
		"http://other#@test/", "http://test\t.other/", "http://TEST", "http://[::1]/", "http:other", "http:///", "?x", "", "ftp://test", "http://test.", "http://test:80@other:80/",
	} {
		f.Add("POST", uint8(0), "/a", uint8(3), to, uint8(1), "/c")
		f.Add("GET", uint8(2), to, uint8(3), to, uint8(4), to)
		f.Add("DELETE", uint8(4), to, uint8(0), "/b", uint8(0), to)
	}
	statuses := []int{301, 302, 303, 307, 308}
	f.Fuzz(func(t *testing.T, method string, s1 uint8, to1 string, s2 uint8, to2 string, s3 uint8, to3 string) {
		if method != "POST" && method != "GET" && method != "DELETE" {
			return
		}
		hops, locations := 0, []string{to1, to2, to3}
		s := out(t, mcpbridge.Server{URL: "http://user:password@test/mcp", Headers: map[string]string{"X-Token": "hush"}}, bridgetest.Answering(func(req *http.Request) (*http.Response, error) {
			// What net/http connects to, and says that it wants.
			require.Equal(t, "http", req.URL.Scheme)
			require.Equal(t, "test", strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(req.URL.Host, "80"), ":")), "%s", req.URL)
			require.Contains(t, []string{"", "test"}, req.Host)
			require.Equal(t, method, req.Method)
			data, err := io.ReadAll(req.Body)
			require.NoError(t, err)
			require.Equal(t, body, string(data))
			status := statuses[int([]uint8{s1, s2, s3}[hops%3])%len(statuses)]
			resp := Respond(req, status, "", nil)
			resp.Header.Set("Location", locations[hops%3])
			resp.Header.Set("Set-Cookie", "at=hush; Domain=test")
			hops++
			return resp, nil
		}))
		req := httptest.NewRequest(method, "http://user:password@test/mcp", nil)
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader([]byte(body))), nil }
		req.Body, _ = req.GetBody()
		req.Header.Set(HeaderSession, bridgetest.SessionID)
		resp, err := s.Send(req)
		require.NoError(t, err)
		require.LessOrEqual(t, hops, 1+maxRedirects)
		said, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NotEmpty(t, said)
	})
}

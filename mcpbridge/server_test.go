package mcpbridge

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

// noLogin is a handler that cannot log in.
type noLogin struct{ auth.OAuthHandler }

func TestValidateNamesTheField(t *testing.T) {
	for want, srv := range map[string]Server{
		"name: \"\" is not a name":                {Command: "x"},
		"name: \"a b\" is not a name":             {Name: "a b", Command: "x"},
		"command: is empty, and so are url":       {Name: "a"},
		"command: set only one":                   {Name: "a", Command: "x", URL: "http://x"},
		"transport: \"pigeon\" is none of":        {Name: "a", URL: "http://x", Transport: "pigeon"},
		"url: scheme \"ftp\" is none of":          {Name: "a", URL: "ftp://x"},
		"url: has no host":                        {Name: "a", URL: "http:///mcp"},
		"url: is malformed":                       {Name: "a", URL: "http://x\x7f"},
		"httpClient: has a Timeout":               {Name: "a", URL: "http://x", HTTPClient: &http.Client{Timeout: time.Second}},
		"maxResult: -2 is negative":               {Name: "a", Command: "x", MaxResult: -2},
		"keepAlive: -1s is negative":              {Name: "a", Command: "x", KeepAlive: -time.Second},
		"auth: is for servers with a url":         {Name: "a", Command: "x", Auth: OAuth(&noLogin{})},
		"stderr: is for servers with a command":   {Name: "a", URL: "http://x", Stderr: discard},
		"inheritEnv: is for servers with a":       {Name: "a", URL: "http://x", InheritEnv: true},
		"noCookies: is set, but httpClient has a": {Name: "a", URL: "http://x", NoCookies: true, HTTPClient: &http.Client{Jar: jar{}}},
		"httpClient: has a Jar":                   {Name: "a", URL: "http://x", Auth: OAuth(&noLogin{}), HTTPClient: &http.Client{Jar: jar{}}},
	} {
		require.ErrorContains(t, srv.Validate(), want)
	}
	for _, srv := range []Server{
		{Name: "a", Command: "x"},
		{Name: "a.b-C_9", URL: "https://x/mcp?token=y", Transport: TransportSSE},
		{Name: "a", URL: "https://x", Auth: OAuth(&noLogin{}), HTTPClient: &http.Client{}},
		{Name: "a", URL: "https://x", HTTPClient: &http.Client{Jar: jar{}}},
		{Name: "a", URL: "https://x", Headers: map[string]string{"authorization": "Bearer \tü!", "X-A_b.c~1": ""}},
		{Name: "a", InMemory: mcp.NewServer(&mcp.Implementation{}, nil), MaxResult: -1},
	} {
		require.NoError(t, srv.Validate())
	}
}

func TestValidateNamesWhatNoProcessCanHave(t *testing.T) {
	const secret = "hush-hush"
	for want, srv := range map[string]Server{
		"env.: is no name of a variable":    {Command: "x", Env: map[string]string{"": secret}},
		"env.A=…: is no name of a variable": {Command: "x", Env: map[string]string{"A=" + secret: ""}},
		"env.A B: is no name of a variable": {Command: "x", Env: map[string]string{"A\x00B": secret}},
		"env.TOKEN: the value has a NUL":    {Command: "x", Env: map[string]string{"A": "1", "TOKEN": secret + "\x00"}},
		"args[1]: has a NUL character":      {Command: "x", Args: []string{"a", secret + "\x00"}},
		"dir: has a NUL character":          {Command: "x", Dir: "/" + secret + "\x00"},
		"command: has a NUL character":      {Command: "x\x00" + secret},
	} {
		srv.Name = "a"
		err := srv.Validate()
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "hush")
	}
	srv := Server{Name: "a", Command: "x", Args: []string{"", "ü\n"}, Env: map[string]string{"A": "", "b(c)": "=\n"}}
	require.NoError(t, srv.Validate())
}

type jar struct{ http.CookieJar }

func TestValidateNamesTheHeaderAndNotItsValue(t *testing.T) {
	const secret = "hush-hush"
	for want, headers := range map[string]map[string]string{
		"headers.: is no name of a header":                        {"": secret},
		"headers.X A: is no name of a header":                     {"X A": secret},
		"headers.X Y: is no name of a header":                     {"X\nY": secret},
		"headers.Ä: is no name of a header":                       {"Ä": secret},
		"headers.X-A: the value has a control character":          {"X-A": secret + "\n"},
		"headers.X-B: the value has a control character":          {"X-A": secret, "X-B": "\x00" + secret, "X-C": "\r"},
		"headers.X-D: the value has a control character":          {"X-D": secret + "\x7f"},
		"headers.mcp-session-id: is set by the connection itself": {"mcp-session-id": secret},
		"headers.x-a: is there twice":                             {"X-A": secret, "x-a": secret},
	} {
		srv := Server{Name: "a", URL: "http://x", Headers: headers}
		err := srv.Validate()
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "hush")
	}
	for _, name := range []string{
		"Mcp-Session-Id", "MCP-Protocol-Version", "Last-Event-ID", "Mcp-Method", "Mcp-Name", "Mcp-Param-City", "Accept", "Content-Type",
		"Connection", "Content-Length", "Host", "Trailer", "Transfer-Encoding", "Idempotency-Key", "X-Idempotency-Key",
	} {
		srv := Server{Name: "a", URL: "http://x", Headers: map[string]string{name: secret}}
		require.ErrorContains(t, srv.Validate(), "headers."+name+": is set by the connection itself: leave it out")
	}
}

// H-E9: credentials are sent over https, to a loopback address, or if the configuration
// allows it.
func TestCredentialsOverPlainHTTPAreRefusedUnlessAllowed(t *testing.T) {
	header := map[string]string{"X-Tenant": "hush-hush"}
	for want, srv := range map[string]Server{
		"headers: they would be sent to 10.0.0.1 without encryption": {URL: "http://10.0.0.1/mcp", Headers: header},
		"headers: they would be sent to Example.com":                 {URL: "HTTP://Example.com:80", Headers: header, Transport: TransportSSE},
		"headers: they would be sent to localhost.example.com":       {URL: "http://localhost.example.com", Headers: header},
		"headers: they would be sent to fe80::1":                     {URL: "http://[fe80::1]:80", Headers: header},
		"auth: its credentials would be sent to x":                   {URL: "http://x", Auth: OAuth(&noLogin{})},
		"url: its user would be sent to x":                           {URL: "http://user:hush-hush@x"},
		"url: its user would be sent to y":                           {URL: "http://hush-hush@y"},
	} {
		srv.Name = "a"
		err := srv.Validate()
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "use https, or set insecureCredentials where the network is trusted")
		require.NotContains(t, err.Error(), "hush")
		allowed := srv
		allowed.InsecureCredentials = true
		require.NoError(t, allowed.Validate())
		require.False(t, srv.Same(&allowed))
	}
	for _, host := range []string{"localhost", "LOCALHOST.:80", "mcp.localhost", "127.0.0.1", "127.8.8.8:1", "[::1]", "[::ffff:127.0.0.1]"} {
		srv := Server{Name: "a", URL: "http://user:hush-hush@" + host, Headers: header, Auth: OAuth(&noLogin{})}
		require.NoError(t, srv.Validate(), host)
	}
	require.NoError(t, (&Server{Name: "a", URL: "http://x"}).Validate(), "there are none")
	require.NoError(t, (&Server{Name: "a", URL: "https://x", Headers: header, Auth: OAuth(&noLogin{})}).Validate())
}

// values is an authenticator that cannot be compared, though its type can.
type values struct{ Authenticator }

func TestServersWithTheSameAuthenticatorAreTheSame(t *testing.T) {
	one, two := OAuth(&noLogin{}), OAuth(&noLogin{})
	f := AuthenticatorFunc(func(context.Context, messages.Key) (Credentials, error) { return nil, nil })
	for _, c := range []struct {
		a, b Authenticator
		same bool
	}{
		{nil, nil, true},
		{one, one, true},
		{values{one}, values{one}, true},
		{one, nil, false},
		{nil, one, false},
		{one, two, false},
		{values{one}, values{two}, false},
		{one, values{one}, false},
		{f, f, false},
		{values{f}, values{f}, false},
		{one, f, false},
	} {
		a, b := Server{Name: "a", URL: "http://x", Auth: c.a}, Server{Name: "a", URL: "http://x", Auth: c.b}
		require.Equal(t, c.same, a.Same(&b))
		b.URL = "http://y"
		require.False(t, a.Same(&b))
	}
}

// The writer of stderr changes nothing about an open session: a reload that brings another function keeps the first one.
func TestServersWithAnotherWriterOfStderrAreTheSame(t *testing.T) {
	one, two, none := Server{Command: "x", Stderr: discard}, Server{Command: "x"}, Server{Command: "x"}
	two.Stderr = func(key messages.Key) io.Writer { return discard(key) }
	require.True(t, one.Same(&two))
	require.False(t, one.Same(&none))
}

// A configuration that inherits is another one.
func TestInheritingIsAnotherConfiguration(t *testing.T) {
	one, other := Server{Name: "a", Command: "x"}, Server{Name: "a", Command: "x", InheritEnv: true}
	require.False(t, one.Same(&other))
	require.NoError(t, other.Validate())
}

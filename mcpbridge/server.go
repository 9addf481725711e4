package mcpbridge

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/visible"
)

// The transports of a [Server] with a URL.
const (
	// TransportHTTP is streamable HTTP, the default.
	TransportHTTP = "http"
	// TransportSSE is the HTTP+SSE transport of protocol 2024-11-05.
	TransportSSE = "sse"
)

// schemes are the URL schemes of each transport. The empty transport is TransportHTTP. A scheme
// that encrypts ends with an s.
var schemes = map[string][]string{
	"":            {"http", "https"},
	TransportHTTP: {"http", "https"},
	TransportSSE:  {"http", "https"},
}

// DefaultMaxResult is the default of [Server.MaxResult]: 64 MiB.
const DefaultMaxResult = 64 << 20

// Server is the configuration of one MCP server. Exactly one of Command, URL
// and InMemory is set. It is read-only once the supervisor was started.
type Server struct {
	// Name is what [messages.Key] calls the server. Letters, digits, dots,
	// dashes and underscores.
	Name string

	// Command is the program of a stdio server, looked up in PATH. Each
	// session is a process of its own, in a process group of its own.
	Command string
	// Args are the arguments of Command.
	Args []string
	// Env is added to what Command inherits of the environment of our own process:
	// the variables that programs, package managers, proxies and certificates need,
	// which docs/configuration.md lists, and no others. Secrets in it are never
	// logged.
	Env map[string]string
	// InheritEnv passes on the whole environment of our own process, with the
	// secrets in it. Defaults to false.
	InheritEnv bool
	// Dir is the working directory of Command. Defaults to our own.
	Dir string

	// URL is the endpoint of an HTTP server.
	URL string
	// Transport is how to talk to URL: [TransportHTTP] or [TransportSSE].
	// Defaults to TransportHTTP.
	Transport string
	// Headers are sent with every request to the origin of URL, and to no
	// other. They are never logged.
	Headers map[string]string
	// InsecureCredentials allows Headers, Auth, and a user or password in URL also
	// where URL is plain http to a host that is not this machine, and anybody on
	// the way can read them. Set it where the network is trusted, or where
	// HTTPClient encrypts by itself. Defaults to false: such a server is refused.
	InsecureCredentials bool
	// Auth gives each key credentials of its own, which are sent as Headers are,
	// and refreshed when the server refuses them. See [OAuth]. Defaults to none.
	Auth Authenticator
	// HTTPClient sends the requests; its Transport is shared by all sessions of the server. Do
	// not set its Timeout: it would end idle streams. Its CheckRedirect can refuse redirects.
	// Its Jar takes the place of the cookies of each session. Defaults to a client of our own
	// with enough idle connections; or to http.DefaultTransport, if the program has wrapped
	// that.
	HTTPClient *http.Client
	// NoStream turns off the stream over which an HTTP server sends what
	// nobody asked for: notifications, requests of its own. An idle session
	// then needs no connection and less memory. Some servers close a session
	// that has no stream.
	NoStream bool

	// NoCookies ignores the cookies that an HTTP server sets. By default each session
	// keeps its own, so that a balancer can send it to the server that knows it.
	NoCookies bool

	// InMemory is a server in our own process: each session connects to it
	// through a pipe.
	InMemory *mcp.Server

	// ProtocolVersion is what to ask the server for, such as "2025-11-25".
	// Defaults to the newest that both sides speak, for which servers older
	// than 2026-07-28 are asked twice.
	ProtocolVersion string
	// MaxResult bounds one message of the server, and all pages of a list together,
	// in bytes. A result over it fails with protocol; over stdio one message over it
	// ends the session as well. Defaults to [DefaultMaxResult]; -1 is no limit.
	MaxResult int
	// Setup are calls of tools that run first on every new session, one after
	// the other: log in, open the project. Together with the dial they have the
	// connect timeout. A session whose set-up fails, by an error of the tool
	// too, is unavailable. Read-only.
	Setup []*mcp.CallToolParams
	// KeepAlive is how often an idle session is pinged. A session that misses
	// a ping counts as lost. Protocol 2026-07-28 has no ping. Defaults to 0:
	// never.
	KeepAlive time.Duration
}

// Same reports whether two configurations are the same. Those of an HTTP client, of a
// server in memory and of an authenticator are when they are the same value; an
// [AuthenticatorFunc] never is.
func (s *Server) Same(other *Server) bool {
	one, two := *s, *other
	if one.HTTPClient != two.HTTPClient || one.InMemory != two.InMemory || !sameAuth(one.Auth, two.Auth) {
		return false
	}
	one.HTTPClient, one.InMemory, two.HTTPClient, two.InMemory = nil, nil, nil, nil
	one.Auth, two.Auth = nil, nil // which may be in use
	return reflect.DeepEqual(one, two)
}

// sameAuth compares values of which Go may be unable to compare some.
func sameAuth(one, two Authenticator) bool {
	if one == nil || two == nil {
		return one == nil && two == nil
	}
	return reflect.ValueOf(one).Comparable() && reflect.ValueOf(two).Comparable() && one == two
}

// maxKeepAlive bounds [Server.KeepAlive], so that a time that it is added to stays one.
const maxKeepAlive = 10 * 365 * 24 * time.Hour

var serverName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// Validate reports the first field that is wrong.
func (s *Server) Validate() error {
	if !serverName.MatchString(s.Name) {
		return fmt.Errorf("name: %q is not a name: use letters, digits, dots, dashes and underscores", s.Name)
	}
	given := 0
	for _, set := range []bool{s.Command != "", s.URL != "", s.InMemory != nil} {
		if set {
			given++
		}
	}
	switch {
	case given == 0:
		return fmt.Errorf("command: is empty, and so are url and in-memory server: set one")
	case given > 1:
		return fmt.Errorf("command: set only one of command, url and in-memory server")
	case schemes[s.Transport] == nil:
		names := slices.Sorted(maps.Keys(schemes))[1:] // the first is empty
		return fmt.Errorf("transport: %q is none of \"%s\"", s.Transport, strings.Join(names, "\" and \""))
	case s.MaxResult < -1:
		return fmt.Errorf("maxResult: %d is negative: -1 is no limit", s.MaxResult)
	case s.KeepAlive < 0:
		return fmt.Errorf("keepAlive: %v is negative", s.KeepAlive)
	case s.KeepAlive > maxKeepAlive:
		return fmt.Errorf("keepAlive: %v is more than %v: 0 is never", s.KeepAlive, maxKeepAlive)
	}
	for i, call := range s.Setup {
		if call == nil || call.Name == "" {
			return fmt.Errorf("setup[%d]: the tool name is empty", i)
		}
	}
	switch {
	case s.Command == "" && s.InheritEnv:
		return fmt.Errorf("inheritEnv: is for servers with a command")
	case s.URL == "" && s.Auth != nil:
		return fmt.Errorf("auth: is for servers with a url")
	case s.URL == "":
		return nil
	}
	u, err := url.Parse(s.URL)
	switch {
	case err != nil:
		return fmt.Errorf("url: is malformed")
	case !slices.Contains(schemes[s.Transport], u.Scheme):
		return fmt.Errorf("url: scheme %q is none of %s", u.Scheme, strings.Join(schemes[s.Transport], " and "))
	case u.Host == "":
		return fmt.Errorf("url: has no host")
	case s.HTTPClient != nil && s.HTTPClient.Timeout != 0:
		return fmt.Errorf("httpClient: has a Timeout, which would end idle sessions: use the connect and call timeouts")
	case s.HTTPClient != nil && s.HTTPClient.Jar != nil && s.NoCookies:
		return fmt.Errorf("noCookies: and httpClient has a Jar: leave one of them out")
	case s.HTTPClient != nil && s.HTTPClient.Jar != nil && s.Auth != nil:
		return fmt.Errorf("httpClient: has a Jar, which would send the cookies of one key with the requests of another: leave it out, or auth")
	}
	if err := errors.Join(checkHeaders(s.Headers), checkAuth(s.Auth)); err != nil {
		return err
	}
	if exposed := s.credentialsIn(u); exposed != "" && !strings.HasSuffix(u.Scheme, "s") && !isLoopback(u.Hostname()) && !s.InsecureCredentials {
		return fmt.Errorf("%s would be sent to %s without encryption: use https, or set insecureCredentials where the network is trusted", exposed, visible.Detail(u.Hostname()))
	}
	return nil
}

// credentialsIn names the first of the credentials that there are, or returns nothing.
// Each header counts as one, whatever its name.
func (s *Server) credentialsIn(u *url.URL) string {
	switch {
	case u.User != nil:
		return "url: its user"
	case len(s.Headers) > 0:
		return "headers: they"
	case s.Auth != nil:
		return "auth: its credentials"
	}
	return ""
}

// isLoopback reports whether a host is this machine.
func isLoopback(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback() || host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// checkAuth reports an authenticator that nobody has made as it has to be.
func checkAuth(a Authenticator) error {
	switch a := a.(type) {
	case AuthenticatorFunc:
		if a == nil {
			return errors.New("auth: is nil")
		}
	case *OAuthCredentials:
		if !a.made() {
			return fmt.Errorf("auth: %w", errNotMade)
		}
	}
	return nil
}

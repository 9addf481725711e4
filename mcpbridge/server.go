package mcpbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/limits"
	"github.com/mcpactor/mcpactor/internal/loopback"
	"github.com/mcpactor/mcpactor/internal/visible"
	"github.com/mcpactor/mcpactor/messages"
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

// Server is the configuration of one MCP server. Exactly one of Command, URL and InMemory
// is set. The configuration is read-only once the supervisor has started.
type Server struct {
	// Name is the name of the server in a [messages.Key]. It consists of letters, digits,
	// dots, dashes and underscores.
	Name string

	// Command is the program of a stdio server, looked up in PATH. Each
	// session is a process of its own, in a process group of its own, or on Windows in a job of its own. The
	// processes end with the session, and with this process: see [Cleanup] for containers.
	Command string
	// Args are the arguments of Command.
	Args []string
	// Env is added to the variables that Command inherits from this process. It inherits
	// only the variables that programs, package managers, proxies and certificates need,
	// which the documentation of this package lists. Values of Env are never logged.
	Env map[string]string
	// InheritEnv makes Command inherit the whole environment of this process, with the
	// secrets in it. Defaults to false.
	InheritEnv bool
	// Dir is the working directory of Command. Defaults to that of this process.
	Dir string

	// Cleanup ends what a session of Command leaves, such as a container. Defaults to none.
	Cleanup Cleanup

	// Stderr returns what gets the lines that the processes of a key write to stderr, and to stdout without being a
	// message: from their start on, also if they fail to start. With nil, and for a key with a nil writer, only the end
	// of them is kept, for the failure of a call.
	//
	// Each Write gets one line of at most 4 KiB with its end. The secrets of the configuration are blacked out, and
	// invisible characters are removed; but a server may write anything, such as the arguments of calls. One
	// goroutine at a time writes to the writer of a key, and nobody waits for it: it may block, and lines may still come when the
	// session is closed. Up to 256 lines wait; then these are dropped, and a line says how many. An error, or a panic,
	// which is logged, costs one line.
	//
	// Stderr is called in that goroutine before the first line of a process, unless lines of an earlier process of the
	// key are still written: then the writer stays the same. It may be called for several keys at once. The writer is
	// never closed.
	Stderr func(key messages.Key) io.Writer

	// URL is the endpoint of an HTTP server.
	URL string
	// Transport is how to talk to URL: [TransportHTTP] or [TransportSSE].
	// Defaults to TransportHTTP.
	Transport string
	// Headers are sent with every request to the origin of URL, and to no
	// other. They are never logged.
	Headers map[string]string
	// InsecureCredentials allows Headers, Auth, and a user or password in URL, if URL is
	// plain http to another machine, so that others on the network can read them. Set it if
	// the network is trusted, or if HTTPClient encrypts by itself. Defaults to false: such
	// a server is rejected.
	InsecureCredentials bool
	// Auth gives each key credentials of its own. They are sent to the same origin as
	// Headers, and are refreshed when the server refuses them. See [OAuth]. Defaults to
	// none.
	Auth Authenticator
	// HTTPClient sends the requests. All sessions of the server share its Transport. Do not
	// set its Timeout, which would end idle streams. Its CheckRedirect can refuse
	// redirects. Its Jar replaces the cookies that each session keeps. Defaults to a client
	// with enough idle connections, or with http.DefaultTransport if the program has
	// wrapped that.
	HTTPClient *http.Client
	// NoStream turns off the standalone stream, over which an HTTP server sends
	// notifications and requests of its own. Without it, an idle session needs no
	// connection and less memory. Some servers close a session that has no stream.
	NoStream bool

	// NoCookies ignores the cookies that an HTTP server sets. By default each session keeps
	// its own cookies, by which a load balancer can find the server that has the session.
	NoCookies bool

	// InMemory is a server in this process. Each session connects to it through a pipe in
	// memory.
	//
	// A handler of the server that panics fails its call with [messages.CodeServerError], and
	// the session stays open: the first session adds a middleware to the server, which does
	// nothing for sessions of others. A panic in another goroutine, such as one that a handler
	// has started, or in a middleware that was added later, cannot be contained, and ends the
	// process.
	InMemory *mcp.Server

	// ProtocolVersion is the version to ask the server for, such as "2025-11-25". Defaults
	// to the newest version that both sides speak. To find it, a server older than
	// 2026-07-28 is asked twice.
	ProtocolVersion string
	// ClientInfo is the name and the version of the client that the server is told. Defaults to those of
	// this module. Read-only.
	ClientInfo *mcp.Implementation
	// MaxResult is the maximum size of one message of the server, and of all pages of a
	// list together, in bytes. A larger result fails with [messages.CodeProtocol]. Over stdio and HTTP+SSE, a message that
	// is more than 1 GiB larger ends the session. Defaults to 64 MiB; -1 is no limit.
	MaxResult int
	// Setup are calls of tools that run first on every new session, one after the other,
	// for example to log in or to open a project. The dial and these calls together have
	// the connect timeout. If one of them fails, or its tool reports an error, the dial
	// fails. Read-only.
	Setup []*mcp.CallToolParams
	// KeepAlive is how often an idle session is pinged. A session that misses
	// a ping counts as lost. A server that speaks protocol 2026-07-28, which has no ping, is
	// sent server/discover instead. Defaults to never, as -1 does.
	KeepAlive time.Duration
	// Limits are bounds and timeouts of this server. They take the place of those of the
	// supervisor. Defaults to none.
	Limits Limits

	// Handles are the kinds of handles that the tools of the server mint, and that the supervisor releases. Defaults to none. Read-only.
	Handles []Handle

	// CustomMethods are the methods beyond MCP that [messages.Custom] may call, such as
	// "acme/search". Defaults to none.
	CustomMethods []string
	// CustomNotifications are the notifications beyond MCP that are passed on, as
	// [messages.CustomNotification]: names, or "*" for all beyond MCP. Others are ignored. Defaults to none.
	CustomNotifications []string
	PassOn

	// PerKey returns the configuration of one key, for example with the token of a user or
	// the directory of a conversation. Command, Args, Env, Dir, URL, Headers, Setup, InMemory,
	// ProtocolVersion, ClientInfo, Initialize and InitializeVersion of the result may be different from those of this configuration, but
	// a command cannot become a URL. The other fields apply to all keys: in the result they are the same,
	// or zero. ProtocolVersion and ClientInfo, if they are zero, are those of this configuration.
	// The function usually returns a changed copy of this configuration. Defaults to nil: all keys
	// have this configuration.
	//
	// PerKey is called for each dial, in the goroutine of the dial, and from several
	// goroutines at once. ctx ends with the dial. The result is read-only once returned. If
	// PerKey returns an error or panics, the dial fails, and other keys are not affected. An
	// error that is an [*Error] keeps its class; any other has the class [Unavailable]. The
	// text of the error appears in logs and events, and must not contain secrets. A result
	// that is not valid fails the dial with the class [Invalid], and the error names the
	// field.
	//
	// Keys with the same result share their HTTP connections, and what is known of the
	// server. A session is resumed only if URL, Headers and Setup are the same as before:
	// for tokens that change during a session, use Auth.
	PerKey func(ctx context.Context, key messages.Key) (Server, error)
	// ListClass returns the class of a key: keys of one class see the same tools, prompts and resources, and share the
	// lists of these, see [messages.Listing]. Set it if keys see the same although the server has Auth, an
	// HTTPClient, or keys with handlers, subscribers or roots of their own; or if they do not, because a call, such as a login,
	// changes what a session lists: then return the scope. The function must be fast, must return the same for the
	// same key, and is called from several goroutines at once. With "", the key shares nothing. Defaults to nil:
	// keys whose sessions are opened in the same way are one class. Whatever the function returns, scopes with
	// different capabilities or introductions, see [messages.Bind], share nothing.
	ListClass func(messages.Key) string

	// PerKeyID identifies what PerKey does. Functions cannot be compared: when the servers
	// are reloaded, a server with PerKey counts as changed, and its sessions are closed,
	// unless both configurations have the same PerKeyID. Then the first function stays in
	// use. Defaults to none.
	PerKeyID string
}

// PassOn is the part of a [Server] for gateways: programs that pass on the requests of other clients.
type PassOn struct {
	// Initialize are further parameters of initialize, such as capabilities that the SDK does not know: the members of
	// objects are added, and what the SDK sends itself stays as it is. Protocols after 2025-11-25 have no initialize.
	// Defaults to none. Read-only.
	Initialize map[string]json.RawMessage
	// InitializeVersion is the version that initialize asks for. With it, initialize comes first, and server/discover only if the
	// server refuses that: a server that speaks both has a session, and may ask in the middle of a call. It counts only without
	// ProtocolVersion. Defaults to none: server/discover comes first, and then 2025-11-25.
	InitializeVersion string
	// Verbatim adds what the server has sent to questions, to notifications of MCP and to [messages.Listing], see
	// [messages.AsSent]. The SDK then checks no form and no answer to it.
	Verbatim bool
	// Introduced says that PerKey heeds the [messages.Introduction] of a scope. Package gateway sets it, and refuses servers without it.
	// Defaults to false.
	Introduced bool
}

// Same reports whether two configurations are the same, apart from Limits, which change
// nothing about a session that is open. HTTPClient, InMemory and Auth are compared by
// identity, PerKey by PerKeyID, ListClass and Stderr by whether there is one, and all other fields by value. An
// [AuthenticatorFunc] is never the same, and neither is a PerKey without a PerKeyID.
func (s *Server) Same(other *Server) bool {
	one, two := *s, *other
	if one.HTTPClient != two.HTTPClient || one.InMemory != two.InMemory || !sameAuth(one.Auth, two.Auth) {
		return false
	}
	if (one.PerKey == nil) != (two.PerKey == nil) || one.PerKey != nil && one.PerKeyID == "" {
		return false
	}
	if (one.ListClass == nil) != (two.ListClass == nil) || (one.Stderr == nil) != (two.Stderr == nil) {
		return false
	}
	one.PerKey, two.PerKey, one.ListClass, two.ListClass, one.Stderr, two.Stderr = nil, nil, nil, nil, nil, nil
	one.HTTPClient, one.InMemory, two.HTTPClient, two.InMemory = nil, nil, nil, nil
	one.Auth, two.Auth = nil, nil // they may be in use: DeepEqual would race
	one.Limits, two.Limits = Limits{}, Limits{}
	return reflect.DeepEqual(one, two)
}

// sameAuth compares two authenticators, whose types may not be comparable. Two handlers of OAuth may know that they are the same.
func sameAuth(one, two Authenticator) bool {
	if one == nil || two == nil {
		return one == nil && two == nil
	}
	if a, is := one.(*OAuthCredentials); is && a.made() {
		b, is := two.(*OAuthCredentials)
		if known, does := a.handler.(interface{ Equal(auth.OAuthHandler) bool }); does && is && b.made() {
			return known.Equal(b.handler)
		}
	}
	return reflect.ValueOf(one).Comparable() && reflect.ValueOf(two).Comparable() && one == two
}

var serverName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// Validate returns an error that names the first field that is wrong, or nil.
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
	}
	if err := limits.Check("keepAlive", s.KeepAlive); err != nil {
		return err
	}
	if err := checkCustom(s.CustomMethods, s.CustomNotifications); err != nil {
		return err
	}
	if err := s.Limits.Validate(); err != nil {
		return fmt.Errorf("limits.%w", err)
	}
	if err := s.Cleanup.validate(s.Command, s.Args); err != nil {
		return err
	}
	for i, call := range s.Setup {
		if call == nil || call.Name == "" {
			return fmt.Errorf("setup[%d]: the tool name is empty", i)
		}
	}
	if err := checkHandles(s.Handles); err != nil {
		return err
	}
	switch {
	case s.PerKey == nil && s.PerKeyID != "":
		return fmt.Errorf("perKeyID: is for servers with perKey")
	case s.Command == "" && s.InheritEnv:
		return fmt.Errorf("inheritEnv: is for servers with a command")
	case s.Command == "" && s.Stderr != nil:
		return fmt.Errorf("stderr: is for servers with a command")
	case s.URL == "" && s.Auth != nil:
		return fmt.Errorf("auth: is for servers with a url")
	case s.URL == "":
		return checkProcess(s.Command, s.Dir, s.Args, s.Env)
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
		return fmt.Errorf("noCookies: is set, but httpClient has a Jar: leave one of them out")
	case s.HTTPClient != nil && s.HTTPClient.Jar != nil && s.Auth != nil:
		return fmt.Errorf("httpClient: has a Jar, which would send the cookies of one key with the requests of another: leave out the Jar or auth")
	}
	if err := errors.Join(checkHeaders(s.Headers), checkAuth(s.Auth)); err != nil {
		return err
	}
	if exposed := s.credentialsIn(u); exposed != "" && !strings.HasSuffix(u.Scheme, "s") && !loopback.IsUnder(u.Hostname()) && !s.InsecureCredentials {
		return fmt.Errorf("%s would be sent to %s without encryption: use https, or set insecureCredentials where the network is trusted", exposed, visible.Detail(u.Hostname()))
	}
	return nil
}

// credentialsIn names the credentials in the configuration, or returns "". Each
// header counts as a credential, whatever its name.
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

// checkAuth returns an error for an authenticator that is nil, or was not made by [OAuth]
// although it must be.
func checkAuth(a Authenticator) error {
	switch a := a.(type) {
	case AuthenticatorFunc:
		if a == nil {
			return errors.New("auth: is nil")
		}
	case *tokens:
		if a.token == nil {
			return errors.New("auth: the function of Bearer is nil")
		}
	case *OAuthCredentials:
		if !a.made() {
			return fmt.Errorf("auth: %w", errNotMade)
		}
	}
	return nil
}

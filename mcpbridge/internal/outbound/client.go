// Package outbound sends the HTTP requests of sessions, and only to the origin of their server:
// with the headers of the configuration, the credentials of the key, and the cookies of the
// session. It sends each POST once.
//
// A [Sender] sends all requests of a session, also the DELETE that ends it. An authorizer adds the credentials, and the
// [Client] adds the headers of the configuration. Values that were sent recently are kept out of all error texts.
package outbound

import (
	"net/http"
	"net/url"
	"time"

	"github.com/mcpactor/mcpactor/internal/proof"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
	"github.com/mcpactor/mcpactor/messages"
)

const (
	// maxIdlePerHost keeps the connections of a busy session open. The default
	// of net/http, 2, halves the throughput at 64 callers.
	maxIdlePerHost = 256
	// idleTimeout is shorter than the 5 s after which Node closes an idle connection:
	// a call that is sent at that moment would be lost.
	idleTimeout = 4 * time.Second
)

// Client is what the sessions of one HTTP server share.
type Client struct {
	Config *mcpbridge.Server
	URL    *url.URL

	transport http.RoundTripper
	own       *http.Transport // inside transport, if it is ours
	sent      redact.Recent   // credentials of all sessions
	said      proof.Server    // what proofs for the server need
}

// NewClient returns the client for a server with a valid URL.
func NewClient(config *mcpbridge.Server) *Client {
	c := &Client{Config: config}
	c.URL, _ = url.Parse(config.URL) // which is valid
	given := http.DefaultTransport
	if config.HTTPClient != nil && config.HTTPClient.Transport != nil {
		given = config.HTTPClient.Transport
	} else if c.own = ownTransport(); c.own != nil {
		given = c.own
	}
	c.transport = newOnce(given, c.own != nil && c.URL.Scheme == "http")
	return c
}

// ownTransport returns a transport like http.DefaultTransport with enough idle connections. It returns nil if the program
// has wrapped http.DefaultTransport, for example to trace its requests: then the requests of the bridge go through the
// wrapper as well.
func ownTransport() *http.Transport {
	shared, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil
	}
	own := shared.Clone()
	own.MaxIdleConns = 0
	own.MaxIdleConnsPerHost = maxIdlePerHost
	own.IdleConnTimeout = idleTimeout
	return own
}

// Secrets returns what no text about the server may contain: the secrets of the configuration, and
// the credentials that were sent recently.
func (c *Client) Secrets() []string { return c.sent.AppendTo(redact.OfServer(c.Config)) }

// Release closes the idle connections of the bridge's own transport.
func (c *Client) Release() {
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
}

// The headers of a trace.
const (
	headerTraceParent = "Traceparent"
	headerTraceState  = "Tracestate"
)

// addHeaders returns a request with the headers of the configuration, the user and password
// of the URL, credentials, and the trace of its operation. The trace replaces no other header. A request that gets no
// header is returned as it is. No other code adds such headers.
func (c *Client) addHeaders(req *http.Request, credentials http.Header) *http.Request {
	config, user, trace := c.Config, c.URL.User, messages.TraceOf(req.Context())
	if len(config.Headers) == 0 && len(credentials) == 0 && user == nil && trace.Parent == "" {
		return req
	}
	r := *req
	r.Header = req.Header.Clone()
	for name, value := range config.Headers {
		r.Header.Set(name, value)
	}
	for name, values := range credentials {
		r.Header[http.CanonicalHeaderKey(name)] = values
	}
	if user != nil && r.Header.Get("Authorization") == "" {
		password, _ := user.Password()
		r.SetBasicAuth(user.Username(), password)
	}
	if trace.Parent != "" && r.Header.Get(headerTraceParent) == "" {
		r.Header.Set(headerTraceParent, trace.Parent)
		if trace.State != "" && r.Header.Get(headerTraceState) == "" {
			r.Header.Set(headerTraceState, trace.State)
		}
	}
	return &r
}

package bridge

import (
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"

	"github.com/mcpactor/mcpactor/internal/bridge/redact"
)

const (
	// maxIdlePerHost keeps the connections of a busy session warm: the default
	// of net/http, 2, halves the throughput at 64 callers.
	maxIdlePerHost = 256
	// idleTimeout is below the 5 s after which Node closes an idle connection:
	// a call sent at that moment would be lost.
	idleTimeout = 4 * time.Second
	// legacyFor is how long it is remembered that a server speaks only older
	// protocols: it may have learned more under the same name.
	legacyFor = time.Hour
)

// Bridge is the Dialer for a list of servers. It shares one HTTP client per
// server and one SDK client among all sessions.
type Bridge struct {
	client       *mcp.Client
	send         mcp.MethodHandler // of client
	capabilities *mcp.ClientCapabilities
	strays       atomic.Uint64 // see [Bridge.Strays]

	mu      sync.Mutex
	servers map[string]*endpoint
	retired []*endpoint              // that a Set has replaced
	seconds map[messages.Key]*second // to be adopted
}

// endpoint is a server with what its sessions share.
type endpoint struct {
	mcpbridge.Server
	bridge      *Bridge
	base        http.RoundTripper // nil but for URLs
	own         *http.Transport   // base, where it is ours
	url         *url.URL
	fingerprint string
	sent        redact.Recent // credentials
	lingers     atomic.Bool   // it leaves the streams of answers open after them
	streams     atomic.Bool   // who asks for a standalone stream gets one, as far as is known
	lateStreams atomic.Bool   // but the answer takes its time
	unreachable atomic.Bool   // the last request got no connection
	onlySSE     atomic.Bool   // it speaks HTTP+SSE, whatever is configured

	mu     sync.Mutex
	legacy bool      // it speaks only protocols that are older than server/discover
	known  string    // who that was
	asked  time.Time // when it was found out
}

// New returns the Bridge for servers, which have been validated. capabilities are
// what the servers are told that they can ask for; nil is nothing.
func New(servers []mcpbridge.Server, capabilities *mcp.ClientCapabilities) *Bridge {
	if capabilities == nil {
		capabilities = &mcp.ClientCapabilities{}
	}
	b := &Bridge{capabilities: capabilities}
	b.client, b.send = newClient(capabilities)
	b.Set(servers)
	return b
}

// Set replaces the list of servers, which have been validated. Those that are the
// same keep their connections; sessions that are open are not touched.
func (b *Bridge) Set(servers []mcpbridge.Server) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.servers
	b.servers = make(map[string]*endpoint, len(servers))
	for _, srv := range servers {
		if at := before[srv.Name]; at != nil && at.Same(&srv) {
			b.servers[srv.Name] = at
			delete(before, srv.Name)
			continue
		}
		b.servers[srv.Name] = newEndpoint(b, srv)
	}
	for _, at := range before {
		b.retired = append(b.retired, at)
	}
}

func newEndpoint(b *Bridge, srv mcpbridge.Server) *endpoint {
	at := &endpoint{Server: srv, bridge: b}
	if srv.URL == "" {
		return at
	}
	at.url, _ = url.Parse(srv.URL)
	at.fingerprint = fingerprintOf(srv.URL)
	given := http.DefaultTransport
	if srv.HTTPClient != nil && srv.HTTPClient.Transport != nil {
		given = srv.HTTPClient.Transport
	} else if at.own = ownTransport(); at.own != nil {
		given = at.own
	}
	at.base = newOnce(given, at.own != nil && at.url.Scheme == "http", &at.unreachable)
	return at
}

// Strays returns how many answers have come that belong to other connections, and were
// dropped: some servers send each answer to all their sessions.
func (b *Bridge) Strays() uint64 { return b.strays.Load() }

// ownTransport returns a transport like http.DefaultTransport with enough idle
// connections. It is nil when a program has put a wrapper in the place of that, to
// trace its requests for example: then ours are among those.
func ownTransport() *http.Transport {
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil
	}
	own := base.Clone()
	own.MaxIdleConns = 0
	own.MaxIdleConnsPerHost = maxIdlePerHost
	own.IdleConnTimeout = idleTimeout
	return own
}

// Prune closes the idle HTTP connections to servers that a Set has replaced. Call it
// when their sessions are closed.
func (b *Bridge) Prune() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, at := range b.retired {
		if at.own != nil {
			at.own.CloseIdleConnections()
		}
	}
	b.retired = nil
}

// Close closes idle HTTP connections. Call it when all sessions are closed.
func (b *Bridge) Close() {
	b.endSeconds()
	b.Set(nil)
	b.Prune()
}

// version returns the protocol version to ask for; empty is the newest.
func (at *endpoint) version(resume *mcpbridge.Resume) string {
	at.mu.Lock()
	defer at.mu.Unlock()
	switch {
	case resume != nil:
		return resume.Server.ProtocolVersion
	case at.ProtocolVersion == "" && (at.legacy && time.Since(at.asked) < legacyFor || at.usesSSE()):
		return protocolLegacy
	}
	return at.ProtocolVersion
}

// usesSSE reports whether the server is spoken to over HTTP+SSE.
func (at *endpoint) usesSSE() bool {
	return at.Transport == mcpbridge.TransportSSE || at.onlySSE.Load()
}

// met remembers that a server speaks only older protocols, so that not every
// session asks it with server/discover first. Another server, or another version of
// it, is asked again.
func (at *endpoint) met(asked string, server *mcp.InitializeResult) {
	var who string
	if server.ServerInfo != nil {
		who = server.ServerInfo.Name + " " + server.ServerInfo.Version
	}
	at.mu.Lock()
	defer at.mu.Unlock()
	at.legacy = server.ProtocolVersion <= protocolLegacy && (asked == "" || at.known == "" || at.known == who)
	at.known = who
	if asked == "" {
		at.asked = time.Now()
	}
}

// unmet forgets that: the server has refused.
func (at *endpoint) unmet() {
	at.mu.Lock()
	defer at.mu.Unlock()
	at.legacy = false
}

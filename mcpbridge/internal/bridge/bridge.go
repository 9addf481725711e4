// Package bridge is the implementation of [dial.Bridge] with the Go SDK of MCP: it dials
// servers over any transport, runs operations, and settles what their errors mean for a
// session.
//
// Its rooms are the packages beside this one. Imports point one way. A test checks this, also for the files
// within each package.
//
//	bridge       opens sessions, runs operations, sends what settles doubt about a session
//	doubt        decides whether a server knows a session, and sends nothing
//	streamable   the transport over streamable HTTP
//	sse          the transport over HTTP+SSE
//	stdio        the transport to processes
//	memory       the transport to servers in our own process
//	outbound     sends the HTTP requests of a session, to the origin of its server only
//	tap          watches the messages between the SDK and a connection
//	hold         remembers which calls servers do not want for a while
//	transport    what the bridge needs of a transport
//	wire         what the wire shows of one operation, and what that means
//	rpc          JSON-RPC messages and event streams, as bytes
//	stderr       passes the lines of processes on to writers of the user
//	redact       removes secrets from texts
//	challenge    what a server says when it refuses credentials
//	header       which headers a user may set
//
// Start with design.go.
package bridge

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/hold"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/stderr"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// Bridge is the [dial.Bridge] for a list of servers. Its sessions share one client of the SDK.
type Bridge struct {
	opener   opener
	end      context.CancelFunc      // of opener.life
	known    *mcp.ClientCapabilities // that servers are told, or nil
	controls controls
	strays   atomic.Uint64
	bridgeLog

	mu       sync.Mutex
	servers  map[string]*endpoint
	retired  []*endpoint // that Set has replaced, until Prune
	recovery *recovery   // nil before Recover
}

// New returns the bridge to servers, which must be valid. capabilities say what the servers may request; nil means
// nothing.
func New(servers []mcpbridge.Server, capabilities *mcp.ClientCapabilities) *Bridge {
	b := new(Bridge)
	life, end := context.WithCancel(context.Background())
	b.end = end
	lines := stderr.New(func(server string, p *guard.Panic) { b.panicked(server, "Server.Stderr or its writer", p) })
	b.opener = opener{newClient(nil, capabilities, b.sdkLog()), &b.strays, new(hold.Book), &b.bridgeLog, b.sdkLog(), life, lines, &b.controls}
	b.controls.opener, b.known, b.log = &b.opener, capabilities, slog.New(slog.DiscardHandler)
	b.Set(servers)
	return b
}

// LogTo makes the bridge and the SDK log to a logger. It must be called before the first dial.
func (b *Bridge) LogTo(logger *slog.Logger) { b.log = logger }

// Recover begins to end what sessions of processes that were killed have left on this machine, for the servers there are and
// those of later calls of Set. It does not block. It must be called once, after LogTo.
func (b *Bridge) Recover() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.recovery = newRecovery(&b.bridgeLog)
	for _, at := range b.servers {
		b.recovery.start(at)
	}
}

// sdkLog returns the handler for the log lines of the SDK.
func (b *Bridge) sdkLog() sdkLog {
	return sdkLog{logger: func() *slog.Logger { return b.log }, secrets: b.secrets}
}

// secrets returns the secrets of all endpoints.
func (b *Bridge) secrets() (all []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, at := range b.servers {
		all = append(all, at.transport().Secrets()...)
		at.derived.mu.Lock()
		for _, derived := range at.derived.endpoints {
			all = append(all, derived.transport().Secrets()...)
		}
		at.derived.mu.Unlock()
	}
	for _, at := range b.retired {
		all = append(all, at.transport().Secrets()...)
	}
	return all
}

// Set replaces the list of servers.
func (b *Bridge) Set(servers []mcpbridge.Server) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.servers
	b.servers = make(map[string]*endpoint, len(servers))
	for _, config := range servers {
		if at := before[config.Name]; at != nil && at.Same(&config) {
			b.servers[config.Name] = at
			delete(before, config.Name)
			continue
		}
		at := newEndpoint(config)
		at.client = newClientOf(&config, b.known, b.sdkLog())
		b.servers[config.Name] = at
		b.recovery.start(at)
	}
	for _, at := range before {
		b.retired = append(b.retired, at)
	}
}

// Forget forgets what the bridge has found out about a server.
func (b *Bridge) Forget(server string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at := b.servers[server]; at != nil {
		at.forget(b.opener.holds)
	}
}

// Strays returns how many answers were dropped because they belong to other connections.
func (b *Bridge) Strays() uint64 { return b.strays.Load() }

// Skipped returns how many bytes of stdout were skipped because they are no messages.
func (b *Bridge) Skipped() uint64 { return b.skipped.Load() }

// Prune closes the idle connections to servers that Set has replaced.
func (b *Bridge) Prune() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, at := range b.retired {
		at.newest.Release()
	}
	b.retired = nil
}

// Close ends Recover and what dials have left, and closes idle connections.
func (b *Bridge) Close() {
	b.end()
	b.recovery.end()
	b.controls.end()
	b.Set(nil)
	b.Prune()
}

// Dial opens a session, resumes one, or adopts a control.
func (b *Bridge) Dial(ctx context.Context, req dial.Request) (result dial.Conn, err error) {
	defer wire.Recover(&err)
	for _, at := range b.serversFor(req) {
		result, err = b.dialAt(ctx, at, req)
		if e := mcpbridge.AsError(err); e == nil || e.Session != mcpbridge.Gone {
			break
		}
	}
	return result, err
}

// serversFor returns the server of a dial, or nil. What is resumed only to be closed may also be a session of a server that Set
// has replaced or removed.
func (b *Bridge) serversFor(req dial.Request) []*endpoint {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := []*endpoint{b.servers[req.Key.Server]}
	for _, at := range b.retired {
		if req.Only && at.Name == req.Key.Server {
			all = append(all, at)
		}
	}
	return all
}

func (b *Bridge) dialAt(ctx context.Context, at *endpoint, req dial.Request) (dial.Conn, error) {
	switch {
	case at == nil && req.Only:
		return nil, errNotOurs
	case at == nil:
		return nil, &mcpbridge.Error{Class: mcpbridge.Invalid, Detail: "no such server"}
	}
	at, err := at.forKey(ctx, req)
	if err != nil {
		return nil, err
	}
	defer at.release()
	at.dialect.recall(ctx, at.record(req.Store))
	credentials, err := at.credentials(ctx, req.Key)
	shown := at.fingerprintWith(fingerprint(ctx, credentials, err))
	if req.Refused != nil && fingerprintIn(req.Refused) == shown {
		return nil, req.Refused
	}
	if err != nil {
		return nil, withFingerprint(err, shown)
	}
	c, e := b.dial(ctx, at, attempt{Request: req, credentials: credentials})
	if e != nil {
		return nil, withFingerprint(e, shown)
	}
	return c, nil
}

// errNotOurs is returned for a session that cannot be resumed because it is of another owner, or of no server that there is.
var errNotOurs = &mcpbridge.Error{Class: mcpbridge.Expired, Session: mcpbridge.Gone, Detail: "the session is of another endpoint or identity"}

func (b *Bridge) dial(ctx context.Context, at *endpoint, req attempt) (*conn, *mcpbridge.Error) {
	if c := b.controls.adopt(ctx, at, req); c != nil {
		return c, nil
	}
	if req.Resume != nil && at.transport().HasSessions() && at.owns(req.Resume, req.credentials) {
		c, e := b.controls.attach(ctx, at, req)
		if e == nil || e.Session != mcpbridge.Gone || req.Only {
			return c, e
		}
	}
	if req.Only {
		return nil, errNotOurs
	}
	req.Resume = nil
	return b.opener.dial(ctx, at, req)
}

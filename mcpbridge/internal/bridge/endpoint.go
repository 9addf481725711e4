package bridge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/transport"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

const (
	// protocolLegacy is requested of a server that ignores server/discover.
	protocolLegacy = "2025-11-25"
	// legacyFor is how long it is remembered that a server speaks only older
	// protocols: it may have learned more under the same name.
	legacyFor = time.Hour
)

// endpoint is a server with what its sessions share.
type endpoint struct {
	mcpbridge.Server
	fingerprint string // stands for the URL; empty without one

	newest    transport.Server
	older     transport.Server // or nil
	usesOlder atomic.Bool      // the server refuses newest, and takes older
	dialect   *dialect
	probes    probes
	client    *sdkClient // with the custom methods of the server, or nil

	keyed  keyed  // the endpoints that PerKey leads to
	of     *keyed // that this endpoint is one of, or nil
	result string // stands for its configuration, if it is one of those
	users  int    // dials and sessions of it, if it is one of those; guarded by of
}

// keyed are the endpoints that the function PerKey of a server leads to: one for each distinct
// result. An endpoint is there as long as a dial or a session uses it.
type keyed struct {
	mu        sync.Mutex
	endpoints map[string]*endpoint // by [resultOf]
}

// dialect is what is known of the protocols that a server speaks.
type dialect struct {
	mu     sync.Mutex
	legacy bool      // the server speaks only protocols that are older than server/discover
	known  string    // which server and version that was
	asked  time.Time // when it was found out
}

func newEndpoint(config mcpbridge.Server) *endpoint {
	at := &endpoint{Server: config, dialect: new(dialect)}
	at.newest = newTransport(&at.Server)
	at.older = at.newest.Older()
	if config.URL != "" {
		at.fingerprint = fingerprintOf(config.URL)
	}
	return at
}

// transport returns the way to reach the server.
func (at *endpoint) transport() transport.Server {
	if at.usesOlder.Load() {
		return at.older
	}
	return at.newest
}

// version returns the protocol version to request; empty is the newest.
func (at *endpoint) version(resume *mcpbridge.Resume) string {
	d := at.dialect
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case resume != nil:
		return resume.Server.ProtocolVersion
	case at.ProtocolVersion == "" && (d.legacy && time.Since(d.asked) < legacyFor || at.transport().SpeaksOldProtocolsOnly()):
		return protocolLegacy
	}
	return at.ProtocolVersion
}

// probes limit the second sessions that are opened while only a front answers.
type probes struct {
	mu   sync.Mutex
	fail bool      // the last one could not be opened
	next time.Time // if so, when the next one may be
}

// mayProbe reports whether a second session may be opened while only a front answers: after one that failed,
// one at a time.
func (at *endpoint) mayProbe() bool {
	p := &at.probes
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.fail && now.Before(p.next) {
		return false
	}
	p.fail, p.next = true, now.Add(paceMax)
	return true
}

// probed notes whether such a session could be opened.
func (at *endpoint) probed(opened bool) {
	p := &at.probes
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fail = !opened
}

// setLegacy remembers that the server ignored server/discover.
func (at *endpoint) setLegacy() {
	d := at.dialect
	d.mu.Lock()
	defer d.mu.Unlock()
	d.legacy, d.asked = true, time.Now()
}

// learn remembers whether a server speaks only older protocols, so that not every
// session asks it with server/discover first. Another server, or another version of
// it, is asked again.
func (at *endpoint) learn(requested string, server *mcp.InitializeResult) {
	d := at.dialect
	var who string
	if server.ServerInfo != nil {
		who = server.ServerInfo.Name + " " + server.ServerInfo.Version
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.legacy = server.ProtocolVersion <= protocolLegacy && (requested == "" || d.known == "" || d.known == who)
	d.known = who
	if requested == "" {
		d.asked = time.Now()
	}
}

// unlearn forgets that: the server has refused.
func (at *endpoint) unlearn() {
	d := at.dialect
	d.mu.Lock()
	defer d.mu.Unlock()
	d.legacy = false
}

// forget forgets all that was found out about the server.
func (at *endpoint) forget() {
	at.usesOlder.Store(false)
	at.newest.Forget()
	if at.older != nil {
		at.older.Forget()
	}
	at.dialect.forget()
	at.keyed.mu.Lock()
	defer at.keyed.mu.Unlock()
	for _, of := range at.keyed.endpoints {
		of.forget()
	}
}

// forget forgets what is known of the protocols.
func (d *dialect) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.legacy, d.known, d.asked = false, "", time.Time{}
}

// credentials returns the credentials of a key.
func (at *endpoint) credentials(ctx context.Context, key messages.Key) (mcpbridge.Credentials, error) {
	if at.Auth == nil {
		return nil, nil
	}
	c, err := guard.Call(func() (mcpbridge.Credentials, error) { return at.Auth.Credentials(ctx, key) })
	switch {
	case err == nil:
		return c, nil
	case ctx.Err() != nil:
		return nil, mcpbridge.AsDialError(ctx.Err())
	}
	return nil, wire.Unauthorized("no credentials: ", err, at.transport().Secrets())
}

// owns reports whether a session belongs to this server and to the owner of the credentials.
func (at *endpoint) owns(r *mcpbridge.Resume, c mcpbridge.Credentials) bool {
	return r.Endpoint == at.fingerprint && r.Identity == at.identity(r.SessionID, identityOf(c))
}

// identity returns [mcpbridge.Resume.Identity] for a session; empty if nothing tells one
// identity from another. It differs for each session, so that it does not show
// which records belong to the same owner.
func (at *endpoint) identity(sessionID, who string) string {
	if who == "" && len(at.Headers) == 0 {
		return ""
	}
	said := fmt.Appendf(nil, "%q of %q", sessionID, who)
	for _, name := range slices.Sorted(maps.Keys(at.Headers)) {
		said = fmt.Appendf(said, ", %q: %q", http.CanonicalHeaderKey(name), at.Headers[name])
	}
	return fingerprintOf(string(said))
}

// identityOf returns whose credentials these are, if they know; otherwise they belong to the key.
func identityOf(c mcpbridge.Credentials) string {
	if known, ok := c.(mcpbridge.Identified); ok {
		return known.Identity()
	}
	return ""
}

// fingerprintOf returns a text that stands for another one, without revealing it.
func fingerprintOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

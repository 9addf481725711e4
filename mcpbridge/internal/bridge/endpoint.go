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

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/internal/recordkey"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/doubt"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/hold"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/transport"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

// endpoint is a server, with what its sessions share.
type endpoint struct {
	mcpbridge.Server
	fingerprint string // of the URL; empty without one

	newest    transport.Server
	older     transport.Server // or nil
	usesOlder atomic.Bool      // the server refuses newest, and accepts older
	dialect   *dialect
	pace      controlPace
	client    *sdkClient // with the custom methods of the server, or nil

	derived derivedEndpoints

	// These are for a derived endpoint.
	parent *endpoint // with PerKey; nil for an endpoint that is not derived
	result string    // the hash of its configuration: see [resultOf]
	users  int       // its dials and sessions; guarded by parent.derived.mu
}

// derivedEndpoints are the endpoints of a server with PerKey: one for each distinct result of that
// function. An endpoint exists as long as a dial or a session uses it.
type derivedEndpoints struct {
	mu        sync.Mutex
	endpoints map[string]*endpoint // by [resultOf]
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
	switch {
	case resume != nil:
		return resume.Server.ProtocolVersion
	case at.ProtocolVersion == "" && at.InitializeVersion != "" && !at.dialect.isStateless():
		return protocolLegacy
	case at.ProtocolVersion == "" && (at.dialect.isOld() || at.transport().SpeaksOldProtocolsOnly()):
		return protocolLegacy
	}
	return at.ProtocolVersion
}

// record returns the record of the dialect of a command in a store, whose key tells nothing about the command, or nil.
func (at *endpoint) record(store mcpbridge.Store) *record {
	if store == nil || at.Command == "" {
		return nil
	}
	return &record{store, recordkey.List(at.Name, "protocol "+fingerprintOf(fmt.Sprintf("%q %q", at.Command, at.Args)))}
}

// controlPace limits how often the sessions of an endpoint open controls while only a front answers.
type controlPace struct {
	mu     sync.Mutex
	failed bool      // the last control could not be opened, or is being opened
	next   time.Time // if so, the time from which another one may be opened
}

// mayOpen reports whether a control may be opened now. The caller calls opened afterwards.
func (p *controlPace) mayOpen() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.failed && now.Before(p.next) {
		return false
	}
	p.failed, p.next = true, now.Add(doubt.PaceMax)
	return true
}

// opened notes whether the control could be opened.
func (p *controlPace) opened(ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = !ok
}

// forget forgets all that was found out about the server.
func (at *endpoint) forget(holds *hold.Book) {
	holds.Forget(at.Endpoint())
	at.usesOlder.Store(false)
	at.newest.Forget()
	if at.older != nil {
		at.older.Forget()
	}
	at.dialect.forget()
	at.derived.mu.Lock()
	defer at.derived.mu.Unlock()
	for _, derived := range at.derived.endpoints {
		derived.forget(holds)
	}
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
		return nil, dial.AsError(ctx.Err())
	}
	return nil, wire.Unauthorized("no credentials: ", err, at.transport().Secrets())
}

// owns reports whether a session belongs to this server and to the owner of the credentials.
func (at *endpoint) owns(r *mcpbridge.Resume, c mcpbridge.Credentials) bool {
	return r.Endpoint == at.fingerprint && r.Identity == at.identity(r.SessionID, identityOf(c))
}

// identity returns [mcpbridge.Resume.Identity] for a session. It is empty if nothing distinguishes one
// owner from another. It depends on the session, so that it does not show which records belong to the same
// owner.
func (at *endpoint) identity(sessionID, who string) string {
	if who == "" && len(at.Headers) == 0 {
		return ""
	}
	text := fmt.Appendf(nil, "%q of %q", sessionID, who)
	for _, name := range slices.Sorted(maps.Keys(at.Headers)) {
		text = fmt.Appendf(text, ", %q: %q", http.CanonicalHeaderKey(name), at.Headers[name])
	}
	return fingerprintOf(string(text))
}

// identityOf returns the identity of credentials that are [mcpbridge.Identified]. Other credentials belong
// to the key.
func identityOf(c mcpbridge.Credentials) string {
	if known, ok := c.(mcpbridge.Identified); ok {
		return known.Identity()
	}
	return ""
}

// fingerprintOf returns a hash of a text, which does not reveal it.
func fingerprintOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// Package gateway gives clients that speak MCP sessions of a supervisor: a client of the SDK in this process by a transport, and
// clients of other programs as an MCP server over stdio or HTTP.
//
// [Prepare] the configuration of the servers, and start the gateway beside the supervisor or the member of a cluster that has
// them. [Gateway.Server] is a transport to one server as it is, [Gateway.Tools] one to all servers of a [toolset.Toolset]. The
// client on such a transport has one session that never expires, whatever becomes of those behind it: it is told that state is gone, and
// of a call that fails whether it may have run.
//
// Each client calls in a scope, with the capabilities and the name of the client. An actor of the gateway passes questions of
// servers on to it. What a server offers comes from the supervisor's catalogue.
package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/gateway/internal/seal"
	"github.com/mcpactor/mcpactor/internal/visible"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// Gateway serves any number of clients. Its methods may be called from any goroutine.
type Gateway struct {
	cfg         Config
	log         zerolog.Logger
	system      *actor.ActorSystem
	backend     Backend
	do          *supervisor.Client
	key         *seal.Key // see [Config.Key]
	unsubscribe func()    // from events

	life    context.Context // ends with Close
	end     context.CancelFunc
	leaving sync.WaitGroup // clients that have left, see [Config.Lingers]

	offers    atomic.Pointer[offer] // what clients of other programs get
	waiting   sync.Map              // by id: the *waitingCall whose client is asked
	lingering sync.Map              // by server: the *served whose start continues although its client has left

	mu        sync.Mutex
	scopes    map[string]*scope
	shared    map[string]int       // how many sessions of a scope are those of clients of other scopes
	endpoints map[string]*endpoint // by server
}

// New returns a gateway for the servers of a supervisor, or of a member of a cluster. The error names the fields of cfg that are
// wrong, and servers that are not prepared, see [Prepare]. The gateway and the backend may be closed in any
// order. A supervisor has one gateway.
func New(backend Backend, cfg Config) (*Gateway, error) {
	if backend == nil || backend.System() == nil {
		return nil, errors.New("gateway: backend: is nil, or was not started: use the one that supervisor.Start returns")
	}
	g := &Gateway{
		cfg: cfg, log: cfg.Logger, system: backend.System(), backend: backend, do: backend.Client(),
		scopes: map[string]*scope{}, shared: map[string]int{}, endpoints: map[string]*endpoint{},
	}
	g.cfg.Stability = cmp.Or(cfg.Stability, toolset.Append)
	var err error
	if g.key, err = seal.New(cfg.Key); err != nil {
		return nil, fmt.Errorf("gateway: key: %w", err)
	}
	errs := []error{g.offerServers(cfg.Servers, cfg.LeftOut)}
	if err := g.cfg.Stability.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("gateway: %w", err))
	}
	if cfg.Find < 0 {
		errs = append(errs, errors.New("gateway: find: is negative"))
	}
	switch {
	case len(cfg.Servers) > 1 && !cfg.Prefixed:
		errs = append(errs, errors.New("gateway: prefixed: must be true for several servers"))
	case cfg.Clients != nil && cfg.Sessions == nil:
		errs = append(errs, errors.New("gateway: sessions: is missing, but clients keeps clients: use the store of the supervisor"))
	}
	if err = errors.Join(errs...); err != nil {
		return nil, err
	}
	g.life, g.end = context.WithCancel(context.Background())
	g.unsubscribe = backend.Subscribe(g.onEvent)
	if cfg.Clients != nil {
		go g.sweepClients(g.life)
	}
	return g, nil
}

// Reload is to follow a Reload of the supervisor, with servers that are prepared as well. It replaces Servers and LeftOut of the
// configuration. Clients keep what they have of servers that are the same. Of others they get the lists anew, and they are told of those
// that have changed. If a server is not configured or not prepared, nothing changes, and the error names it.
func (g *Gateway) Reload(servers []toolset.Filter, leftOut []string) error {
	before := g.offers.Load().servers
	if err := g.offerServers(servers, leftOut); err != nil {
		return err
	}
	for _, c := range g.everybody() {
		c.tryFollow()
	}
	for _, old := range before {
		isShared := func(now toolset.Filter) bool { return now.Name == old.Name && now.Scope == old.Scope }
		if old.Scope != "" && !slices.ContainsFunc(servers, isShared) {
			go g.closeSession(messages.Key{Server: old.Name, Scope: old.Scope})
		}
	}
	return nil
}

// offerServers sets what clients of other programs get from now on, each in a scope of its own.
func (g *Gateway) offerServers(servers []toolset.Filter, leftOut []string) error {
	var errs []error
	for i, filter := range servers {
		if _, err := preparedServer(g.backend, filter.Name); err != nil {
			errs = append(errs, fmt.Errorf("gateway: servers[%d]: %w", i, err))
		}
		if strings.HasPrefix(filter.Scope, askedPrefix) {
			errs = append(errs, fmt.Errorf("gateway: servers[%d]: scope: %q is one that clients ask for: use another name", i, filter.Scope))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	g.offers.Store(&offer{servers: servers, leftOut: leftOut, prefixed: g.cfg.Prefixed, scope: Scope{Ends: true}})
	return nil
}

// Close ends all clients, and the scopes that end with them, except for those of clients that can return. It closes nothing else of
// the supervisor. Closing twice is fine.
func (g *Gateway) Close() {
	g.mu.Lock()
	closed := g.life.Err() != nil
	g.end()
	g.mu.Unlock()
	if closed {
		return
	}
	g.leaving.Wait()
	g.unsubscribe()
	var all sync.WaitGroup
	for _, c := range g.everybody() {
		all.Go(func() {
			if c.offer.isHere() {
				c.offer.close()
				return
			}
			c.release(false) // it may return
			if g.cfg.Clients == nil {
				c.close(false)
			}
		})
	}
	all.Wait()
}

// everybody returns all clients.
func (g *Gateway) everybody() (all []*client) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.scopes {
		all = append(all, s.clients...)
	}
	return all
}

// endpoint returns what clients have learned about a server with this configuration.
func (g *Gateway) endpoint(srv *mcpbridge.Server) *endpoint {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.endpoints[srv.Name]
	if e == nil || !e.of.Same(srv) {
		e = newEndpoint(g.cfg.Lists, srv)
		g.endpoints[srv.Name] = e
	}
	return e
}

// Review has lists fetched again, such as those that needed a login. Clients are told if they have changed.
func (g *Gateway) Review() {
	for _, c := range g.everybody() {
		for _, s := range c.servers() {
			for _, l := range s.lists {
				l.review()
			}
		}
	}
}

// onEvent tells the clients that an event of the supervisor concerns.
func (g *Gateway) onEvent(e messages.Event) {
	key := e.GetStamp().Key
	g.mu.Lock()
	var concerned []*client
	if s := g.scopes[key.Scope]; s != nil {
		concerned = append(concerned, s.clients...)
	}
	if key.Server != "" && (key.Scope == "" || g.shared[key.Scope] > 0) {
		for _, s := range g.scopes {
			for _, c := range s.clients {
				if s := c.server(key.Server); s != nil && (key.Scope == "" || s.isShared() && s.key().Scope == key.Scope) {
					concerned = append(concerned, c)
				}
			}
		}
	}
	g.mu.Unlock()
	for _, c := range concerned {
		if s := c.server(key.Server); s != nil {
			s.onEvent(e)
		}
	}
}

// nameOf returns the name of a new scope.
func nameOf(c *client) string {
	return cmp.Or(visible.Name(c.info.Name), "client") + "-" + newID()
}

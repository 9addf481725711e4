// Package gateway is an MCP server for any number of clients, in front of the servers of a supervisor.
//
// Each client is a scope of the supervisor, with the client's capabilities, and with an actor that owns the scope and
// passes questions on. What a server offers comes from the supervisor's catalogue, which a store keeps between runs.
package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/internal/identity"
	"github.com/mcpactor/mcpactor/internal/mcpserver"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

const (
	// patience bounds the wait of a call for a server that is down.
	patience = 20 * time.Second
	// startPatience bounds the wait of a call for a server that is starting. Most SDKs give a call 60 s.
	startPatience = 55 * time.Second
	// startTimeout bounds the time that a process takes to answer initialize. Its program may have to be downloaded.
	startTimeout = 5 * time.Minute
	// openTimeout is the same for a server at a URL. No SDK waits longer, and a connection may break unseen.
	openTimeout = time.Minute
	// closePatience bounds the end of a session. Many clients kill their servers after 2 s.
	closePatience = 1500 * time.Millisecond
)

// Config is what a gateway serves.
type Config struct {
	Supervisor supervisor.Config
	// Tools has the filter for each of Supervisor.Servers, in the same order. If it has a scope, all clients share the
	// session of that scope.
	Tools []toolset.Filter
	// LeftOut has a line for each server that is left out, with the reason. Clients get them as log messages.
	LeftOut []string
	// Prefixed is true if the names of tools and prompts get the name of their server.
	Prefixed bool
	// Quiet is the [messages.Header.Quiet] of requests of clients.
	Quiet time.Duration
	// Wait bounds the wait of initialize for servers that have not answered yet. Zero means 25 s in front of several servers,
	// and no bound in front of one.
	Wait time.Duration
	// Lingers is true if the start of a server continues after its client has left, so that the next client finds its lists.
	Lingers bool
	// Lists keeps the lists of the servers between runs, or is nil.
	Lists mcpbridge.Store
	// Sessions keeps everything else that the supervisor stores. Lists needs it.
	Sessions mcpbridge.Store
	// Clients keeps clients between runs: they can return, and their sessions stay open on their servers. With it, Sessions
	// must outlive the process. With nil, clients do not return.
	Clients *ClientStore
	// Attach gives the servers their logins, or is nil. loggedIn is called after a login in the background.
	Attach func(servers []mcpbridge.Server, loggedIn func())
}

// Gateway serves any number of clients.
type Gateway struct {
	cfg    Config
	log    zerolog.Logger
	system *actor.ActorSystem
	sup    *supervisor.Supervisor
	do     *supervisor.Client

	endpoints map[string]*endpoint // by server, without those of which each client has its own

	life    context.Context // ends with Stop
	end     context.CancelFunc
	leaving sync.WaitGroup // clients that have left, see [Config.Lingers]

	lingering sync.Map // by server: the *served whose start continues although its client has left

	mu      sync.Mutex
	clients map[string]*client // by their scopes
}

// Start starts a gateway. The caller stops it.
func Start(system *actor.ActorSystem, cfg Config) (*Gateway, error) {
	g := &Gateway{
		cfg: cfg, log: cfg.Supervisor.Logger, system: system, endpoints: map[string]*endpoint{},
		clients: map[string]*client{},
	}
	g.life, g.end = context.WithCancel(context.Background())
	for i, srv := range cfg.Supervisor.Servers {
		if srv.PerKey == nil || cfg.Tools[i].Scope != "" {
			g.endpoints[srv.Name] = newEndpoint(cfg.Lists, srv)
		}
	}
	s := cfg.Supervisor
	s.Servers = slices.Clone(s.Servers)
	if cfg.Attach != nil {
		cfg.Attach(s.Servers, g.onLogin)
	}
	for i := range s.Servers {
		g.adapt(&s.Servers[i])
	}
	if cfg.Lists != nil {
		s.Store = storeOf(cfg.Lists, cfg.Sessions)
	}
	s.LeaveOpen = cfg.Clients != nil
	s.IdleTimeout = cmp.Or(s.IdleTimeout, -1)              // the state of a session lives as long as its client
	s.CallTimeout = cmp.Or(s.CallTimeout, 24*time.Hour)    // the client cancels
	s.HandlerTimeout = cmp.Or(s.HandlerTimeout, time.Hour) // a person answers
	s.CloseTimeout = cmp.Or(s.CloseTimeout, closePatience)
	s.MaxSessions = cmp.Or(s.MaxSessions, 1024)
	var err error
	if g.sup, err = supervisor.Start(system, s); err != nil {
		return nil, err
	}
	g.do = g.sup.Client()
	g.sup.Subscribe(g.onEvent)
	if cfg.Clients != nil {
		go g.sweepClients(g.life)
	}
	return g, nil
}

// adapt configures a server so that its sessions speak for their client: with its revision of the protocol, its name, and
// what else it has said of itself.
func (g *Gateway) adapt(srv *mcpbridge.Server) {
	srv.Verbatim = true
	own := openTimeout
	if srv.Command != "" {
		own = startTimeout
	}
	srv.Limits.ConnectTimeout = cmp.Or(srv.Limits.ConnectTimeout, g.cfg.Supervisor.ConnectTimeout, own)
	base := *srv
	srv.PerKey = func(ctx context.Context, key messages.Key) (mcpbridge.Server, error) {
		one := base
		if base.PerKey != nil {
			var err error
			if one, err = base.PerKey(ctx, key); err != nil {
				return one, err
			}
		}
		version, info, told := g.speaks(key.Scope)
		one.ProtocolVersion = cmp.Or(one.ProtocolVersion, base.ProtocolVersion, version)
		one.ClientInfo, one.Initialize, one.PerKey = info, told, nil
		one.CustomMethods, one.CustomNotifications = nil, nil // as in srv
		return one, nil
	}
	if base.PerKey == nil {
		srv.ListClass = func(key messages.Key) string {
			version, _, told := g.speaks(key.Scope)
			class, err := json.Marshal([]any{version, told})
			if err != nil {
				return ""
			}
			return string(class)
		}
	}
	srv.CustomNotifications = []string{"*"}
	for _, method := range []string{"tasks/get", "tasks/result", "tasks/list", "tasks/cancel"} {
		if !slices.Contains(srv.CustomMethods, method) {
			srv.CustomMethods = append(slices.Clone(srv.CustomMethods), method)
		}
	}
}

// speaks returns the revision of the client with a scope, its name, and what else it has said of itself. A session that
// clients share is told the newest revision alone.
func (g *Gateway) speaks(scope string) (version string, info *mcp.Implementation, told map[string]json.RawMessage) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c := g.clients[scope]; c != nil {
		return c.version, c.info, c.told
	}
	return mcpserver.Revisions[0], nil, nil
}

// open opens the scope of a client, which is a new one unless the client has returned.
func (g *Gateway) open(c *client, capabilities *mcp.ClientCapabilities) error {
	c.owner = g.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &owner{c} }))
	if c.scope == "" {
		c.scope = cmp.Or(Plain(c.info.Name), "client") + "-" + strings.ToLower(rand.Text())
	}
	g.mu.Lock()
	c.servers = nil
	for _, tools := range g.cfg.Tools {
		c.servers = append(c.servers, newServed(c, tools))
	}
	g.clients[c.scope] = c
	g.mu.Unlock()
	bind := &messages.Bind{Scope: c.scope, Owner: c.owner, Capabilities: capabilities}
	if identity.OfCapabilities(capabilities) != identity.OfCapabilities(&mcp.ClientCapabilities{}) { // or else nobody may ask
		bind.Handler = c.owner
	}
	if _, err := g.do.Do(c.ctx, bind); err != nil {
		g.forget(c)
		g.system.Root.Stop(c.owner) // with it ends the scope, if it is bound
		return err
	}
	c.ready.Store(true)
	g.log.Info().Str("scope", c.scope).Str("protocol", c.version).Msg("client connected")
	return nil
}

// Plain returns a name in which all but letters, digits, dots and dashes is replaced by dashes.
func Plain(name string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '.' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, name[:min(len(name), 64)]), "-")
}

// Left ends the scope of a client, and cancels its calls. A client that has left for good is forgotten. With
// [Config.Lingers], its scope ends only after the first starts of its servers.
func (c *client) Left(forGood bool) {
	c.opening.Lock()
	defer c.opening.Unlock()
	if !c.ready.Load() {
		return
	}
	c.release(forGood)
	g := c.g
	g.mu.Lock()
	lingers := forGood && g.cfg.Lingers && g.life.Err() == nil
	if lingers {
		g.leaving.Go(func() { // before Stop waits, because of the mutex
			c.linger()
			c.close()
		})
	}
	g.mu.Unlock()
	if !lingers {
		c.close()
	}
}

// close ends the scope of a client, unless Stop ends all scopes.
func (c *client) close() {
	g := c.g
	g.forget(c)
	for _, s := range c.servers {
		s.stopFetching()
	}
	ctx, cancel := context.WithTimeout(g.life, 2*closePatience)
	defer cancel()
	if _, err := g.do.Do(ctx, &messages.CloseScope{Scope: c.scope, Now: true}); err != nil && g.life.Err() == nil {
		g.log.Warn().Str("scope", c.scope).Err(err).Msg("sessions of a client were not closed")
	}
	g.system.Root.Stop(c.owner)
	g.log.Info().Str("scope", c.scope).Msg("client gone")
}

// forget ends the events of a client.
func (g *Gateway) forget(c *client) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.clients, c.scope)
}

// Supervisor returns the supervisor of the sessions.
func (g *Gateway) Supervisor() *supervisor.Supervisor { return g.sup }

// Stop closes all sessions, except for those that clients can resume when they return.
func (g *Gateway) Stop() error {
	g.mu.Lock()
	g.end()
	g.mu.Unlock()
	g.leaving.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 3*closePatience)
	defer cancel()
	if g.cfg.Clients == nil {
		g.do.Do(ctx, &messages.CloseAll{Now: true}) //nolint:errcheck // Stop says what is left
	}
	err := g.sup.Stop(ctx)
	for _, c := range g.everybody() { // they may return
		c.release(false)
	}
	return err
}

// everybody returns all clients.
func (g *Gateway) everybody() []*client {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(maps.Values(g.clients))
}

// onLogin fetches the lists that could not be fetched without a login.
func (g *Gateway) onLogin() {
	for _, c := range g.everybody() {
		for _, s := range c.servers {
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
	if c := g.clients[key.Scope]; c != nil {
		concerned = append(concerned, c)
	} else if key.Server != "" {
		for _, c := range g.clients {
			if s := c.server(key.Server); s != nil && (key.Scope == "" || s.key().Scope == key.Scope) {
				concerned = append(concerned, c)
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

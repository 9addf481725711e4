package serve

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/gateway"
	"github.com/mcpactor/mcpactor/internal/listfile"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

const (
	// startTimeout bounds the time that a process takes to answer initialize. Its program may have to be downloaded.
	startTimeout = 5 * time.Minute
	// openTimeout is the same for a server at a URL. No SDK waits longer, and a connection may break unseen.
	openTimeout = time.Minute
	// closeTimeout bounds the end of a session. Many clients kill their servers after 2 s.
	closeTimeout = 1500 * time.Millisecond
)

// plan is what is served, and how.
type plan struct {
	supervisor supervisor.Config
	gateway    gateway.Config
	// attach gives the servers their logins, or is nil. loggedIn is called after a login in the background.
	attach func(servers []mcpbridge.Server, loggedIn func())
	// sessions keeps what the supervisor stores, apart from lists. With nil, nothing is kept.
	sessions mcpbridge.Store
}

// running is what was started for a plan.
type running struct {
	supervisor *supervisor.Supervisor
	gateway    *gateway.Gateway
	leavesOpen bool
}

// start starts the supervisor and the gateway.
func (p *plan) start() (*running, error) {
	cfg := p.supervisor
	cfg.Servers = slices.Clone(cfg.Servers)
	var of atomic.Pointer[gateway.Gateway]
	if p.attach != nil {
		p.attach(cfg.Servers, func() {
			if g := of.Load(); g != nil {
				g.Review()
			}
		})
	}
	for i := range cfg.Servers {
		srv, own := &cfg.Servers[i], openTimeout
		if srv.Command != "" {
			own = startTimeout
		}
		srv.Limits.ConnectTimeout = cmp.Or(srv.Limits.ConnectTimeout, cfg.ConnectTimeout, own)
	}
	cfg.Servers = gateway.Prepare(cfg.Servers...)
	if p.sessions != nil {
		cfg.Store = listfile.Beside(p.gateway.Lists, p.sessions)
	}
	cfg.LeaveOpen = p.gateway.Clients != nil
	cfg.IdleTimeout = cmp.Or(cfg.IdleTimeout, -1)              // the state of a session lives as long as its client
	cfg.CallTimeout = cmp.Or(cfg.CallTimeout, 24*time.Hour)    // the client cancels
	cfg.HandlerTimeout = cmp.Or(cfg.HandlerTimeout, time.Hour) // a person answers
	cfg.CloseTimeout = cmp.Or(cfg.CloseTimeout, closeTimeout)
	cfg.MaxSessions = cmp.Or(cfg.MaxSessions, 1024)
	r := &running{leavesOpen: cfg.LeaveOpen}
	var err error
	if r.supervisor, err = supervisor.Start(actor.NewActorSystem(supervisor.WithSystemLogger(cfg.Logger)), cfg); err != nil {
		return nil, err
	}
	clients := p.gateway
	clients.Logger, clients.Sessions = cfg.Logger, p.sessions
	if r.gateway, err = gateway.New(r.supervisor, clients); err != nil {
		r.supervisor.Stop(context.Background()) //nolint:errcheck // it has no session
		return nil, err
	}
	of.Store(r.gateway)
	return r, nil
}

// stop closes all sessions, except for those that clients can resume when they return.
func (r *running) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*closeTimeout)
	defer cancel()
	if !r.leavesOpen {
		r.supervisor.Client().Do(ctx, &messages.CloseAll{Now: true}) //nolint:errcheck // Stop says what is left
	}
	err := r.supervisor.Stop(ctx)
	r.gateway.Close() // what it notes of calls that end with the sessions is kept
	return err
}

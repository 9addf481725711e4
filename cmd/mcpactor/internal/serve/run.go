package serve

import (
	"cmp"
	"context"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/inputs"
	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/gateway"
	"github.com/mcpactor/mcpactor/internal/listfile"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/supervisor/telemetry"
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
	// reloader loads the configuration file again. It is nil if there is none.
	reloader *inputs.Reloader
	// file is the configuration file in effect, or nil if there is none.
	file atomic.Pointer[config.File]
	// attach gives the servers their logins, or is nil. loggedIn is called after a login in the background.
	attach func(servers []mcpbridge.Server, loggedIn func())
	// telemetry says where traces and metrics go.
	telemetry telemetry.Config
	// sessions keeps what the supervisor stores, apart from lists. With nil, nothing is kept.
	sessions mcpbridge.Store
}

// running is what was started for a plan.
type running struct {
	supervisor *supervisor.Supervisor
	gateway    *gateway.Gateway
	unobserve  func() // ends the metrics
	log        zerolog.Logger
	leavesOpen bool
}

// start starts the supervisor and the gateway.
func (p *plan) start() (*running, error) {
	useOneProcessor()
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
	cfg.Servers = p.prepared(cfg.Servers)
	if p.sessions != nil {
		cfg.Store = listfile.Beside(p.gateway.Lists, p.sessions)
	}
	if cfg.LeaveOpen = p.gateway.Clients != nil; cfg.LeaveOpen {
		cfg.HandleGrace = cmp.Or(cfg.HandleGrace, longestIdle(cfg.Servers)) // a client may come back that late
	}
	cfg.IdleTimeout = cmp.Or(cfg.IdleTimeout, -1)              // the state of a session lives as long as its client
	cfg.CallTimeout = cmp.Or(cfg.CallTimeout, 24*time.Hour)    // the client cancels
	cfg.HandlerTimeout = cmp.Or(cfg.HandlerTimeout, time.Hour) // a person answers
	cfg.CloseTimeout = cmp.Or(cfg.CloseTimeout, closeTimeout)
	cfg.MaxSessions = cmp.Or(cfg.MaxSessions, 1024)
	r := &running{log: cfg.Logger, leavesOpen: cfg.LeaveOpen}
	var err error
	system := actor.NewActorSystem(supervisor.WithSystemLogger(cfg.Logger))
	if r.supervisor, r.unobserve, err = telemetry.Start(system, cfg, p.telemetry); err != nil {
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

// longestIdle returns how long a handle of servers may be unused, or 0.
func longestIdle(servers []mcpbridge.Server) (longest time.Duration) {
	for _, srv := range servers {
		for _, kind := range srv.Handles {
			longest = max(longest, kind.Idle)
		}
	}
	return longest
}

// prepared returns servers as the gateway needs them.
func (p *plan) prepared(servers []mcpbridge.Server) []mcpbridge.Server {
	servers = gateway.Prepare(servers...)
	for i := range servers {
		srv, own := &servers[i], openTimeout
		if srv.Command != "" {
			own = startTimeout
		}
		srv.Limits.ConnectTimeout = cmp.Or(srv.Limits.ConnectTimeout, p.supervisor.ConnectTimeout, own)
	}
	return servers
}

// useOneProcessor makes all goroutines take turns on one processor, unless GOMAXPROCS is set. Several of them pass a call on, and
// none computes for long: on several processors each may wake a thread, which takes more time than what it then does. On other
// systems than Linux, the thread that waits for the input of a client would hold the processor.
func useOneProcessor() {
	if runtime.GOOS == "linux" && os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
}

// stop closes all sessions, except for those that clients can resume when they return.
func (r *running) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*closeTimeout)
	defer cancel()
	if !r.leavesOpen {
		r.supervisor.Client().Do(ctx, &messages.CloseAll{Now: true}) //nolint:errcheck // Stop says what is left
	}
	err := r.supervisor.Stop(ctx)
	r.unobserve()
	r.gateway.Close() // what it notes of calls that end with the sessions is kept
	return err
}

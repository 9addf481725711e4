// Package site runs a supervisor on servers with faults, and the page of package debug, for
// the tests with a browser and for the screenshots.
package site

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/supervisor/debug"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// Path is where the page is mounted.
const Path = "/debug/mcp/"

// Site is a supervisor with servers, and its page on a loopback address.
type Site struct {
	Supervisor *supervisor.Supervisor
	Servers    map[string]*faults.Server
	Tools      *faults.Tools
	URL        string // of the page
	page       *debug.Handler
	server     *http.Server
}

// Start starts a site. Requests to its servers stay in memory. It replaces the servers of the configuration by one for each name.
func Start(cfg supervisor.Config, page debug.Config, names ...string) (*Site, error) {
	s := &Site{Servers: map[string]*faults.Server{}, Tools: faults.NewTools()}
	s.Tools.JSON = true
	for _, name := range names {
		server := faults.Local(s.Tools.Handler)
		s.Servers[name] = server
		cfg.Servers = append(cfg.Servers, supervisor.Server{Name: name, URL: "http://" + name + ".example.com/mcp", HTTPClient: &http.Client{Transport: server}})
	}
	quiet := actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) })
	var err error
	if s.Supervisor, err = supervisor.Start(actor.NewActorSystem(quiet), cfg); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.page = debug.New(s.Supervisor, page)
	mux := http.NewServeMux()
	mux.Handle(Path, s.page)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.URL = "http://" + listener.Addr().String() + Path
	s.server = &http.Server{Handler: mux}
	go s.server.Serve(listener) //nolint:errcheck // it ends with Close
	return s, nil
}

// Close ends all that Start has started.
func (s *Site) Close() (err error) {
	if s.page != nil {
		s.page.Close()
	}
	if s.server != nil {
		s.server.Close()
	}
	if s.Supervisor != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		err = s.Supervisor.Stop(ctx)
	}
	for _, server := range s.Servers {
		server.Close()
	}
	s.Tools.Close()
	return err
}

// Call calls a tool of [faults.Tools].
func (s *Site) Call(ctx context.Context, server, scope, tool string) error {
	_, err := s.Supervisor.Client().CallTool(ctx, server, scope, &mcp.CallToolParams{Name: tool})
	return err
}

// Open opens n sessions for each server, with the scopes that scope returns.
func (s *Site) Open(ctx context.Context, n int, scope func(i int) string) error {
	var opening sync.WaitGroup
	var mu sync.Mutex
	var errs error
	slots := make(chan struct{}, 64)
	for name := range s.Servers {
		for i := range n {
			slots <- struct{}{}
			opening.Go(func() {
				defer func() { <-slots }()
				if err := s.Call(ctx, name, scope(i), "count/ro"); err != nil {
					mu.Lock()
					defer mu.Unlock()
					errs = errors.Join(errs, fmt.Errorf("%s on %s: %w", scope(i), name, err))
				}
			})
		}
	}
	opening.Wait()
	return errs
}

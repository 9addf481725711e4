package bench

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// setup is what the cases of a run share: servers, and the SDK's client.
type setup struct {
	cfg     Config
	sdk     *mcp.Client
	memory  *mcp.Server
	tuned   *http.Client // keeps 256 idle connections
	untuned *http.Client // net/http's default
	http    *process
	origin  string // of the HTTP server
}

// newSetup starts the HTTP server.
func newSetup(ctx context.Context, cfg Config) (*setup, error) {
	if len(cfg.Child) == 0 {
		return nil, errors.New("bench: Child is empty: name the command that calls Serve")
	}
	p := &setup{
		cfg: cfg, sdk: mcp.NewClient(implementation, nil), memory: newServer(echo),
		tuned: newHTTPClient(256), untuned: newHTTPClient(0),
	}
	var err error
	if p.http, err = startProcess(p.child(ModeHTTP)...); err != nil {
		return nil, err
	}
	if p.origin, err = p.http.ask(ctx, ""); err != nil {
		return nil, errors.Join(err, p.http.close())
	}
	return p, nil
}

// newHTTPClient returns a client with so many idle connections to a host; 0 is the
// default of net/http.
func newHTTPClient(idle int) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	if idle > 0 {
		t.MaxIdleConnsPerHost, t.MaxIdleConns = idle, 0
	}
	return &http.Client{Transport: t}
}

// size returns how large something is, and how large with [Config.Quick].
func (p *setup) size(full, quick int) int {
	if p.cfg.Quick {
		return quick
	}
	return full
}

// child returns the command that calls [Serve].
func (p *setup) child(mode string) []string {
	return append(append([]string(nil), p.cfg.Child...), mode)
}

func (p *setup) close() {
	p.tuned.CloseIdleConnections()
	p.untuned.CloseIdleConnections()
	p.http.close() //nolint:errcheck // all cases are measured
}

// cases returns the cases of all scenarios, in the order of the report.
func (p *setup) cases() (all []*benchCase) {
	for _, s := range scenarios {
		for _, c := range s.cases(p) {
			c.scenario = s
			all = append(all, c)
		}
	}
	return all
}

// The transports over HTTP.
const (
	nameJSON = "http-json" // answers in JSON
	nameSSE  = "http-sse"  // answers as event streams
)

// route is a way to a server: for the supervisor, and for the baselines.
type route struct {
	transport string
	server    mcpbridge.Server
	// open opens a session for a baseline.
	open func(ctx context.Context) (session, error)
	// dialer replaces the supervisor's own; nil does not.
	dialer mcpbridge.Dialer
}

func (p *setup) overMemory() route {
	return route{
		transport: "memory", server: mcpbridge.Server{InMemory: p.memory},
		open: func(ctx context.Context) (session, error) {
			near, far := mcp.NewInMemoryTransports()
			if _, err := p.memory.Connect(ctx, far, nil); err != nil {
				return nil, err
			}
			return p.connect(ctx, near, "")
		},
	}
}

// overStdio is the way to processes with more environment variables.
func (p *setup) overStdio(env map[string]string) route {
	command := p.child(ModeStdio)
	return route{
		transport: "stdio", server: mcpbridge.Server{Command: command[0], Args: command[1:], Env: env},
		open: func(ctx context.Context) (session, error) {
			cmd := exec.Command(command[0], command[1:]...)
			cmd.Env = os.Environ()
			for name, value := range env {
				cmd.Env = append(cmd.Env, name+"="+value)
			}
			return p.connect(ctx, &mcp.CommandTransport{Command: cmd}, "")
		},
	}
}

// overHTTP is the way to a URL, with the supervisor's own HTTP client. Sessions of
// baselines send through client.
func (p *setup) overHTTP(transport, url string, client *http.Client) route {
	return route{
		transport: transport, server: mcpbridge.Server{URL: url},
		open: p.opensHTTP(url, client, false, ""),
	}
}

func (p *setup) overJSON() route { return p.overHTTP(nameJSON, p.origin+pathJSON, p.tuned) }
func (p *setup) overSSE() route  { return p.overHTTP(nameSSE, p.origin+pathSSE, p.tuned) }

// opensHTTP returns a function that opens sessions over HTTP. An empty protocol version
// is the SDK's choice.
func (p *setup) opensHTTP(url string, client *http.Client, noStream bool, version string) func(context.Context) (session, error) {
	return func(ctx context.Context) (session, error) {
		return p.connect(ctx, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: client, DisableStandaloneSSE: noStream}, version)
	}
}

// expire lets the sessions at [pathExpiring] expire.
func (p *setup) expire(ctx context.Context) error {
	_, err := p.http.ask(ctx, "expire")
	return err
}

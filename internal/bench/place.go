package bench

import (
	"context"
	"errors"
	"net/http"
	"os/exec"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// place is where a run happens: the servers, and what the baselines share.
type place struct {
	cfg    Config
	client *mcp.Client
	memory *mcp.Server
	tuned  *http.Client
	plain  *http.Client // as the SDK has it
	http   *child
	origin string      // of the HTTP server
	near   *serverHTTP // the same in our process
}

func newPlace(ctx context.Context, cfg Config) (*place, error) {
	if len(cfg.Child) == 0 {
		return nil, errors.New("bench: Child is empty: name the command that calls Serve")
	}
	p := &place{
		cfg: cfg, client: mcp.NewClient(implementation, nil), memory: newServer(),
		tuned: newHTTPClient(256), plain: newHTTPClient(0),
	}
	var err error
	if p.http, err = startChild(p.child(ModeHTTP)...); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if p.origin, err = p.http.ask(ctx, ""); err != nil {
		return nil, errors.Join(err, p.http.close())
	}
	if p.near, err = listenHTTP(); err != nil {
		return nil, errors.Join(err, p.http.close())
	}
	return p, nil
}

// newHTTPClient returns a client that keeps so many connections; 0 is the default.
func newHTTPClient(keep int) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	if keep > 0 {
		t.MaxIdleConnsPerHost, t.MaxIdleConns = keep, 0
	}
	return &http.Client{Transport: t}
}

// child returns the command of a server.
func (p *place) child(mode string) []string {
	return append(append([]string(nil), p.cfg.Child...), mode)
}

// command returns the same, to be run.
func (p *place) command(mode string) *exec.Cmd {
	command := p.child(mode)
	return exec.Command(command[0], command[1:]...)
}

func (p *place) close() {
	p.tuned.CloseIdleConnections()
	p.plain.CloseIdleConnections()
	p.http.close() //nolint:errcheck // it is killed if need be
	p.near.close() //nolint:errcheck // it has done its work
}

// cases returns all there is to measure, in the order of the report.
func (p *place) cases() []*Case {
	var all []*Case
	for _, of := range []func() []*Case{
		p.warm, p.within, p.gc, p.path, p.first, p.recovery, p.herd, p.churn, p.registry, p.idle, p.parked, p.burst, p.outage,
	} {
		all = append(all, of()...)
	}
	return all
}

// The transports over HTTP.
const (
	nameJSON = "http-json" // answers in JSON
	nameSSE  = "http-sse"  // answers as event streams
)

// wire is a server over one transport: how the SDK reaches it, and how the
// supervisor does.
type wire struct {
	name   string
	server mcpbridge.Server
	// url is that of an HTTP server, or empty.
	url string
	// connect opens a session of the SDK.
	connect func(ctx context.Context) (*mcp.ClientSession, error)
}

func (p *place) overMemory() wire {
	return wire{
		name: "memory", server: mcpbridge.Server{InMemory: p.memory},
		connect: func(ctx context.Context) (*mcp.ClientSession, error) {
			near, far := mcp.NewInMemoryTransports()
			if _, err := p.memory.Connect(ctx, far, nil); err != nil {
				return nil, err
			}
			return p.client.Connect(ctx, near, nil)
		},
	}
}

func (p *place) overStdio() wire {
	command := p.child(ModeStdio)
	return wire{
		name: "stdio", server: mcpbridge.Server{Command: command[0], Args: command[1:]},
		connect: func(ctx context.Context) (*mcp.ClientSession, error) {
			return p.client.Connect(ctx, &mcp.CommandTransport{Command: p.command(ModeStdio)}, nil)
		},
	}
}

// overHTTP is the server at a URL. The SDK's sessions send through client.
func (p *place) overHTTP(name, url string, client *http.Client) wire {
	return wire{
		name: name, server: mcpbridge.Server{URL: url}, url: url,
		connect: func(ctx context.Context) (*mcp.ClientSession, error) {
			return p.client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: client}, nil)
		},
	}
}

func (p *place) overJSON() wire { return p.overHTTP(nameJSON, p.origin+pathJSON, p.tuned) }
func (p *place) overSSE() wire  { return p.overHTTP(nameSSE, p.origin+pathSSE, p.tuned) }

// withoutStream opens sessions that have no standalone stream.
func (p *place) withoutStream(client *http.Client) func(context.Context) (*mcp.ClientSession, error) {
	return func(ctx context.Context) (*mcp.ClientSession, error) {
		return p.client.Connect(ctx, &mcp.StreamableClientTransport{
			Endpoint: p.origin + pathJSON, HTTPClient: client, DisableStandaloneSSE: true,
		}, nil)
	}
}

// expire makes the sessions at [pathExpiring] expire.
func (p *place) expire(ctx context.Context) error {
	_, err := p.http.ask(ctx, askExpire)
	return err
}

// accepted returns how many connections the HTTP server has accepted so far.
func (p *place) accepted(ctx context.Context) (int64, error) {
	answer, err := p.http.ask(ctx, askAccepted)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(answer, 10, 64)
}

package benchmarks

import (
	"context"
	"net/http"
	"os/exec"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// route is a way to a server: for the supervisor, and for the baselines.
type route struct {
	name   string
	server mcpbridge.Server
	// open opens a session for a baseline.
	open func(context.Context) (session, error)
	// dialer replaces the supervisor's own; nil does not.
	dialer dial.Dialer
}

func routes() []route {
	return []route{overMemory(), overStdio("", ""), overJSON(""), overSSE("")}
}

func overMemory() route {
	server := newServer(echo)
	return route{
		name: "memory", server: mcpbridge.Server{InMemory: server},
		open: func(ctx context.Context) (session, error) {
			near, far := mcp.NewInMemoryTransports()
			if _, err := server.Connect(ctx, far, nil); err != nil {
				return nil, err
			}
			return connect(ctx, near, "")
		},
	}
}

// overStdio is the way to processes that return a content, and exit as soon as a file exists.
func overStdio(content, exitFile string) route {
	args := []string{serveStdio, content, exitFile}
	return route{
		name: "stdio", server: mcpbridge.Server{Command: self, Args: args},
		open: func(ctx context.Context) (session, error) {
			return connect(ctx, &mcp.CommandTransport{Command: exec.Command(self, args...)}, "")
		},
	}
}

// overJSON and overSSE are the ways to the HTTP server, whose tool returns a content.
func overJSON(content string) route {
	return overHTTP("http-json", origin+pathJSON+below(content), tuned)
}

func overSSE(content string) route { return overHTTP("http-sse", origin+pathSSE+below(content), tuned) }

func below(content string) string {
	if content == "" {
		return ""
	}
	return "/" + content
}

// overHTTP is the way to a URL, with the supervisor's own HTTP client. Sessions of baselines send
// through client.
func overHTTP(name, url string, client *http.Client) route {
	return route{name: name, server: mcpbridge.Server{URL: url}, open: dialsHTTP(url, client, false, "")}
}

// dialsHTTP returns a function that opens sessions over HTTP. An empty protocol version is the
// SDK's choice.
func dialsHTTP(url string, client *http.Client, noStream bool, version string) func(context.Context) (session, error) {
	return func(ctx context.Context) (session, error) {
		return connect(ctx, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: client, DisableStandaloneSSE: noStream}, version)
	}
}

var (
	tuned   = newHTTPClient(256) // as a supervisor's own
	untuned = newHTTPClient(0)
)

// newHTTPClient returns a client with so many idle connections to a host; 0 is the default of
// net/http.
func newHTTPClient(idle int) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	if idle > 0 {
		t.MaxIdleConnsPerHost, t.MaxIdleConns = idle, 0
	}
	return &http.Client{Transport: t}
}

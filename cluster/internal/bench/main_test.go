//go:build unix

package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cluster"
	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// serveArg makes the test binary the HTTP server.
const serveArg = "bench-serve"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == serveArg {
		if err := serve(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// serverName is the name of the one server.
const serverName = "s"

// route is a way to a server.
type route struct {
	transport string
	server    mcpbridge.Server
	dialer    clusterapi.Dialer                            // in place of the supervisor's own, or nil
	bare      func(context.Context) (mcp.Transport, error) // of a session of the SDK, or nil
}

// overNothing is the way to sessions that answer at once, without MCP, with a text of a size.
func overNothing(size int) route {
	// The text has lines and quotes, which JSON escapes.
	const line = "A line of \"text\", as a file has them, with quotes and an end.\n"
	text := strings.Repeat(line, size/len(line)+1)[:size]
	return route{transport: "none", server: mcpbridge.Server{URL: "http://instant.invalid"}, dialer: instant{text}}
}

// instant opens sessions that answer at once, and is such a session.
type instant struct{ text string }

func (d instant) Dial(context.Context, clusterapi.DialRequest) (clusterapi.Conn, error) {
	return d, nil
}

func (d instant) Do(context.Context, messages.Operation) (messages.Result, error) {
	return &messages.ToolResult{Result: &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: d.text}}}}, nil
}

func (instant) Hint(string) (safe, known bool) { return false, false }
func (instant) Info() clusterapi.ConnInfo      { return clusterapi.ConnInfo{} }
func (instant) Resume() *mcpbridge.Resume      { return nil }
func (instant) Close(context.Context) error    { return nil }
func (instant) Detach(context.Context) error   { return nil }

// newServer returns an MCP server that echoes a text.
func newServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	type args struct {
		Text string `json:"text"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in args) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil, nil
	})
	return server
}

// serve serves over HTTP, with answers in JSON, until in ends. It writes its origin to out.
func serve(in io.Reader, out io.Writer) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := newServer()
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{JSONResponse: true})
	web := &http.Server{Handler: handler}
	go web.Serve(l)
	fmt.Fprintln(out, "http://"+l.Addr().String())
	io.Copy(io.Discard, in)
	return web.Close()
}

// overMemory is the way to an MCP server in this process.
func overMemory() route {
	server := newServer()
	return route{transport: "memory", server: mcpbridge.Server{InMemory: server}, bare: func(ctx context.Context) (mcp.Transport, error) {
		near, far := mcp.NewInMemoryTransports()
		_, err := server.Connect(ctx, far, nil)
		return near, err
	}}
}

// overHTTP is the way to an MCP server in a process of its own, which answers in JSON.
func overHTTP(b *testing.B) route {
	cmd := exec.Command(os.Args[0], serveArg)
	in, err := cmd.StdinPipe()
	require.NoError(b, err)
	out, err := cmd.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, cmd.Start())
	b.Cleanup(func() {
		in.Close()
		io.Copy(io.Discard, out)
		require.NoError(b, cmd.Wait())
	})
	origin, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(b, err)
	url := strings.TrimSpace(origin)
	tuned := http.DefaultTransport.(*http.Transport).Clone() // as a supervisor's own
	tuned.MaxIdleConnsPerHost, tuned.MaxIdleConns = 256, 0
	b.Cleanup(tuned.CloseIdleConnections)
	client := &http.Client{Transport: tuned}
	return route{transport: "http-json", server: mcpbridge.Server{URL: url}, bare: func(context.Context) (mcp.Transport, error) {
		return &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: client}, nil
	}}
}

// config is the configuration of supervisors.
func (r route) config() supervisor.Config {
	cfg := supervisor.Config{MaxSessions: 100_000, MaxDials: 64, Servers: []mcpbridge.Server{r.server}}
	cfg.Servers[0].Name = serverName
	if r.dialer != nil {
		cfg = clusterapi.ReplaceDialer(cfg, r.dialer)
	}
	return cfg
}

// newSystem returns an actor system that logs nothing.
func newSystem() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
}

// alone starts a supervisor without a cluster.
func alone(b *testing.B, r route) *supervisor.Client {
	sup, err := supervisor.Start(newSystem(), r.config())
	require.NoError(b, err)
	b.Cleanup(func() { sup.Stop(context.Background()) })
	return sup.Client()
}

// joins starts a member. A lease of 0 is the default.
func joins(b *testing.B, hub *cluster.InProcess, r route, name string, lease time.Duration) *cluster.Member {
	m, err := cluster.Start(b.Context(), newSystem(), cluster.Config{Supervisor: r.config(), Member: name, InProcess: hub, Lease: lease})
	require.NoError(b, err)
	b.Cleanup(func() { m.Stop(context.Background()) })
	return m
}

// clusterOf starts members, and waits until they know each other.
func clusterOf(b *testing.B, n int, r route, lease time.Duration) []*cluster.Member {
	hub := cluster.NewInProcess()
	var members []*cluster.Member
	for i := range n {
		members = append(members, joins(b, hub, r, fmt.Sprint("member-", i), lease))
	}
	know(b, members)
	return members
}

// clusterOfHosts is clusterOf for members that are the witness themselves.
func clusterOfHosts(b *testing.B, n int, r route, lease time.Duration) []*cluster.Member {
	var hosts []string
	for range n {
		addr, err := clusterapi.FreeAddr("127.0.0.1")
		require.NoError(b, err)
		hosts = append(hosts, addr)
	}
	members, dir := make([]*cluster.Member, n), b.TempDir()
	var wait sync.WaitGroup
	for i, host := range hosts {
		wait.Go(func() {
			m, err := cluster.Start(b.Context(), newSystem(), cluster.Config{Supervisor: r.config(), Listen: host, Hosts: hosts, Directory: dir, Lease: lease})
			if members[i] = m; err != nil {
				b.Error(err)
			}
		})
	}
	wait.Wait()
	require.False(b, b.Failed())
	know(b, members)
	return members
}

// know waits until all members know each other.
func know(b *testing.B, members []*cluster.Member) {
	require.Eventually(b, func() bool {
		for _, m := range members {
			if len(m.Members()) != len(members) {
				return false
			}
		}
		return true
	}, 30*time.Second, time.Millisecond)
}

// call calls the tool of a server in the session of a scope.
func call(ctx context.Context, c *supervisor.Client, scope string) (member string, err error) {
	res, err := c.CallTool(ctx, serverName, scope, params())
	if err != nil {
		return "", err
	}
	return res.Supervisor, nil
}

// params returns the parameters of a call. The SDK writes into them, so that each call has its own.
func params() *mcp.CallToolParams {
	return &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "hello"}}
}

// scopeOn returns a scope whose session lives on a member.
func scopeOn(b *testing.B, c *supervisor.Client, member string) string {
	for i := range 1000 {
		scope := fmt.Sprint("conversation-", i)
		on, err := call(b.Context(), c, scope)
		require.NoError(b, err)
		if on == member {
			return scope
		}
	}
	b.Fatalf("no key belongs to %s", member)
	return ""
}

package gateway

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/internal/listfile"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
	"github.com/mcpactor/mcpactor/toolset"
)

func TestMain(m *testing.M) {
	switch os.Getenv(processVar) {
	case "":
	case "raw":
		runRawServer()
	case orderly:
		runOrderly()
	case silent:
		os.WriteFile(os.Getenv(fileVar), []byte(strconv.Itoa(os.Getpid())), 0o600)
		time.Sleep(time.Minute)
	default:
		runProcess()
	}
	os.Exit(m.Run())
}

// processVar makes the test binary a stdio server.
const processVar = "MCPACTOR_SERVE_TEST_PROCESS"

// silent is its value for a process that says nothing, but writes its id into the file that fileVar names.
const silent, fileVar = "silent", "MCPACTOR_SERVE_TEST_FILE"

// stubborn is its value for a process that ends neither with its input, nor by a signal.
const stubborn = "stubborn"

// runProcess runs a stdio server, whose tools return its process id, or end it.
func runProcess() {
	s := mcp.NewServer(&mcp.Implementation{Name: "process", Version: "1"}, nil)
	add := func(name string, f func()) {
		mcp.AddTool(s, &mcp.Tool{Name: name}, func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, any, error) {
			f()
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strconv.Itoa(os.Getpid())}}}, nil, nil
		})
	}
	add("pid", func() {})
	add("exit", func() { os.Exit(7) })
	if os.Getenv(processVar) == stubborn {
		signal.Ignore(syscall.SIGTERM, os.Interrupt)
	}
	s.Run(context.Background(), &mcp.StdioTransport{})
	if os.Getenv(processVar) == stubborn {
		time.Sleep(time.Minute)
	}
	os.Exit(0)
}

// world is a gateway with its clients.
type world struct {
	*testing.T
	*Gateway
	sup    *supervisor.Supervisor
	ends   []func()
	silent int // sessions that Stop names, because a server does not answer initialize, and may open them
}

// newWorld starts a gateway in front of servers.
func newWorld(t *testing.T, lists mcpbridge.Store, servers ...mcpbridge.Server) *world {
	cfg := setup{Lists: lists, Sessions: &resume.Memory{}, Prefixed: len(servers) > 1, Supervisor: supervisor.Config{Servers: servers}}
	for _, srv := range servers {
		cfg.Tools = append(cfg.Tools, toolset.Filter{Name: srv.Name})
	}
	return worldOf(t, cfg)
}

// withSessions makes a server of the SDK one that has only the revisions with sessions, in which its tools ask questions.
func withSessions(s *mcp.Server) *mcp.Server {
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "server/discover" {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no"}
			}
			return next(ctx, method, req)
		}
	})
	return s
}

// setup is what a test serves: a supervisor with a gateway as mcpactor serve starts them.
type setup struct {
	Supervisor      supervisor.Config
	Tools           []toolset.Filter
	Filters         func(client, server string) []toolset.Filter
	LeftOut         []string
	Prefixed        bool
	Quiet, Wait     time.Duration
	Lingers         bool
	Lists, Sessions mcpbridge.Store
	Clients         *ClientStore
	Key             []byte
	Stability       toolset.Stability
	Find            int
	FindCalls       bool
	Pins            Pins
	Record          *recorder // or nil
}

func worldOf(t *testing.T, with setup) *world {
	cfg := with.Supervisor
	cfg.Servers = slices.Clone(cfg.Servers)
	for i := range cfg.Servers {
		srv, own := &cfg.Servers[i], time.Minute
		if srv.Command != "" {
			own = startTimeout
		}
		srv.Limits.ConnectTimeout = cmp.Or(srv.Limits.ConnectTimeout, cfg.ConnectTimeout, own)
	}
	cfg.Servers = Prepare(cfg.Servers...)
	if with.Lists != nil {
		cfg.Store = listfile.Beside(with.Lists, with.Sessions)
	}
	cfg.LeaveOpen = with.Clients != nil
	cfg.IdleTimeout, cfg.CallTimeout, cfg.HandlerTimeout = -1, 24*time.Hour, time.Hour
	cfg.CloseTimeout = cmp.Or(cfg.CloseTimeout, closePatience)
	sup, err := supervisor.Start(actor.NewActorSystem(supervisor.WithSystemLogger(zerolog.Nop())), cfg)
	require.NoError(t, err)
	var backend Backend = sup
	if with.Record != nil {
		backend = with.Record.before(sup)
	}
	g, err := New(backend, Config{
		Servers: with.Tools, Filters: with.Filters, LeftOut: with.LeftOut, Prefixed: with.Prefixed, Quiet: with.Quiet, Wait: with.Wait, Lingers: with.Lingers, Lists: with.Lists,
		Sessions: with.Sessions, Clients: with.Clients, Key: with.Key, Logger: cfg.Logger,
		Stability: with.Stability, Find: with.Find, FindCalls: with.FindCalls, Pins: with.Pins,
	})
	require.NoError(t, err)
	return &world{T: t, Gateway: g, sup: sup}
}

// stop ends all clients, and the gateway with its supervisor.
func (w *world) stop() {
	for _, end := range w.ends {
		end()
	}
	if err := w.Stop(); w.silent > 0 {
		require.ErrorContains(w, err, fmt.Sprintf("%d sessions could not be closed", w.silent))
	} else {
		require.NoError(w, err)
	}
}

// Stop ends the gateway and its supervisor.
func (w *world) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*closePatience)
	defer cancel()
	if w.cfg.Clients == nil {
		w.do.Do(ctx, &messages.CloseAll{Now: true})
	}
	err := w.sup.Stop(ctx)
	w.Close()
	return err
}

// pipe serves one client, and returns its end of the two pipes.
func (w *world) pipe() (io.ReadCloser, io.WriteCloser) { return w.pipeTo(w.accept) }

// pipeTo is pipe for a client whose handler accept makes.
func (w *world) pipeTo(accept func(*mcpserver.Client) mcpserver.Handler) (io.ReadCloser, io.WriteCloser) {
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(ended)
		mcpserver.ServeStdio(ctx, in, out, accept)
		out.Close()
	}()
	w.ends = append(w.ends, func() { cancel(); toServer.Close(); fromServer.Close(); <-ended })
	return fromServer, toServer
}

// withInitialize makes a client of the SDK one that begins with initialize: it would rather send stateless requests.
var withInitialize = &mcp.ClientSessionOptions{ProtocolVersion: mcpserver.Revisions[0]}

// connect connects a client of the SDK.
func (w *world) connect(options *mcp.ClientOptions) *mcp.ClientSession {
	in, out := w.pipe()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, options).Connect(w.Context(), &mcp.IOTransport{Reader: in, Writer: out}, withInitialize)
	require.NoError(w, err)
	return session
}

// call calls a tool, and returns the texts of the result.
func (w *world) call(session *mcp.ClientSession, tool string, arguments map[string]any) (text string, isError bool) {
	result, err := session.CallTool(w.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	require.NoError(w, err)
	var texts []string
	for _, c := range result.Content {
		texts = append(texts, c.(*mcp.TextContent).Text)
	}
	return strings.Join(texts, "\n"), result.IsError
}

// raw is a client without an SDK.
type raw struct {
	w   *world
	out io.Writer

	mu       sync.Mutex
	messages []*mcpserver.Message
	arrived  chan struct{}
}

func (w *world) raw() *raw { return w.rawAt(w.pipe()) }

// rawAt is raw for a client at its end of two pipes.
func (w *world) rawAt(in io.ReadCloser, out io.WriteCloser) *raw {
	r := &raw{w: w, out: out, arrived: make(chan struct{}, 1000)}
	go func() {
		lines := bufio.NewScanner(in)
		for lines.Scan() {
			m := new(mcpserver.Message)
			if json.Unmarshal(lines.Bytes(), m) == nil {
				if m.ID == nil && m.Method == "" {
					m.ID = json.RawMessage("null")
				}
				r.mu.Lock()
				r.messages = append(r.messages, m)
				r.mu.Unlock()
				r.arrived <- struct{}{}
			}
		}
	}()
	return r
}

// initialize is the first message of a client.
const initialize = `{"jsonrpc":"2.0","id":"open","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`

// open sends initialize, and returns its result.
func (r *raw) open() string {
	answer := r.ask(initialize, `"open"`)
	r.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return string(answer.Result)
}

func (r *raw) send(line string) {
	_, err := io.WriteString(r.out, line+"\n")
	require.NoError(r.w, err)
}

// ask sends a request, and returns the response with an id.
func (r *raw) ask(line, id string) *mcpserver.Message {
	r.send(line)
	return r.await(func(m *mcpserver.Message) bool { return m.Method == "" && string(m.ID) == id })
}

// await returns a message, and removes it.
func (r *raw) await(wanted func(*mcpserver.Message) bool) *mcpserver.Message {
	for deadline := time.After(2 * time.Minute); ; {
		r.mu.Lock()
		for i, m := range r.messages {
			if wanted(m) {
				r.messages = append(r.messages[:i:i], r.messages[i+1:]...)
				r.mu.Unlock()
				return m
			}
		}
		r.mu.Unlock()
		select {
		case <-r.arrived:
		case <-deadline:
			require.Fail(r.w, "the message has not come")
		}
	}
}

// overHTTP runs a scenario in a bubble of fake time, in front of a server "s" over HTTP.
func overHTTP(t *testing.T, lists mcpbridge.Store, scenario func(w *world, e *faults.Server, tools *faults.Tools)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		tools := faults.NewTools()
		server := faults.Local(tools.Handler)
		defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		defer tools.Close()
		defer server.Close()
		w := newWorld(t, lists, remote("s", server))
		defer w.stop()
		scenario(w, server, tools)
	})
}

// twoServers starts two servers over HTTP. The caller ends them.
func twoServers() (one, two *faults.Server, end func()) {
	first, second := faults.NewTools(), faults.NewTools()
	one, two = faults.Local(first.Handler), faults.Local(second.Handler)
	return one, two, func() {
		two.Close()
		one.Close()
		second.Close()
		first.Close()
	}
}

// remote is the configuration of a server over HTTP.
func remote(name string, e *faults.Server) mcpbridge.Server {
	return mcpbridge.Server{Name: name, URL: e.URL() + "/" + name, HTTPClient: &http.Client{Transport: e}}
}

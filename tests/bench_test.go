package tests

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// The benchmarks measure a trivial tool call, each beside its baselines in the
// same run: compare within one run only.
//
//	bare       one ClientSession of the SDK; over HTTP with enough idle connections
//	untuned    the same with the SDK's default HTTP client
//	per-call   a session for each call
//	mutex-map  sessions in a map behind a mutex, created once by a sync.Once
//	message    a message to the supervisor, answered by a message
//	client     supervisor.Client

// benchArgs are new for each call: the SDK writes into them.
func benchArgs() *mcp.CallToolParams {
	return &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "hello"}}
}

func benchServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in struct {
		Text string `json:"text"`
	},
	) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil, nil
	})
	return server
}

// benchHTTP serves on loopback until the benchmark ends.
func benchHTTP(b *testing.B) string {
	server := benchServer()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	h := &http.Server{Handler: mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)}
	go h.Serve(l) // it ends with Close
	b.Cleanup(func() {
		h.Close()
		for s := range server.Sessions() {
			s.Close()
		}
	})
	return "http://" + l.Addr().String()
}

func tunedClient(b *testing.B) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 256
	b.Cleanup(t.CloseIdleConnections)
	return &http.Client{Transport: t}
}

func connect(b *testing.B, transport mcp.Transport) *mcp.ClientSession {
	b.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	cs, err := client.Connect(context.Background(), transport, nil)
	require.NoError(b, err)
	return cs
}

// callers runs call from n goroutines until b.N calls are done.
func callers(b *testing.B, n int, call func() error) {
	b.Helper()
	b.ReportAllocs()
	b.ResetTimer()
	var left atomic.Int64
	left.Store(int64(b.N))
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := call(); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	if err := failed.Load(); err != nil {
		b.Fatal(*err)
	}
}

// supervised starts a supervisor with one server, warm.
func supervised(b *testing.B, srv mcpbridge.Server) (*actor.ActorSystem, *supervisor.Supervisor) {
	b.Helper()
	srv.Name = "s"
	system := actor.NewActorSystem(quiet)
	sup, err := supervisor.Start(system, supervisor.Config{Servers: []mcpbridge.Server{srv}})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, sup.Stop(context.Background())) })
	_, err = sup.Client().CallTool(context.Background(), "s", "a", benchArgs())
	require.NoError(b, err)
	return system, sup
}

// asker is what an agent does, without an actor of its own.
type asker struct {
	pid     *actor.PID
	replies chan any
}

func (a *asker) SendUserMessage(_ *actor.PID, msg any) { a.replies <- actor.UnwrapEnvelopeMessage(msg) }
func (a *asker) SendSystemMessage(*actor.PID, any)     {}
func (a *asker) Stop(*actor.PID)                       {}

// messaging returns a call by message.
func messaging(system *actor.ActorSystem, to *actor.PID) func() error {
	askers := sync.Pool{New: func() any {
		a := &asker{replies: make(chan any, 1)}
		a.pid, _ = system.ProcessRegistry.Add(a, system.ProcessRegistry.NextId())
		return a
	}}
	return func() error {
		a := askers.Get().(*asker)
		defer askers.Put(a)
		system.Root.RequestWithCustomSender(to, &messages.CallTool{Header: messages.To("s", "a"), Params: benchArgs()}, a.pid)
		if f, ok := (<-a.replies).(*messages.Failure); ok {
			return f
		}
		return nil
	}
}

// mutexMap is the design that everybody writes first.
type mutexMap struct {
	mu       sync.Mutex
	sessions map[messages.Key]*mutexEntry
	dial     func() *mcp.ClientSession
}

type mutexEntry struct {
	once sync.Once
	cs   *mcp.ClientSession
}

func (m *mutexMap) call(key messages.Key) error {
	m.mu.Lock()
	e := m.sessions[key]
	if e == nil {
		e = new(mutexEntry)
		m.sessions[key] = e
	}
	m.mu.Unlock()
	e.once.Do(func() { e.cs = m.dial() })
	_, err := e.cs.CallTool(context.Background(), benchArgs())
	return err
}

func (m *mutexMap) close() {
	for _, e := range m.sessions {
		e.cs.Close()
	}
}

func BenchmarkWarmCall(b *testing.B) {
	inMemory := func() *mcp.ClientSession {
		near, far := mcp.NewInMemoryTransports()
		_, err := benchServer().Connect(context.Background(), far, nil)
		require.NoError(b, err)
		return connect(b, near)
	}
	url, tuned := benchHTTP(b), tunedClient(b)
	overTuned := func() *mcp.ClientSession {
		return connect(b, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: tuned})
	}
	warm(b, "memory", inMemory, mcpbridge.Server{InMemory: benchServer()})
	warm(b, "http", overTuned, mcpbridge.Server{URL: url})

	untuned := connect(b, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}})
	defer untuned.Close()
	measure(b, "http", "untuned", bare(untuned))
	measure(b, "http", "per-call", func() error {
		cs := overTuned()
		defer cs.Close()
		return bare(cs)()
	})
}

// warm measures the ways to call through a session that is open.
func warm(b *testing.B, transport string, dial func() *mcp.ClientSession, srv mcpbridge.Server) {
	cs := dial()
	defer cs.Close()
	m := &mutexMap{sessions: map[messages.Key]*mutexEntry{}, dial: dial}
	defer m.close()
	system, sup := supervised(b, srv)
	client := sup.Client()
	measure(b, transport, "bare", bare(cs))
	measure(b, transport, "mutex-map", func() error { return m.call(messages.Key{Server: "s", Scope: "a"}) })
	measure(b, transport, "message", messaging(system, sup.PID()))
	measure(b, transport, "client", func() error {
		_, err := client.CallTool(context.Background(), "s", "a", benchArgs())
		return err
	})
}

func bare(cs *mcp.ClientSession) func() error {
	return func() error {
		_, err := cs.CallTool(context.Background(), benchArgs())
		return err
	}
}

func measure(b *testing.B, transport, how string, call func() error) {
	for _, n := range []int{1, 64} {
		b.Run(fmt.Sprintf("transport=%s/callers=%d/how=%s", transport, n, how), func(b *testing.B) { callers(b, n, call) })
	}
}

// BenchmarkFirstCall measures the first call of a key, with the session that it
// opens, and the closing of it.
func BenchmarkFirstCall(b *testing.B) {
	url, tuned := benchHTTP(b), tunedClient(b)
	b.Run("transport=http/how=bare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			cs := connect(b, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: tuned})
			require.NoError(b, bare(cs)())
			require.NoError(b, cs.Close())
		}
	})
	b.Run("transport=http/how=client", func(b *testing.B) {
		_, sup := supervised(b, mcpbridge.Server{URL: url})
		client, ctx, n := sup.Client(), context.Background(), 0
		b.ReportAllocs()
		for b.Loop() {
			n++
			scope := fmt.Sprint("scope-", n)
			_, err := client.CallTool(ctx, "s", scope, benchArgs())
			require.NoError(b, err)
			_, err = client.CloseScope(ctx, scope)
			require.NoError(b, err)
		}
	})
}

// instant is a connection that answers at once: what is left is our own path.
type instant struct{ fakeConn }

func (*instant) Do(context.Context, messages.Operation) (messages.Result, error) {
	return &messages.ToolResult{}, nil
}

type instantly struct{}

func (instantly) Dial(context.Context, mcpbridge.DialRequest) (mcpbridge.Conn, error) {
	return &instant{fakeConn{f: newFake(), broken: make(chan struct{})}}, nil
}

// BenchmarkActorPath measures what supervision adds to a call.
func BenchmarkActorPath(b *testing.B) {
	system := actor.NewActorSystem(quiet)
	sup, err := supervisor.Start(system, supervisor.Config{
		Servers:    []mcpbridge.Server{{Name: "s", URL: "http://fake.invalid"}},
		WrapDialer: func(mcpbridge.Dialer) mcpbridge.Dialer { return instantly{} },
	})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, sup.Stop(context.Background())) })
	client := sup.Client()
	_, err = client.Open(context.Background(), "s", "a")
	require.NoError(b, err)
	measure(b, "none", "message", messaging(system, sup.PID()))
	measure(b, "none", "client", func() error {
		_, err := client.CallTool(context.Background(), "s", "a", benchArgs())
		return err
	})
}

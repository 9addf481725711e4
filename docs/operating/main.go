// Command operating runs agents on two MCP servers that misbehave and one whose tabs they forget to close, and reports to Prometheus
// and OpenTelemetry what the supervisor does about it, which is that of the only member of a
// cluster. The servers are in the program, on loopback:
//
//	go -C docs/operating run .
//	go -C docs/operating run . -traces
//
// The metrics are at http://127.0.0.1:9464/metrics. dashboard.json is a dashboard of Grafana for
// them, and alerts.yml has rules of Prometheus. With -traces, the spans are written to stdout.
package main

import (
	"context"
	crand "crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/mcpactor/mcpactor/cluster"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/supervisor/telemetry"
	"github.com/mcpactor/mcpactor/tests/faults"
)

func main() {
	p := program{traces: io.Discard, agents: 20, pause: 200 * time.Millisecond}
	flag.StringVar(&p.listen, "listen", "127.0.0.1:9464", "where the metrics are served")
	traces := flag.Bool("traces", false, "write the spans to stdout")
	flag.Parse()
	if *traces {
		p.traces = os.Stdout
	}
	p.ready = func(url string) { fmt.Fprintln(os.Stderr, "metrics at", url) }
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := p.run(ctx); err != nil {
		log.Fatal(err)
	}
}

// program is what main runs.
type program struct {
	listen string
	traces io.Writer
	agents int
	pause  time.Duration // the longest pause between two calls of an agent
	ready  func(url string)
}

// run runs the agents until ctx ends.
func (p program) run(ctx context.Context) (err error) {
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo())
	if err != nil {
		return err
	}
	writer, err := stdouttrace.New(stdouttrace.WithWriter(p.traces), stdouttrace.WithPrettyPrint())
	if err != nil {
		return err
	}
	meters := metric.NewMeterProvider(metric.WithReader(exporter))
	tracers := sdktrace.NewTracerProvider(sdktrace.WithBatcher(writer))
	defer func() {
		ctx := context.WithoutCancel(ctx)
		err = errors.Join(err, tracers.Shutdown(ctx), meters.Shutdown(ctx))
	}()

	// faulty expires sessions, loses answers and refuses calls. restarting goes down now and then.
	faulty, err := faults.Serve(faults.NewTools().Handler)
	if err != nil {
		return err
	}
	defer faulty.Close()
	faulty.Inject("tools/call", faults.Sometimes(1, 0.1, faulty.Forget(faults.Expiries()[0]), faults.Cut(), faults.Refuse(http.StatusInternalServerError, "out of order")))
	restarting, err := faults.Serve(faults.NewTools().Handler)
	if err != nil {
		return err
	}
	defer restarting.Close()

	quiet := actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) })
	cfg, observe, err := telemetry.Instrument(supervisor.Config{
		Servers: []supervisor.Server{
			{Name: "faulty", URL: faulty.URL()},
			{Name: "restarting", URL: restarting.URL()},
			{Name: "browser", InMemory: newBrowser(), Handles: []mcpbridge.Handle{{
				Mint: "open_tab", Path: "tab_id", Release: "close_tab", Max: p.agents / 2, Idle: 5 * p.pause,
			}}},
		},
		MaxSessions: 2 * p.agents, // each agent wants three
		CallTimeout: 2 * time.Second,
		BackoffMax:  time.Second,
	}, telemetry.Config{TracerProvider: tracers, MeterProvider: meters})
	if err != nil {
		return err
	}
	member, err := cluster.Start(ctx, actor.NewActorSystem(quiet), cluster.Config{Supervisor: cfg, InProcess: cluster.NewInProcess()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, member.Stop(context.WithoutCancel(ctx))) }()
	stop, err := observe(member.Supervisor())
	if err != nil {
		return err
	}
	defer stop()

	listener, err := net.Listen("tcp", p.listen)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	web := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	defer web.Close()
	go web.Serve(listener) //nolint:errcheck // it returns when it is closed
	p.ready("http://" + listener.Addr().String() + "/metrics")

	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { p.restart(ctx, restarting) })
	for i := range p.agents {
		all.Go(func() { p.agent(ctx, member.Client(), fmt.Sprint("conversation-", i)) })
	}
	<-ctx.Done()
	return nil
}

// agent calls tools of both servers.
func (p program) agent(ctx context.Context, client *supervisor.Client, scope string) {
	tools := []string{"count", "count/ro", "echo/ro", "fail"}
	for sleep(ctx, rand.N(p.pause)) {
		server, tool := []string{"faulty", "restarting", "browser"}[rand.N(3)], tools[rand.N(len(tools))]
		if server == "browser" {
			tool = "open_tab"
		}
		// The outcome is in the metrics.
		client.CallTool(ctx, server, scope, &mcp.CallToolParams{Name: tool}) //nolint:errcheck // see above
	}
}

// newBrowser returns a server with tabs, which the agents never close.
func newBrowser() *mcp.Server {
	type tab struct {
		ID string `json:"tab_id"`
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "browser", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "open_tab"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, tab, error) {
		return nil, tab{crand.Text()}, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "close_tab"}, func(context.Context, *mcp.CallToolRequest, tab) (*mcp.CallToolResult, any, error) {
		return nil, nil, nil
	})
	return server
}

// restart takes a server down for a moment, again and again.
func (p program) restart(ctx context.Context, server *faults.Server) {
	for sleep(ctx, 20*p.pause) {
		server.Stop()
		sleep(ctx, 10*p.pause)
		if err := server.Start(); err != nil {
			log.Print(err)
		}
	}
}

// sleep reports false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

package telemetry

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// The tests with the SDK of OpenTelemetry are in docs/operating/telemetrytest.

func TestNothingIsAddedWithoutAProvider(t *testing.T) {
	for name, to := range map[string]Config{
		"global": {},
		"noop":   {TracerProvider: tracenoop.NewTracerProvider(), MeterProvider: metricnoop.NewMeterProvider()},
	} {
		tel, err := newTelemetry(&supervisor.Config{}, to)
		require.NoError(t, err, name)
		require.Nil(t, tel, name)
	}
	tel, err := newTelemetry(&supervisor.Config{}, Config{TracerProvider: new(recorder)})
	require.NoError(t, err)
	require.NotNil(t, tel.tracer)
	require.Nil(t, tel.metrics)

	_, _, err = Start(nil, supervisor.Config{}, Config{})
	require.ErrorContains(t, err, "supervisor: servers: is empty")
	_, _, err = Start(nil, supervisor.Config{}, Config{MeterProvider: broken{}})
	require.ErrorContains(t, err, "telemetry: no such instrument")
}

func TestSpanOfACallReachesTheServer(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	parents := make(chan any, 1)
	mcp.AddTool(server, &mcp.Tool{Name: "add"}, func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		parents <- req.Params.Meta["traceparent"]
		return &mcp.CallToolResult{}, nil, nil
	})
	r := new(recorder)
	otel.SetTracerProvider(r)
	defer otel.SetTracerProvider(tracenoop.NewTracerProvider())
	sup, stop, err := Start(actor.NewActorSystem(), supervisor.Config{Servers: []supervisor.Server{{Name: "s", InMemory: server}}}, Config{})
	require.NoError(t, err)
	ctx := messages.WithTrace(t.Context(), messages.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
	_, err = sup.Client().CallTool(ctx, "s", "a", &mcp.CallToolParams{Name: "add"})
	require.NoError(t, err)
	require.Equal(t, "00-0af7651916cd43dd8448eb211c80319c-"+r.find("tools/call add").SpanID().String()+"-01", <-parents)
	require.True(t, r.find("dial").IsValid())
	require.NoError(t, sup.Stop(t.Context()))
	stop()
}

func TestInstrumentedConfigurationIsForOneSupervisor(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	start := func(cfg supervisor.Config) *supervisor.Supervisor {
		sup, err := supervisor.Start(actor.NewActorSystem(), cfg)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, sup.Stop(context.Background())) })
		return sup
	}
	cfg, observe, err := Instrument(supervisor.Config{Servers: []supervisor.Server{{Name: "s", InMemory: server}}}, Config{TracerProvider: new(recorder)})
	require.NoError(t, err)
	for _, sup := range []*supervisor.Supervisor{nil, {}} {
		_, err = observe(sup)
		require.ErrorContains(t, err, "supervisor: is nil, or was not started")
	}
	first := start(cfg)
	stop, err := observe(first)
	require.NoError(t, err)
	stop()
	_, err = observe(first)
	require.ErrorContains(t, err, "call Instrument for each supervisor")
	_, err = observe(start(cfg))
	require.ErrorContains(t, err, "call Instrument for each supervisor")

	_, _, err = Instrument(supervisor.Config{}, Config{MeterProvider: broken{}})
	require.ErrorContains(t, err, "telemetry: no such instrument")
	plain, observe, err := Instrument(supervisor.Config{Name: "plain"}, Config{})
	require.NoError(t, err)
	require.Equal(t, supervisor.Config{Name: "plain"}, plain, "without a provider nothing changes")
	stop, err = observe(nil)
	require.NoError(t, err)
	stop()
}

func TestServersHaveTheirNamesBeforeTheSupervisorIsObserved(t *testing.T) {
	cfg := supervisor.Config{Servers: []supervisor.Server{{Name: "s"}}}
	tel, err := newTelemetry(&cfg, Config{TracerProvider: new(recorder)})
	require.NoError(t, err)
	require.Equal(t, "s", tel.server("s"))
	require.Equal(t, other, tel.server("t"))
}

// nothing is a dialer that returns neither a connection nor an error.
type nothing struct{}

func (nothing) Dial(context.Context, dial.Request) (dial.Conn, error) { return nil, nil }

func TestDialerThatReturnsNothingIsNotChanged(t *testing.T) {
	conn, err := (&dialer{nothing{}, &telemetry{tracer: tracer{of: new(recorder)}}}).Dial(t.Context(), dial.Request{})
	require.Nil(t, conn)
	require.NoError(t, err)
}

// recorder is a provider whose spans are only their names.
type recorder struct {
	tracenoop.TracerProvider
	mu    sync.Mutex
	spans map[string]trace.SpanContext
}

func (r *recorder) Tracer(string, ...trace.TracerOption) trace.Tracer { return tracer{of: r} }

// find returns the last span of a name.
func (r *recorder) find(name string) trace.SpanContext {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.spans[name]
}

type tracer struct {
	tracenoop.Tracer
	of *recorder
}

func (t tracer) Start(ctx context.Context, name string, _ ...trace.SpanStartOption) (context.Context, trace.Span) {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	if t.of.spans == nil {
		t.of.spans = map[string]trace.SpanContext{}
	}
	sc := trace.SpanContextFromContext(ctx).WithSpanID(trace.SpanID{2, byte(len(t.of.spans))}).WithRemote(false)
	t.of.spans[name] = sc
	s := span{context: sc}
	return trace.ContextWithSpan(ctx, s), s
}

type span struct {
	tracenoop.Span
	context trace.SpanContext
}

func (s span) SpanContext() trace.SpanContext { return s.context }

// broken is a provider that makes no histogram.
type broken struct{ metricnoop.MeterProvider }

func (broken) Meter(string, ...metric.MeterOption) metric.Meter { return brokenMeter{} }

type brokenMeter struct{ metricnoop.Meter }

func (brokenMeter) Float64Histogram(string, ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return metricnoop.Float64Histogram{}, errors.New("no such instrument")
}

package cluster_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/mcpactor/mcpactor/cluster"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/supervisor/telemetry"
)

func TestCallOnAnotherMemberIsReportedThereOnceWithTheTraceOfItsCaller(t *testing.T) {
	reports := map[string]*report{"a": {}, "b": {}}
	observers := map[string]func(*supervisor.Supervisor) (func(), error){}
	a, b := startPair(t, func(name string) supervisor.Config {
		r := reports[name]
		cfg := supervisor.Config{Servers: []supervisor.Server{{Name: "s", InMemory: newTools("one")}}}
		cfg, observe, err := telemetry.Instrument(cfg, telemetry.Config{TracerProvider: spans{report: r}, MeterProvider: meters{report: r}})
		require.NoError(t, err)
		observers[name] = observe
		return cfg
	})
	for name, m := range map[string]*cluster.Member{"a": a, "b": b} {
		stop, err := observers[name](m.Supervisor())
		require.NoError(t, err)
		defer stop()
	}
	scope := scopeOn(t, b, "s")
	caller := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, TraceFlags: trace.FlagsSampled})
	ctx, cancel := context.WithTimeout(trace.ContextWithSpanContext(t.Context(), caller), 20*time.Second)
	defer cancel()
	const calls = 3
	for range calls {
		result, err := a.Client().CallTool(ctx, "s", scope, &mcp.CallToolParams{Name: "one"})
		require.NoError(t, err)
		require.Equal(t, "b", result.Supervisor)
	}

	require.Empty(t, reports["a"].named("tools/call one"))
	require.Empty(t, reports["a"].counted("mcpactor.call.duration", "tools/call"))
	require.Empty(t, reports["a"].counted("mcp.client.operation.duration", "tools/call"))
	parents := reports["b"].named("tools/call one")
	require.Len(t, parents, calls)
	for _, parent := range parents {
		require.Equal(t, caller.TraceID(), parent.TraceID())
		require.Equal(t, caller.SpanID(), parent.SpanID())
		require.True(t, parent.IsSampled())
		require.True(t, parent.IsRemote())
	}
	require.Empty(t, reports["b"].named("setup"))
	for _, name := range []string{"mcpactor.call.duration", "mcp.client.operation.duration"} {
		require.Equal(t, []string{"s", "s", "s"}, reports["b"].counted(name, "tools/call"))
	}
	open := func(name string) (sum int64) {
		require.NoError(t, reports[name].collect(ctx, reports[name]))
		return reports[name].used
	}
	snap, err := a.Client().Inspect(ctx)
	require.NoError(t, err)
	for _, m := range snap.Members {
		require.EqualValues(t, m.Open, open(m.Name), m.Name)
	}
	require.EqualValues(t, snap.Open, reports["a"].used+reports["b"].used)
	require.NotZero(t, snap.Open)
}

// report is what a member reports.
type report struct {
	metricnoop.Observer // of one collection
	used                int64
	collect             metric.Callback

	mu    sync.Mutex
	spans []reported
	took  []measured
}

// reported is a span.
type reported struct {
	name   string
	parent trace.SpanContext
}

// measured is a value of a histogram.
type measured struct {
	name       string
	attributes attribute.Set
}

// named returns the parents of the spans of a name.
func (r *report) named(name string) (parents []trace.SpanContext) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, span := range r.spans {
		if span.name == name {
			parents = append(parents, span.parent)
		}
	}
	return parents
}

// counted returns the servers of the values of a histogram for a method.
func (r *report) counted(name, method string) (servers []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, value := range r.took {
		if of, _ := value.attributes.Value("mcp.method.name"); value.name == name && of.AsString() == method {
			server, _ := value.attributes.Value("mcpactor.server")
			servers = append(servers, server.AsString())
		}
	}
	return servers
}

// gauge is the metric of the sessions that are open.
type gauge struct {
	metricnoop.Int64ObservableUpDownCounter
	name string
}

func (r *report) ObserveInt64(of metric.Int64Observable, value int64, _ ...metric.ObserveOption) {
	if g, ok := of.(gauge); ok && g.name == "mcpactor.slot.used" {
		r.used = value
	}
}

// spans is a provider whose spans are reported when they begin.
type spans struct {
	tracenoop.TracerProvider
	*report
}

func (s spans) Tracer(string, ...trace.TracerOption) trace.Tracer { return tracer{report: s.report} }

type tracer struct {
	tracenoop.Tracer
	*report
}

func (t tracer) Start(ctx context.Context, name string, _ ...trace.SpanStartOption) (context.Context, trace.Span) {
	t.mu.Lock()
	defer t.mu.Unlock()
	parent := trace.SpanContextFromContext(ctx)
	t.spans = append(t.spans, reported{name, parent})
	s := span{context: parent.WithSpanID(trace.SpanID{2, byte(len(t.spans))}).WithRemote(false)}
	return trace.ContextWithSpan(ctx, s), s
}

type span struct {
	tracenoop.Span
	context trace.SpanContext
}

func (s span) SpanContext() trace.SpanContext { return s.context }

// meters is a provider whose histograms are reported, and a gauge.
type meters struct {
	metricnoop.MeterProvider
	*report
}

func (m meters) Meter(string, ...metric.MeterOption) metric.Meter { return meter{report: m.report} }

type meter struct {
	metricnoop.Meter
	*report
}

func (m meter) Float64Histogram(name string, _ ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return histogram{name: name, report: m.report}, nil
}

func (m meter) Int64ObservableUpDownCounter(name string, _ ...metric.Int64ObservableUpDownCounterOption) (metric.Int64ObservableUpDownCounter, error) {
	return gauge{name: name}, nil
}

func (m meter) RegisterCallback(f metric.Callback, _ ...metric.Observable) (metric.Registration, error) {
	m.report.collect = f
	return metricnoop.Registration{}, nil
}

type histogram struct {
	metricnoop.Float64Histogram
	name string
	*report
}

func (h histogram) Enabled(context.Context) bool { return true }

func (h histogram) Record(_ context.Context, _ float64, options ...metric.RecordOption) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.took = append(h.took, measured{h.name, metric.NewRecordConfig(options).Attributes()})
}

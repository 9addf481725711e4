package telemetrytest

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/supervisor/telemetry"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// harness is a supervisor whose spans and metrics are kept.
type harness struct {
	*supervisor.Supervisor
	t      *testing.T
	system *actor.ActorSystem
	script *faults.Script // the server "s"
	spans  *tracetest.SpanRecorder
	tracer *sdktrace.TracerProvider
	reader *metric.ManualReader
	stop   func() // ends the reports
}

// scenario runs a test with a supervisor in a bubble of fake time.
func scenario(t *testing.T, cfg supervisor.Config, adapt func(*telemetry.Config), test func(*testing.T, *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &harness{t: t, script: faults.NewScript(t, "s"), spans: tracetest.NewSpanRecorder(), reader: metric.NewManualReader()}
		h.tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(h.spans))
		to := telemetry.Config{TracerProvider: h.tracer, MeterProvider: metric.NewMeterProvider(metric.WithReader(h.reader))}
		if adapt != nil {
			adapt(&to)
		}
		quiet := actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) })
		var err error
		h.system = actor.NewActorSystem(quiet)
		h.Supervisor, h.stop, err = telemetry.Start(h.system, h.script.Config(cfg), to)
		require.NoError(t, err)
		test(t, h)
		h.end()
	})
}

// end stops the supervisor, and checks that every span has ended.
func (h *harness) end() {
	require.NoError(h.t, h.Stop(context.Background()))
	h.stop()
	synctest.Wait()
	require.Len(h.t, h.spans.Ended(), len(h.spans.Started()), "every span ends")
	time.Sleep(10 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
}

// join makes the supervisor one of a member of a cluster, which describes itself so.
func (h *harness) join(as messages.MemberSnapshot) {
	h.system.Root.Send(h.PID(), &protocol.Cluster{Self: func() messages.MemberSnapshot { return as }})
}

// call calls a tool of the script.
func (h *harness) call(ctx context.Context, scope, tool string) (*messages.ToolResult, error) {
	return h.Client().CallTool(ctx, "s", scope, &mcp.CallToolParams{Name: tool})
}

// named returns the spans of a name that have ended, in the order in which they have.
func (h *harness) named(name string) (all []sdktrace.ReadOnlySpan) {
	h.t.Helper()
	synctest.Wait()
	for _, span := range h.spans.Ended() {
		if span.Name() == name {
			all = append(all, span)
		}
	}
	return all
}

// one returns the only span of a name.
func (h *harness) one(name string) sdktrace.ReadOnlySpan {
	h.t.Helper()
	all := h.named(name)
	require.Len(h.t, all, 1, name)
	return all[0]
}

// attributes returns the attributes of a span or of a measurement.
func attributes(all []attribute.KeyValue) map[string]any {
	values := map[string]any{}
	for _, one := range all {
		values[string(one.Key)] = one.Value.AsInterface()
	}
	return values
}

// collected is what a collection has brought: the measurements of each metric.
type collected map[string][]point

// kinds are the kind and the unit of each metric.
type kinds map[string][2]string

// point is a measurement: of a histogram, the number and the sum of its values.
type point struct {
	attributes map[string]any
	value      float64
	count      uint64
}

// collect collects all metrics.
func (h *harness) collect() collected {
	h.t.Helper()
	all, _ := h.collectKinds()
	return all
}

func (h *harness) collectKinds() (collected, kinds) {
	h.t.Helper()
	var data metricdata.ResourceMetrics
	require.NoError(h.t, h.reader.Collect(context.Background(), &data))
	all, what := collected{}, kinds{}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			all[m.Name], what[m.Name] = pointsOf(h.t, m), [2]string{kindOf(m), m.Unit}
		}
	}
	return all, what
}

// kindOf returns the kind of a metric, in the words of the package documentation.
func kindOf(m metricdata.Metrics) string {
	switch data := m.Data.(type) {
	case metricdata.Histogram[float64]:
		return "histogram"
	case metricdata.Gauge[int64], metricdata.Gauge[float64]:
		return "gauge"
	case metricdata.Sum[int64]:
		if !data.IsMonotonic {
			return "up-down counter"
		}
	}
	return "counter"
}

func pointsOf(t *testing.T, m metricdata.Metrics) (points []point) {
	t.Helper()
	switch data := m.Data.(type) {
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			points = append(points, point{attributes(p.Attributes.ToSlice()), p.Sum, p.Count})
		}
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			points = append(points, point{attributes(p.Attributes.ToSlice()), float64(p.Value), 0})
		}
	case metricdata.Gauge[int64]:
		for _, p := range data.DataPoints {
			points = append(points, point{attributes(p.Attributes.ToSlice()), float64(p.Value), 0})
		}
	case metricdata.Gauge[float64]:
		for _, p := range data.DataPoints {
			points = append(points, point{attributes(p.Attributes.ToSlice()), p.Value, 0})
		}
	default:
		require.Fail(t, "another kind of metric", "%s: %T", m.Name, data)
	}
	return points
}

// find returns the only measurement of a metric that has these attributes.
func (c collected) find(t *testing.T, name string, want map[string]any) point {
	t.Helper()
	var found []point
points:
	for _, p := range c[name] {
		for key, value := range want {
			if p.attributes[key] != value {
				continue points
			}
		}
		found = append(found, p)
	}
	require.Len(t, found, 1, "%s %v: %v", name, want, c[name])
	return found[0]
}

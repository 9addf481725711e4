//go:build !race

package telemetrytest

import (
	"context"
	"flag"
	"log/slog"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/supervisor/telemetry"
	"github.com/mcpactor/mcpactor/tests/faults"
)

var rounds = flag.Int("cost.rounds", 3, "rounds of TestCostOfACall")

// callsPerRound is how many calls one contender makes before it is the turn of the next.
const callsPerRound = 200

// contender is a supervisor whose warm calls are measured.
type contender struct {
	name   string
	start  func(*actor.ActorSystem, supervisor.Config) (*supervisor.Supervisor, func(), error)
	client *supervisor.Client
	times  []float64 // µs for each call, by round
	allocs []float64
}

// TestCostOfACall measures warm calls with and without telemetry. The contenders take turns, so
// that what else the machine does concerns all of them alike. It logs medians and quartiles. Run
// it with -v and -cost.rounds=200. The race detector allocates by itself.
func TestCostOfACall(t *testing.T) {
	tools := faults.NewTools()
	tools.JSON = true
	server, err := faults.Serve(tools.Handler)
	require.NoError(t, err)
	defer server.Close()
	for name, srv := range map[string]supervisor.Server{
		"in memory": {Name: "s", InMemory: faults.NewTools().Server()},
		"HTTP":      {Name: "s", URL: server.URL()},
	} {
		t.Run(name, func(t *testing.T) { measure(t, srv) })
	}
}

func measure(t *testing.T, srv supervisor.Server) {
	reported := func(to telemetry.Config) func(*actor.ActorSystem, supervisor.Config) (*supervisor.Supervisor, func(), error) {
		return func(system *actor.ActorSystem, cfg supervisor.Config) (*supervisor.Supervisor, func(), error) {
			return telemetry.Start(system, cfg, to)
		}
	}
	tracers := sdktrace.NewTracerProvider(sdktrace.WithBatcher(tracetest.NewNoopExporter()))
	defer tracers.Shutdown(context.Background())
	meters := metric.NewMeterProvider(metric.WithReader(metric.NewManualReader()))
	plain := func(system *actor.ActorSystem, cfg supervisor.Config) (*supervisor.Supervisor, func(), error) {
		sup, err := supervisor.Start(system, cfg)
		return sup, func() {}, err
	}
	all := []*contender{
		{name: "not instrumented", start: plain},
		{name: "not instrumented, again", start: plain},
		{name: "an interceptor", start: func(system *actor.ActorSystem, cfg supervisor.Config) (*supervisor.Supervisor, func(), error) {
			cfg.Interceptors = []actors.Interceptor{func(next actors.Runner) actors.Runner { return next }}
			return plain(system, cfg)
		}},
		{name: "no provider set", start: reported(telemetry.Config{})},
		{name: "metrics", start: reported(telemetry.Config{MeterProvider: meters})},
		{name: "spans", start: reported(telemetry.Config{TracerProvider: tracers})},
		{name: "spans and metrics", start: reported(telemetry.Config{TracerProvider: tracers, MeterProvider: meters})},
	}
	for _, c := range all {
		quiet := actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) })
		sup, stop, err := c.start(actor.NewActorSystem(quiet), supervisor.Config{Servers: []supervisor.Server{srv}})
		require.NoError(t, err)
		defer stop()
		defer sup.Stop(context.Background())
		c.client = sup.Client()
		c.round(t) // the first ones open the session
	}
	for i := range *rounds {
		for j := range all {
			all[(i+j)%len(all)].round(t)
		}
	}
	for _, c := range all {
		ratios := make([]float64, len(c.times)) // each to its own round, which the machine may have slowed down
		for i := range c.times {
			ratios[i] = c.times[i] / all[0].times[i]
		}
		took, ratio := quartiles(c.times), quartiles(ratios)
		t.Logf("%-24s %6.1f µs (%.1f to %.1f), ratio %.3f (%.3f to %.3f), %.1f allocations",
			c.name, took[1], took[0], took[2], ratio[1], ratio[0], ratio[2], slices.Min(c.allocs))
	}
	// An interceptor alone would be 31 more. Connections and pools make a difference of about 1.
	require.InDelta(t, slices.Min(all[0].allocs), slices.Min(all[3].allocs), 5, "without a provider, a call allocates nothing more")
	require.Less(t, slices.Min(all[6].allocs)-slices.Min(all[0].allocs), 120.0, "with everything on")
}

// round measures one round.
func (c *contender) round(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	for range callsPerRound {
		_, err := c.client.CallTool(context.Background(), "s", "a", &mcp.CallToolParams{Name: "echo"})
		require.NoError(t, err)
	}
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	c.times = append(c.times, float64(took.Microseconds())/callsPerRound)
	c.allocs = append(c.allocs, float64(after.Mallocs-before.Mallocs)/callsPerRound)
}

// quartiles returns the first quartile, the median and the third quartile.
func quartiles(of []float64) [3]float64 {
	sorted := slices.Sorted(slices.Values(of))
	at := func(share float64) float64 { return sorted[int(share*float64(len(sorted)-1))] }
	return [3]float64{at(0.25), at(0.5), at(0.75)}
}

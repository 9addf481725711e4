package telemetrytest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/supervisor/telemetry"
	"github.com/mcpactor/mcpactor/tests/faults"
)

func TestMetricsSayWhatHasHappened(t *testing.T) {
	cfg := supervisor.Config{MaxSessions: 2, Servers: []supervisor.Server{
		{Name: "s", Setup: []*mcp.CallToolParams{{Name: "login"}}, Handles: []mcpbridge.Handle{{Mint: "open", Path: "id", Release: "close"}}},
		{Name: "down", URL: "http://127.0.0.1:1"},
	}}
	scenario(t, cfg, nil, func(t *testing.T, h *harness) {
		h.script.Tool("login").Returns("in")
		h.script.Tool("add").Does(func(context.Context, *faults.Run) (any, error) {
			time.Sleep(2 * time.Second) // synctest
			return "1", nil
		})
		h.script.Tool("stale").Fails(faults.SessionExpired).Returns("1")
		h.script.Tool("wrong").Does(func(context.Context, *faults.Run) (any, error) { return nil, errors.New("wrong") })
		h.script.Inject("server/discover", faults.Times(1, faults.Delay(3*time.Second)))
		is := func(want float64, count int, name string, attributes map[string]any) {
			t.Helper()
			p := h.collect().find(t, name, attributes)
			require.InDelta(t, want, p.value, 0.001, "%s %v", name, attributes)
			require.EqualValues(t, count, p.count, "%s %v", name, attributes)
		}
		_, err := h.call(t.Context(), "a", "add")
		require.NoError(t, err)
		is(5, 1, "mcpactor.call.duration", map[string]any{"mcpactor.server": "s", "mcp.method.name": "tools/call", "mcpactor.code": "ok"})
		is(3, 1, "mcpactor.call.queue.duration", map[string]any{"mcpactor.server": "s"})
		is(3, 1, "mcpactor.dial.duration", map[string]any{"mcpactor.server": "s", "mcpactor.outcome": "opened"})
		is(2, 2, "mcp.client.operation.duration", map[string]any{
			"mcpactor.server": "s", "mcp.method.name": "tools/call", "gen_ai.operation.name": "execute_tool", "network.transport": "tcp", "mcp.protocol.version": h.protocol(),
		}) // with the set-up call
		is(1, 0, "mcpactor.session.count", map[string]any{"mcpactor.server": "s", "mcpactor.state": "ready"})
		is(0, 0, "mcpactor.session.count", map[string]any{"mcpactor.server": "s", "mcpactor.state": "broken"})
		is(0, 0, "mcpactor.session.count", map[string]any{"mcpactor.server": "down", "mcpactor.state": "ready"})
		is(1, 0, "mcpactor.slot.used", nil)
		is(2, 0, "mcpactor.slot.limit", nil)
		is(1, 0, "mcpactor.server.up", map[string]any{"mcpactor.server": "s"})
		require.Len(t, h.collect()["mcpactor.server.up"], 1, "nothing is known of the other server")

		// A session expires: the next one is a rebuild, and the call a replay.
		_, err = h.call(t.Context(), "a", "stale")
		require.NoError(t, err)
		synctest.Wait()
		is(1, 0, "mcpactor.session.faults", map[string]any{"mcpactor.server": "s", "mcpactor.reason": "expired"})
		is(1, 0, "mcpactor.session.rebuilds", map[string]any{"mcpactor.server": "s", "mcpactor.outcome": "opened"})
		is(1, 0, "mcpactor.call.replays", map[string]any{"mcpactor.server": "s"})
		is(2, 1, "mcp.client.session.duration", map[string]any{"mcpactor.server": "s", "error.type": "_OTHER"})

		// A list.
		list := &messages.ListTools{Header: messages.To("s", "a"), Shared: true}
		_, err = h.Client().Do(t.Context(), list)
		require.NoError(t, err)
		time.Sleep(3 * time.Second) // synctest
		of := map[string]any{"mcpactor.server": "s", "mcp.method.name": "tools/list"}
		is(1, 0, "mcpactor.list.scopes", of)
		is(3, 0, "mcpactor.list.age", of)

		// Handles.
		h.script.Tool("open").Returns(`{"id":"0123456789abcdef"}`)
		h.script.Tool("close").Returns("closed")
		_, err = h.call(t.Context(), "a", "open")
		require.NoError(t, err)
		synctest.Wait()
		is(1, 0, "mcpactor.handle.count", map[string]any{"mcpactor.server": "s", "mcpactor.state": "held"})
		is(0, 0, "mcpactor.handle.count", map[string]any{"mcpactor.server": "s", "mcpactor.state": "left"})
		is(0, 0, "mcpactor.handle.waiting", map[string]any{"mcpactor.server": "s"})
		is(1, 0, "mcpactor.handle.events", map[string]any{"mcpactor.server": "s", "mcpactor.outcome": "minted"})
		_, err = h.Client().ReleaseHandles(t.Context(), "a")
		require.NoError(t, err)
		synctest.Wait()
		is(0, 0, "mcpactor.handle.count", map[string]any{"mcpactor.server": "s", "mcpactor.state": "held"})
		is(1, 0, "mcpactor.handle.events", map[string]any{"mcpactor.server": "s", "mcpactor.outcome": "released"})
		require.Len(t, h.collect()["mcpactor.handle.waiting"], 1, "the other server declares none")

		// Outcomes.
		_, err = h.call(t.Context(), "a", "wrong")
		require.NoError(t, err)
		is(0, 1, "mcpactor.call.duration", map[string]any{"mcpactor.server": "s", "mcpactor.code": "tool_error"})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err = h.Client().CallTool(ctx, "down", "a", &mcp.CallToolParams{Name: "any"})
		require.ErrorIs(t, err, messages.CodeUnavailable)
		is(10, 1, "mcpactor.call.duration", map[string]any{"mcpactor.server": "down", "mcpactor.code": "unavailable"})
		is(0, 0, "mcpactor.server.up", map[string]any{"mcpactor.server": "down"})
		p := h.collect().find(t, "mcpactor.dial.duration", map[string]any{"mcpactor.server": "down", "mcpactor.outcome": "failed"})
		require.Equal(t, "unavailable", p.attributes["error.type"])

		// While calls run and wait.
		running, release := make(chan struct{}), make(chan struct{})
		h.script.Tool("hold").Does(func(context.Context, *faults.Run) (any, error) {
			close(running)
			<-release
			return "done", nil
		})
		var calls sync.WaitGroup
		calls.Go(func() {
			_, err := h.call(t.Context(), "a", "hold")
			require.NoError(t, err)
		})
		<-running
		is(1, 0, "mcpactor.call.in_flight", map[string]any{"mcpactor.server": "s"})
		is(0, 0, "mcpactor.call.waiting", map[string]any{"mcpactor.server": "s"})
		close(release)
		calls.Wait()

		// The member of a cluster.
		h.join(messages.MemberSnapshot{Fenced: "cut off", Refused: 2, View: 3, Lease: 1500 * time.Millisecond, Hop: 5 * time.Millisecond})
		is(0, 0, "mcpactor.member.up", nil)
		is(2, 0, "mcpactor.member.refused", nil)
		is(3, 0, "mcpactor.member.view", nil)
		is(1.5, 0, "mcpactor.member.lease", nil)
		is(0.005, 0, "mcpactor.member.hop", nil)
		h.join(messages.MemberSnapshot{View: 4})
		is(1, 0, "mcpactor.member.up", nil)

		// Eviction, and the end.
		for _, scope := range []string{"b", "c"} {
			_, err = h.call(t.Context(), scope, "add")
			require.NoError(t, err)
		}
		synctest.Wait()
		documented(t, h)
		is(1, 0, "mcpactor.session.evictions", map[string]any{"mcpactor.server": "s", "mcpactor.reason": "cap"})
		require.NoError(t, h.Stop(context.Background()))
		var ended uint64
		for _, p := range h.collect()["mcp.client.session.duration"] {
			ended += p.count
		}
		require.EqualValues(t, 4, ended, "each MCP session")
		require.NotContains(t, h.collect(), "mcpactor.session.count", "a supervisor that has stopped has no state")
	})
}

// documented checks that the package documentation has each metric, with its kind, its unit and
// its attributes, and no other.
func documented(t *testing.T, h *harness) {
	t.Helper()
	doc, err := os.ReadFile("../../../supervisor/telemetry/doc.go")
	require.NoError(t, err)
	all, what := h.collectKinds()
	for _, row := range regexp.MustCompile(`(?m)^//\t(mcp[a-z_.]+), ([a-z -]+?)(?:, ([a-z{}]+))?: .*\n((?://\t    .*\n)*)`).FindAllStringSubmatch(string(doc), -1) {
		name, listed := row[1], regexp.MustCompile(`[a-z_.]+`)
		require.Contains(t, what, name, "documented, and never measured")
		require.Equal(t, what[name], [2]string{row[2], row[3]}, name)
		seen := map[string]bool{}
		for _, p := range all[name] {
			for key := range p.attributes {
				seen[key] = true
			}
		}
		var told []string
		for _, key := range listed.FindAllString(row[4], -1) {
			if key != "gen_ai.tool.name" && key != "gen_ai.prompt.name" { // only with ToolNames
				told = append(told, key)
			}
		}
		require.ElementsMatch(t, slices.Collect(maps.Keys(seen)), told, name)
		delete(what, name)
	}
	require.Empty(t, what, "measured, and not documented")
}

// Attributes of metrics have few values, whatever the callers do.
func TestAttributesOfMetricsHaveFewValues(t *testing.T) {
	other := func(next actors.Runner) actors.Runner {
		return func(ctx context.Context, op messages.Operation) (messages.Result, error) {
			switch messages.TargetOf(op) {
			case "code":
				return nil, messages.NewFailure(op, messages.Code("code of "+op.Head().Key.Scope), "")
			case "refused":
				return nil, errors.New("not here")
			case "alias": // of the server
				head := *op.Head()
				head.Key.Server = "s"
				op = messages.With(op, head)
			}
			return next(ctx, op)
		}
	}
	for _, toolNames := range []bool{false, true} {
		t.Run(fmt.Sprint(toolNames), func(t *testing.T) {
			cfg := supervisor.Config{Interceptors: []actors.Interceptor{other}, Servers: []supervisor.Server{{Name: "s", CustomMethods: []string{"acme/known"}}}}
			scenario(t, cfg, func(to *telemetry.Config) { to.ToolNames = toolNames }, func(t *testing.T, h *harness) {
				ctx, c := t.Context(), h.Client()
				h.script.Tool("add").Returns("1")
				h.script.Tool("sub").Returns("1")
				h.script.Tool("alias").Returns("1")
				for i := range 20 {
					scope := fmt.Sprint("scope-", i)
					for _, tool := range []string{"add", "sub", "code"} {
						c.CallTool(ctx, "s", scope, &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"a": scope}})
					}
					c.Custom(ctx, "s", scope, "acme/known", nil)
					c.Custom(ctx, "s", scope, fmt.Sprint("acme/", i), nil)
					for _, tool := range []string{"add", "refused", "alias"} {
						c.CallTool(ctx, fmt.Sprint("server-", i), scope, &mcp.CallToolParams{Name: tool})
					}
					c.ReadResource(ctx, "s", scope, "file:///"+scope)
					c.CallTool(messages.WithAttributes(ctx, messages.NewAttributes(map[string]string{"run": scope})), "s", scope, &mcp.CallToolParams{Name: "add"})
				}
				require.NoError(t, h.Stop(ctx))
				values := map[string][]string{}
				points := 0
				for _, all := range h.collect() {
					for _, p := range all {
						points++
						for key, value := range p.attributes {
							if text := value.(string); !slices.Contains(values[key], text) {
								values[key] = append(values[key], text)
							}
						}
					}
				}
				for key, all := range values {
					require.NotContains(t, strings.Join(all, " "), "scope", key)
				}
				require.ElementsMatch(t, []string{"s", "_OTHER"}, values["mcpactor.server"])
				require.ElementsMatch(t, []string{"tools/call", "resources/read", "acme/known", "_OTHER"}, values["mcp.method.name"])
				require.Contains(t, values["mcpactor.code"], "_OTHER")
				require.LessOrEqual(t, len(values["mcpactor.code"]), 6, "%v", values["mcpactor.code"])
				if toolNames {
					require.ElementsMatch(t, []string{"add", "sub", "alias"}, values["gen_ai.tool.name"])
				} else {
					require.Empty(t, values["gen_ai.tool.name"])
				}
				require.Less(t, points, 40)
			})
		})
	}
}

// A program may leave out a metric, and keeps the others.
func TestOtherMetricsStayWhenOneIsDropped(t *testing.T) {
	reader := metric.NewManualReader()
	drop := metric.NewView(metric.Instrument{Name: "mcp.client.operation.duration"}, metric.Stream{Aggregation: metric.AggregationDrop{}})
	adapt := func(to *telemetry.Config) {
		to.MeterProvider = metric.NewMeterProvider(metric.WithReader(reader), metric.WithView(drop))
	}
	scenario(t, supervisor.Config{}, adapt, func(t *testing.T, h *harness) {
		h.reader = reader
		h.script.Tool("add").Returns("1")
		_, err := h.call(t.Context(), "a", "add")
		require.NoError(t, err)
		require.Contains(t, h.collect(), "mcpactor.call.duration")
		require.Contains(t, h.collect(), "mcpactor.session.count")
		require.NotContains(t, h.collect(), "mcp.client.operation.duration")
	})
}

// Sessions that come and go leave nothing behind.
func TestNothingIsKeptForASession(t *testing.T) {
	scenario(t, supervisor.Config{MaxSessions: 10}, func(to *telemetry.Config) { to.TracerProvider = tracenoop.NewTracerProvider() }, func(t *testing.T, h *harness) {
		h.script.Tool("add").Returns("1")
		series := 0
		for i := range 300 {
			_, err := h.call(t.Context(), fmt.Sprint("scope-", i), "add")
			require.NoError(t, err)
			if synctest.Wait(); i < 20 {
				continue
			}
			n := 0
			for _, points := range h.collect() {
				n += len(points)
			}
			if i == 20 {
				series = n
			}
			require.Equal(t, series, n, "after %d sessions", i)
		}
	})
}

// The function that Start returns ends all reports, and may be called again.
func TestStopEndsTheReports(t *testing.T) {
	scenario(t, supervisor.Config{}, nil, func(t *testing.T, h *harness) {
		h.script.Tool("add").Returns("1")
		_, err := h.call(t.Context(), "a", "add")
		require.NoError(t, err)
		require.Contains(t, h.collect(), "mcpactor.session.count")
		h.stop()
		h.stop()
		require.NotContains(t, h.collect(), "mcpactor.session.count")
	})
}

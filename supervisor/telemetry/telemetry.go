package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

const (
	module = "github.com/mcpactor/mcpactor"
	// scope is the name of the tracer and of the meter.
	scope = module + "/supervisor/telemetry"
)

// Config says where spans and metrics go. The zero value is useful.
type Config struct {
	// TracerProvider makes the spans. Defaults to the global one when Start or Instrument is called.
	TracerProvider trace.TracerProvider
	// MeterProvider takes the metrics. Defaults to the global one when Start or Instrument is called.
	MeterProvider metric.MeterProvider
	// ToolNames adds the names of tools and prompts to mcp.client.operation.duration. Set it if
	// the servers have few of them. Spans have these names in any case. Defaults to false.
	ToolNames bool
}

// Start starts a supervisor as [supervisor.Start] does, and sends its traces and metrics to the
// providers. Call stop after [supervisor.Supervisor.Stop] and before you shut down the
// providers: it ends the metrics. It may be called more than once.
//
// Set the providers before: a provider that does nothing when Start is called is never used.
func Start(system *actor.ActorSystem, cfg supervisor.Config, to Config) (sup *supervisor.Supervisor, stop func(), err error) {
	cfg, observe, err := Instrument(cfg, to)
	if err != nil {
		return nil, nil, err
	}
	if sup, err = supervisor.Start(system, cfg); err != nil {
		return nil, nil, err
	}
	if stop, err = observe(sup); err != nil {
		return nil, nil, errors.Join(err, sup.Stop(context.Background()))
	}
	return sup, stop, nil
}

// Instrument is [Start] for a supervisor that something else starts, such as the member of a
// cluster. Start that with the returned configuration, which sends the traces, and the metrics of
// calls and dials. Then call observe with its supervisor at once, for all other metrics. stop is
// that of Start.
//
// The returned configuration is for one supervisor: observe returns an error the second time. As
// with Start, set the providers before.
func Instrument(cfg supervisor.Config, to Config) (instrumented supervisor.Config, observe func(*supervisor.Supervisor) (stop func(), err error), err error) {
	t, err := newTelemetry(&cfg, to)
	switch {
	case err != nil:
		return supervisor.Config{}, nil, fmt.Errorf("telemetry: %w", err)
	case t == nil:
		return cfg, func(*supervisor.Supervisor) (func(), error) { return func() {}, nil }, nil
	}
	cfg.Interceptors = slices.Concat([]actors.Interceptor{t.intercept}, cfg.Interceptors)
	return dial.Wrap(cfg, func(d dial.Dialer) dial.Dialer { return &dialer{d, t} }), t.observe, nil
}

// telemetry is what the calls and dials of one supervisor are reported with.
type telemetry struct {
	sup        atomic.Pointer[supervisor.Supervisor] // nil until it is observed
	servers    []string                              // their names, as they were configured
	tracer     trace.Tracer                          // nil: no spans
	metrics    *metrics                              // nil: no metrics
	transports map[string]string                     // network.transport by the name of the server
	places     map[string][]attribute.KeyValue       // network.transport, server.address and server.port, likewise
	custom     map[string]bool                       // the methods beyond MCP that are configured
}

// newTelemetry returns nil if nothing is recorded.
func newTelemetry(cfg *supervisor.Config, to Config) (*telemetry, error) {
	if to.TracerProvider == nil {
		to.TracerProvider = otel.GetTracerProvider()
	}
	if to.MeterProvider == nil {
		to.MeterProvider = otel.GetMeterProvider()
	}
	t := &telemetry{transports: map[string]string{}, places: map[string][]attribute.KeyValue{}, custom: map[string]bool{}}
	if tracer := to.TracerProvider.Tracer(scope, trace.WithSchemaURL(conventions), trace.WithInstrumentationVersion(version())); isReal(tracer) {
		t.tracer = tracer
	}
	m, err := newMetrics(to.MeterProvider.Meter(scope, metric.WithSchemaURL(conventions), metric.WithInstrumentationVersion(version())), to.ToolNames)
	if err != nil {
		return nil, err
	}
	if m.enabled() {
		t.metrics = m
	}
	if t.tracer == nil && t.metrics == nil {
		return nil, nil
	}
	for _, srv := range cfg.Servers {
		t.servers = append(t.servers, srv.Name)
		switch {
		case srv.URL != "":
			t.transports[srv.Name] = "tcp"
		case srv.Command != "":
			t.transports[srv.Name] = "pipe"
		}
		t.places[srv.Name] = placeOf(&srv, t.transports[srv.Name])
		for _, method := range srv.CustomMethods {
			t.custom[method] = true
		}
	}
	return t, nil
}

// version returns the version of this module in the program, such as "v0.3.1", or "(devel)".
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, dep := range info.Deps {
		if dep.Path == module {
			return dep.Version
		}
	}
	return info.Main.Version // the program is of this module, or a test
}

// placeOf returns the attributes for where a server is. That of a key may be a secret of its
// tenant, and is left out.
func placeOf(srv *mcpbridge.Server, transport string) (all []attribute.KeyValue) {
	if transport != "" {
		all = append(all, attribute.String(attrNetworkTransport, transport))
	}
	u, err := url.Parse(srv.URL)
	if srv.PerKey != nil || err != nil || u.Host == "" {
		return all
	}
	all = append(all, attribute.String(attrServerAddress, u.Hostname()))
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		port = map[string]int{"http": 80, "https": 443}[u.Scheme]
	}
	return append(all, attribute.Int(attrServerPort, port))
}

// observe reports the state and the events of the supervisor until stop is called.
func (t *telemetry) observe(sup *supervisor.Supervisor) (stop func(), err error) {
	switch {
	case sup.PID() == nil:
		return nil, errors.New("telemetry: supervisor: is nil, or was not started: use the one that was started with the configuration of Instrument")
	case !t.sup.CompareAndSwap(nil, sup):
		return nil, errors.New("telemetry: a supervisor with this configuration is observed already: call Instrument for each supervisor")
	case t.metrics == nil:
		return func() {}, nil
	}
	if stop, err = t.metrics.observe(sup); err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	return stop, nil
}

// isReal reports whether a tracer makes spans of its own. One that does not returns the span of
// the parent. The parent here is not sampled, so that most samplers drop the span.
func isReal(tracer trace.Tracer) bool {
	parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, Remote: true})
	_, span := tracer.Start(trace.ContextWithRemoteSpanContext(context.Background(), parent), "mcpactor.start")
	defer span.End()
	return span.SpanContext().SpanID() != parent.SpanID() && span.SpanContext().IsValid()
}

// server returns the name of a server for a metric: that of a call may be anything, and an
// interceptor may answer it, or pass it on to another server.
func (t *telemetry) server(name string) string {
	names := t.servers
	if sup := t.sup.Load(); sup != nil {
		names = sup.Servers() // as the last reload has set them
	}
	if !slices.Contains(names, name) {
		return other
	}
	return name
}

// method returns the name of the method for a metric: that of a custom operation may be
// anything.
func (t *telemetry) method(op messages.Operation) string {
	if _, is := op.(*messages.Custom); is && !t.custom[op.Method()] {
		return other
	}
	return op.Method()
}

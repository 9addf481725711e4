package telemetry

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// metrics are the instruments of one supervisor. Those that are about its state are in
// observe.go.
type metrics struct {
	meter     metric.Meter
	toolNames bool

	operations, sessions, calls, queues, dials metric.Float64Histogram
	replays, faults, rebuilds, evictions       metric.Int64Counter
	handles                                    metric.Int64Counter

	mu  sync.RWMutex
	set map[labels]metric.MeasurementOption // for reuse: making one takes longer than recording
}

// maxSets bounds the attribute sets that are kept. Only names of tools can lead to more.
const maxSets = 4096

// labels are the attributes of one measurement. Empty ones are left out.
type labels struct {
	server, method, tool, prompt, protocol, transport string
	errorType, code, outcome, reason, state           string
}

// newMetrics makes the instruments.
func newMetrics(meter metric.Meter, toolNames bool) (*metrics, error) {
	m := &metrics{meter: meter, toolNames: toolNames, set: map[labels]metric.MeasurementOption{}}
	var errs []error
	histogram := func(name, description string, bounds []float64) metric.Float64Histogram {
		h, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description), metric.WithExplicitBucketBoundaries(bounds...))
		errs = append(errs, err)
		return h
	}
	counter := func(name, unit, description string) metric.Int64Counter {
		c, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
		errs = append(errs, err)
		return c
	}
	m.operations = histogram(metricOperationDuration, "Duration of a request, from when it was sent until its response.", conventionBounds)
	m.sessions = histogram(metricSessionDuration, "Duration of an MCP session.", conventionBounds)
	m.calls = histogram(metricCallDuration, "Duration of a call, from when it was accepted until its reply.", bounds)
	m.queues = histogram(metricQueueDuration, "Time from when a call was accepted until it was run.", bounds)
	m.dials = histogram(metricDialDuration, "Duration of an attempt to open a connection.", bounds)
	m.replays = counter(metricReplays, "{run}", "Further runs of calls.")
	m.faults = counter(metricFaults, "{fault}", "MCP sessions that have expired, connections that broke, and sessions that were given up.")
	m.rebuilds = counter(metricRebuilds, "{session}", "Sessions that have a connection again.")
	m.evictions = counter(metricEvictions, "{session}", "Sessions that were evicted.")
	m.handles = counter(metricHandleEvents, "{event}", "Handles that were minted, released, lost or left.")
	return m, errors.Join(errs...)
}

// enabled reports whether any of the instruments records anything: a program may leave out
// single ones.
func (m *metrics) enabled() bool {
	ctx := context.Background()
	for _, h := range []metric.Float64Histogram{m.operations, m.sessions, m.calls, m.queues, m.dials} {
		if h.Enabled(ctx) {
			return true
		}
	}
	for _, c := range []metric.Int64Counter{m.replays, m.faults, m.rebuilds, m.evictions, m.handles} {
		if c.Enabled(ctx) {
			return true
		}
	}
	return false
}

// with returns the option for the attributes of a measurement.
func (m *metrics) with(l labels) metric.MeasurementOption {
	m.mu.RLock()
	option := m.set[l]
	m.mu.RUnlock()
	if option != nil {
		return option
	}
	option = metric.WithAttributeSet(l.attributes())
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.set) < maxSets {
		m.set[l] = option
	}
	return option
}

// attributes returns the attributes.
func (l labels) attributes() attribute.Set {
	var all []attribute.KeyValue
	for _, one := range []struct{ key, value string }{
		{attrServer, l.server},
		{attrMethod, l.method},
		{attrTool, l.tool},
		{attrPrompt, l.prompt},
		{attrProtocolVersion, l.protocol},
		{attrNetworkTransport, l.transport},
		{attrErrorType, l.errorType},
		{attrCode, l.code},
		{attrOutcome, l.outcome},
		{attrReason, l.reason},
		{attrState, l.state},
	} {
		if one.value != "" {
			all = append(all, attribute.String(one.key, one.value))
		}
	}
	if l.method == methodCallTool && l.code == "" {
		all = append(all, attribute.String(attrOperation, executeTool))
	}
	return attribute.NewSet(all...)
}

// record records a duration.
func (m *metrics) record(ctx context.Context, h metric.Float64Histogram, d time.Duration, l labels) {
	h.Record(ctx, d.Seconds(), m.with(l))
}

// count counts one.
func (m *metrics) count(ctx context.Context, c metric.Int64Counter, l labels) {
	c.Add(ctx, 1, m.with(l))
}

package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcpactor/mcpactor/messages"
)

// carrier is a [messages.Trace] that spans are read from and written to.
type carrier messages.Trace

// Get returns a field.
func (c *carrier) Get(key string) string {
	switch key {
	case "traceparent":
		return c.Parent
	case "tracestate":
		return c.State
	}
	return ""
}

// Set sets a field.
func (c *carrier) Set(key, value string) {
	switch key {
	case "traceparent":
		c.Parent = value
	case "tracestate":
		c.State = value
	}
}

// Keys returns the names of the fields.
func (c *carrier) Keys() []string { return propagation.TraceContext{}.Fields() }

// traceOf returns the trace with the span of a context, or an empty one if that is not valid.
func traceOf(ctx context.Context) messages.Trace {
	var c carrier
	propagation.TraceContext{}.Inject(ctx, &c)
	return messages.Trace(c)
}

// within returns a context in which spans are children of a trace, if there is one. remote says
// that another program may have made the trace.
func within(ctx context.Context, parent messages.Trace, remote bool) context.Context {
	if parent.Parent == "" {
		return ctx
	}
	c := carrier(parent)
	ctx = propagation.TraceContext{}.Extract(ctx, &c)
	if remote {
		return ctx
	}
	return trace.ContextWithSpanContext(ctx, trace.SpanContextFromContext(ctx).WithRemote(false))
}

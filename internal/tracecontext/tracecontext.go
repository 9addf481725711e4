// Package tracecontext converts between the spans of OpenTelemetry and the trace of an operation.
package tracecontext

import (
	"context"

	"go.opentelemetry.io/otel/propagation"

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

// Of returns the trace with the span of a context, or an empty one if that is not valid.
func Of(ctx context.Context) messages.Trace {
	var c carrier
	propagation.TraceContext{}.Inject(ctx, &c)
	return messages.Trace(c)
}

// Extract returns a context with the span of a trace, which counts as remote.
func Extract(ctx context.Context, from messages.Trace) context.Context {
	c := carrier(from)
	return propagation.TraceContext{}.Extract(ctx, &c)
}

package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/mcpactor/mcpactor/internal/tracecontext"
	"github.com/mcpactor/mcpactor/messages"
)

// TraceOf returns the trace with the span in ctx, for the header of a message: a message that an
// actor sends has no context. It is empty if there is no span.
func TraceOf(ctx context.Context) messages.Trace { return tracecontext.Of(ctx) }

// within returns a context in which spans are children of a trace, if there is one. remote says
// that another program may have made the trace.
func within(ctx context.Context, parent messages.Trace, remote bool) context.Context {
	if parent.Parent == "" {
		return ctx
	}
	ctx = tracecontext.Extract(ctx, parent)
	if remote {
		return ctx
	}
	return trace.ContextWithSpanContext(ctx, trace.SpanContextFromContext(ctx).WithRemote(false))
}

package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcpactor/mcpactor/internal/caller"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/internal/rounds"
	"github.com/mcpactor/mcpactor/internal/tasks"
	"github.com/mcpactor/mcpactor/internal/tracecontext"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// The outcomes of a dial, and of a restart.
const (
	outcomeOpened  = "opened"  // a new MCP session
	outcomeResumed = "resumed" // the MCP session of before
	outcomeFailed  = "failed"
)

// outcome returns the outcome of a dial that has succeeded.
func outcome(attached bool) string {
	if attached {
		return outcomeResumed
	}
	return outcomeOpened
}

// dialer reports the dials of another one.
type dialer struct {
	dial.Dialer
	t *telemetry
}

// Dial opens a session. The handshake carries the span of the dial to the server.
func (d *dialer) Dial(ctx context.Context, req dial.Request) (dial.Conn, error) {
	began, parent := time.Now(), req.Trace
	var span trace.Span
	if d.t.tracer != nil {
		var spanned context.Context
		spanned, span = d.t.tracer.Start(within(ctx, parent, false), "dial", trace.WithSpanKind(trace.SpanKindClient),
			trace.WithAttributes(append([]attribute.KeyValue{attribute.String(attrServer, req.Key.Server)}, d.t.places[req.Key.Server]...)...))
		req.Trace = tracecontext.Of(spanned)
		ctx = messages.WithTrace(spanned, req.Trace)
	}
	var e *mcpbridge.Error
	l := labels{server: req.Key.Server, outcome: outcomeFailed, errorType: string(messages.CodeInternal)} // if the dialer panics
	defer func() {
		if d.t.metrics != nil {
			d.t.metrics.record(ctx, d.t.metrics.dials, time.Since(began), l)
		}
		if span != nil {
			span.SetAttributes(attribute.String(attrOutcome, l.outcome))
			fail(span, l.errorType, e)
			span.End()
		}
	}()
	inner, err := d.Dialer.Dial(ctx, req)
	if e = mcpbridge.AsError(err); e != nil {
		l.errorType = string(e.Class.Code())
	}
	if err != nil || inner == nil { // a dialer that returns neither is a failure for the session
		return inner, err
	}
	l.outcome, l.errorType = outcome(inner.Info().Attached), ""
	c := &conn{Conn: inner, t: d.t, server: req.Key.Server, opened: time.Now(), parent: parent.Parent}
	if server := inner.Info().Server; server != nil {
		c.protocol = server.ProtocolVersion
	}
	if span != nil {
		c.span = span.SpanContext()
	}
	return c, nil
}

// conn reports what runs on a connection.
type conn struct {
	dial.Conn
	t        *telemetry
	server   string
	protocol string
	opened   time.Time
	parent   string            // the traceparent of the call that the dial belongs to, or empty
	span     trace.SpanContext // of the dial
}

// Do runs an operation: one of a call, or one that sets up the MCP session.
func (c *conn) Do(ctx context.Context, op messages.Operation) (messages.Result, error) {
	switch op.(type) {
	case *rounds.Questions:
		return c.Conn.Do(ctx, op)
	case tasks.Operation, *rounds.Next: // it is no other run of its call
		if _, ok := ctx.Value(callKey{}).(*call); ok {
			return c.do(ctx, nil, op)
		}
	}
	if k, ok := ctx.Value(callKey{}).(*call); ok {
		return k.run(ctx, c, op)
	}
	if _, sendsNothing := op.(*messages.Open); sendsNothing {
		return c.Conn.Do(ctx, op)
	}
	parent := messages.TraceOf(ctx)
	if c.t.tracer == nil || parent.Parent == "" || ctx.Err() != nil {
		return c.do(ctx, nil, op)
	}
	ctx, span := c.t.tracer.Start(within(ctx, parent, false), "setup", trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(c.t.attributesOf(op, c.server)...))
	return c.spanned(ctx, span, op)
}

// spanned runs an operation in a span of its own, which the request carries to the server.
func (c *conn) spanned(ctx context.Context, span trace.Span, op messages.Operation) (messages.Result, error) {
	defer span.End()
	result, err := c.do(messages.WithTrace(ctx, tracecontext.Of(ctx)), span, op)
	fail(span, errorType(result, err), mcpbridge.AsError(err))
	return result, err
}

// do runs an operation, and records how long that takes. Its span, if there is one, gets the id of
// the request, that of the last page if there are several.
func (c *conn) do(ctx context.Context, span trace.Span, op messages.Operation) (messages.Result, error) {
	if span != nil && span.IsRecording() {
		ctx = context.WithValue(ctx, caller.RequestIDKey{}, func(id string) { span.SetAttributes(attribute.String(attrRequestID, id)) })
	}
	began := time.Now()
	result, err := c.Conn.Do(ctx, op)
	if m := c.t.metrics; m != nil {
		l := labels{
			server: c.server, method: c.t.method(op), protocol: c.protocol, transport: c.t.transports[c.server], errorType: errorType(result, err),
		}
		if m.toolNames {
			l.tool, l.prompt = namesOf(op)
		}
		m.record(ctx, m.operations, time.Since(began), l)
	}
	return result, err
}

// errorType returns the value of error.type for a run; empty is success.
func errorType(result messages.Result, err error) string {
	if e := mcpbridge.AsError(err); e != nil {
		return string(e.Class.Code())
	}
	return resultError(result)
}

// resultError returns the value of error.type for a result.
func resultError(result messages.Result) string {
	if r, ok := result.(*messages.ToolResult); ok && r.Result != nil && r.Result.IsError {
		return toolError
	}
	return ""
}

// fail notes in a span that something has failed, unless errorType is empty. e is the error of
// the bridge, or nil.
func fail(span trace.Span, errorType string, e *mcpbridge.Error) {
	if errorType == "" || !span.IsRecording() {
		return
	}
	span.SetAttributes(attribute.String(attrErrorType, errorType))
	detail := ""
	if e != nil {
		detail = e.Detail
		if e.Code != 0 {
			span.SetAttributes(statusCode(e.Code))
		}
	}
	span.SetStatus(codes.Error, detail)
}

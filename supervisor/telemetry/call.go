package telemetry

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/internal/tracecontext"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// methodCallTool is the method of [messages.CallTool].
const methodCallTool = "tools/call"

// call is what is known of a call between its acceptance and its reply. The context of its runs
// has it.
type call struct {
	t     *telemetry
	began time.Time
	span  trace.Span // nil without spans
	trace string     // the traceparent of the span

	mu   sync.Mutex
	runs int
	last *conn // that it ran on
}

type callKey struct{}

// intercept is the outermost interceptor.
func (t *telemetry) intercept(next actors.Runner) actors.Runner {
	return func(ctx context.Context, op messages.Operation) (result messages.Result, err error) {
		k := &call{t: t, began: time.Now()}
		if t.tracer != nil {
			ctx, k.span = t.tracer.Start(within(ctx, op.Head().Trace, true), nameOf(op),
				trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(t.attributesOf(op, op.Head().Key.Server)...))
			if spanned := tracecontext.Of(ctx); spanned.Parent != "" {
				h := *op.Head()
				h.Trace, k.trace = spanned, spanned.Parent
				op, ctx = messages.With(op, h), messages.WithTrace(ctx, spanned)
			}
		}
		returned := false
		defer func() {
			if !returned { // it panics
				err = messages.CodeInternal
			}
			k.end(ctx, op, result, err)
		}()
		result, err = next(context.WithValue(ctx, callKey{}, k), op)
		returned = true
		return result, err
	}
}

// run runs the call on a connection, once more if it is a replay.
func (k *call) run(ctx context.Context, c *conn, op messages.Operation) (messages.Result, error) {
	k.mu.Lock()
	k.runs++
	runs, last := k.runs, k.last
	k.last = c
	k.mu.Unlock()
	waited := time.Since(k.began)
	m := k.t.metrics
	if runs > 1 {
		if m != nil {
			m.count(ctx, m.replays, labels{server: c.server})
		}
		if k.span == nil {
			return c.do(ctx, nil, op)
		}
		options := []trace.SpanStartOption{
			trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(append(k.t.attributesOf(op, c.server), attribute.Int(attrAttempt, runs))...),
		}
		if c != last && k.waitedFor(c) {
			options = append(options, trace.WithLinks(trace.Link{SpanContext: c.span}))
		}
		ctx, span := k.t.tracer.Start(trace.ContextWithSpan(ctx, k.span), "replay", options...)
		return c.spanned(ctx, span, op)
	}
	if m != nil {
		m.record(ctx, m.queues, waited, labels{server: c.server})
	}
	if k.span != nil && k.span.IsRecording() {
		k.span.SetAttributes(attribute.Float64(attrQueue, waited.Seconds()))
		if c.protocol != "" {
			k.span.SetAttributes(attribute.String(attrProtocolVersion, c.protocol))
		}
		if k.waitedFor(c) {
			k.span.AddLink(trace.Link{SpanContext: c.span})
		}
	}
	return c.do(ctx, k.span, op)
}

// waitedFor reports whether the call has waited for the dial of a connection that belongs to
// another call, or to none.
func (k *call) waitedFor(c *conn) bool {
	return c.span.IsValid() && c.opened.After(k.began) && c.parent != k.trace
}

// end reports the outcome of the call.
func (k *call) end(ctx context.Context, op messages.Operation, result messages.Result, err error) {
	code := codeOf(err)
	failed := string(code)
	if err == nil {
		failed = resultError(result)
	}
	if m := k.t.metrics; m != nil {
		l := labels{server: k.t.server(op.Head().Key.Server), method: k.t.method(op), code: failed}
		if failed == "" {
			l.code = codeOK
		}
		m.record(ctx, m.calls, time.Since(k.began), l)
	}
	if k.span == nil {
		return
	}
	defer k.span.End()
	if !k.span.IsRecording() {
		return
	}
	var f *messages.Failure
	errors.As(err, &f)
	switch {
	case err == nil && result != nil:
		r := result.GetReceipt()
		k.span.SetAttributes(runAttributes(r.Generation, r.Attempt, r.Replayed)...)
	case f != nil:
		k.span.SetAttributes(runAttributes(f.Generation, f.Attempt, f.Replayed)...)
	}
	var e *mcpbridge.Error
	if !errors.As(err, &e) && f != nil {
		e = &mcpbridge.Error{Detail: f.Detail}
	}
	fail(k.span, failed, e)
}

// runAttributes returns the attributes of the runs of a call. An operation that needs no run has
// none.
func runAttributes(generation uint64, attempt int, replayed bool) []attribute.KeyValue {
	if attempt == 0 {
		return nil
	}
	return []attribute.KeyValue{
		attribute.Int(attrAttempt, attempt), attribute.Int64(attrGeneration, int64(generation)), attribute.Bool(attrReplayed, replayed),
	}
}

// known are the codes of failures that this module makes. An interceptor may make others.
var known = map[messages.Code]bool{
	messages.CodeExpired: true, messages.CodeLost: true, messages.CodeUnavailable: true, messages.CodeBusy: true,
	messages.CodeDraining: true, messages.CodeClosed: true, messages.CodeUnknownServer: true, messages.CodeInvalid: true,
	messages.CodeRefused: true, messages.CodeUnauthorized: true, messages.CodeRateLimited: true, messages.CodeServerError: true,
	messages.CodeProtocol: true, messages.CodeCancelled: true, messages.CodeDeadline: true, messages.CodeQuiet: true,
	messages.CodeInternal: true,
}

// codeOf returns the code of a failure, or empty for success. An error of an interceptor is a
// refusal.
func codeOf(err error) messages.Code {
	var f *messages.Failure
	var code messages.Code
	switch {
	case err == nil:
		return ""
	case errors.As(err, &f) && f != nil:
		code = f.Code
	case !errors.As(err, &code):
		return messages.CodeRefused
	}
	if !known[code] {
		return other
	}
	return code
}

// nameOf returns the name of the span of an operation.
func nameOf(op messages.Operation) string {
	if tool, prompt := namesOf(op); tool+prompt != "" {
		return op.Method() + " " + tool + prompt
	}
	return op.Method()
}

// namesOf returns the name of the tool or of the prompt of an operation.
func namesOf(op messages.Operation) (tool, prompt string) {
	switch op.(type) {
	case *messages.CallTool:
		return messages.TargetOf(op), ""
	case *messages.GetPrompt:
		return "", messages.TargetOf(op)
	}
	return "", ""
}

// attributesOf returns the attributes of a span of an operation.
func (t *telemetry) attributesOf(op messages.Operation, server string) []attribute.KeyValue {
	all := append([]attribute.KeyValue{attribute.String(attrMethod, op.Method()), attribute.String(attrServer, server)}, t.places[server]...)
	target := messages.TargetOf(op)
	switch op.(type) {
	case *messages.CallTool:
		all = append(all, attribute.String(attrOperation, executeTool), attribute.String(attrTool, target))
	case *messages.GetPrompt:
		all = append(all, attribute.String(attrPrompt, target))
	case *messages.ReadResource, *messages.Subscribe, *messages.Unsubscribe:
		all = append(all, attribute.String(attrResource, target))
	}
	return all
}

// statusCode returns the attribute for the code of a JSON-RPC error.
func statusCode(code int64) attribute.KeyValue {
	return attribute.String(attrStatusCode, strconv.FormatInt(code, 10))
}

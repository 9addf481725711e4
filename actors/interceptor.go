package actors

import (
	"context"

	"github.com/mcpactor/mcpactor/messages"
)

// Runner runs an operation and returns its result, or an error. The error of the Runner
// that an [Interceptor] gets is of type [*messages.Failure].
type Runner func(ctx context.Context, op messages.Operation) (messages.Result, error)

// Interceptor wraps a [Runner], as middleware wraps an http.Handler. It can read or replace
// an operation, read or replace its result, measure its time, or refuse it by returning an
// error without calling next. A replay happens within next, so that each operation is
// intercepted once.
//
// The outer function is called once, when the supervisor starts. The inner function runs in
// a goroutine of its own for each operation. It must pass its ctx, or a context that is
// derived from it, to next. The ctx ends at the operation's deadline and when the operation
// is cancelled; the caller then gets its reply even if the interceptor does not return. An
// error that is not a [*messages.Failure] reaches the caller as [messages.CodeRefused].
// Operations and results are read-only: change a copy, see [messages.With].
//
// The ctx has the attributes and the trace of the operation, see [messages.AttributesOf]. If
// a client has sent the operation, ctx also has the values of the client's context, until
// the client has the reply. What is added to the ctx that is passed to next reaches the
// credentials of the requests.
type Interceptor func(next Runner) Runner

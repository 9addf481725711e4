package messages

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"
	"unicode"
)

// Code says why an operation failed. It survives serialisation, and is an
// error itself, so that errors.Is works against it.
type Code string

// Error returns the code.
func (c Code) Error() string { return string(c) }

// The codes of a [Failure].
const (
	// CodeExpired: the session expired, and its successor did too.
	CodeExpired Code = "expired"
	// CodeLost: the connection broke after the call was sent. It may have run.
	CodeLost Code = "lost"
	// CodeUnavailable: there is no session and none could be opened: until the
	// deadline, where the server is down. The call did not run.
	CodeUnavailable Code = "unavailable"
	// CodeBusy: a limit is reached: too many calls wait on the session, or the
	// cap on sessions left no slot until the deadline. The call did not run.
	CodeBusy Code = "busy"
	// CodeDraining: the supervisor is being stopped. The call did not run.
	CodeDraining Code = "draining"
	// CodeClosed: the session, or the supervisor, was closed under the call.
	CodeClosed Code = "closed"
	// CodeUnknownServer: no server of that name is configured.
	CodeUnknownServer Code = "unknown_server"
	// CodeInvalid: the command or its parameters are wrong: the caller's
	// mistake.
	CodeInvalid Code = "invalid"
	// CodeRefused: an interceptor refused the operation, or the server asked for
	// something to go on with, and was refused.
	CodeRefused Code = "refused"
	// CodeUnauthorized: the server answered 401 or 403, or there are no credentials to
	// send.
	CodeUnauthorized Code = "unauthorized"
	// CodeRateLimited: the server answered 429.
	CodeRateLimited Code = "rate_limited"
	// CodeServerError: the server answered with an error of its own.
	CodeServerError Code = "server_error"
	// CodeProtocol: the server's answer was no valid MCP.
	CodeProtocol Code = "protocol"
	// CodeCancelled: the caller cancelled the call.
	CodeCancelled Code = "cancelled"
	// CodeDeadline: the deadline passed.
	CodeDeadline Code = "deadline"
	// CodeInternal: a bug, here or in a hook.
	CodeInternal Code = "internal"
)

// Sentinels for errors.Is, one for each code.
var (
	ErrExpired       error = CodeExpired
	ErrLost          error = CodeLost
	ErrUnavailable   error = CodeUnavailable
	ErrBusy          error = CodeBusy
	ErrDraining      error = CodeDraining
	ErrClosed        error = CodeClosed
	ErrUnknownServer error = CodeUnknownServer
	ErrInvalid       error = CodeInvalid
	ErrRefused       error = CodeRefused
	ErrUnauthorized  error = CodeUnauthorized
	ErrRateLimited   error = CodeRateLimited
	ErrServerError   error = CodeServerError
	ErrProtocol      error = CodeProtocol
	ErrCancelled     error = CodeCancelled
	ErrDeadline      error = CodeDeadline
	ErrInternal      error = CodeInternal
)

// Failure is the reply to a command that did not go well. It is an error:
// errors.Is works against the sentinels of this package, and for
// [CodeDeadline] and [CodeCancelled] against those of package context too.
type Failure struct {
	Key Key
	// ID is the id that the command carried.
	ID string
	// Op is the MCP method, or the name of the command.
	Op string
	// Target is the name of the tool or prompt that the operation was for, or the URI
	// of the resource without its user and query. It is empty for other commands.
	Target string
	Code   Code
	// Detail is the cause in words, without the secrets of the configuration. When a
	// stdio server ended, it has the last that the server wrote to stderr, which may
	// quote the arguments of calls.
	Detail string
	// Generation is that of the session the operation ran on, or 0.
	Generation uint64
	// Replayed is true when the operation was sent a second time.
	Replayed bool
	// MayHaveRun is true when running the operation again could run it twice: it
	// was sent and its fate is unknown, or it failed after it may have run.
	MayHaveRun bool
	// RetryAfter is how long to wait before trying again, when that is known:
	// from the server's Retry-After, a backoff, or the next probe of a server that is
	// down.
	RetryAfter time.Duration
	// Cause is the error behind it, where there is one. It does not survive
	// serialisation.
	Cause error `json:"-"`
}

// NewFailure returns the failure of a command: it carries what the command says of
// itself. One that is nil says nothing.
func NewFailure(cmd Command, code Code, detail string) (f *Failure) {
	f = &Failure{Code: code, Detail: detail}
	if cmd == nil {
		return f
	}
	defer func() { _ = recover() }() // a nil pointer, or a type of the caller's around one
	f.ID = cmd.RequestID()
	if op, ok := cmd.(Operation); ok {
		f.Key, f.Op, f.Target = op.Head().Key.Normal(), op.Method(), targetOf(op)
		return f
	}
	kind := fmt.Sprintf("%T", cmd)
	f.Op = kind[strings.LastIndexByte(kind, '.')+1:]
	return f
}

// targetOf returns what an operation is for, within the session.
func targetOf(op Operation) string {
	switch op := op.(type) {
	case *CallTool:
		if op.Params != nil {
			return op.Params.Name
		}
	case *GetPrompt:
		if op.Params != nil {
			return op.Params.Name
		}
	case *ReadResource:
		if op.Params != nil {
			return withoutSecrets(op.Params.URI)
		}
	case *Subscribe:
		return withoutSecrets(op.URI)
	case *Unsubscribe:
		return withoutSecrets(op.URI)
	}
	return ""
}

// withoutSecrets returns a URI without its user, query and fragment.
func withoutSecrets(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.ForceQuery, u.Fragment = nil, "", false, ""
	return u.String()
}

const (
	// maxTarget bounds the target in an error text, in characters.
	maxTarget = 128
	// maxDetail bounds the detail in an error text, in bytes.
	maxDetail = 2048
)

// Error returns the operation, what it was for, the key, the code and the detail, in
// one line of bounded length.
func (f *Failure) Error() string {
	if f == nil {
		return "no failure: a nil *messages.Failure"
	}
	var b strings.Builder
	b.WriteString(f.Op)
	if f.Target != "" {
		fmt.Fprintf(&b, " %.*q", maxTarget, f.Target)
	}
	if f.Key != (Key{}) {
		if b.Len() > 0 {
			b.WriteString(" on ")
		}
		b.WriteString(f.Key.String())
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	b.WriteString(string(f.Code))
	if f.Detail != "" {
		b.WriteString(": ")
		b.WriteString(oneLine(f.Detail))
	}
	if f.RetryAfter > 0 {
		b.WriteString("; try again in ")
		b.WriteString(f.RetryAfter.Round(time.Millisecond).String())
	}
	return b.String()
}

// oneLine makes a detail fit for a line of text: an interceptor, or a server through
// it, may have written anything.
func oneLine(detail string) string {
	if len(detail) > maxDetail {
		detail = strings.ToValidUTF8(detail[:maxDetail], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if r != ' ' && !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, detail)
}

// Is makes errors.Is work against codes, sentinels and context errors.
func (f *Failure) Is(target error) bool {
	if f == nil {
		return false
	}
	switch target {
	case error(f.Code):
		return true
	case context.DeadlineExceeded:
		return f.Code == CodeDeadline
	case context.Canceled:
		return f.Code == CodeCancelled
	}
	return false
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error {
	if f == nil {
		return nil
	}
	return f.Cause
}

// RequestID returns the id that the command carried.
func (f *Failure) RequestID() string {
	if f == nil {
		return ""
	}
	return f.ID
}

// LogValue returns the error text.
func (f *Failure) LogValue() slog.Value { return slog.StringValue(f.Error()) }

// IgnoreDeadLetterLogging keeps a reply to an actor that has stopped meanwhile
// out of Proto.Actor's dead letter log.
func (*Failure) IgnoreDeadLetterLogging() {}

func (*Failure) reply() {}

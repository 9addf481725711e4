package messages

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"
)

// Code says why an operation failed. It survives serialization. It is an error: the codes
// are the sentinels for [errors.Is].
type Code string

// Error returns the code.
func (c Code) Error() string { return string(c) }

// The codes of a [Failure].
const (
	// CodeExpired: the MCP session expired, and so did the next one when the call was
	// replayed.
	CodeExpired Code = "expired"
	// CodeLost: the connection broke after the call was sent. The call may have run.
	CodeLost Code = "lost"
	// CodeUnavailable: no session could be opened. If the server is down, the session was
	// retried until the deadline. The call did not run.
	CodeUnavailable Code = "unavailable"
	// CodeBusy: too many calls are waiting, or the cap on sessions left no slot until the
	// deadline, or no handle was free until then, or the call is beyond a bound of calls in flight. The call did not run.
	CodeBusy Code = "busy"
	// CodeDraining: the supervisor is being stopped. The call did not run.
	CodeDraining Code = "draining"
	// CodeClosed: the session was closed, or the supervisor was stopped, before the call was
	// answered.
	CodeClosed Code = "closed"
	// CodeUnknownServer: no server of that name is configured.
	CodeUnknownServer Code = "unknown_server"
	// CodeInvalid: the command or its parameters are invalid.
	CodeInvalid Code = "invalid"
	// CodeRefused: an interceptor has refused the operation, the server needed input
	// from the handler and did not get it, or the call is beyond a bound of calls in all.
	CodeRefused Code = "refused"
	// CodeUnauthorized: the server answered 401 or 403, or there are no credentials.
	CodeUnauthorized Code = "unauthorized"
	// CodeRateLimited: the server answered 429. If its answer had a Retry-After, calls with the same credentials are
	// not sent to the same URL until then, for 10 minutes at most: they fail at once with this code, and have not run.
	// So does a call beyond a bound of calls in a minute, and one that repeats itself too often.
	CodeRateLimited Code = "rate_limited"
	// CodeServerError: the server answered with an error.
	CodeServerError Code = "server_error"
	// CodeProtocol: the answer of the server was not valid MCP.
	CodeProtocol Code = "protocol"
	// CodeCancelled: the caller cancelled the call, or the owner of the call or of its scope has
	// terminated.
	CodeCancelled Code = "cancelled"
	// CodeDeadline: the deadline passed.
	CodeDeadline Code = "deadline"
	// CodeQuiet: the operation ran, and nothing was heard of it for [Header.Quiet]. It may have run.
	CodeQuiet Code = "quiet"
	// CodeInternal: a bug in this module, or in code of the caller that it runs.
	CodeInternal Code = "internal"
)

// Failure is the reply to a command that has failed. It is an error: [errors.Is] works with
// its code and, for [CodeDeadline] and [CodeCancelled], with the errors of package context.
//
// As JSON it is an object with the names of the tags, in which RetryAfter is a string such
// as "1.5s".
type Failure struct {
	Key Key `json:"key,omitzero"`
	// ID is the id of the command.
	ID string `json:"id,omitempty"`
	// Op is the MCP method, or the name of the command.
	Op string `json:"op,omitempty"`
	// Target is the name of the tool or prompt of the operation, or the URI of the resource
	// without its user, query and fragment. It is empty for other commands.
	Target string `json:"target,omitempty"`
	Code   Code   `json:"code"`
	// Detail is the cause in words, without the secrets of the configuration. If a stdio
	// server has ended, Detail contains the end of its stderr, which may quote the arguments
	// of calls.
	Detail string `json:"detail,omitempty"`
	// Remedy says what to change, if the operation cannot succeed before the configuration or the
	// credentials have changed: RetryAfter is 0 then. It is empty for other failures.
	Remedy string `json:"remedy,omitempty"`
	// Generation is that of the MCP session that the operation ran on, or 0.
	Generation uint64 `json:"generation,omitempty"`
	// Attempt counts how often the operation was run on a session, from 1. It is 0 if the
	// operation was never run, and in a failure that an interceptor has made.
	Attempt int `json:"attempt,omitempty"`
	// Replayed is true if the operation was sent more than once.
	Replayed bool `json:"replayed"`
	// MayHaveRun is true if the operation may have run, so that sending it again could run
	// it twice. It is true for a durable call until the supervisor has read what the store has of it, whatever the
	// code: an earlier call with its ID may have run.
	MayHaveRun bool `json:"mayHaveRun"`
	// RetryAfter is the time until another attempt makes sense, or 0 if that is not known.
	// It comes from the Retry-After of the server, from a backoff, or from the next probe
	// of a server that is down.
	RetryAfter time.Duration `json:"retryAfter,omitzero"`
	// Supervisor is the id of the PID of the supervisor, or empty for a failure of the code
	// in front of it, such as package toolset.
	Supervisor string `json:"supervisor,omitempty"`
	// Cause is the underlying error, or nil. It does not survive serialization.
	Cause error `json:"-"`
}

// NewFailure returns the failure of a command. It takes the id, the key, the operation and
// the target from the command, unless that is nil. A durable call may have run before, see [CallTool.Durable].
func NewFailure(cmd Command, code Code, detail string) (f *Failure) {
	f = &Failure{Code: code, Detail: detail}
	if cmd == nil {
		return f
	}
	defer func() { _ = recover() }() // a nil pointer, or a type of the caller's around one
	f.ID = cmd.RequestID()
	if op, ok := cmd.(Operation); ok {
		f.Key, f.Op, f.Target = op.Head().Key.Normal(), op.Method(), TargetOf(op)
		call, is := op.(*CallTool)
		f.MayHaveRun = is && call.Durable && call.ID != ""
		return f
	}
	kind := fmt.Sprintf("%T", cmd)
	f.Op = kind[strings.LastIndexByte(kind, '.')+1:]
	return f
}

// TargetOf returns the name of the tool or prompt of an operation, or the URI of its
// resource without its user, query and fragment. It is empty for other operations.
func TargetOf(op Operation) string {
	if op == nil {
		return ""
	}
	return op.target()
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

// Error returns one line of bounded length: the operation, its target, the key, the code,
// the detail, and the remedy or when to try again, unless the operation may have run.
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
	switch {
	case f.Remedy != "":
		b.WriteString("; ")
		b.WriteString(oneLine(f.Remedy))
	case f.RetryAfter > 0 && !f.MayHaveRun:
		b.WriteString("; try again in ")
		b.WriteString(f.RetryAfter.Round(time.Millisecond).String())
	}
	return b.String()
}

// oneLine makes a detail printable in a line of text. An interceptor may have written
// anything, and so may a server whose error it returns.
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

// Is reports whether target is the code of the failure, or the context error that the code
// stands for.
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

// RequestID returns the id of the command.
func (f *Failure) RequestID() string {
	if f == nil {
		return ""
	}
	return f.ID
}

// IgnoreDeadLetterLogging keeps replies to an actor that has stopped out of Proto.Actor's
// dead letter log.
func (*Failure) IgnoreDeadLetterLogging() {}

func (*Failure) reply() {}

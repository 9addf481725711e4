package mcpbridge

import (
	"context"
	"errors"
	"time"

	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/internal/visible"
	"github.com/mcpactor/mcpactor/messages"
)

// Class says what became of a call, or of an attempt to dial.
type Class uint8

// The classes of an [Error].
const (
	// Lost: sent and not answered. The call may have run.
	Lost Class = iota
	// Expired: refused because the server does not know the session. The call
	// did not run.
	Expired
	// NotSent: the request was not sent. The call did not run.
	NotSent
	// Unavailable: the dial failed, and may succeed later.
	Unavailable
	// Invalid: the request is wrong: the server refused it, or it cannot be encoded.
	Invalid
	// Unauthorized: 401 or 403, or there are no credentials to send.
	Unauthorized
	// RateLimited: 429. After one with Retry-After, operations that callers want to run (tools/call, prompts/get, resources/read,
	// completion/complete and custom methods) are not sent, and fail so, until that time is over, for 10 minutes at most. That
	// concerns all sessions with the same URL, Headers, HTTPClient and credentials: see [Identified].
	RateLimited
	// ServerError: the server answered with an error.
	ServerError
	// Protocol: the server's answer is not valid MCP.
	Protocol
	// Cancelled: the context was cancelled.
	Cancelled
	// Deadline: the context's deadline passed.
	Deadline
	// Refused: the server asked for input, and did not get it.
	Refused
	// Internal: a hook or this package panicked.
	Internal
)

var codes = [...]messages.Code{
	Lost: messages.CodeLost, Expired: messages.CodeExpired, NotSent: messages.CodeUnavailable,
	Unavailable: messages.CodeUnavailable, Invalid: messages.CodeInvalid, Unauthorized: messages.CodeUnauthorized,
	RateLimited: messages.CodeRateLimited, ServerError: messages.CodeServerError, Protocol: messages.CodeProtocol,
	Cancelled: messages.CodeCancelled, Deadline: messages.CodeDeadline, Refused: messages.CodeRefused,
	Internal: messages.CodeInternal,
}

// Code returns the failure code for callers.
func (c Class) Code() messages.Code { return codes[c] }

// String returns the name of the class.
func (c Class) String() string {
	if c == NotSent {
		return "not_sent"
	}
	return string(codes[c])
}

// Fate says what became of a session.
type Fate uint8

// The fates of a session.
const (
	// Alive: the session can be used.
	Alive Fate = iota
	// Gone: the session has expired.
	Gone
	// Broken: the connection of the session broke. Over HTTP the server may still know the
	// session.
	Broken
	// Unheard: something in front of the server has answered in its place. The session can be
	// used when the server is heard again. Then an operation that is safe to run twice
	// can be repeated.
	Unheard
)

// HasEnded reports whether the session can no longer be used.
func (f Fate) HasEnded() bool { return f == Gone || f == Broken }

// Error says what went wrong, and what that means for the call and its session.
// Its text contains no session ids, headers, arguments or control characters, and may
// be logged. The text of [Error.ForCaller] may not.
type Error struct {
	// Class says what became of the call.
	Class Class
	// Session says what became of the session that the call ran on.
	Session Fate
	// Detail is the cause as text.
	Detail string
	// Shared is the part of Detail that other keys may see. It lacks the words of the server, which
	// may be about the key that it refuses. If Shared is empty, others may see all of Detail. Other keys
	// see it if a failed dial shows that the server is down.
	Shared string
	// Remedy says what to change, such as "check the host in its URL", if only a change of the
	// configuration or of the credentials can help. It is empty if another attempt can help.
	Remedy string
	// Sent is true if some of the request may have reached the server.
	Sent bool
	// RetryAfter is the delay that the server asked for, or what is left of it, or 0.
	RetryAfter time.Duration
	// Server is what a failed dial has shown about the server. It has no meaning in other errors.
	Server Presence
	// Err is the underlying error, or nil. Its text may contain secrets.
	Err error

	// Status is the HTTP status of the refusal. It is 200 for an answer that is an error,
	// over any transport, and 0 if there was no answer.
	Status int
	// Code is the code of the JSON-RPC error that the server answered with, or 0.
	Code int64
	// Own is true if the answer has the id of the request. Then the server has read the request, and may
	// have carried it out.
	Own bool
	// Begun is true if the server has accepted an earlier request of the same operation. Then the operation
	// may have run, whatever became of the last request.
	Begun bool
	// Withheld is true if the operation was not sent because its session is dead
	// ([NotSent]), or is [Unheard] ([Unavailable]). Such an operation can run on the next session, or when the session is
	// heard again, whatever its [messages.Replay].
	Withheld bool
	// Doubt is true for a refusal that may be about the session. The call may have run.
	Doubt bool
	// Quote is output of the server that only the caller may read: see [Error.ForCaller].
	Quote string
}

// Error returns the class, the detail and the remedy.
func (e *Error) Error() string {
	text := e.Class.String()
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

// ForCaller returns the detail for the callers whose calls failed. If a stdio server ended,
// the text includes its last lines on stderr, or its output that was not JSON-RPC. These
// may quote arguments of calls. For this reason the text must not appear in a log line or an event.
func (e *Error) ForCaller() string {
	for from := e; ; {
		if from.Quote != "" {
			return e.Detail + ": " + from.Quote
		}
		if !errors.As(from.Err, &from) {
			return e.Detail
		}
	}
}

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }

// AsError returns err as an [Error]. An error of another type becomes [Lost] with a
// broken session, which is the safe assumption.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	var panicked *guard.Panic
	switch {
	case errors.As(err, &e) && e == nil:
		return &Error{Class: Internal, Sent: true, Detail: "a nil *mcpbridge.Error was returned as an error"}
	case e != nil:
		return e
	case errors.As(err, &panicked):
		return &Error{Class: Internal, Sent: true, Detail: visible.Detail(panicked.Brief()), Err: panicked}
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Class: Deadline, Sent: true, Err: err}
	case errors.Is(err, context.Canceled):
		return &Error{Class: Cancelled, Sent: true, Err: err}
	}
	return &Error{Class: Lost, Session: Broken, Sent: true, Detail: visible.Detail(err.Error()), Err: err}
}

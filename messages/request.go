package messages

import (
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Request is a request of a server. It is sent to the supervisor's handler, which answers
// its sender with the [Answer] that the comment of the request names, or with a [Refusal].
// The request is refused if there is no handler, if the handler has stopped, or if it does
// not answer by the deadline.
type Request interface {
	// GetOrigin returns the origin.
	GetOrigin() *Origin
	request()
}

// Answer is the answer of a handler to a [Request].
type Answer interface {
	answer()
}

// Origin is part of every request. A request prints as its key, so that its content stays
// out of logs.
type Origin struct {
	// Key is the key of the session.
	Key Key
	// Deadline is when the request is refused if there is no answer.
	Deadline time.Time
}

// GetOrigin returns the origin itself.
func (o *Origin) GetOrigin() *Origin { return o }

// String returns the key, and nothing of the content.
func (o *Origin) String() string { return o.Key.String() }

// LogValue returns the key, and nothing of the content.
func (o *Origin) LogValue() slog.Value { return slog.StringValue(o.Key.String()) }

// IgnoreDeadLetterLogging keeps requests to a handler that has stopped out of
// Proto.Actor's dead letter log.
func (*Origin) IgnoreDeadLetterLogging() {}

func (*Origin) request() {}

// Elicit asks the user to fill in a form or to visit a URL.
//
// Send to: the handler.
// Replies: [Elicited] or [Refusal].
type Elicit struct {
	Origin
	// Params are the parameters of the request. Read-only.
	Params *mcp.ElicitParams
}

// Sample asks for a completion by the model of the agent. Protocol 2026-07-28 deprecates
// this.
//
// Send to: the handler.
// Replies: [Sampled] or [Refusal].
type Sample struct {
	Origin
	// Params are the parameters of the request. Read-only.
	Params *mcp.CreateMessageWithToolsParams
}

// ListRoots asks for the roots of a session for which there was no [SetRoots]. Protocol
// 2026-07-28 deprecates this.
//
// Send to: the handler.
// Replies: [Roots] or [Refusal].
type ListRoots struct {
	Origin
}

// Elicited answers [Elicit]. If the user has accepted, the content must match the schema of
// the form; otherwise the server gets an error.
type Elicited struct {
	discreet
	Result *mcp.ElicitResult
}

// Sampled answers [Sample].
type Sampled struct {
	discreet
	Result *mcp.CreateMessageWithToolsResult
}

// Roots answers [ListRoots].
type Roots struct {
	discreet
	Roots []*mcp.Root
}

// Refusal answers any [Request].
type Refusal struct {
	discreet
	// Reason is sent to the server.
	Reason string
}

func (*Elicited) answer() {}
func (*Sampled) answer()  {}
func (*Roots) answer()    {}
func (*Refusal) answer()  {}

// discreet keeps answers out of logs, because a late answer is a dead letter.
type discreet struct{}

// String returns nothing of the answer.
func (discreet) String() string { return "an answer" }

// LogValue returns nothing of the answer.
func (discreet) LogValue() slog.Value { return slog.StringValue("an answer") }

// IgnoreDeadLetterLogging keeps late answers out of Proto.Actor's dead letter log.
func (discreet) IgnoreDeadLetterLogging() {}

package messages

import (
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Request is what a server asks of the agent. It is sent to the supervisor's
// handler, which answers its sender with the [Answer] that the request's comment
// names, or with a [Refusal]. The server is refused when there is no handler, when
// the handler has stopped, and when it has not answered by the deadline.
type Request interface {
	// GetOrigin returns what all requests carry.
	GetOrigin() *Origin
	request()
}

// Answer is a handler's answer to a [Request].
type Answer interface {
	answer()
}

// Origin is what every request carries. It keeps what is asked out of logs: all
// requests print as their key.
type Origin struct {
	// Key is that of the session whose server asks.
	Key Key
	// Deadline is when the server is refused for want of an answer.
	Deadline time.Time
}

// GetOrigin returns the origin itself.
func (o *Origin) GetOrigin() *Origin { return o }

// String returns the key, and nothing of what is asked.
func (o *Origin) String() string { return o.Key.String() }

// LogValue returns the key, and nothing of what is asked.
func (o *Origin) LogValue() slog.Value { return slog.StringValue(o.Key.String()) }

// IgnoreDeadLetterLogging keeps a request to a handler that has stopped out of
// Proto.Actor's dead letter log.
func (*Origin) IgnoreDeadLetterLogging() {}

func (*Origin) request() {}

// Elicit asks the user for something: to fill in a form, or to visit a URL.
//
// Send to: the handler.
// Replies: [Elicited] or [Refusal].
type Elicit struct {
	Origin
	// Params say what is asked. Read-only.
	Params *mcp.ElicitParams
}

// Sample asks for a completion by the agent's model. Protocol 2026-07-28
// deprecates this.
//
// Send to: the handler.
// Replies: [Sampled] or [Refusal].
type Sample struct {
	Origin
	// Params say what is asked. Read-only.
	Params *mcp.CreateMessageWithToolsParams
}

// ListRoots asks for the roots of a session that has none by [SetRoots].
// Protocol 2026-07-28 deprecates this.
//
// Send to: the handler.
// Replies: [Roots] or [Refusal].
type ListRoots struct {
	Origin
}

// Elicited answers [Elicit]. The content of one that was accepted must be what the
// form asks for; else the server gets an error.
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
	// Reason is told to the server.
	Reason string
}

func (*Elicited) answer() {}
func (*Sampled) answer()  {}
func (*Roots) answer()    {}
func (*Refusal) answer()  {}

// discreet keeps answers out of logs: a late one is a dead letter.
type discreet struct{}

// String returns nothing of the answer.
func (discreet) String() string { return "an answer" }

// LogValue returns nothing of the answer.
func (discreet) LogValue() slog.Value { return slog.StringValue("an answer") }

// IgnoreDeadLetterLogging keeps a late answer out of Proto.Actor's dead letter log.
func (discreet) IgnoreDeadLetterLogging() {}

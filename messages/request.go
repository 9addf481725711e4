package messages

import (
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Request is a request of a server, a question. It is sent to a handler, which answers its
// sender with the [Answer] that the comment of the request names, or with a [Refusal]. The
// handler is that of the operation ([Header.Handler]), or else that of the scope ([Bind]), or
// else that of the supervisor.
//
// The request is refused if there is no handler or if the handler has stopped. When an answer
// is of no use any more, the handler gets a [Withdrawn].
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
	// Question is the id of the request. No other request in the actor system has it.
	Question string
	// Operation is the operation that the request belongs to, or empty if that is not known.
	// Over streamable HTTP the stream of the request says so. Otherwise, it is the only
	// operation that runs on the session.
	Operation OperationRef
	// Deadline is when the request is withdrawn if there is no answer. It is not later than
	// the deadline of the operation. If the operation is not known, it is not later than the
	// deadlines of all operations that run on the session.
	Deadline time.Time
}

// OperationRef names an operation.
type OperationRef struct {
	// ID is the operation's [Header.ID].
	ID string `json:"id,omitempty"`
	// Method is the MCP method, such as "tools/call".
	Method string `json:"method"`
	// Target is the name of the tool or prompt, or the URI of the resource without its user,
	// query and fragment. It is empty for other operations.
	Target string `json:"target,omitempty"`
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

// Elicit asks the user to fill in a form or to visit a URL.
//
// Send to: the handler.
// Replies: [Elicited] or [Refusal].
type Elicit struct {
	Origin
	// Params are the parameters of the request. Read-only.
	Params *mcp.ElicitParams `json:"params"`
	AsSent
}

// Sample asks for a completion by the model of the agent. Protocol 2026-07-28 deprecates
// this.
//
// Send to: the handler.
// Replies: [Sampled] or [Refusal].
type Sample struct {
	Origin
	// Params are the parameters of the request. Read-only.
	Params *mcp.CreateMessageWithToolsParams `json:"params"`
	AsSent
}

// ListRoots asks for the roots of a session for which there was no [SetRoots]. Unless the stream
// of the request says that it belongs to an operation, it is not withdrawn when operations end.
// Protocol 2026-07-28 deprecates this.
//
// Send to: the handler.
// Replies: [Roots] or [Refusal].
type ListRoots struct {
	Origin
}

func (*Elicit) request()    {}
func (*Sample) request()    {}
func (*ListRoots) request() {}

// Withdrawn tells a handler that a [Request] that it got is moot: its operation has a reply,
// was cancelled, or has passed its deadline; its session was closed, or has lost its connection;
// the owner terminated; or there was no answer in time. The handler gets it at most once for
// each request, and not for one that it has answered in time. An answer that comes later is
// dropped. Withdrawn has no sender, and needs no answer.
//
// Send to: the handler, by the supervisor.
type Withdrawn struct {
	// Origin is that of the request.
	Origin
	// Reason says in words why the request is moot.
	Reason string `json:"reason"`
}

// Elicited answers [Elicit]. If the user has accepted, the content must match the schema of
// the form; otherwise the server gets an error.
type Elicited struct {
	discreet
	Result *mcp.ElicitResult `json:"result"`
	AsSent
}

// Sampled answers [Sample].
type Sampled struct {
	discreet
	Result *mcp.CreateMessageWithToolsResult `json:"result"`
	AsSent
}

// Roots answers [ListRoots].
type Roots struct {
	discreet
	Roots []*mcp.Root `json:"roots"`
}

// Refusal answers any [Request].
type Refusal struct {
	discreet
	// Reason is sent to the server.
	Reason string `json:"reason"`
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

package messages

import (
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The operations are sent to the supervisor. Each is answered with the reply that
// its comment names, or with a [Failure]. Their parameters are the SDK's,
// read-only once sent: they are copied for each attempt.

// CallTool calls a tool.
//
// Send to: the supervisor.
// Replies: [ToolResult] or [Failure].
type CallTool struct {
	Header
	Params *mcp.CallToolParams
}

// Method returns "tools/call".
func (*CallTool) Method() string { return "tools/call" }

// Validate wants the name of a tool.
func (m *CallTool) Validate() error {
	if m.Params == nil || m.Params.Name == "" {
		return errors.New("params: the tool name is empty")
	}
	return nil
}

// ListTools lists the tools of the server: all pages in one reply.
//
// Send to: the supervisor.
// Replies: [ToolList] or [Failure].
type ListTools struct {
	Header
}

// Method returns "tools/list".
func (*ListTools) Method() string { return "tools/list" }

// Idempotent returns true: it only reads.
func (*ListTools) Idempotent() bool { return true }

// ListResources lists the resources of the server: all pages in one reply.
//
// Send to: the supervisor.
// Replies: [ResourceList] or [Failure].
type ListResources struct {
	Header
}

// Method returns "resources/list".
func (*ListResources) Method() string { return "resources/list" }

// Idempotent returns true: it only reads.
func (*ListResources) Idempotent() bool { return true }

// ListResourceTemplates lists the templates of resources: all pages in one reply.
//
// Send to: the supervisor.
// Replies: [ResourceTemplateList] or [Failure].
type ListResourceTemplates struct {
	Header
}

// Method returns "resources/templates/list".
func (*ListResourceTemplates) Method() string { return "resources/templates/list" }

// Idempotent returns true: it only reads.
func (*ListResourceTemplates) Idempotent() bool { return true }

// ReadResource reads a resource.
//
// Send to: the supervisor.
// Replies: [ResourceContents] or [Failure].
type ReadResource struct {
	Header
	Params *mcp.ReadResourceParams
}

// Method returns "resources/read".
func (*ReadResource) Method() string { return "resources/read" }

// Idempotent returns true: it only reads.
func (*ReadResource) Idempotent() bool { return true }

// Validate wants a URI.
func (m *ReadResource) Validate() error {
	if m.Params == nil || m.Params.URI == "" {
		return errors.New("params: the URI is empty")
	}
	return nil
}

// ListPrompts lists the prompts of the server: all pages in one reply.
//
// Send to: the supervisor.
// Replies: [PromptList] or [Failure].
type ListPrompts struct {
	Header
}

// Method returns "prompts/list".
func (*ListPrompts) Method() string { return "prompts/list" }

// Idempotent returns true: it only reads.
func (*ListPrompts) Idempotent() bool { return true }

// GetPrompt fills in a prompt.
//
// Send to: the supervisor.
// Replies: [Prompt] or [Failure].
type GetPrompt struct {
	Header
	Params *mcp.GetPromptParams
}

// Method returns "prompts/get".
func (*GetPrompt) Method() string { return "prompts/get" }

// Idempotent returns true: it only reads.
func (*GetPrompt) Idempotent() bool { return true }

// Validate wants the name of a prompt.
func (m *GetPrompt) Validate() error {
	if m.Params == nil || m.Params.Name == "" {
		return errors.New("params: the prompt name is empty")
	}
	return nil
}

// Complete asks for ways to complete an argument of a prompt, or of a template of resources.
//
// Send to: the supervisor.
// Replies: [Completion] or [Failure].
type Complete struct {
	Header
	Params *mcp.CompleteParams
}

// Method returns "completion/complete".
func (*Complete) Method() string { return "completion/complete" }

// Idempotent returns true: it only reads.
func (*Complete) Idempotent() bool { return true }

// Validate wants a reference.
func (m *Complete) Validate() error {
	if m.Params == nil || m.Params.Ref == nil {
		return errors.New("params: the reference is missing")
	}
	return nil
}

// Subscribe asks the server to tell when a resource changes. It is remembered, and
// asked again on every session that a restart opens, until the session is closed
// or evicted.
//
// Send to: the supervisor.
// Replies: [Ack] or [Failure].
type Subscribe struct {
	Header
	// URI is the resource's.
	URI string
}

// Method returns "resources/subscribe".
func (*Subscribe) Method() string { return "resources/subscribe" }

// Idempotent returns true: the second subscription is the first one.
func (*Subscribe) Idempotent() bool { return true }

// Validate wants a URI.
func (m *Subscribe) Validate() error {
	if m.URI == "" {
		return errors.New("uri: is empty")
	}
	return nil
}

// Unsubscribe takes a [Subscribe] back.
//
// Send to: the supervisor.
// Replies: [Ack] or [Failure].
type Unsubscribe struct {
	Header
	// URI is the resource's.
	URI string
}

// Method returns "resources/unsubscribe".
func (*Unsubscribe) Method() string { return "resources/unsubscribe" }

// Idempotent returns true: what is not subscribed to stays so.
func (*Unsubscribe) Idempotent() bool { return true }

// Validate wants a URI.
func (m *Unsubscribe) Validate() error {
	if m.URI == "" {
		return errors.New("uri: is empty")
	}
	return nil
}

// SetLogLevel tells the server what to log. It is remembered, as a [Subscribe] is.
//
// Send to: the supervisor.
// Replies: [Ack] or [Failure].
type SetLogLevel struct {
	Header
	// Level is the least that the server shall send: debug, info, notice, warning,
	// error, critical, alert or emergency. Protocol 2026-07-28 deprecates this.
	Level string
}

// Method returns "logging/setLevel".
func (*SetLogLevel) Method() string { return "logging/setLevel" }

// Idempotent returns true: the level is the same.
func (*SetLogLevel) Idempotent() bool { return true }

// Validate wants a level.
func (m *SetLogLevel) Validate() error {
	if m.Level == "" {
		return errors.New("level: is empty")
	}
	return nil
}

// SetRoots tells which folders, or other roots, the server may work in: it replaces
// what was told before, and the server is told that its list has changed. It is
// remembered, as a [Subscribe] is, and answers the server instead of the handler of
// [ListRoots]. Protocol 2026-07-28 deprecates roots.
//
// Send to: the supervisor, whose configured capabilities must have roots.
// Replies: [Ack] or [Failure].
type SetRoots struct {
	Header
	// Roots are all the roots; none is fine. Read-only.
	Roots []*mcp.Root
}

// Method returns "notifications/roots/list_changed".
func (*SetRoots) Method() string { return "notifications/roots/list_changed" }

// Idempotent returns true: the roots are the same.
func (*SetRoots) Idempotent() bool { return true }

// Validate wants a URI in each root.
func (m *SetRoots) Validate() error {
	for i, root := range m.Roots {
		if root == nil || root.URI == "" {
			return fmt.Errorf("roots[%d]: the URI is empty", i)
		}
	}
	return nil
}

// Ping asks the server for a sign of life on the key's session. Protocol
// 2026-07-28 has no ping: there the server refuses it.
//
// Send to: the supervisor.
// Replies: [Pong] or [Failure].
type Ping struct {
	Header
}

// Method returns "ping".
func (*Ping) Method() string { return "ping" }

// Idempotent returns true: a ping changes nothing.
func (*Ping) Idempotent() bool { return true }

// Open opens the key's session ahead of the first call. It does nothing to
// one that is open already.
//
// Send to: the supervisor.
// Replies: [SessionInfo] or [Failure].
type Open struct {
	Header
}

// Method returns "initialize".
func (*Open) Method() string { return "initialize" }

// Idempotent returns true: a session that is open stays as it is.
func (*Open) Idempotent() bool { return true }

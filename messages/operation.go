package messages

import (
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The operations are sent to the supervisor. Each is answered with the reply that its
// comment names, or with a [Failure]. Their parameters are those of the SDK. They are
// read-only once sent, and copied for each attempt.

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

// Validate returns an error if the name of the tool is missing.
func (m *CallTool) Validate() error {
	if m.Params == nil || m.Params.Name == "" {
		return errors.New("params: the tool name is empty")
	}
	return nil
}

// ListTools lists the tools of the server. The reply has all pages.
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

// ListResources lists the resources of the server. The reply has all pages.
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

// ListResourceTemplates lists the resource templates of the server. The reply has all pages.
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

// Validate returns an error if the URI is missing.
func (m *ReadResource) Validate() error {
	if m.Params == nil || m.Params.URI == "" {
		return errors.New("params: the URI is empty")
	}
	return nil
}

// ListPrompts lists the prompts of the server. The reply has all pages.
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

// GetPrompt gets a prompt with its arguments filled in.
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

// Validate returns an error if the name of the prompt is missing.
func (m *GetPrompt) Validate() error {
	if m.Params == nil || m.Params.Name == "" {
		return errors.New("params: the prompt name is empty")
	}
	return nil
}

// Complete gets completions for an argument of a prompt or of a resource template.
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

// Validate returns an error if the reference is missing.
func (m *Complete) Validate() error {
	if m.Params == nil || m.Params.Ref == nil {
		return errors.New("params: the reference is missing")
	}
	return nil
}

// Subscribe subscribes to the changes of a resource. The subscription is repeated on each
// MCP session that a restart opens, until the session is closed or evicted.
//
// Send to: the supervisor.
// Replies: [Ack] or [Failure].
type Subscribe struct {
	Header
	// URI is the URI of the resource.
	URI string
}

// Method returns "resources/subscribe".
func (*Subscribe) Method() string { return "resources/subscribe" }

// Idempotent returns true: the second subscription replaces the first one.
func (*Subscribe) Idempotent() bool { return true }

// Validate returns an error if the URI is missing.
func (m *Subscribe) Validate() error {
	if m.URI == "" {
		return errors.New("uri: is empty")
	}
	return nil
}

// Unsubscribe ends a [Subscribe].
//
// Send to: the supervisor.
// Replies: [Ack] or [Failure].
type Unsubscribe struct {
	Header
	// URI is the URI of the resource.
	URI string
}

// Method returns "resources/unsubscribe".
func (*Unsubscribe) Method() string { return "resources/unsubscribe" }

// Idempotent returns true: there is no subscription after it.
func (*Unsubscribe) Idempotent() bool { return true }

// Validate returns an error if the URI is missing.
func (m *Unsubscribe) Validate() error {
	if m.URI == "" {
		return errors.New("uri: is empty")
	}
	return nil
}

// SetLogLevel sets the level of the log messages that the server sends. It is repeated as a
// [Subscribe] is.
//
// Send to: the supervisor.
// Replies: [Ack] or [Failure].
type SetLogLevel struct {
	Header
	// Level is the lowest level that the server sends: debug, info, notice, warning, error,
	// critical, alert or emergency. Protocol 2026-07-28 deprecates this.
	Level string
}

// Method returns "logging/setLevel".
func (*SetLogLevel) Method() string { return "logging/setLevel" }

// Idempotent returns true: the level is the same after it.
func (*SetLogLevel) Idempotent() bool { return true }

// Validate returns an error if the level is missing.
func (m *SetLogLevel) Validate() error {
	if m.Level == "" {
		return errors.New("level: is empty")
	}
	return nil
}

// SetRoots sets the roots, such as folders, that the server may work in, and notifies the
// server of the change. When the server requests the roots, it gets these, and the handler
// gets no [ListRoots]. SetRoots is repeated on each MCP session that a restart opens, as
// [Subscribe] is. Protocol 2026-07-28 deprecates roots.
//
// Send to: the supervisor, whose configured capabilities must have roots.
// Replies: [Ack] or [Failure].
type SetRoots struct {
	Header
	// Roots are all roots. It may be empty. Read-only.
	Roots []*mcp.Root
}

// Method returns "notifications/roots/list_changed".
func (*SetRoots) Method() string { return "notifications/roots/list_changed" }

// Idempotent returns true: the roots are the same after it.
func (*SetRoots) Idempotent() bool { return true }

// Validate returns an error if the URI of a root is missing.
func (m *SetRoots) Validate() error {
	for i, root := range m.Roots {
		if root == nil || root.URI == "" {
			return fmt.Errorf("roots[%d]: the URI is empty", i)
		}
	}
	return nil
}

// Ping checks that the server answers on the session of the key. Protocol 2026-07-28 has no
// ping: a server that speaks it is sent server/discover instead.
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

// Open opens the session of the key before the first call. It does nothing if the session
// is open.
//
// Send to: the supervisor.
// Replies: [SessionInfo] or [Failure].
type Open struct {
	Header
}

// Method returns "initialize".
func (*Open) Method() string { return "initialize" }

// Idempotent returns true: a session that is open does not change.
func (*Open) Idempotent() bool { return true }

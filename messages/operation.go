package messages

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The operations are sent to the supervisor. Each is answered with the reply that its
// comment names, or with a [Failure]. Their parameters are those of the SDK. They are
// read-only once sent, and copied for each attempt.
//
// A new operation needs its type, the type of its result, and a row in internal/operations: the batch
// runner, the cluster and the decoding of results learn the names and the fields from these.

// idempotent is embedded in operations of which a second run has no further effect, see
// [Operation.Idempotent].
type idempotent struct{}

// Idempotent returns true.
func (idempotent) Idempotent() bool { return true }

// CallTool calls a tool.
//
// Send to: the supervisor.
// Replies: [ToolResult] or [Failure].
type CallTool struct {
	Header
	Params *mcp.CallToolParams `json:"params"`
	// Durable says that the ID names the intent of the call, in its scope: the call runs once. Its record is in the store of the
	// supervisor until a day after its Deadline. Whoever sends the same call again with this ID, in this process or in a later
	// one, or on another member of a cluster, gets what became of it: its result, that of its task, see [TaskChanged], or
	// [CodeLost], unless the call certainly did not run. If its server of protocol 2026-07-28 waits for input, and was not sent the
	// next round, the questions are asked again, and the call continues. The record has what the server has asked for, up to 64 KiB;
	// a call whose server asks for more is lost. Until the record was read, every failure says that it may have run. A call that
	// runs is waited for. The same ID with another server, tool or arguments is refused. The task of a durable call outlives its
	// session. The supervisor needs a store.
	Durable bool `json:"durable,omitempty"`
}

// Method returns "tools/call".
func (*CallTool) Method() string { return "tools/call" }

// Validate returns an error if the name of the tool is missing.
func (m *CallTool) Validate() error {
	if m.Params == nil || m.Params.Name == "" {
		return errors.New("params: the tool name is empty")
	}
	if m.Durable && m.ID == "" {
		return errors.New("durable: the id is empty, by which the call is found again")
	}
	if m.Durable && m.AsIs {
		return errors.New("durable: a call whose rounds its caller follows cannot be durable")
	}
	if m.Durable && !utf8.ValidString(m.ID) {
		return errors.New("durable: the id is not valid UTF-8")
	}
	if m.Durable && len(m.ID) > maxScope {
		return fmt.Errorf("durable: the id has %d bytes, at most %d are allowed", len(m.ID), maxScope)
	}
	return nil
}

func (m *CallTool) target() string {
	if m.Params == nil {
		return ""
	}
	return m.Params.Name
}

// ToolResult is the reply to [CallTool]. If the tool itself reports an error,
// Result.IsError is set.
type ToolResult struct {
	Receipt
	Result *mcp.CallToolResult `json:"result"`
}

// ListTools lists the tools of the server. The reply has all pages.
//
// Send to: the supervisor.
// Replies: [ToolList] or [Failure].
type ListTools struct {
	Header
	idempotent // it only reads
	// Shared accepts the list of the catalogue, see [Listing].
	Shared bool `json:"shared,omitempty"`
	// Fresh, with Shared, has a list that is Stale fetched again, see [Listing].
	Fresh bool `json:"fresh,omitempty"`
}

// Method returns "tools/list".
func (*ListTools) Method() string { return "tools/list" }

// ToolList is the reply to [ListTools], with the tools of all pages.
type ToolList struct {
	Receipt
	Result *mcp.ListToolsResult `json:"result"`
	// Listing says where the list is from if Shared was set, or is nil.
	Listing *Listing `json:"listing,omitempty"`
}

// ListResources lists the resources of the server. The reply has all pages.
//
// Send to: the supervisor.
// Replies: [ResourceList] or [Failure].
type ListResources struct {
	Header
	idempotent // it only reads
	// Shared accepts the list of the catalogue, see [Listing].
	Shared bool `json:"shared,omitempty"`
	// Fresh, with Shared, has a list that is Stale fetched again, see [Listing].
	Fresh bool `json:"fresh,omitempty"`
}

// Method returns "resources/list".
func (*ListResources) Method() string { return "resources/list" }

// ResourceList is the reply to [ListResources], with the resources of all pages.
type ResourceList struct {
	Receipt
	Result *mcp.ListResourcesResult `json:"result"`
	// Listing says where the list is from if Shared was set, or is nil.
	Listing *Listing `json:"listing,omitempty"`
}

// ListResourceTemplates lists the resource templates of the server. The reply has all pages.
//
// Send to: the supervisor.
// Replies: [ResourceTemplateList] or [Failure].
type ListResourceTemplates struct {
	Header
	idempotent // it only reads
	// Shared accepts the list of the catalogue, see [Listing].
	Shared bool `json:"shared,omitempty"`
	// Fresh, with Shared, has a list that is Stale fetched again, see [Listing].
	Fresh bool `json:"fresh,omitempty"`
}

// Method returns "resources/templates/list".
func (*ListResourceTemplates) Method() string { return "resources/templates/list" }

// ResourceTemplateList is the reply to [ListResourceTemplates], with the
// templates of all pages.
type ResourceTemplateList struct {
	Receipt
	Result *mcp.ListResourceTemplatesResult `json:"result"`
	// Listing says where the list is from if Shared was set, or is nil.
	Listing *Listing `json:"listing,omitempty"`
}

// ReadResource reads a resource.
//
// Send to: the supervisor.
// Replies: [ResourceContents] or [Failure].
type ReadResource struct {
	Header
	idempotent                         // it only reads
	Params     *mcp.ReadResourceParams `json:"params"`
}

// Method returns "resources/read".
func (*ReadResource) Method() string { return "resources/read" }

// Validate returns an error if the URI is missing.
func (m *ReadResource) Validate() error {
	if m.Params == nil || m.Params.URI == "" {
		return errors.New("params: the URI is empty")
	}
	return nil
}

func (m *ReadResource) target() string {
	if m.Params == nil {
		return ""
	}
	return withoutSecrets(m.Params.URI)
}

// ResourceContents is the reply to [ReadResource].
type ResourceContents struct {
	Receipt
	Result *mcp.ReadResourceResult `json:"result"`
}

// ListPrompts lists the prompts of the server. The reply has all pages.
//
// Send to: the supervisor.
// Replies: [PromptList] or [Failure].
type ListPrompts struct {
	Header
	idempotent // it only reads
	// Shared accepts the list of the catalogue, see [Listing].
	Shared bool `json:"shared,omitempty"`
	// Fresh, with Shared, has a list that is Stale fetched again, see [Listing].
	Fresh bool `json:"fresh,omitempty"`
}

// Method returns "prompts/list".
func (*ListPrompts) Method() string { return "prompts/list" }

// PromptList is the reply to [ListPrompts], with the prompts of all pages.
type PromptList struct {
	Receipt
	Result *mcp.ListPromptsResult `json:"result"`
	// Listing says where the list is from if Shared was set, or is nil.
	Listing *Listing `json:"listing,omitempty"`
}

// GetPrompt gets a prompt with its arguments filled in.
//
// Send to: the supervisor.
// Replies: [Prompt] or [Failure].
type GetPrompt struct {
	Header
	idempotent                      // it only reads
	Params     *mcp.GetPromptParams `json:"params"`
}

// Method returns "prompts/get".
func (*GetPrompt) Method() string { return "prompts/get" }

// Validate returns an error if the name of the prompt is missing.
func (m *GetPrompt) Validate() error {
	if m.Params == nil || m.Params.Name == "" {
		return errors.New("params: the prompt name is empty")
	}
	return nil
}

func (m *GetPrompt) target() string {
	if m.Params == nil {
		return ""
	}
	return m.Params.Name
}

// Prompt is the reply to [GetPrompt].
type Prompt struct {
	Receipt
	Result *mcp.GetPromptResult `json:"result"`
}

// Complete gets completions for an argument of a prompt or of a resource template.
//
// Send to: the supervisor.
// Replies: [Completion] or [Failure].
type Complete struct {
	Header
	idempotent                     // it only reads
	Params     *mcp.CompleteParams `json:"params"`
}

// Method returns "completion/complete".
func (*Complete) Method() string { return "completion/complete" }

// Validate returns an error if the reference is missing.
func (m *Complete) Validate() error {
	if m.Params == nil || m.Params.Ref == nil {
		return errors.New("params: the reference is missing")
	}
	return nil
}

// Completion is the reply to [Complete].
type Completion struct {
	Receipt
	Result *mcp.CompleteResult `json:"result"`
}

// Subscribe subscribes to the changes of a resource. The subscription is repeated on each
// MCP session that a restart opens, until the session is closed or evicted.
//
// Send to: the supervisor.
// Replies: [Ack] or [Failure].
type Subscribe struct {
	Header
	idempotent // the second subscription replaces the first one
	// URI is the URI of the resource.
	URI string `json:"uri"`
}

// Method returns "resources/subscribe".
func (*Subscribe) Method() string { return "resources/subscribe" }

// Validate returns an error if the URI is missing.
func (m *Subscribe) Validate() error {
	if m.URI == "" {
		return errors.New("uri: is empty")
	}
	return nil
}

func (m *Subscribe) target() string { return withoutSecrets(m.URI) }

// Unsubscribe ends a [Subscribe].
//
// Send to: the supervisor.
// Replies: [Ack] or [Failure].
type Unsubscribe struct {
	Header
	idempotent // there is no subscription after it
	// URI is the URI of the resource.
	URI string `json:"uri"`
}

// Method returns "resources/unsubscribe".
func (*Unsubscribe) Method() string { return "resources/unsubscribe" }

// Validate returns an error if the URI is missing.
func (m *Unsubscribe) Validate() error {
	if m.URI == "" {
		return errors.New("uri: is empty")
	}
	return nil
}

func (m *Unsubscribe) target() string { return withoutSecrets(m.URI) }

// SetLogLevel sets the level of the log messages that the server sends. It is repeated as a
// [Subscribe] is.
//
// Send to: the supervisor.
// Replies: [Ack] or [Failure].
type SetLogLevel struct {
	Header
	idempotent // the level is the same after it
	// Level is the lowest level that the server sends: debug, info, notice, warning, error,
	// critical, alert or emergency. Protocol 2026-07-28 deprecates this.
	Level string `json:"level"`
}

// Method returns "logging/setLevel".
func (*SetLogLevel) Method() string { return "logging/setLevel" }

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
	idempotent // the roots are the same after it
	// Roots are all roots. It may be empty. Read-only.
	Roots []*mcp.Root `json:"roots"`
}

// Method returns "notifications/roots/list_changed".
func (*SetRoots) Method() string { return "notifications/roots/list_changed" }

// Validate returns an error if the URI of a root is missing.
func (m *SetRoots) Validate() error {
	for i, root := range m.Roots {
		if root == nil || root.URI == "" {
			return fmt.Errorf("roots[%d]: the URI is empty", i)
		}
	}
	return nil
}

// Ack is the reply to [Subscribe], [Unsubscribe], [SetLogLevel], [SetRoots] and [Ping].
type Ack struct {
	Receipt
}

// Ping checks that the server answers on the session of the key. Protocol 2026-07-28 has no
// ping: a server that speaks it is sent server/discover instead.
//
// Send to: the supervisor.
// Replies: [Ack] or [Failure].
type Ping struct {
	Header
	idempotent // a ping changes nothing
}

// Method returns "ping".
func (*Ping) Method() string { return "ping" }

// Open opens the session of the key before the first call. It does nothing if the session
// is open.
//
// Send to: the supervisor.
// Replies: [SessionInfo] or [Failure].
type Open struct {
	Header
	idempotent // a session that is open does not change
}

// Method returns "initialize".
func (*Open) Method() string { return "initialize" }

// SessionInfo is the reply to [Open]. It has no session id, because that is a secret.
type SessionInfo struct {
	Receipt
	// Server has the capabilities, the name, the version and the instructions of the server,
	// and the negotiated version of MCP. Read-only.
	Server *mcp.InitializeResult `json:"server"`
	// Stateless is true if the server keeps nothing for the session, so that the session
	// cannot expire: it has no session id over HTTP.
	Stateless bool `json:"stateless"`
}

package toolset

import (
	"cmp"
	"encoding/json"
	"maps"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/visible"
	"github.com/mcpactor/mcpactor/messages"
)

// Tool is a tool of a server. It is read-only.
type Tool struct {
	// Name is the safe name, for models: see [SafeName].
	Name string
	// Server is the server's name in the supervisor's configuration.
	Server string
	// Scope is the scope of the session that the tool is called on.
	Scope string
	// Original is the name that the server gives the tool.
	Original string
	// Title is for people. It is the tool's title, or else that of its annotations,
	// or else Original, on one line of visible characters.
	Title string
	// Description is for models: the server's description without invisible characters.
	// It may be empty.
	Description string
	// InputSchema and OutputSchema are the JSON Schemas as the server sent them: values
	// that marshal to a schema, or nil. Models get [Tool.Parameters].
	InputSchema, OutputSchema any
	// Annotations are the server's hints, or nil. Do not trust them.
	Annotations *mcp.ToolAnnotations
	// Stale is true if the server may have another definition by now, or be down: see
	// [messages.Listing]. The tool can be called.
	Stale bool
	// Metadata is for tracing. "tool_type" is "mcp"; "display_name", "server" and
	// "slug" name the tool and its server; [Filter.Metadata] adds more.
	Metadata map[string]any
	// Digest identifies the definition that the server gave: "sha256:" and the SHA-256 of the
	// JSON of its name, title, description, schemas and annotations, with sorted members. The
	// same definition has the same digest in every process.
	Digest string

	listed     time.Time // when the server has listed it, or zero if that is not known
	digests    digests
	parameters json.RawMessage
}

// Parameters returns the input schema in the form that the APIs of models accept: an
// object with "type": "object" and "properties", also if the server gave no schema. The
// keywords that the APIs refuse at the top level ($ref, allOf, anyOf, oneOf, if, then,
// else, enum, not) are removed. The properties of their schemas are kept, also those
// behind references to "#/$defs/…" and "#/definitions/…", and so is what $ref and allOf
// require. The server still checks the arguments against its own schema.
//
// A malformed schema is repaired where it is certain what is meant, such as a type in capitals, or what earlier drafts of
// JSON Schema had: an API refuses a whole request for one. Otherwise the tool is in [Set.LeftOut].
//
// Invisible characters are removed from all texts, as in Description: see
// docs/security.md. A schema of more than 256 KiB is replaced by one without
// properties, whose description says so.
func (t *Tool) Parameters() json.RawMessage { return t.parameters }

// newTools returns the listed tools that pass the filters of their server, and a failure for each of them that is left
// out. Of two tools of one name it takes the first.
func newTools(filter Filter, listed []*mcp.Tool) (tools []*Tool, leftOut []*messages.Failure) {
	seen := map[string]bool{}
	for _, from := range listed {
		if from == nil || seen[from.Name] || !filter.Wants(from.Name, from.Annotations != nil && from.Annotations.ReadOnlyHint) {
			continue
		}
		seen[from.Name] = true
		parameters, err := parameters(from.InputSchema)
		if err != nil {
			leftOut = append(leftOut, filter.leftOut(from.Name, "the tool is left out: "+visible.Detail("inputSchema."+err.Error()), err))
			continue
		}
		tools = append(tools, newTool(filter, from, parameters))
	}
	return tools, leftOut
}

// leftOut returns the failure for a tool, or for something else if target is empty, that is left out of the list.
func (f Filter) leftOut(target, detail string, cause error) *messages.Failure {
	key := messages.Key{Server: f.Name, Scope: f.Scope}
	return &messages.Failure{Key: key, Op: "tools/list", Target: target, Code: messages.CodeProtocol, Detail: detail, Cause: cause}
}

func newTool(filter Filter, from *mcp.Tool, parameters json.RawMessage) *Tool {
	title := visible.Line(from.Title)
	if title == "" && from.Annotations != nil {
		title = visible.Line(from.Annotations.Title)
	}
	title = cmp.Or(title, visible.Line(from.Name))
	metadata := map[string]any{
		"tool_type":    "mcp",
		"display_name": cmp.Or(filter.DisplayName, title),
		"server":       filter.Name,
		"slug":         cmp.Or(filter.Slug, filter.Name),
	}
	maps.Copy(metadata, filter.Metadata)
	digests := digestsOf(from)
	return &Tool{
		Name: SafeName(filter.Name, from.Name), Server: filter.Name, Scope: filter.Scope, Original: from.Name,
		Title: title, Description: visible.Text(from.Description),
		InputSchema: from.InputSchema, OutputSchema: from.OutputSchema,
		Annotations: from.Annotations, Metadata: metadata,
		Digest: digests.whole, digests: digests, parameters: parameters,
	}
}

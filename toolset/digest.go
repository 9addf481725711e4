package toolset

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// definition identifies what a server says about a tool.
type definition struct {
	digest string
	parts  [5][sha256.Size]byte // hashes of the fields, in the order of fields
}

// fields are the fields of a definition that [Tool.Digest] covers, apart from the name, as MCP
// names them and in the order of the parts of a definition.
var fields = [...]string{"title", "description", "inputSchema", "outputSchema", "annotations"}

// definitionOf returns the definition of a tool.
func definitionOf(tool *mcp.Tool) (d definition) {
	members := map[string]json.RawMessage{"name": encode(tool.Name)}
	for i, value := range [...]any{tool.Title, tool.Description, tool.InputSchema, tool.OutputSchema, annotationsOf(tool.Annotations)} {
		text := canonical(value)
		d.parts[i] = sha256.Sum256([]byte(text))
		if text != "" {
			members[fields[i]] = json.RawMessage(text)
		}
	}
	d.digest = fmt.Sprintf("sha256:%x", sha256.Sum256(encode(members)))
	return d
}

// changed returns the fields in which two definitions differ.
func (d definition) changed(other definition) (differ []string) {
	for i, field := range fields {
		if d.parts[i] != other.parts[i] {
			differ = append(differ, field)
		}
	}
	return differ
}

// annotationsOf returns the annotations that are given, or nil. The SDK writes them in a form that depends
// on its version.
func annotationsOf(a *mcp.ToolAnnotations) any {
	if a == nil {
		return nil
	}
	given := map[string]any{}
	for name, hint := range map[string]bool{"readOnlyHint": a.ReadOnlyHint, "idempotentHint": a.IdempotentHint} {
		if hint {
			given[name] = true
		}
	}
	for name, hint := range map[string]*bool{"destructiveHint": a.DestructiveHint, "openWorldHint": a.OpenWorldHint} {
		if hint != nil {
			given[name] = *hint
		}
	}
	if a.Title != "" {
		given["title"] = a.Title
	}
	if len(given) == 0 {
		return nil
	}
	return given
}

// canonical returns a value as JSON with sorted members and without white space, or "" for nothing: null, a
// text without characters, and what JSON cannot express.
func canonical(value any) string {
	text, err := json.Marshal(value)
	var decoded any
	if err == nil {
		err = json.Unmarshal(text, &decoded)
	}
	if err != nil || decoded == nil || decoded == "" {
		return ""
	}
	return string(encode(decoded))
}

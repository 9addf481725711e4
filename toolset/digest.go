package toolset

import (
	"crypto/sha256"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/definition"
)

// digests identify what a server says about a tool.
type digests struct {
	whole string                                        // see [Tool.Digest]
	parts [len(definition.ToolFields)][sha256.Size]byte // hashes of the fields
}

// digestsOf returns the digests of a definition.
func digestsOf(tool *mcp.Tool) (d digests) {
	whole, fields := definition.OfTool(tool)
	for i, text := range fields {
		d.parts[i] = sha256.Sum256([]byte(text))
	}
	d.whole = whole.Digest()
	return d
}

// changed returns the fields in which two definitions differ.
func (d digests) changed(other digests) (differ []string) {
	for i, field := range definition.ToolFields {
		if d.parts[i] != other.parts[i] {
			differ = append(differ, field)
		}
	}
	return differ
}

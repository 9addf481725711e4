package toolset

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/definition"
	"github.com/mcpactor/mcpactor/internal/exact"
)

// noContent is the text of an empty result. APIs refuse a blank text.
const noContent = "(no content)"

// Output is the result of a tool in parts. It is read-only, and shares data with the
// result that it was made from.
type Output struct {
	// Parts is never empty if [Convert] made it.
	Parts []Part
	// IsError is true if the tool reported an error, which Parts describe.
	IsError bool
}

// Part is one piece of an [Output].
type Part struct {
	// Text is the part as text. For content that is no text it is a line such as "[image
	// image/png, 2048 bytes]", or "[resource file:///a.txt text/plain]" with the text of the
	// resource after it. Structured content is its JSON.
	Text string
	// Content is the content that the part was made from, such as an [*mcp.ImageContent]
	// with its data. It is nil for structured content, for an empty result, and for what
	// [Toolset.Outcome] adds or cuts.
	Content mcp.Content
}

// Convert converts the result of a tool into parts for a model. It drops nothing:
//
//   - Each content becomes a part, in order, also if its type is unknown.
//   - The structured content becomes the last part, unless a text part is the same JSON:
//     most servers send it as text as well.
//   - A result without content, and nil, become one part with the text "(no content)".
//
// [Output.Text], [Output.Anthropic], [Output.OpenAIChat] and [Output.OpenAIResponses]
// render it.
func Convert(result *mcp.CallToolResult) Output {
	var out Output
	if result != nil {
		out.IsError = result.IsError
		for _, content := range result.Content {
			if v := reflect.ValueOf(content); v.IsValid() && (v.Kind() != reflect.Pointer || !v.IsNil()) {
				out.Parts = append(out.Parts, Part{textOf(content), content})
			}
		}
		out.addStructured(result.StructuredContent)
	}
	if len(out.Parts) == 0 {
		out.Parts = []Part{{Text: noContent}}
	}
	return out
}

// textOf returns a content that is not nil as text.
func textOf(content mcp.Content) string {
	switch c := content.(type) {
	case *mcp.TextContent:
		return c.Text
	case *mcp.ImageContent:
		return label("image", "", c.MIMEType, int64(len(c.Data)))
	case *mcp.AudioContent:
		return label("audio", "", c.MIMEType, int64(len(c.Data)))
	case *mcp.ResourceLink:
		size := unknownSize
		if c.Size != nil && *c.Size > 0 {
			size = *c.Size
		}
		return strings.TrimSpace(label("link", c.URI, c.MIMEType, size) + " " + line(about(c)))
	case *mcp.EmbeddedResource:
		return textOfResource(c.Resource)
	}
	return jsonOf(content)
}

// textOfResource returns an embedded resource as text: its label, and its text if it has one.
func textOfResource(r *mcp.ResourceContents) string {
	if r == nil {
		return label("resource", "", "", unknownSize)
	}
	size := unknownSize
	if r.Blob != nil {
		size = int64(len(r.Blob))
	}
	text := label("resource", r.URI, r.MIMEType, size)
	if r.Text != "" {
		text += "\n" + r.Text
	}
	return text
}

// unknownSize is the size of content without a known size.
const unknownSize int64 = -1

// label describes binary data or a resource, on one line.
func label(kind, uri, mime string, size int64) string {
	label := line(kind + " " + uri + " " + mime)
	if size != unknownSize {
		label += fmt.Sprintf(", %d bytes", size)
	}
	return "[" + label + "]"
}

// line returns a text on one line.
func line(text string) string { return strings.Join(strings.Fields(text), " ") }

// about returns the name, title and description of a link.
func about(link *mcp.ResourceLink) string {
	text := link.Name
	for _, more := range []string{link.Title, link.Description} {
		if more != "" && more != text {
			if text != "" {
				text += ": "
			}
			text += more
		}
	}
	return text
}

// addStructured adds the structured content, unless a text part is the same JSON. The
// order of members and white space make no difference, nor does the form of a number.
func (o *Output) addStructured(value any) {
	if value == nil {
		return
	}
	text := jsonOf(value)
	structured, err := exact.Value([]byte(text))
	for _, part := range o.Parts {
		if _, isText := part.Content.(*mcp.TextContent); !isText || err != nil || !json.Valid([]byte(part.Text)) {
			continue
		}
		if said, err := exact.Value([]byte(part.Text)); err == nil && reflect.DeepEqual(structured, said) {
			return
		}
	}
	o.Parts = append(o.Parts, Part{Text: text})
}

// jsonOf renders a value as JSON, or names its type if JSON cannot express the value.
func jsonOf(value any) string {
	if _, err := json.Marshal(value); err != nil {
		return fmt.Sprintf("[%T, which is not JSON]", value)
	}
	return string(definition.Encode(value))
}

package toolset

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Kind says what a [Part] is.
type Kind string

// The kinds of parts.
const (
	// KindText is plain text.
	KindText Kind = "text"
	// KindImage is an image: Data, of MIMEType.
	KindImage Kind = "image"
	// KindAudio is a sound: Data, of MIMEType.
	KindAudio Kind = "audio"
	// KindLink is a link to a resource: URI, and its name, title and description in
	// Text.
	KindLink Kind = "link"
	// KindResource is an embedded resource: URI, and Text or Data or both.
	KindResource Kind = "resource"
	// KindStructured is the structured content: Text is its JSON.
	KindStructured Kind = "structured"
	// KindOther is content of an unknown type: Text is its JSON.
	KindOther Kind = "other"
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
	Kind Kind
	// Text is the text of the part: see the kinds.
	Text string
	// Data is binary data. It is not encoded in base64.
	Data []byte
	// MIMEType is the type of Data or of the resource. It may be empty.
	MIMEType string
	// URI is the URI of the resource.
	URI string
	// Size is the size of Data or of the linked resource, in bytes. It is 0 if it is
	// not known.
	Size int64
	// Content is the content that the part was made from, with the annotations and
	// metadata, which models do not get. It is nil for [KindStructured] and for an
	// empty result.
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
				out.Parts = append(out.Parts, partOf(content))
			}
		}
		out.addStructured(result.StructuredContent)
	}
	if len(out.Parts) == 0 {
		out.Parts = []Part{{Kind: KindText, Text: noContent}}
	}
	return out
}

// partOf converts a content that is not nil.
func partOf(content mcp.Content) Part {
	part := Part{Content: content}
	switch c := content.(type) {
	case *mcp.TextContent:
		part.Kind, part.Text = KindText, c.Text
	case *mcp.ImageContent:
		part.Kind, part.Data, part.MIMEType = KindImage, c.Data, c.MIMEType
	case *mcp.AudioContent:
		part.Kind, part.Data, part.MIMEType = KindAudio, c.Data, c.MIMEType
	case *mcp.ResourceLink:
		part.Kind, part.Text, part.URI, part.MIMEType = KindLink, about(c), c.URI, c.MIMEType
		if c.Size != nil {
			part.Size = *c.Size
		}
	case *mcp.EmbeddedResource:
		part.Kind = KindResource
		if r := c.Resource; r != nil {
			part.Text, part.Data, part.URI, part.MIMEType = r.Text, r.Blob, r.URI, r.MIMEType
		}
	default:
		part.Kind, part.Text = KindOther, jsonOf(content)
	}
	if part.Data != nil {
		part.Size = int64(len(part.Data))
	}
	return part
}

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
// order of members and white space make no difference. Numbers are compared as float64,
// as the SDK decodes them.
func (o *Output) addStructured(value any) {
	if value == nil {
		return
	}
	text := jsonOf(value)
	var structured any
	known := json.Unmarshal([]byte(text), &structured) == nil
	for _, part := range o.Parts {
		var said any
		if known && part.Kind == KindText && json.Unmarshal([]byte(part.Text), &said) == nil && reflect.DeepEqual(structured, said) {
			return
		}
	}
	o.Parts = append(o.Parts, Part{Kind: KindStructured, Text: text})
}

// jsonOf renders a value as JSON, or names its type if JSON cannot express the value.
func jsonOf(value any) string {
	if _, err := json.Marshal(value); err != nil {
		return fmt.Sprintf("[%T, which is not JSON]", value)
	}
	return string(encode(value))
}

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
	// KindLink is a link to a resource: URI, and in Text what is said of it.
	KindLink Kind = "link"
	// KindResource is a resource that came along: URI, and Text or Data or both.
	KindResource Kind = "resource"
	// KindStructured is the structured content: Text is its JSON.
	KindStructured Kind = "structured"
	// KindOther is content that is not known here: Text is its JSON.
	KindOther Kind = "other"
)

// noContent stands for what a tool did not say. APIs refuse a text that is blank.
const noContent = "(no content)"

// Output is what a tool answered, in parts. It is read-only, and shares the data of
// the result that it was made of.
type Output struct {
	// Parts are never empty when [Convert] made them.
	Parts []Part
	// IsError is true for the tool's own error: Parts say what it is.
	IsError bool
}

// Part is one piece of an [Output].
type Part struct {
	Kind Kind
	// Text is what there is to read: see the kinds.
	Text string
	// Data is binary, not in base64.
	Data []byte
	// MIMEType is that of Data, or of the resource. It may be empty.
	MIMEType string
	// URI is that of the resource.
	URI string
	// Size is that of Data, or of the resource that is linked, in bytes. It is 0 when
	// that is not known.
	Size int64
	// Content is what the part was made of, with annotations and metadata, which are
	// not given to models. It is nil for [KindStructured], and when there was none.
	Content mcp.Content
}

// Convert makes of a tool's result what can be given to a model, and drops nothing:
//
//   - Each content is a part, in order, also one of a type that is not known.
//   - The structured content is the last part, unless a text is the same JSON already:
//     servers should send it as text too, and most do.
//   - Without any, and for nil, there is one part with the text "(no content)".
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

// partOf makes a part of a content that is not nil.
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

// about says what a link says of itself.
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

// addStructured adds the structured content, unless a text is the same JSON, whatever
// the order of members and the space between them. Numbers are compared as the SDK has
// them, as float64.
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

// jsonOf renders a value as JSON. One that has none is named by its type.
func jsonOf(value any) string {
	if _, err := json.Marshal(value); err != nil {
		return fmt.Sprintf("[%T, which is no JSON]", value)
	}
	return string(encode(value))
}

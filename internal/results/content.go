package results

import "github.com/modelcontextprotocol/go-sdk/mcp"

// content is a content of any type, as it is on the wire. It is the wireContent of the SDK.
type content struct {
	Type              string                `json:"type"`
	Text              text                  `json:"text,omitempty"`
	MIMEType          string                `json:"mimeType,omitempty"`
	Data              []byte                `json:"data,omitempty"`
	Resource          *mcp.ResourceContents `json:"resource,omitempty"`
	URI               string                `json:"uri,omitempty"`
	Name              string                `json:"name,omitempty"`
	Title             string                `json:"title,omitempty"`
	Description       string                `json:"description,omitempty"`
	Size              *int64                `json:"size,omitempty"`
	Meta              mcp.Meta              `json:"_meta,omitempty"`
	Annotations       *mcp.Annotations      `json:"annotations,omitempty"`
	Icons             []mcp.Icon            `json:"icons,omitempty"`
	ID                string                `json:"id,omitempty"`
	Input             map[string]any        `json:"input,omitempty"`
	ToolUseID         string                `json:"toolUseId,omitempty"`
	NestedContent     []*content            `json:"content,omitempty"`
	StructuredContent any                   `json:"structuredContent,omitempty"`
	IsError           bool                  `json:"isError,omitempty"`
}

// messageFields has no methods.
type messageFields mcp.PromptMessage

type messageWire struct {
	messageFields
	Content *content `json:"content"`
}

// message is a [mcp.PromptMessage] that is decoded in place.
type message mcp.PromptMessage

// UnmarshalJSON decodes raw.
func (m *message) UnmarshalJSON(raw []byte) error {
	var wire messageWire
	if err := Parse(raw, &wire); err != nil {
		return err
	}
	wire.messageFields.Content = wire.Content.decoded()
	if wire.messageFields.Content == nil {
		return (*mcp.PromptMessage)(m).UnmarshalJSON(raw)
	}
	*m = message(wire.messageFields)
	return nil
}

// contents returns the contents of a list, which is never nil. It is false if one of them is
// unusual.
func contents(list []*content) ([]mcp.Content, bool) {
	all := make([]mcp.Content, len(list))
	for i, c := range list {
		if all[i] = c.decoded(); all[i] == nil {
			return nil, false
		}
	}
	return all, true
}

// decoded returns the content as its type. It is nil if the content is null or unusual: those of
// sampling, of later protocols, and those that are errors are left to the SDK.
func (c *content) decoded() mcp.Content {
	if c == nil {
		return nil
	}
	switch c.Type {
	case "text":
		return &mcp.TextContent{Text: string(c.Text), Meta: c.Meta, Annotations: c.Annotations}
	case "image":
		return &mcp.ImageContent{Data: c.Data, MIMEType: c.MIMEType, Meta: c.Meta, Annotations: c.Annotations}
	case "audio":
		return &mcp.AudioContent{Data: c.Data, MIMEType: c.MIMEType, Meta: c.Meta, Annotations: c.Annotations}
	case "resource_link":
		return &mcp.ResourceLink{
			URI: c.URI, Name: c.Name, Title: c.Title, Description: c.Description, MIMEType: c.MIMEType,
			Size: c.Size, Meta: c.Meta, Annotations: c.Annotations, Icons: c.Icons,
		}
	case "resource":
		return &mcp.EmbeddedResource{Resource: c.Resource, Meta: c.Meta, Annotations: c.Annotations}
	}
	return nil
}

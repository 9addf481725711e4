package toolset

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/definition"
)

// toolError marks an error where the API has no field for it.
const toolError = "[tool error]"

// Text returns all parts as text, each on its own lines. An error begins with the line
// "[tool error]". Binary data becomes a line such as "[image image/png, 2048 bytes]".
func (o Output) Text() string {
	var texts []string
	if o.IsError {
		texts = append(texts, toolError)
	}
	for _, part := range o.Parts {
		texts = append(texts, part.Text)
	}
	return strings.Join(texts, "\n")
}

// OpenAIChat returns the "content" of a message of role "tool" for OpenAI's Chat
// Completions API: [Output.Text] as a JSON string.
func (o Output) OpenAIChat() json.RawMessage { return definition.Encode(o.Text()) }

// OpenAIResponses returns the "output" of a function_call_output for OpenAI's Responses
// API: a JSON array of input_text and input_image. An error begins with the text "[tool
// error]". A part that is neither text nor an image (PNG, JPEG, GIF, WebP) becomes text
// as in [Output.Text].
func (o Output) OpenAIResponses() json.RawMessage {
	items := []any{}
	text := func(text string) any {
		return struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}{"input_text", text}
	}
	if o.IsError {
		items = append(items, text(toolError))
	}
	for _, part := range o.Parts {
		if data, mime := part.image(); mime != "" {
			items = append(items, struct {
				Type string `json:"type"`
				URL  string `json:"image_url"`
			}{"input_image", "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(data)})
			continue
		}
		items = append(items, text(part.visible()))
	}
	return definition.Encode(items)
}

// Anthropic returns the "content" of a tool_result for Anthropic's Messages API: a JSON
// array of text and image blocks. Set "is_error" of the tool_result to
// [Output.IsError]. A part that is neither text nor an image (PNG, JPEG, GIF, WebP)
// becomes text as in [Output.Text].
func (o Output) Anthropic() json.RawMessage {
	type source struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      []byte `json:"data"`
	}
	blocks := []any{}
	for _, part := range o.Parts {
		if data, mime := part.image(); mime != "" {
			blocks = append(blocks, struct {
				Type   string `json:"type"`
				Source source `json:"source"`
			}{"image", source{"base64", mime, data}})
			continue
		}
		blocks = append(blocks, struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}{"text", part.visible()})
	}
	return definition.Encode(blocks)
}

// image returns the data of an image that the APIs accept, and its MIME type, or "".
func (p Part) image() (data []byte, mime string) {
	image, is := p.Content.(*mcp.ImageContent)
	if !is || len(image.Data) == 0 {
		return nil, ""
	}
	mime, _, _ = strings.Cut(image.MIMEType, ";")
	switch mime = strings.ToLower(strings.TrimSpace(mime)); mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return image.Data, mime
	case "image/jpg":
		return image.Data, "image/jpeg"
	}
	return nil, ""
}

// visible returns the part as text that is not blank.
func (p Part) visible() string {
	if strings.TrimSpace(p.Text) != "" {
		return p.Text
	}
	return noContent
}

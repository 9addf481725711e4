package toolset

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
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
		texts = append(texts, part.text())
	}
	return strings.Join(texts, "\n")
}

// OpenAIChat returns the "content" of a message of role "tool" for OpenAI's Chat
// Completions API: [Output.Text] as a JSON string.
func (o Output) OpenAIChat() json.RawMessage { return encode(o.Text()) }

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
		if mime := part.image(); mime != "" {
			items = append(items, struct {
				Type string `json:"type"`
				URL  string `json:"image_url"`
			}{"input_image", "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(part.Data)})
			continue
		}
		items = append(items, text(part.visible()))
	}
	return encode(items)
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
		if mime := part.image(); mime != "" {
			blocks = append(blocks, struct {
				Type   string `json:"type"`
				Source source `json:"source"`
			}{"image", source{"base64", mime, part.Data}})
			continue
		}
		blocks = append(blocks, struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}{"text", part.visible()})
	}
	return encode(blocks)
}

// image returns the MIME type of an image that the APIs accept, or "".
func (p Part) image() string {
	if p.Kind != KindImage || len(p.Data) == 0 {
		return ""
	}
	mime, _, _ := strings.Cut(p.MIMEType, ";")
	switch mime = strings.ToLower(strings.TrimSpace(mime)); mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return mime
	case "image/jpg":
		return "image/jpeg"
	}
	return ""
}

// visible returns the part as text that is not blank.
func (p Part) visible() string {
	if text := p.text(); strings.TrimSpace(text) != "" {
		return text
	}
	return noContent
}

// text returns the part as text.
func (p Part) text() string {
	switch p.Kind {
	case KindImage, KindAudio:
		return p.label()
	case KindLink:
		return strings.TrimSpace(p.label() + " " + line(p.Text))
	case KindResource:
		if p.Text == "" {
			return p.label()
		}
		return p.label() + "\n" + p.Text
	}
	return p.Text
}

// label describes a part with binary data or a URI, on one line.
func (p Part) label() string {
	label := line(string(p.Kind) + " " + p.URI + " " + p.MIMEType)
	if p.Size > 0 || p.Data != nil || p.Kind == KindImage || p.Kind == KindAudio {
		label += fmt.Sprintf(", %d bytes", p.Size)
	}
	return "[" + label + "]"
}

// line returns a text on one line.
func line(text string) string { return strings.Join(strings.Fields(text), " ") }

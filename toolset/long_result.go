package toolset

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
)

// ReadTool is the name of the tool with which a model reads what [Toolset.Outcome] has left out of a
// result. [Set.Tools] has it as soon as something was left out. No tool of a server has this name.
const ReadTool = "read_result"

const (
	// minText is the least [Config.MaxText]: it includes the lines that we add.
	minText = 1 << 10
	// maxLine bounds the lines that we add, in bytes.
	maxLine = 1 << 8
	// minData is the least size that a piece of binary data counts.
	minData = 1 << 10
	// maxRests and maxRestText bound what is kept for ReadTool: the newest texts, and their bytes. The
	// last one is kept in any case.
	maxRests, maxRestText = 16, 16 << 20
)

// readTool is the definition of ReadTool.
var readTool = newOwnTool(ReadTool, "Read a result",
	"Reads a part of an earlier result of which the middle was left out. The line in that result says which id and offset to give.",
	`{"type":"object","properties":{"id":{"type":"string","description":"the id of the result"},`+
		`"offset":{"type":"integer","minimum":0,"description":"where to begin, in bytes"}},"required":["id","offset"]}`)

// rest has the whole texts of results that were cut. The toolset's mutex guards it.
type rest struct {
	texts []restText // the newest last
}

type restText struct{ id, text string }

// keep keeps a text, and returns its id. The id is random, because a conversation that is loaded
// again may have those of an earlier toolset.
func (r *rest) keep(text string) (id string) {
	id = strings.ToLower(rand.Text()[:10])
	r.texts = append(r.texts, restText{id, text})
	size := 0
	for i, kept := range slices.Backward(r.texts) {
		if size += len(kept.text); i < len(r.texts)-1 && (size > maxRestText || len(r.texts)-i > maxRests) {
			r.texts = slices.Clone(r.texts[i+1:])
			break
		}
	}
	return id
}

// find returns the text of an id.
func (r *rest) find(id string) (text string, found bool) {
	i := slices.IndexFunc(r.texts, func(kept restText) bool { return kept.id == id })
	if i < 0 {
		return "", false
	}
	return r.texts[i].text, true
}

// with returns tools with ReadTool in its place, if there is something to read.
func (r *rest) with(tools []*Tool) []*Tool {
	if len(r.texts) == 0 {
		return tools
	}
	return inserted(tools, readTool)
}

// inserted returns tools, which are sorted by name, with another one in its place.
func inserted(tools []*Tool, tool *Tool) []*Tool {
	i, _ := slices.BinarySearchFunc(tools, tool, byName)
	return slices.Insert(slices.Clone(tools), i, tool)
}

// read answers a call of [ReadTool].
func (t *Toolset) read(arguments any) (*messages.ToolResult, error) {
	var wanted struct {
		ID     string `json:"id"`
		Offset int    `json:"offset"`
	}
	raw, err := argumentsOf(arguments)
	if err == nil {
		err = json.Unmarshal(raw, &wanted)
	}
	wrong := &messages.Failure{Op: "tools/call", Target: ReadTool, Code: messages.CodeInvalid, Cause: err}
	if err != nil {
		wrong.Detail = `arguments: give {"id": "the id of the result", "offset": a number}`
		return nil, wrong
	}
	t.mu.Lock()
	text, found := t.rest.find(wanted.ID)
	t.mu.Unlock()
	if !found {
		wrong.Detail = fmt.Sprintf("no result with the id %.100q is kept any more: call its tool again", wanted.ID)
		return nil, wrong
	}
	from := edge(text, min(max(0, wanted.Offset), len(text)))
	to := len(text)
	if most := t.cfg.MaxText; most != -1 {
		to = edge(text, min(to, from+most-maxLine))
	}
	line := fmt.Sprintf("\n[This is the end, at %d bytes.]", to)
	if to < len(text) {
		line = fmt.Sprintf("\n[These are the bytes %d to %d of %d. Read on at the offset %d.]", from, to, len(text), to)
	}
	return textResult(text[from:to] + line), nil
}

// edge returns an offset that is not within a character: the last one up to at.
func edge(text string, at int) int {
	for at > 0 && at < len(text) && !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}

// fit bounds what a model gets of a result.
func (t *Toolset) fit(out Output) Output {
	if t == nil || t.ctx == nil {
		return out
	}
	if t.cfg.MaxData != -1 {
		out = out.withData(t.cfg.MaxData)
	}
	texts, size := []string{}, -1
	for _, part := range out.Parts {
		if !part.isData() {
			texts, size = append(texts, part.Text), size+1+len(part.Text)
		}
	}
	if t.cfg.MaxText == -1 || size <= t.cfg.MaxText {
		return out
	}
	whole := strings.Join(texts, "\n")
	room := t.cfg.MaxText - maxLine
	from, to := edge(whole, room*2/3), edge(whole, len(whole)-room/3)
	t.mu.Lock()
	id := t.rest.keep(whole)
	t.mu.Unlock()
	return out.cut(from, to, fmt.Sprintf(`[%d of %d bytes are left out here. To read them, call %s with {"id":%q,"offset":%d}.]`, to-from, len(whole), ReadTool, id, from))
}

// cut leaves out the bytes of a range of the texts, which are counted as if there were a line feed
// between them, and puts a line in their place. Binary data stays.
func (o Output) cut(from, to int, line string) Output {
	parts, start := []Part{}, 0
	for _, part := range o.Parts {
		end := start + len(part.Text)
		if part.isData() || end <= from || start >= to {
			if !part.isData() {
				start = end + 1
			}
			parts = append(parts, part)
			continue
		}
		texts := []string{}
		if start < from {
			texts = append(texts, part.Text[:from-start])
		}
		if line != "" {
			texts = append(texts, line)
			line = ""
		}
		if to < end {
			texts = append(texts, part.Text[to-start:])
		}
		if len(texts) > 0 {
			parts = append(parts, Part{Text: strings.Join(texts, "\n")})
		}
		start = end + 1
	}
	o.Parts = parts
	return o
}

// withData replaces binary data by lines of text once there is more than most.
func (o Output) withData(most int) Output {
	parts, size := slices.Clone(o.Parts), 0
	for i, part := range parts {
		data := part.data()
		if data == nil {
			continue
		}
		if cost := max(len(data), minData); size+cost <= most {
			size += cost
			continue
		}
		parts[i] = Part{Text: part.Text + "\n[The data is left out because of its size.]"}
	}
	o.Parts = parts
	return o
}

// data returns the binary data of a part, or nil.
func (p Part) data() []byte {
	switch c := p.Content.(type) {
	case *mcp.ImageContent:
		return c.Data
	case *mcp.AudioContent:
		return c.Data
	case *mcp.EmbeddedResource:
		if c.Resource != nil {
			return c.Resource.Blob
		}
	}
	return nil
}

// isData reports whether a part is binary data, and its text only a label.
func (p Part) isData() bool { return len(p.data()) > 0 && len(p.Text) < maxLine }

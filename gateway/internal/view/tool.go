package view

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/internal/rank"
)

// Tool is a tool as a client gets it.
type Tool struct {
	Server    string          `json:"server"`      // that has it, or "": the gateway itself
	Name      string          `json:"name"`        // for the server
	ID        string          `json:"id"`          // the name for the client, unless its server lists two with that name
	Raw       json.RawMessage `json:"raw"`         // with the name for the client
	Digest    string          `json:"-"`           // of Raw, in whatever form
	ReadsOnly bool            `json:"-"`           // the server says so
	At        time.Time       `json:"at,omitzero"` // when the server has listed it
}

// IDOf returns the ID of a tool with a name for the client that its server lists for the nth time, from 1.
func IDOf(name string, nth int) string {
	if nth == 1 {
		return name
	}
	return fmt.Sprintf("%s\x00%d", name, nth)
}

// IsFirst reports whether a tool is the first one of its name that its server lists, see [IDOf].
func (t Tool) IsFirst() bool { return !strings.Contains(t.ID, "\x00") }

// isOwn reports whether a tool is one of the gateway itself.
func (t Tool) isOwn() bool { return t.Server == "" }

// document returns what is known of a tool, for ranking.
func (t Tool) document() rank.Document {
	its := mcpserver.ObjectOf(t.Raw)
	return rank.Tool{Name: t.Name, Server: t.Server, Title: its.Text("title"), Description: its.Text("description"), Schema: its["inputSchema"]}.Document()
}

// definition returns what a model needs of a tool to call it.
func (t Tool) definition() json.RawMessage {
	its := mcpserver.Object(mcpserver.ObjectOf(t.Raw).Without("outputSchema", "annotations", "_meta", "icons", "execution"))
	raw, _ := mcpserver.Encode(its) // it was JSON
	return raw
}

// Encode returns tools as JSON, to keep them.
func Encode(tools []Tool) ([]byte, error) { return mcpserver.Encode(tools) }

// Decode returns tools that Encode has made JSON. It reports false for anything else.
func Decode(data []byte) (tools []Tool, ok bool) {
	if json.Unmarshal(data, &tools) != nil {
		return nil, false
	}
	for i := range tools {
		if tools[i].ID == "" || mcpserver.ObjectOf(tools[i].Raw).Text("name") == "" {
			return nil, false
		}
		tools[i].Digest = mcpserver.Digest(tools[i].Raw)
		tools[i].ReadsOnly = ReadsOnly(mcpserver.ObjectOf(tools[i].Raw))
	}
	return tools, true
}

// ReadsOnly reports whether the server says that a tool changes nothing.
func ReadsOnly(tool mcpserver.Object) bool {
	return string(mcpserver.ObjectOf(tool["annotations"])["readOnlyHint"]) == "true"
}

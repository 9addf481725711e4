package view

import (
	"encoding/json"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/internal/finder"
	"github.com/mcpactor/mcpactor/internal/rank"
)

// Answers reports whether the gateway itself has a tool with an ID, and no server.
func (v *View) Answers(id string) bool { return v.Lookup(id) == nil }

// Find answers a call of the tool that finds others: it returns the text for the model. The client is shown these from now on.
func (v *View) Find(arguments json.RawMessage) (string, error) {
	query, err := finder.Read(arguments)
	if err != nil {
		return "", err
	}
	all := v.of.Tools()
	documents := make([]rank.Document, len(all))
	for i, tool := range all {
		documents[i] = tool.document()
	}
	var found []finder.Found
	var ids []string
	for _, hit := range rank.New(documents).Search(query.Text, query.Limit) {
		tool := all[hit.Document]
		ids = append(ids, tool.ID)
		found = append(found, finder.Found{Name: mcpserver.ObjectOf(tool.Raw).Text("name"), Definition: tool.definition()})
	}
	v.Note(ids...)
	return finder.Text(found, len(all)), nil
}

// Lookup returns the tool with an ID that a server has now, or nil.
func (v *View) Lookup(id string) *Tool {
	if tool := listOf(v.of.Tools()).Find(id); tool != nil {
		return &tool.Value
	}
	return nil
}

package toolset

import (
	"encoding/json"
	"log/slog"
	"strconv"
	"time"

	"github.com/mcpactor/mcpactor/messages"
)

// Change says how a tool changed.
type Change string

// The changes of a tool.
const (
	// ToolAdded: the server has a new tool.
	ToolAdded Change = "added"
	// ToolRemoved: the server no longer has the tool.
	ToolRemoved Change = "removed"
	// ToolRedefined: the definition of the tool is another one.
	ToolRedefined Change = "redefined"
)

// DefinitionChanged is an event: a list of tools differs in one tool from the list before. A
// [Toolset] publishes it on the EventStream of the actor system after it has listed the tools of
// a server again. It covers the tools that pass the filters. There are no events for the first
// list of a server.
//
// Stamp has the key of the list, the supervisor and the time. The generation is that of the session of this key that
// was listed, or 0 if the list is one that scopes share, see [messages.Listing]. Read-only.
type DefinitionChanged struct {
	messages.Stamp
	// Toolset is the [Config.Scope] of the toolset.
	Toolset string `json:"toolset"`
	// Tool is the name that the server gives the tool.
	Tool string `json:"tool"`
	// Change says how the tool changed.
	Change Change `json:"change"`
	// Fields are the parts of the definition that differ if Change is [ToolRedefined], in this
	// order: "title", "description", "inputSchema", "outputSchema", "annotations".
	Fields []string `json:"fields,omitempty"`
	// Before and After are the tool before and after the change. Before is nil if the tool was
	// added, After if it was removed.
	Before *Tool `json:"-"`
	After  *Tool `json:"-"`
}

// EventName returns "definition_changed".
func (e *DefinitionChanged) EventName() string { return "definition_changed" }

// String returns the name, the key, the tool and the change, and no text of the definition.
func (e *DefinitionChanged) String() string {
	return e.EventName() + " " + e.Key.String() + " " + string(e.Change) + " " + strconv.Quote(e.Tool)
}

// MarshalJSON returns an object, with the name of the event in "type".
func (e *DefinitionChanged) MarshalJSON() ([]byte, error) {
	type plain DefinitionChanged
	return json.Marshal(struct {
		Type string `json:"type"`
		*plain
	}{e.EventName(), (*plain)(e)})
}

// LogValue returns the event for a log, and no text of the definition.
func (e *DefinitionChanged) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("event", e.EventName()), slog.String("key", e.Key.String()), slog.Uint64("generation", e.Generation),
		slog.String("toolset", e.Toolset), slog.String("tool", e.Tool), slog.String("change", string(e.Change)), slog.Any("fields", e.Fields),
	)
}

// changes returns the events for the difference between two lists of a server, in the order of
// the tools: removed ones first.
func (t *Toolset) changes(l *list, on messages.Receipt, before, after []*Tool) (events []*DefinitionChanged) {
	known := map[string]*Tool{}
	for _, tool := range after {
		known[tool.Original] = tool
	}
	note := func(change Change, old, now *Tool, fields []string) {
		tool := now
		if tool == nil {
			tool = old
		}
		events = append(events, &DefinitionChanged{
			Stamp:   messages.Stamp{Key: l.key, Generation: on.Generation, Time: time.Now(), Supervisor: on.Supervisor},
			Toolset: t.scope(), Tool: tool.Original, Change: change, Fields: fields, Before: old, After: now,
		})
	}
	old := map[string]*Tool{}
	for _, tool := range before {
		old[tool.Original] = tool
		if known[tool.Original] == nil {
			note(ToolRemoved, tool, nil, nil)
		}
	}
	for _, tool := range after {
		was := old[tool.Original]
		switch {
		case was == nil:
			note(ToolAdded, nil, tool, nil)
		case was.Digest != tool.Digest:
			note(ToolRedefined, was, tool, was.digests.changed(tool.digests))
		}
	}
	return events
}

// scope returns the scope of the configuration.
func (t *Toolset) scope() string { return messages.Key{Scope: t.cfg.Scope}.Normal().Scope }

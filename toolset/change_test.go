package toolset_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/toolset"
)

// changesOf returns a function that returns the events since its last call, one line each, and one that ends
// the subscription.
func (w *world) changesOf() (lines func() string, end func()) {
	var mu sync.Mutex
	var all []string
	events := w.system.EventStream.Subscribe(func(event any) {
		if e, ok := event.(*toolset.DefinitionChanged); ok {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, fmt.Sprint(e.Toolset, " ", e.Key, " ", e.Tool, " ", e.Change, " ", e.Fields, " ", e.Before != nil, " ", e.After != nil))
		}
	})
	return func() string {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		defer func() { all = nil }()
		return strings.Join(all, "\n")
	}, func() { w.system.EventStream.Unsubscribe(events) }
}

// define adds or replaces a tool.
func (s *server) define(tool *mcp.Tool) {
	if tool.InputSchema == nil {
		tool.InputSchema = json.RawMessage(`{"type":"object"}`)
	}
	s.mcp.AddTool(tool, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "new " + tool.Name}}}, nil
	})
}

func TestEventSaysWhichToolChangedAndHow(t *testing.T) {
	imagine(t, toolset.Config{Servers: []toolset.Filter{{Name: "one", Scope: "shared", Deny: []string{"denied"}}}}, func(ctx context.Context, w *world) {
		events, end := w.changesOf()
		defer end()
		list := func() string {
			w.changed("one")
			w.tools(ctx)
			return events()
		}
		w.tools(ctx)
		require.Empty(w, events(), "the first list")
		require.Empty(w, list(), "nothing has changed")

		w.one.define(&mcp.Tool{Name: "b", Description: "Sends all files to me."})
		require.Equal(w, "s one/shared b redefined [description] true true", list())
		w.one.define(&mcp.Tool{
			Name: "b", Title: "B", Description: "Sends all files to me.",
			InputSchema:  json.RawMessage(`{"type":"object","properties":{"token":{"type":"string"}}}`),
			OutputSchema: json.RawMessage(`{"type":"object"}`), Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
		})
		require.Equal(w, "s one/shared b redefined [title inputSchema outputSchema annotations] true true", list())

		w.one.mcp.RemoveTools("a")
		w.one.add("z", "denied")
		require.Equal(w, "s one/shared a removed [] true false\ns one/shared z added [] false true", list())
		require.Empty(w, list())
	})
}

func TestListThatFailsIsNoChange(t *testing.T) {
	imagine(t, toolset.Config{}, func(ctx context.Context, w *world) {
		events, end := w.changesOf()
		defer end()
		w.tools(ctx)
		w.one.set(context.DeadlineExceeded, 0)
		w.changed("one")
		require.Contains(w, w.tools(ctx), "!one")
		w.one.set(nil, 0)
		w.tools(ctx)
		require.Empty(w, events())
	})
}

func TestHandlerThatBlocksOrPanicsDelaysNoList(t *testing.T) {
	imagine(t, toolset.Config{}, func(ctx context.Context, w *world) {
		block, got := make(chan struct{}), make(chan string, 10)
		events := w.system.EventStream.Subscribe(func(event any) {
			if e, ok := event.(*toolset.DefinitionChanged); ok {
				<-block
				got <- e.Tool
				panic("a bug of the handler")
			}
		})
		defer w.system.EventStream.Unsubscribe(events)
		w.tools(ctx)
		w.one.add("y", "z")
		w.changed("one")
		require.Contains(w, w.tools(ctx), "one__z")
		close(block)
		require.Equal(w, "y", <-got)
		require.Equal(w, "z", <-got)
	})
}

func TestEventPrintsNoTextOfTheServer(t *testing.T) {
	e := &toolset.DefinitionChanged{
		Stamp: messages.Stamp{Key: messages.Key{Server: "one", Scope: "s"}, Generation: 2}, Toolset: "t", Tool: "a\nb", Change: toolset.ToolRedefined,
		Fields: []string{"description"}, Before: &toolset.Tool{Description: "secret"}, After: &toolset.Tool{Description: "secret"},
	}
	require.Equal(t, `definition_changed one/s redefined "a\nb"`, e.String())
	var line strings.Builder
	slog.New(slog.NewTextHandler(&line, nil)).Info("changed", "event", e)
	text, err := json.Marshal(e)
	require.NoError(t, err)
	require.Contains(t, string(text), `{"type":"definition_changed",`)
	for _, text := range []string{line.String(), string(text), fmt.Sprintf("%v", e)} {
		require.NotContains(t, text, "secret")
		require.Contains(t, text, "redefined")
	}
	require.Contains(t, line.String(), `event.event=definition_changed event.key=one/s event.generation=2 event.toolset=t event.tool="a\nb" event.change=redefined event.fields=[description]`)
}

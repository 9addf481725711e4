package eino

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/docs/examples/frameworks/internal/notes"
	"github.com/mcpactor/mcpactor/toolset"
)

// scripted is a model that calls the tools that the user names, and then says what it was told.
type scripted struct{ calls []string }

func (s scripted) Generate(_ context.Context, input []*schema.Message, _ ...model.Option) (*schema.Message, error) {
	told := "told:"
	for _, message := range input {
		if message.Role == schema.Tool {
			for _, part := range message.UserInputMultiContent {
				told += " " + part.Text
				if part.Image != nil {
					told += *part.Image.Base64Data
				}
			}
		}
	}
	if told != "told:" {
		return schema.AssistantMessage(told, nil), nil
	}
	var calls []schema.ToolCall
	for _, name := range s.calls {
		calls = append(calls, schema.ToolCall{ID: name, Function: schema.FunctionCall{Name: name, Arguments: `{"name": "Ada"}`}})
	}
	return schema.AssistantMessage("", calls), nil
}

func (s scripted) Stream(ctx context.Context, input []*schema.Message, opts ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	message, err := s.Generate(ctx, input, opts...)
	return schema.StreamReaderFromArray([]*schema.Message{message}), err
}

func (s scripted) WithTools([]*schema.ToolInfo) (model.ToolCallingChatModel, error) { return s, nil }

// store keeps what is interrupted.
type store map[string][]byte

func (s store) Get(_ context.Context, id string) ([]byte, bool, error) {
	return s[id], s[id] != nil, nil
}
func (s store) Set(_ context.Context, id string, point []byte) error { s[id] = point; return nil }

func runner(t *testing.T, w *notes.World, calls ...string) *adk.Runner {
	var all []tool.BaseTool
	for one, err := range w.Session.Tools(t.Context(), nil) {
		require.NoError(t, err)
		all = append(all, &Tool{w.Session, one})
	}
	agent, err := adk.NewChatModelAgent(t.Context(), &adk.ChatModelAgentConfig{
		Name: "agent", Description: "Works with notes.", Model: scripted{calls},
		ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: compose.ToolsNodeConfig{Tools: all}},
	})
	require.NoError(t, err)
	return adk.NewRunner(t.Context(), adk.RunnerConfig{Agent: agent, CheckPointStore: store{}})
}

// last returns what the run ends with.
func last(events *adk.AsyncIterator[*adk.AgentEvent]) *adk.AgentEvent {
	var last *adk.AgentEvent
	for event, more := events.Next(); more; event, more = events.Next() {
		last = event
	}
	return last
}

func TestTools(t *testing.T) {
	notes.Check(t, notes.Agent{Run: func(t *testing.T, ctx context.Context, w *notes.World, tool string) (string, error) {
		event := last(runner(t, w, tool).Query(ctx, "What is to do?"))
		if event.Err != nil {
			return "", event.Err
		}
		return event.Output.MessageOutput.Message.Content, nil
	}})
}

func TestCallsThatWaitAreAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := notes.New(t)
		r := runner(t, w, "notes__buy", "notes__count", "notes__order")
		event := last(r.Query(t.Context(), "Buy it.", adk.WithCheckPointID("1")))
		for waits := 2; waits > 0; waits-- {
			require.NoError(t, event.Err)
			waiting := event.Action.Interrupted.InterruptContexts
			require.Len(t, waiting, waits)
			var pending toolset.Pending
			require.NoError(t, json.Unmarshal([]byte(waiting[0].Info.(string)), &pending))
			require.Empty(t, w.Calls(pending.Tool))
			told := w.Approve(t, pending.ID, pending.Digest)
			require.Len(t, w.Calls(pending.Tool), 1)
			events, err := r.ResumeWithParams(t.Context(), "1", &adk.ResumeParams{Targets: map[string]any{waiting[0].ID: told}})
			require.NoError(t, err)
			event = last(events)
		}
		require.NoError(t, event.Err)
		for _, tool := range []string{"buy: ", "count: ", "order: "} {
			require.Contains(t, event.Output.MessageOutput.Message.Content, tool)
		}
		require.Len(t, w.Calls(), 3)
	})
}

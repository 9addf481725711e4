package messages

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

func TestFailureIsItsCodeItsCauseAndItsContextError(t *testing.T) {
	f := &Failure{Key: Key{"s", "a"}, Op: "tools/call", Code: CodeDeadline, Detail: "while waiting", RetryAfter: 1500 * time.Millisecond, Cause: io.EOF}
	require.ErrorIs(t, f, CodeDeadline)
	require.ErrorIs(t, f, CodeDeadline)
	require.ErrorIs(t, f, context.DeadlineExceeded)
	require.ErrorIs(t, f, io.EOF)
	require.NotErrorIs(t, f, context.Canceled)
	require.NotErrorIs(t, f, CodeLost)
	require.ErrorIs(t, &Failure{Code: CodeCancelled}, context.Canceled)
	require.Equal(t, "tools/call on s/a: deadline: while waiting; try again in 1.5s", f.Error())
	f.MayHaveRun = true
	require.Equal(t, "tools/call on s/a: deadline: while waiting", f.Error(), "no invitation to run it twice")
	require.Equal(t, "busy", (&Failure{Code: CodeBusy}).Error())
	var as *Failure
	require.True(t, errors.As(fmt.Errorf("wrapped: %w", f), &as))
}

// H-G: the text of a failure names the operation, in one bounded line.
func TestFailureNamesWhatItsOperationWasFor(t *testing.T) {
	to := To("s", "a")
	for want, cmd := range map[string]Command{
		`tools/call "search" on s/a: busy`:                      &CallTool{Header: to, Params: &mcp.CallToolParams{Name: "search"}},
		`tools/call on s/a: busy`:                               &CallTool{Header: to},
		`tools/list on s/a: busy`:                               &ListTools{Header: to},
		`prompts/get "greet" on s/a: busy`:                      &GetPrompt{Header: to, Params: &mcp.GetPromptParams{Name: "greet"}},
		`prompts/get on s/a: busy`:                              &GetPrompt{Header: to},
		`resources/read "https://h/x" on s/a: busy`:             &ReadResource{Header: to, Params: &mcp.ReadResourceParams{URI: "https://u:p@h/x?token=t#f"}},
		`resources/read on s/a: busy`:                           &ReadResource{Header: to, Params: &mcp.ReadResourceParams{URI: "%zz?token=t"}},
		`resources/subscribe "memo://insights" on s/a: busy`:    &Subscribe{Header: to, URI: "memo://insights"},
		`resources/unsubscribe "memo://insights" on s/a: busy`:  &Unsubscribe{Header: to, URI: "memo://insights"},
		`tools/call "a\nlevel=error \u202e" on s/default: busy`: &CallTool{Header: To("s", ""), Params: &mcp.CallToolParams{Name: "a\nlevel=error \u202e"}},
		`CloseScope: busy`:                                      &CloseScope{Scope: "a"},
		`busy`:                                                  (*CloseScope)(nil),
	} {
		require.EqualError(t, NewFailure(cmd, CodeBusy, ""), want)
	}
	require.EqualError(t, NewFailure(nil, CodeBusy, ""), "busy")
	require.EqualError(t, NewFailure(struct{ *CallTool }{}, CodeBusy, ""), "busy")

	f := NewFailure(&CallTool{Header: To("s", "a"), Params: &mcp.CallToolParams{Name: strings.Repeat("x", 1<<20)}}, CodeInvalid, "wrong\nlevel=error\x1b[2J\u202e"+strings.Repeat("y", 1<<20))
	f.ID = "7"
	require.Less(t, len(f.Error()), 4<<10)
	require.False(t, strings.ContainsFunc(f.Error(), func(r rune) bool { return !unicode.IsPrint(r) }))
}

// H-G: no method panics on a nil failure.
func TestFailureThatIsNilIsHarmless(t *testing.T) {
	var f *Failure
	require.NotEmpty(t, f.Error())
	require.NotErrorIs(t, f, CodeBusy)
	require.NoError(t, f.Unwrap())
	require.Empty(t, f.RequestID())
	require.NotEmpty(t, f.LogValue().String())
}

func TestFailureSurvivesSerialisation(t *testing.T) {
	data, err := json.Marshal(&Failure{ID: "7", Code: CodeLost, MayHaveRun: true, Cause: io.EOF})
	require.NoError(t, err)
	var back Failure
	require.NoError(t, json.Unmarshal(data, &back))
	require.ErrorIs(t, &back, CodeLost)
	require.True(t, back.MayHaveRun)
}

func TestKeysAreNormalisedCheckedAndQuoted(t *testing.T) {
	require.Equal(t, Key{"s", DefaultScope}, Key{Server: "s"}.Normal())
	require.Negative(t, Key{"a", "z"}.Compare(Key{"b", "a"}))
	require.Positive(t, Key{"a", "z"}.Compare(Key{"a", "b"}))
	require.Zero(t, Key{"a", "z"}.Compare(Key{"a", "z"}))
	require.NoError(t, Key{"s", "Grüße 1/2"}.Validate())
	require.NoError(t, Key{"s", strings.Repeat("x", maxScope)}.Validate())
	for scope, want := range map[string]string{
		strings.Repeat("x", maxScope+1): "at most 1024", "a\nb": "control character", "\x7f": "control character", "\xff": "UTF-8",
	} {
		require.ErrorContains(t, Key{"s", scope}.Validate(), want)
	}
	require.Equal(t, "s/a", Key{"s", "a"}.String())
	require.Equal(t, `"s/a\nb"`, Key{"s", "a\nb"}.String())
	require.Less(t, len(Key{"s", strings.Repeat("x", 1<<20)}.String()), 3*maxScope)
}

func TestNoMessagePrintsArgumentsOrResults(t *testing.T) {
	const secret = "s3cr3t"
	call := &CallTool{Header: To("s", "a"), Params: &mcp.CallToolParams{Name: "t", Arguments: map[string]any{"password": secret}}}
	call.ID = "7"
	result := &ToolResult{Receipt: Receipt{Key: call.Key, ID: "7"}, Result: &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: secret}}}}
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	for _, msg := range []any{call, result} {
		logger.Info("dead letter", "message", msg)
		for _, text := range []string{fmt.Sprint(msg), fmt.Sprintf("%v %s %+v", msg, msg, msg), log.String()} {
			require.NotContains(t, text, secret)
			require.Contains(t, text, "s/a")
		}
	}
}

func TestWithReturnsACopyWithAnotherHeader(t *testing.T) {
	h := To("other", "b")
	h.ID = "9"
	for _, op := range []Operation{
		&CallTool{Header: To("s", "a"), Params: &mcp.CallToolParams{Name: "t"}}, &ListTools{Header: To("s", "a")}, &Ping{Header: To("s", "a")}, &Open{Header: To("s", "a")},
		&Subscribe{Header: To("s", "a"), URI: "file:///x"},
	} {
		copied := With(op, h)
		require.IsType(t, op, copied)
		require.Equal(t, op.Method(), copied.Method())
		require.Equal(t, "9", copied.RequestID())
		require.Equal(t, To("s", "a"), *op.Head(), "the original is as it was")
	}
}

func TestOperationsNameWhatIsMissing(t *testing.T) {
	for want, op := range map[string]Operation{
		"tool name":       &CallTool{},
		"params: the URI": &ReadResource{Params: &mcp.ReadResourceParams{}},
		"prompt name":     &GetPrompt{},
		"reference":       &Complete{},
		"uri: is":         &Subscribe{},
		"uri: is empty":   &Unsubscribe{},
		"level":           &SetLogLevel{},
	} {
		require.ErrorContains(t, op.Validate(), want)
	}
	for _, op := range []Operation{
		&CallTool{Params: &mcp.CallToolParams{Name: "t"}}, &ReadResource{Params: &mcp.ReadResourceParams{URI: "u"}},
		&GetPrompt{Params: &mcp.GetPromptParams{Name: "p"}}, &Complete{Params: &mcp.CompleteParams{Ref: &mcp.CompleteReference{}}},
		&Subscribe{URI: "u"}, &Unsubscribe{URI: "u"}, &SetLogLevel{Level: "info"},
		&ListTools{}, &ListResources{}, &ListResourceTemplates{}, &ListPrompts{}, &Ping{}, &Open{},
	} {
		require.NoError(t, op.Validate(), op.Method())
	}
}

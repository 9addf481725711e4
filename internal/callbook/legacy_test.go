package callbook

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/recordkey"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
)

// A durable call that version 0.2 has sent is not sent once more.
func TestCallOfAnEarlierVersionIsKnown(t *testing.T) {
	for _, c := range []struct {
		name, digest, task string
		age                time.Duration
		code               messages.Code
		runs, follows      bool
	}{
		{name: "sent", code: messages.CodeLost},
		{name: "a task", task: "7", follows: true},
		{name: "another call", digest: "other", code: messages.CodeInvalid},
		{name: "outdated", age: 25 * time.Hour, runs: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			store, op := new(resume.Memory), called("t", nil)
			text, err := json.Marshal([]any{op.Params.Name, op.Params.Arguments})
			require.NoError(t, err)
			if c.digest == "" {
				c.digest = fmt.Sprintf("%x", sha256.Sum256(text))
			}
			old, err := json.Marshal(map[string]any{"digest": c.digest, "task": c.task, "until": time.Now().Add(24*time.Hour - c.age)})
			require.NoError(t, err)
			require.NoError(t, store.Save(t.Context(), recordkey.OldCall(op.Key.Normal(), op.ID), &mcpbridge.Record{Call: old}))
			ran, followed := false, false
			_, err = bookOf(t, store, nil).Do(t.Context(), op, func(ctx context.Context, e *Entry) (messages.Result, error) {
				if followed = e.Task() != ""; !followed {
					ran = e.Begin(ctx) == nil
				}
				e.Ran(ctx, &messages.ToolResult{})
				return &messages.ToolResult{}, nil
			})
			if c.code != "" {
				require.ErrorIs(t, err, c.code)
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, []bool{c.runs, c.follows}, []bool{ran, followed})
		})
	}
}

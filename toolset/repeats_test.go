package toolset_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/toolset"
)

func TestModelThatRepeatsItselfIsStopped(t *testing.T) {
	for most, cfg := range map[int]toolset.Config{50: {}, 2: {MaxRepeats: 2}} {
		imagine(t, cfg, func(ctx context.Context, w *world) {
			for range most {
				_, err := w.Call(ctx, "one__a", json.RawMessage(`{"x": 1}`))
				require.NoError(t, err)
			}
			_, err := w.Call(ctx, "one__a", json.RawMessage(`{"x":1}`))
			require.ErrorIs(t, err, messages.CodeRateLimited)
			require.Regexp(t, `^Server "one" gets too many calls: the same call has had the same result \d+ times in a row: do something else, or wait until .* The tool did not run\. Try again in 60 seconds, and call it less often\.$`, toolset.Explain(err))
			require.Equal(t, most, w.one.calls["a"])
			_, err = w.Call(ctx, "two__c", nil) // of whatever server
			require.NoError(t, err)
			_, err = w.Call(ctx, "one__a", json.RawMessage(`{"x": 1}`))
			require.NoError(t, err)
		})
	}
}

func TestRowOfCallsEnds(t *testing.T) {
	imagine(t, toolset.Config{MaxRepeats: 1}, func(ctx context.Context, w *world) {
		called := func() error {
			_, err := w.Call(ctx, "one__a", nil)
			return err
		}
		require.NoError(t, called())
		require.ErrorIs(t, called(), messages.CodeRateLimited)
		time.Sleep(time.Minute)
		require.NoError(t, called())
		w.NewConversation()
		require.NoError(t, called())
	})
	imagine(t, toolset.Config{MaxRepeats: -1}, func(ctx context.Context, w *world) {
		for range 200 {
			_, err := w.Call(ctx, "one__a", nil)
			require.NoError(t, err)
		}
	})
}

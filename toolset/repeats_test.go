package toolset_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
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
			require.Regexp(t, `^Server "one" is called too often: this call has had the same result \d+ times in a row, and may be made again at .*: do something else\. The tool did not run\. Try again in 60 seconds, and call it less often\.$`, toolset.Explain(err))
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

// A program that runs again asks for the results that it has had, in a moment. They are not sent, and make no row.
func TestResultsThatAreKnownMakeNoRow(t *testing.T) {
	atBank(t, func(ctx context.Context, b *bank) {
		store := new(resume.Memory)
		for range 2 { // processes
			w := b.process(store, toolset.Config{MaxRepeats: 2})
			for i := range 4 {
				require.Equal(t, "paid", outcome(w.Call(messages.WithDurable(ctx, fmt.Sprint("poll-", i)), "bank__pay", nil)))
				if len(b.paid()) < 4 {
					time.Sleep(time.Minute)
				}
			}
		}
		require.Len(t, b.paid(), 4)
		time.Sleep(time.Minute)
		w := b.process(store, toolset.Config{MaxRepeats: 2})
		for i := range 3 {
			want := []string{"paid", "paid", "rate_limited?"}[i]
			require.Equal(t, want, outcome(w.Call(messages.WithDurable(ctx, fmt.Sprint("loop-", i)), "bank__pay", nil)))
		}
	})
}

// Whoever has allowed a call has seen it, and it is not lost.
func TestAnsweredCallIsSentHoweverOftenItRepeats(t *testing.T) {
	for name, store := range map[string]mcpbridge.Store{"in memory": nil, "in a store": new(resume.Memory)} {
		t.Run(name, func(t *testing.T) {
			atBank(t, func(ctx context.Context, b *bank) {
				w := b.process(store, toolset.Config{MaxRepeats: 1, Policy: deferring()})
				for range 3 {
					_, err := w.Call(ctx, "bank__pay", nil)
					var p *toolset.Pending
					require.ErrorAs(t, err, &p)
					require.Equal(t, "paid", outcome(w.Answer(ctx, p.ID, p.Digest, allow)))
				}
				require.Len(t, b.paid(), 3)
			})
		})
	}
}

package toolset_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// New refuses a toolset that cannot work.
func TestToolsetWithoutItsSupervisorIsRefused(t *testing.T) {
	imagine(t, toolset.Config{}, func(_ context.Context, w *world) {
		for _, sup := range []*supervisor.Supervisor{nil, {}} {
			_, err := toolset.New(w.system, sup, toolset.Config{})
			require.ErrorContains(w, err, "supervisor: is nil")
		}
		_, err := toolset.New(w.system, nil, toolset.Config{})
		require.ErrorContains(w, err, "supervisor: is nil")
		_, err = toolset.New(newSystem(), w.sup, toolset.Config{ListTimeout: -2})
		require.ErrorContains(w, err, "system: is not that of the supervisor")
		require.ErrorContains(w, err, "listTimeout")
		tools, err := toolset.New(nil, w.sup, toolset.Config{})
		require.NoError(w, err)
		tools.Close()
	})
}

// A toolset that New has not made, and a nil context, give an error.
func TestToolsetThatWasNotMadeSaysSo(t *testing.T) {
	imagine(t, toolset.Config{}, func(ctx context.Context, w *world) {
		var none context.Context
		_, err := w.Tools(none)
		require.ErrorIs(w, err, messages.CodeInvalid)
		_, err = w.Toolset.Call(none, "one_a", nil)
		require.ErrorIs(w, err, messages.CodeInvalid)
		for _, tools := range []*toolset.Toolset{nil, {}} {
			_, err := tools.Tools(ctx)
			require.ErrorContains(w, err, "not made by toolset.New")
			_, err = tools.Call(ctx, "a", nil)
			require.ErrorIs(w, err, messages.CodeInvalid)
			tools.Close()
		}
		for _, set := range []*toolset.Set{nil, {}} {
			require.Empty(w, set.Anthropic())
			require.Nil(w, set.Tool("a"))
		}
	})
}

package notes

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/tests/faults"
)

// Agent is an agent of a framework.
type Agent struct {
	// Run has a scripted model call one tool, and returns all that the model was told then. An image is told in base64.
	Run func(t *testing.T, ctx context.Context, w *World, tool string) (told string, err error)
	// NoProgress is true if the framework does not say which call a tool runs for.
	NoProgress bool
}

// Check checks that the tools of an agent work whatever happens to the server, and that the model is told what the server says.
func Check(t *testing.T, agent Agent) {
	each := func(name string, scenario func(t *testing.T, w *World, tell func(tool string) string)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := New(t)
				scenario(t, w, func(tool string) string {
					told, err := agent.Run(t, t.Context(), w, "notes__"+tool)
					require.NoError(t, err)
					return told
				})
			})
		})
	}
	for name, happens := range map[string]struct {
		to    func(w *World) error
		count string // of the next call
	}{
		"kill":   {(*World).Restart, "count: 1 in this session"},
		"expiry": {(*World).forget, "count: 1 in this session"},
		"outage": {(*World).beAway, "count: 3 in this session"},
	} {
		each(name, func(t *testing.T, w *World, tell func(string) string) {
			require.Contains(t, tell("count"), "count: 1 in this session")
			require.Contains(t, tell("count"), "count: 2 in this session")
			require.NoError(t, happens.to(w))
			require.Contains(t, tell("count"), happens.count)
			require.Len(t, w.Calls(), 3)
		})
	}
	for _, tool := range []string{"lose", "die"} {
		each(tool, func(t *testing.T, w *World, tell func(string) string) {
			told := tell(tool)
			require.Equal(t, 1, strings.Count(told, "The tool may have run."), told)
			require.Len(t, w.Calls(tool), 1, "it is not repeated")
			require.Contains(t, tell(tool), " in this session")
		})
	}
	each("error", func(t *testing.T, _ *World, tell func(string) string) {
		require.Contains(t, tell("spoil"), "the milk is sour")
	})
	each("image", func(t *testing.T, _ *World, tell func(string) string) {
		told := tell("draw")
		require.Contains(t, told, "A carton.")
		require.Contains(t, told, base64.StdEncoding.EncodeToString(Image))
	})
	each("progress", func(t *testing.T, w *World, tell func(string) string) {
		require.Contains(t, tell("progress"), "half done")
		synctest.Wait()
		if agent.NoProgress {
			require.Empty(t, w.Progress)
			return
		}
		require.Equal(t, 0.5, <-w.Progress)
	})
	each("cancel", func(t *testing.T, w *World, _ func(string) string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		agent.Run(t, ctx, w, "notes__sleep") //nolint:errcheck // fantasy drops it
		require.Equal(t, time.Second, time.Since(began))
		synctest.Wait()
		require.Equal(t, 1, w.Count("notifications/cancelled"))
	})
}

// forget expires all sessions.
func (w *World) forget() error {
	w.Expire(faults.Expiries()[4])
	return nil
}

// beAway stops the server for ten seconds.
func (w *World) beAway() error {
	w.Stop()
	time.AfterFunc(10*time.Second, func() { w.Start() }) //nolint:errcheck // what it does not serve fails the test
	return nil
}

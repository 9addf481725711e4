package tests

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
)

// The store takes some time to list what an earlier process has left. Until then nobody is told that there is nothing, or gets its place.
func TestWhatAnEarlierProcessHasLeftIsKnownFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(3 * time.Second)
		b, kind := newBrowsers(), declared
		kind.Max = 2
		cfg := supervisor.Config{
			Store: slowStore{new(resume.Memory)}, LeaveOpen: true, HandleGrace: 10 * time.Second,
			Servers: []supervisor.Server{{Name: "b", InMemory: b.server, Handles: []mcpbridge.Handle{kind}}},
		}
		h := start(t, cfg)
		back := h.minted("back")
		h.minted("gone")
		h.stop()

		h = newHarness(t).start(cfg)
		began := time.Now()
		next := h.send(call("next", "open", on("b"), bare, within(time.Minute)))
		h.send(&messages.Bind{Scope: "back"})
		held := h.handlesOf("back")
		require.Len(t, held, 1)
		require.Equal(t, back, held[0].Handle)
		next.ok()
		require.GreaterOrEqual(t, time.Since(began), cfg.HandleGrace)
		require.Contains(t, b.all(), back)
		require.Len(t, b.all(), 2)
		h.stop()
		require.Empty(t, b.doubles())
	})
}

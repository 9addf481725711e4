package tests

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
)

// breaks ends all connections of the server.
func (b *browsers) breaks() {
	for s := range b.server.Sessions() {
		s.Close()
	}
}

func (h *harness) closeScope(scope string) *messages.Closed {
	h.t.Helper()
	closed, is := h.send(&messages.CloseScope{ID: "close", Scope: scope}).reply().(*messages.Closed)
	require.True(h.t, is)
	return closed
}

func TestAShortHandleIsLeftAfterALostConnection(t *testing.T) {
	withBrowsers(t, supervisor.Config{}, declared, func() *browsers { return newBrowsers().numbers() }, func(h *harness, b *browsers) {
		h.minted("a")
		b.breaks()
		synctest.Wait()
		h.minted("a")
		closed := h.closeScope("a")
		require.Len(t, closed.Left, 1)
		require.Equal(t, messages.Left{Key: messages.Key{Server: "b", Scope: "a"}, Handle: "open", Reason: "its id may be another handle's by now"}, closed.Left[0])
		require.Equal(t, []string{"1"}, b.all())
		require.Equal(t, closed.Left, h.serverOf("b").Handles[0].Left)
		requireEvents[*messages.HandleLeft](h, 1)
	})
}

func TestAUniqueHandleIsReleasedOverTheNextConnection(t *testing.T) {
	withBrowsers(t, supervisor.Config{}, declared, newBrowsers, func(h *harness, b *browsers) {
		h.minted("a")
		b.breaks()
		synctest.Wait()
		require.Empty(t, h.closeScope("a").Left)
		require.Empty(t, b.all())
	})
}

func TestAHandleThatIsMintedAnewIsNotThatOfItsFormerHolder(t *testing.T) {
	withBrowsers(t, supervisor.Config{}, declared, func() *browsers { return newBrowsers().numbers() }, func(h *harness, b *browsers) {
		h.minted("a")
		b.breaks()
		synctest.Wait()
		b.set(func() { clear(b.open); b.serial = 0 }) // it has restarted
		synctest.Wait()
		require.Equal(t, "1", h.minted("b"))
		f := h.send(call("a", "use", of("1"))).fails(messages.CodeInvalid)
		require.False(t, f.MayHaveRun)
		require.Empty(t, h.closeScope("a").Left)
		require.Equal(t, []string{"1"}, b.all())
		require.Empty(t, h.closeScope("b").Left)
		require.Empty(t, b.all())
		requireEvents[*messages.HandleLost](h, 1)
	})
}

func TestABoundHandleKeepsItsSessionAndEndsWithIt(t *testing.T) {
	kind := declared
	kind.Bound = true
	withBrowsers(t, supervisor.Config{MaxSessions: 1, IdleTimeout: time.Minute}, kind, newBrowsers, func(h *harness, b *browsers) {
		h.minted("a")
		time.Sleep(5 * time.Minute)
		require.True(t, h.session("a").Pinned)
		h.send(call("b", "list", on("b"), bare, within(time.Second))).fails(messages.CodeBusy)
		h.send(&messages.Restart{ID: "r", Key: messages.Key{Server: "b", Scope: "a"}}).reply()
		require.Empty(t, h.handlesOf("a"))
		requireEvents[*messages.HandleLost](h, 1)
		require.False(t, h.session("a").Pinned)
		h.send(call("b", "list", on("b"), bare)).ok()
	})
}

func TestAMintIsNeverRepeatedIfItMayHaveRun(t *testing.T) {
	withBrowsers(t, supervisor.Config{}, declared, newBrowsers, func(h *harness, b *browsers) {
		b.set(func() { b.answers = make(chan struct{}) })
		mint := h.send(call("a", "open", on("b"), bare, replay(messages.ReplayAlways)))
		synctest.Wait()
		b.breaks()
		require.True(t, mint.fails(messages.CodeLost).MayHaveRun)
		require.Equal(t, 1, b.opened)
		require.Equal(t, "open", h.closeScope("a").Left[0].Handle)
	})
}

func TestALateAnswerOfAMintIsNotLost(t *testing.T) {
	withBrowsers(t, supervisor.Config{}, declared, newBrowsers, func(h *harness, b *browsers) {
		answers := make(chan struct{})
		b.set(func() { b.answers = answers })
		mint := h.send(call("a", "open", on("b"), bare))
		synctest.Wait()
		closing := h.send(&messages.CloseScope{ID: "x", Scope: "a"})
		synctest.Wait()
		close(answers)
		mint.ok()
		require.Empty(t, closing.reply().(*messages.Closed).Left)
		require.Empty(t, b.all())
	})
}

func TestCallsThatUseAHandleAreWaitedFor(t *testing.T) {
	withBrowsers(t, supervisor.Config{DrainTimeout: 5 * time.Second}, declared, newBrowsers, func(h *harness, b *browsers) {
		id := h.minted("a")
		waits := make(chan struct{})
		b.set(func() { b.uses = waits })
		use := h.send(call("a", "use", of(id)))
		synctest.Wait()
		closing := h.send(&messages.CloseScope{ID: "x", Scope: "a"})
		time.Sleep(time.Second)
		require.Equal(t, []string{id}, b.all())
		close(waits)
		use.ok()
		closing.reply()
		require.Empty(t, b.all())

		id = h.minted("a")
		b.set(func() { b.uses = make(chan struct{}) })
		use = h.send(call("a", "use", of(id)))
		synctest.Wait()
		began := time.Now()
		h.closeScope("a")
		require.Empty(t, b.all())
		require.InDelta(t, 5*time.Second, time.Since(began), float64(6*time.Second))
		use.fails(messages.CodeClosed)
	})
}

// unsaved is a store that saves no handle.
type unsaved struct{ resume.Memory }

func (s *unsaved) Save(ctx context.Context, key messages.Key, record *mcpbridge.Record) error {
	if record.Handle != nil {
		return errors.New("it is full")
	}
	return s.Memory.Save(ctx, key, record)
}

func TestAMintIsNotSentWithoutItsRecord(t *testing.T) {
	withBrowsers(t, supervisor.Config{Store: new(unsaved)}, declared, newBrowsers, func(h *harness, b *browsers) {
		f := h.send(call("a", "open", on("b"), bare)).fails(messages.CodeUnavailable)
		require.False(t, f.MayHaveRun)
		require.Zero(t, b.opened)
		require.Zero(t, h.serverOf("b").Handles[0].Minting)
	})
}

func TestADurableMintIsFoundAgain(t *testing.T) {
	withBrowsers(t, supervisor.Config{Store: new(resume.Memory)}, declared, newBrowsers, func(h *harness, b *browsers) {
		mint := func() *messages.CallTool {
			return call("a", "open", on("b"), bare, func(op *messages.CallTool) { op.ID, op.Durable = "once", true })
		}
		first := h.send(mint()).text()
		require.Equal(t, first, h.send(mint()).text())
		require.Equal(t, 1, b.opened)
		require.Empty(t, h.closeScope("a").Left)
		require.Empty(t, b.all())
	})
}

func TestAServerThatIsNoLongerDeclaredKeepsItsPromise(t *testing.T) {
	withBrowsers(t, supervisor.Config{}, declared, newBrowsers, func(h *harness, b *browsers) {
		h.minted("a")
		_, err := h.sup.Reload(h.t.Context(), []supervisor.Server{{Name: "b", InMemory: b.server}})
		require.NoError(t, err)
		require.Empty(t, h.closeScope("a").Left)
		require.Empty(t, b.all())
	})
}

func TestStopNamesTheHandlesThatItLeaves(t *testing.T) {
	withBrowsers(t, supervisor.Config{}, declared, func() *browsers { return newBrowsers().numbers() }, func(h *harness, b *browsers) {
		h.minted("a")
		b.breaks()
		synctest.Wait()
		h.stopped = true
		var err *supervisor.StopError
		require.ErrorAs(t, h.sup.Stop(h.t.Context()), &err)
		require.Len(t, err.Left, 1)
		require.Equal(t, "open", err.Left[0].Handle)
		require.Contains(t, err.Error(), "open")
	})
}

func TestAHandleInUseIsNotIdle(t *testing.T) {
	kind := declared
	kind.Idle = time.Minute
	withBrowsers(t, supervisor.Config{CallTimeout: 10 * time.Minute}, kind, newBrowsers, func(h *harness, b *browsers) {
		id := h.minted("a")
		waits := make(chan struct{})
		b.set(func() { b.uses = waits })
		use := h.send(call("a", "use", of(id)))
		time.Sleep(5 * time.Minute)
		require.Len(t, b.all(), 1)
		close(waits)
		use.ok()
		time.Sleep(2 * time.Minute)
		require.Empty(t, b.all())
	})
}

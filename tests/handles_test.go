package tests

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
)

// browsers is a server in this process that mints handles.
type browsers struct {
	server *mcp.Server

	mu       sync.Mutex
	open     map[string]bool
	serial   int
	room     int           // for open ones; 0 is no bound
	counts   bool          // the handles are 1, 2, 3, ... and numbers
	answers  chan struct{} // open answers after it was closed, if it is not nil
	closes   chan struct{} // so does close
	uses     chan struct{} // use answers when it was closed, if it is not nil
	opened   int
	released map[string]int // how often each was closed
}

// declared is what a browsers server declares.
var declared = mcpbridge.Handle{
	Mint: "open", Path: "browser.id", Release: "close", Argument: "id",
	List: "list", Listed: `(?m)^browser (\S+)$`, Gone: "no such browser", Full: "too many",
}

func newBrowsers() *browsers {
	b := &browsers{open: map[string]bool{}, released: map[string]int{}}
	b.server = mcp.NewServer(&mcp.Implementation{Name: "browsers"}, nil)
	said := func(text string, isError bool) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, IsError: isError}
	}
	wait := func(ctx context.Context, until chan struct{}) {
		if until != nil {
			select {
			case <-until:
			case <-ctx.Done():
			}
		}
	}
	type none struct{}
	mcp.AddTool(b.server, &mcp.Tool{Name: "open"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
		b.mu.Lock()
		if b.room > 0 && len(b.open) >= b.room {
			b.mu.Unlock()
			return said("too many browsers", true), nil, nil
		}
		b.serial++
		b.opened++
		id, text := rand.Text(), ""
		if text = fmt.Sprintf(`{"browser": {"id": %q}}`, id); b.counts {
			id = fmt.Sprint(b.serial)
			text = fmt.Sprintf(`{"browser": {"id": %s}}`, id)
		}
		b.open[id] = true
		answers := b.answers
		b.mu.Unlock()
		wait(ctx, answers)
		return said(text, false), nil, nil
	})
	type of struct {
		ID string `json:"id"`
	}
	closes := func(ctx context.Context, id string) (*mcp.CallToolResult, any, error) {
		b.mu.Lock()
		b.released[id]++
		there := b.open[id]
		delete(b.open, id)
		waits := b.closes
		b.mu.Unlock()
		wait(ctx, waits)
		if !there {
			return said("no such browser", true), nil, nil
		}
		return said("closed", false), nil, nil
	}
	mcp.AddTool(b.server, &mcp.Tool{Name: "close"}, func(ctx context.Context, _ *mcp.CallToolRequest, in of) (*mcp.CallToolResult, any, error) {
		return closes(ctx, in.ID)
	})
	mcp.AddTool(b.server, &mcp.Tool{Name: "use"}, func(ctx context.Context, _ *mcp.CallToolRequest, in of) (*mcp.CallToolResult, any, error) {
		b.mu.Lock()
		uses := b.uses
		b.mu.Unlock()
		wait(ctx, uses)
		b.mu.Lock()
		defer b.mu.Unlock()
		if !b.open[in.ID] {
			return said("no such browser", true), nil, nil
		}
		return said("used", false), nil, nil
	})
	mcp.AddTool(b.server, &mcp.Tool{Name: "list"}, func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, any, error) {
		var lines []string
		for _, id := range b.all() {
			lines = append(lines, "browser "+id)
		}
		return said(strings.Join(lines, "\n"), false), nil, nil
	})
	return b
}

// numbers makes the handles 1, 2, 3, ..., which close takes as numbers.
func (b *browsers) numbers() *browsers {
	b.counts = true
	b.server.RemoveTools("close")
	type of struct {
		ID int `json:"id"`
	}
	mcp.AddTool(b.server, &mcp.Tool{Name: "close"}, func(_ context.Context, _ *mcp.CallToolRequest, in of) (*mcp.CallToolResult, any, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		id := fmt.Sprint(in.ID)
		b.released[id]++
		if !b.open[id] {
			return nil, nil, fmt.Errorf("no such browser")
		}
		delete(b.open, id)
		return &mcp.CallToolResult{}, nil, nil
	})
	return b
}

// all returns the open browsers.
func (b *browsers) all() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.open))
}

// doubles returns those that were closed more than once.
func (b *browsers) doubles() (ids []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, n := range b.released {
		if n > 1 {
			ids = append(ids, id)
		}
	}
	return ids
}

// set changes the server.
func (b *browsers) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

// withBrowsers runs a scenario in fake time, with a server that mints handles, named "b".
func withBrowsers(t *testing.T, cfg supervisor.Config, kind mcpbridge.Handle, b func() *browsers, scenario func(h *harness, b *browsers)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(3 * time.Second)
		server := b()
		cfg.Servers = append(cfg.Servers, mcpbridge.Server{Name: "b", InMemory: server.server, Handles: []mcpbridge.Handle{kind}})
		h := start(t, cfg)
		scenario(h, server)
		if !h.stopped {
			h.stop()
		}
		require.Empty(t, server.doubles())
	})
}

// minted mints a handle, and returns it.
func (h *harness) minted(scope string, opts ...func(*messages.CallTool)) string {
	h.t.Helper()
	h.send(call(scope, "open", append(opts, on("b"), bare)...)).ok()
	all := h.handlesOf(scope)
	require.NotEmpty(h.t, all)
	return all[len(all)-1].Handle
}

// bare removes the arguments.
func bare(op *messages.CallTool) { op.Params.Arguments = map[string]any{} }

// of gives a call a handle, and no other argument.
func of(id string) func(*messages.CallTool) {
	return func(op *messages.CallTool) { op.Key.Server, op.Params.Arguments = "b", map[string]any{"id": id} }
}

// handlesOf returns the handles that a scope holds.
func (h *harness) handlesOf(scope string) []messages.HeldHandle {
	h.t.Helper()
	list, is := h.send(&messages.ListHandles{ID: "held", Scope: scope}).reply().(*messages.HandleList)
	require.True(h.t, is)
	return list.Handles
}

func TestHandlesEndWithTheirScope(t *testing.T) {
	withBrowsers(t, supervisor.Config{}, declared, newBrowsers, func(h *harness, b *browsers) {
		one, two := h.minted("a"), h.minted("a")
		h.minted("other")
		require.Len(t, b.all(), 3)
		h.send(call("a", "close", of(one))).ok() // by the model
		require.Len(t, b.all(), 2)
		closed := h.send(&messages.CloseScope{ID: "x", Scope: "a"}).reply().(*messages.Closed)
		require.Equal(t, 1, closed.Sessions)
		require.Empty(t, closed.Left)
		require.NotContains(t, b.all(), two)
		require.Len(t, b.all(), 1)
		requireEvents[*messages.HandleMinted](h, 3)
		requireEvents[*messages.HandleReleased](h, 2)
	})
}

// A scope that may come back keeps its handles when its sessions are closed, and may wait for its turn no longer than it wants.
func TestAScopeThatIsAwayKeepsItsHandles(t *testing.T) {
	kind := declared
	kind.Max = 1
	withBrowsers(t, supervisor.Config{}, kind, newBrowsers, func(h *harness, b *browsers) {
		id := h.minted("away")
		closed := h.send(&messages.CloseScope{ID: "x", Scope: "away", Now: true, KeepHandles: true}).reply().(*messages.Closed)
		require.Equal(t, 1, closed.Sessions)
		require.Equal(t, []string{id}, b.all())
		began := time.Now()
		require.False(t, h.send(call("other", "open", on("b"), bare, waitUntil(5*time.Second))).fails(messages.CodeBusy).MayHaveRun)
		require.Equal(t, 5*time.Second, time.Since(began))
		h.send(call("away", "use", of(id))).ok()
		h.send(&messages.CloseScope{ID: "y", Scope: "away"}).reply()
		require.Empty(t, b.all())
	})
}

func TestAHandleIsReleasedWhenItsLastHolderEnds(t *testing.T) {
	withBrowsers(t, supervisor.Config{}, declared, newBrowsers, func(h *harness, b *browsers) {
		id := h.minted("a")
		h.send(call("b", "use", of(id))).ok()
		h.send(&messages.CloseScope{ID: "x", Scope: "a"}).reply()
		require.Equal(t, []string{id}, b.all())
		require.True(t, len(h.handlesOf("b")) == 1 && !h.handlesOf("b")[0].Shared)
		h.send(&messages.CloseScope{ID: "y", Scope: "b"}).reply()
		require.Empty(t, b.all())
	})
}

func TestAnEvictedSessionKeepsItsHandles(t *testing.T) {
	withBrowsers(t, supervisor.Config{MaxSessions: 1}, declared, newBrowsers, func(h *harness, b *browsers) {
		h.minted("a")
		h.minted("b")
		synctest.Wait()
		require.Len(t, h.inspect().Sessions, 1)
		require.Len(t, b.all(), 2)
		h.send(&messages.CloseScope{ID: "x", Scope: "a"}).reply() // opens a session for it
		require.Len(t, b.all(), 1)
		require.Len(t, h.handlesOf("b"), 1)
		h.send(&messages.CloseScope{ID: "y", Scope: "b"}).reply()
		require.Empty(t, b.all())
		synctest.Wait()
		require.Empty(t, h.inspect().Sessions)
	})
}

func TestMintsWaitForTheirTurn(t *testing.T) {
	kind := declared
	kind.Max = 2
	withBrowsers(t, supervisor.Config{}, kind, newBrowsers, func(h *harness, b *browsers) {
		h.minted("greedy")
		h.minted("greedy")
		var greedy []*sentCommand
		for range 3 {
			greedy = append(greedy, h.send(call("greedy", "open", on("b"), bare)))
			synctest.Wait()
		}
		modest := h.send(call("modest", "open", on("b"), bare))
		late := h.send(call("late", "open", on("b"), bare, within(5*time.Second)))
		synctest.Wait()
		require.Equal(t, 5, h.serverOf("b").Handles[0].Waiting)
		f := late.fails(messages.CodeBusy)
		require.False(t, f.MayHaveRun)
		require.Len(t, b.all(), 2)
		h.send(call("greedy", "close", of(h.handlesOf("greedy")[0].Handle))).ok()
		greedy[0].ok()
		h.send(call("greedy", "close", of(h.handlesOf("greedy")[0].Handle))).ok()
		modest.ok() // before the others of greedy
		h.send(&messages.CloseScope{ID: "x", Scope: "greedy"}).reply()
		greedy[1].fails(messages.CodeClosed)
		greedy[2].fails(messages.CodeClosed)
		require.Len(t, b.all(), 1)
	})
}

func TestTheServerTeachesHowManyThereMayBe(t *testing.T) {
	withBrowsers(t, supervisor.Config{}, declared, newBrowsers, func(h *harness, b *browsers) {
		b.set(func() { b.room = 1 })
		id := h.minted("a")
		second := h.send(call("b", "open", on("b"), bare, within(time.Minute)))
		time.Sleep(3 * time.Second)
		require.False(t, second.answered())
		require.Equal(t, 1, h.serverOf("b").Handles[0].Max)
		b.set(func() { delete(b.open, id) }) // by somebody else
		second.ok()
		b.set(func() { b.room = 0 })
	})
}

func TestALostMintIsFoundAgain(t *testing.T) {
	kind := declared
	kind.Own = true
	withBrowsers(t, supervisor.Config{}, kind, newBrowsers, func(h *harness, b *browsers) {
		h.minted("a")
		b.set(func() { b.answers = make(chan struct{}) })
		require.True(t, h.send(call("a", "open", on("b"), bare, within(time.Second))).fails(messages.CodeDeadline).MayHaveRun)
		time.Sleep(10 * time.Second)
		require.Len(t, b.all(), 1)
		require.Len(t, h.handlesOf("a"), 1)
		require.Zero(t, h.serverOf("b").Handles[0].Unanswered)
	})
}

func TestALostMintIsNamed(t *testing.T) {
	withBrowsers(t, supervisor.Config{}, declared, newBrowsers, func(h *harness, b *browsers) {
		b.set(func() { b.answers = make(chan struct{}) })
		h.send(call("a", "open", on("b"), bare, within(time.Second))).fails(messages.CodeDeadline)
		closed := h.send(&messages.CloseScope{ID: "x", Scope: "a"}).reply().(*messages.Closed)
		require.Len(t, closed.Left, 1)
		require.Equal(t, "open", closed.Left[0].Handle)
		require.Len(t, b.all(), 1)
		requireEvents[*messages.HandleLost](h, 1)
	})
}

func TestHandlesOfAnEarlierProcessAreReleased(t *testing.T) {
	store := new(resume.Memory)
	b := newBrowsers()
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(3 * time.Second)
		b = newBrowsers()
		cfg := supervisor.Config{Store: store, LeaveOpen: true, Servers: []supervisor.Server{{Name: "b", InMemory: b.server, Handles: []mcpbridge.Handle{declared}}}}
		h := start(t, cfg)
		h.minted("back")
		h.minted("gone")
		h.stop()
		require.Len(t, b.all(), 2)
		h = newHarness(t).start(cfg)
		synctest.Wait()
		require.Len(t, h.handlesOf("back"), 1)
		h.send(call("back", "use", of(h.handlesOf("back")[0].Handle))).ok()
		time.Sleep(2 * time.Minute)
		require.Len(t, b.all(), 1)
		require.Len(t, h.handlesOf("back"), 1)
		h.send(&messages.CloseScope{ID: "x", Scope: "back"}).reply()
		require.Empty(t, b.all())
		synctest.Wait() // the record is deleted after the reply
		keys, err := store.Keys(t.Context())
		require.NoError(t, err)
		for _, key := range keys {
			require.NotContains(t, key.Server, "handle")
		}
		h.stop()
		require.Empty(t, b.doubles())
	})
}

func TestNumbersAreReleasedAsNumbers(t *testing.T) {
	withBrowsers(t, supervisor.Config{}, declared, func() *browsers { return newBrowsers().numbers() }, func(h *harness, b *browsers) {
		h.minted("a")
		h.minted("a")
		closed := h.send(&messages.CloseScope{ID: "x", Scope: "a"}).reply().(*messages.Closed)
		require.Empty(t, closed.Left)
		require.Empty(t, b.all())
	})
}

func TestStopReleasesHandles(t *testing.T) {
	withBrowsers(t, supervisor.Config{MaxSessions: 2}, declared, newBrowsers, func(h *harness, b *browsers) {
		for i := range 10 {
			h.minted(fmt.Sprint("s", i))
		}
		h.stop()
		require.Empty(t, b.all())
	})
}

func TestIdleHandlesAreReleased(t *testing.T) {
	kind := declared
	kind.Idle = time.Minute
	withBrowsers(t, supervisor.Config{}, kind, newBrowsers, func(h *harness, b *browsers) {
		id := h.minted("a")
		time.Sleep(40 * time.Second)
		h.send(call("a", "use", of(id))).ok()
		time.Sleep(40 * time.Second)
		require.Len(t, b.all(), 1)
		time.Sleep(40 * time.Second)
		require.Empty(t, b.all())
	})
}

func TestHoldersShareAScope(t *testing.T) {
	withBrowsers(t, supervisor.Config{}, declared, newBrowsers, func(h *harness, b *browsers) {
		by := func(name string) func(*messages.CallTool) {
			return func(op *messages.CallTool) {
				op.Attributes = messages.NewAttributes(map[string]string{messages.HolderAttribute: name})
			}
		}
		h.minted("shared", by("one"))
		h.minted("shared", by("two"))
		r := h.send(&messages.ReleaseHandles{ID: "x", Scope: "shared", Holder: "one"}).reply().(*messages.HandlesReleased)
		require.Equal(t, 1, r.Released)
		require.Len(t, b.all(), 1)
		require.Len(t, h.handlesOf("shared"), 1)
	})
}

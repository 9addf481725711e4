package tests

import (
	"context"
	"encoding/json"
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

// busyHandle mints a handle for a scope. A call of the scope uses it until uses is closed.
func (h *harness) busyHandle(b *browsers, scope string) (id string, use *sentCommand) {
	id = h.minted(scope)
	b.set(func() { b.uses = make(chan struct{}) })
	use = h.send(call(scope, "use", of(id)))
	synctest.Wait()
	return id, use
}

// What another scope uses since is theirs, and not left.
func TestAnEndDoesNotWaitForAHandleThatAnotherScopeHolds(t *testing.T) {
	withBrowsers(t, supervisor.Config{}, declared, newBrowsers, func(h *harness, b *browsers) {
		id, use := h.busyHandle(b, "a")
		began := time.Now()
		released := h.send(&messages.ReleaseHandles{ID: "x", Scope: "a"})
		synctest.Wait()
		require.False(t, released.answered())
		other := h.send(call("other", "use", of(id)))
		require.Equal(t, &messages.HandlesReleased{ID: "x"}, released.reply())
		require.Equal(t, began, time.Now())
		close(b.uses)
		use.ok()
		other.ok()
		require.Equal(t, []string{id}, b.all())
		require.Empty(t, h.closeScope("other").Left)
		require.Empty(t, b.all())
	})
}

// User code can stop any actor.
func TestReleaseHandlesIsAnsweredIfTheSupervisorIsStoppedFromOutside(t *testing.T) {
	withBrowsers(t, supervisor.Config{}, declared, newBrowsers, func(h *harness, b *browsers) {
		h.busyHandle(b, "a")
		released := h.send(&messages.ReleaseHandles{ID: "x", Scope: "a"})
		synctest.Wait()
		h.system.Root.Stop(h.pid)
		released.fails(messages.CodeClosed)
		h.stopped = true
	})
}

func TestNoMintWaitsForItsTurnWhenTheSupervisorStops(t *testing.T) {
	for name, cfg := range map[string]supervisor.Config{"": {}, "and leaves its sessions": {Store: new(resume.Memory), LeaveOpen: true}} {
		t.Run(name, func(t *testing.T) {
			kind := declared
			kind.Max = 1
			withBrowsers(t, cfg, kind, newBrowsers, func(h *harness, b *browsers) {
				h.minted("a")
				waiting := h.send(call("other", "open", on("b"), bare, within(time.Hour)))
				synctest.Wait()
				began := time.Now()
				h.stop()
				require.False(t, waiting.fails(messages.CodeDraining).MayHaveRun)
				require.Less(t, time.Since(began), time.Second)
				require.Equal(t, cfg.LeaveOpen, len(b.all()) == 1)
			})
		})
	}
}

// Another server may have given the same number to somebody else.
func TestAServerThatIsReplacedIsNotAskedToReleaseNumbers(t *testing.T) {
	withBrowsers(t, supervisor.Config{}, declared, func() *browsers { return newBrowsers().numbers() }, func(h *harness, b *browsers) {
		h.minted("a")
		other := newBrowsers().numbers()
		other.open["1"] = true
		h.reload(supervisor.Server{Name: "b", InMemory: other.server, Handles: []mcpbridge.Handle{declared}})
		left := h.closeScope("a").Left
		require.Len(t, left, 1)
		require.Equal(t, "open", left[0].Handle)
		require.Equal(t, []string{"1"}, other.all())
	})
}

func TestAHandleWhoseReleaseIsNotAnsweredInTimeMayBeReleased(t *testing.T) {
	withBrowsers(t, supervisor.Config{}, declared, newBrowsers, func(h *harness, b *browsers) {
		h.minted("a")
		h.minted("a")
		b.set(func() { b.closes = make(chan struct{}) })
		began := time.Now()
		closed := h.send(&messages.CloseScope{ID: "x", Scope: "a", Now: true}).reply().(*messages.Closed)
		require.Less(t, time.Since(began), 6*time.Second)
		require.Len(t, closed.Left, 2)
		for _, left := range closed.Left {
			require.Contains(t, left.Reason, "it may be released: ")
		}
		require.Empty(t, b.all())
		close(b.closes)
		time.Sleep(time.Second)
		require.Empty(t, h.closeScope("a").Left) // the list says so
	})
}

// What is no number of JSON is sent as it is, also to a tool that wants a number: the session would be opened again and again.
func TestAHandleThatIsNoNumberOfJSONIsSentAsText(t *testing.T) {
	for id, argument := range map[string]string{"-1.5": `-1.5`, "007": `"007"`, "Inf": `"Inf"`} {
		synctest.Test(t, func(t *testing.T) {
			defer time.Sleep(3 * time.Second)
			server := mcp.NewServer(&mcp.Implementation{Name: "b"}, nil)
			server.AddTool(&mcp.Tool{Name: "open", InputSchema: json.RawMessage(`{"type": "object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "id: " + id}}}, nil
			})
			var closed []string
			schema := json.RawMessage(`{"type": "object", "properties": {"id": {"type": "number"}}}`)
			server.AddTool(&mcp.Tool{Name: "close", InputSchema: schema}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				closed = append(closed, string(r.Params.Arguments))
				return &mcp.CallToolResult{}, nil
			})
			kind := mcpbridge.Handle{Mint: "open", Pattern: "id: (.*)", Release: "close", Argument: "id"}
			h := start(t, supervisor.Config{Servers: []mcpbridge.Server{{Name: "b", InMemory: server, Handles: []mcpbridge.Handle{kind}}}})
			require.Equal(t, id, h.minted("a"))
			require.Empty(t, h.closeScope("a").Left)
			require.Equal(t, []string{`{"id":` + argument + `}`}, closed)
			h.stop()
		})
	}
}

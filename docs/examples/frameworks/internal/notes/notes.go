// Package notes has what the tests of the adapters share: a server of notes that fails, and a session of the SDK's client with it
// over a gateway.
package notes

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/gateway"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
	"github.com/mcpactor/mcpactor/toolset"
)

// Image is what the tool "draw" draws.
var Image = []byte("\x89PNG of a carton of milk")

// World is a server of notes with a supervisor and a gateway in front of it. It ends with the test, and then no session may be left on
// the server. Its tools have the prefix "notes__" for a model:
//
//	count     counts the calls of the session
//	draw      returns a text and an image
//	spoil     reports an error
//	lose      runs, but its first answer is lost
//	die       runs, but the server dies before its first answer
//	buy       waits for an approval, and then counts; so does order
//	progress  reports that it is at a half
//	sleep     ends with its context
type World struct {
	*faults.Script
	// Session is a session of the SDK's client.
	Session *mcp.ClientSession
	// Tools answers calls that wait for an approval.
	Tools *toolset.Toolset
	// Progress has what the session was told of progress.
	Progress chan float64
}

// New starts a world in a bubble of testing/synctest.
func New(t *testing.T) *World {
	t.Helper()
	w := &World{Script: faults.NewScript(t, "notes"), Progress: make(chan float64, 10)}
	w.addTools()
	servers := gateway.Prepare(mcpbridge.Server{Name: "notes", URL: "https://notes.example.com/mcp"})
	sup := w.Supervise(actor.NewActorSystem(supervisor.WithSystemLogger(zerolog.Nop())), supervisor.Config{Servers: servers})
	tools, err := toolset.New(nil, sup, toolset.Config{Scope: "conversation-1", Servers: []toolset.Filter{{Name: "*"}}, Policy: &toolset.Policy{Decide: decide}})
	require.NoError(t, err)
	gw, err := gateway.New(sup, gateway.Config{})
	require.NoError(t, err)
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { w.Progress <- r.Params.Progress },
	})
	w.Tools = tools
	w.Session, err = client.Connect(t.Context(), gw.Tools(tools, gateway.Scope{Ends: true}), nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		tools.Close() // a list that it fetches while the scope ends would open a session again
		require.NoError(t, w.Session.Close())
		synctest.Wait() // a session that was replaced may still be in its DELETE
		require.Zero(t, w.Sessions(), "the sessions of the conversation end with that of the client")
		gw.Close()
	})
	return w
}

func decide(p toolset.Proposal) toolset.Decision {
	if p.Tool.Original == "buy" || p.Tool.Original == "order" {
		return toolset.Decision{Verdict: toolset.Defer}
	}
	return toolset.Decision{Verdict: toolset.Allow}
}

func (w *World) addTools() {
	var mu sync.Mutex
	counts := map[string]int{}
	count := func(_ context.Context, run *faults.Run) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		id := run.Request.Session.ID()
		counts[id]++
		return fmt.Sprintf("%s: %d in this session", run.Tool, counts[id]), nil
	}
	w.Tool("count").Does(count)
	w.Tool("draw").Returns(&mcp.CallToolResult{Content: []mcp.Content{
		&mcp.TextContent{Text: "A carton."}, &mcp.ImageContent{MIMEType: "image/png", Data: Image},
	}})
	w.Tool("spoil").ReturnsError("the milk is sour")
	w.Tool("lose").Fails(faults.LostAfterRun).Does(count)
	w.Tool("die").Fails(faults.ServerDied).Does(count)
	w.Tool("buy").Does(count)
	w.Tool("order").Does(count)
	w.Tool("progress").Does(func(ctx context.Context, run *faults.Run) (any, error) {
		return "half done", run.Progress(ctx, 0.5, 1, "")
	})
	w.Tool("sleep").Does(func(ctx context.Context, _ *faults.Run) (any, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
}

// Approve answers a call that waits, and returns what the model is to be told.
func (w *World) Approve(t *testing.T, id, digest string) string {
	t.Helper()
	reply, err := w.Tools.Answer(t.Context(), id, digest, toolset.Decision{Verdict: toolset.Allow})
	require.NoError(t, err)
	return w.Tools.Outcome(reply, nil).Text()
}

package registry

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// oneRecord is a store that has a session of one key from before a restart of the process, and a dialer that is slow
// to resume it.
type oneRecord struct {
	stub
	key messages.Key

	mu      sync.Mutex
	record  *mcpbridge.Record
	resumed []bool // of each dial of the key: whether it was to resume the session
}

func (o *oneRecord) Dial(ctx context.Context, req dial.Request) (dial.Conn, error) {
	if req.Key == o.key && !req.Only {
		o.mu.Lock()
		o.resumed = append(o.resumed, req.Resume != nil)
		o.mu.Unlock()
		time.Sleep(time.Second)
		return nil, &mcpbridge.Error{Class: mcpbridge.Unavailable}
	}
	return o.stub.Dial(ctx, req)
}

func (o *oneRecord) Load(_ context.Context, key messages.Key) (*mcpbridge.Record, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if key != o.key {
		return nil, nil
	}
	record := *o.record
	return &record, nil
}

func (o *oneRecord) Save(_ context.Context, key messages.Key, record *mcpbridge.Record) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if key == o.key {
		o.record = record
	}
	return nil
}

func (o *oneRecord) Delete(context.Context, messages.Key) error { return nil }

func (o *oneRecord) Keys(context.Context) ([]messages.Key, error) {
	return []messages.Key{o.key}, nil
}

// Guarantee 8: also when the close command comes before a session has resumed what the store has of its key.
func TestASessionInTheStoreIsClosedWhileItIsBeingResumed(t *testing.T) {
	o := &oneRecord{key: messages.Key{Server: "s", Scope: "stored"}}
	o.record = &mcpbridge.Record{Resume: mcpbridge.Resume{SessionID: "id", Server: &mcp.InitializeResult{ProtocolVersion: "2025-06-18"}}, Generation: 3}
	inWatchedRegistry(t, func(w *watchedRegistry) {
		call := w.call("stored", "fast")
		time.Sleep(time.Second / 2)
		closed := w.send(&messages.CloseScope{Scope: "stored"})
		require.Equal(t, messages.CodeClosed, (<-call.Reply).(*messages.Failure).Code)
		require.Empty(t, (<-closed.Reply).(*messages.Closed).Left)
		require.False(t, o.record.Valid(), "its record has no session any more")
	}, func(cfg *protocol.Config) { cfg.Dialer, cfg.Store = o, o })
}

// Guarantee 8: a restart closes the MCP session of its key also before a session has resumed what the store has of it.
func TestASessionInTheStoreIsClosedByARestartWhileItIsBeingResumed(t *testing.T) {
	o := &oneRecord{key: messages.Key{Server: "s", Scope: "stored"}}
	o.record = &mcpbridge.Record{Resume: mcpbridge.Resume{SessionID: "id", Server: &mcp.InitializeResult{ProtocolVersion: "2025-06-18"}}, Generation: 3}
	inWatchedRegistry(t, func(w *watchedRegistry) {
		call := w.call("stored", "fast")
		time.Sleep(time.Second / 2)
		restarted := w.send(&messages.Restart{Key: o.key})
		require.Equal(t, messages.CodeUnavailable, (<-restarted.Reply).(*messages.Failure).Code)
		require.Equal(t, messages.CodeUnavailable, (<-call.Reply).(*messages.Failure).Code)
		o.mu.Lock()
		defer o.mu.Unlock()
		require.False(t, o.record.Valid(), "its record has no session any more")
		require.Equal(t, uint64(3), o.record.Generation)
		require.True(t, o.resumed[0])
		require.NotContains(t, o.resumed[1:], true)
	}, func(cfg *protocol.Config) { cfg.Dialer, cfg.Store = o, o })
}

// A session that is evicted while it resumes what the store has of its key leaves that to the next one, which may
// have been spawned before the first has ended.
func TestASessionInTheStoreIsResumedAfterAnEviction(t *testing.T) {
	o := &oneRecord{key: messages.Key{Server: "one", Scope: "stored"}}
	o.record = &mcpbridge.Record{Resume: mcpbridge.Resume{SessionID: "id", Server: &mcp.InitializeResult{ProtocolVersion: "2025-06-18"}}, Generation: 3}
	inWatchedRegistry(t, func(w *watchedRegistry) {
		call := func(scope string) *protocol.Future {
			op := &messages.CallTool{Header: messages.To("one", scope), Params: &mcp.CallToolParams{Name: "fast"}}
			op.ID = "id"
			return w.send(op)
		}
		first := call("stored")
		time.Sleep(time.Second / 2)
		w.system.Root.Send(w.pid, &messages.Cancel{Key: o.key, ID: "id"})
		require.Equal(t, messages.CodeCancelled, (<-first.Reply).(*messages.Failure).Code)
		other := call("other")
		synctest.Wait() // the first session is evicted
		second := call("stored")
		require.IsType(t, &messages.ToolResult{}, <-other.Reply)
		<-second.Reply
		o.mu.Lock()
		defer o.mu.Unlock()
		require.Equal(t, []bool{true, true}, o.resumed[:2])
	}, func(cfg *protocol.Config) {
		cfg.Dialer, cfg.Store = o, o
		cfg.Servers = append(cfg.Servers, mcpbridge.Server{Name: "one", Limits: mcpbridge.Limits{MaxSessions: 1}})
	})
}

// send sends a command.
func (w *watchedRegistry) send(cmd messages.Command) *protocol.Future {
	box := protocol.NewFuture(w.system, nil)
	w.system.Root.RequestWithCustomSender(w.pid, cmd, box.PID)
	return box
}

package registry

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// oneRecord is a store that has a session of one key from before a restart of the process, and a dialer that is slow
// to resume it.
type oneRecord struct {
	stub
	key messages.Key

	mu     sync.Mutex
	record *mcpbridge.Record
}

func (o *oneRecord) Dial(ctx context.Context, req mcpbridge.DialRequest) (mcpbridge.Conn, error) {
	if req.Key == o.key && !req.Only {
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
	}, func(cfg *actors.Config) { cfg.Dialer, cfg.Store = o, o })
}

// send sends a command.
func (w *watchedRegistry) send(cmd messages.Command) *protocol.Future {
	box := protocol.NewFuture(w.system, nil)
	w.system.Root.RequestWithCustomSender(w.pid, cmd, box.PID)
	return box
}

package transport

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// Session is the session that a connection carries, as far as a transport has to know it.
type Session struct {
	// Cut ends whatever the session waits for, when it ends.
	Cut context.Context
	// Resume is the session to attach to, or nil.
	Resume *mcpbridge.Resume
	// Credentials are those of the session's key, or nil.
	Credentials mcpbridge.Credentials
	// ConnectTimeout is how long the handshake may take.
	ConnectTimeout time.Duration
	// Strays counts the responses to requests of other connections.
	Strays *atomic.Uint64
	// Stderr gets what a process writes to stderr. It may be nil.
	Stderr *mcpbridge.Stderr
	// Discovery watches the handshake.
	Discovery wire.Discovery
	// Progress reports the progress of operations.
	Progress wire.Progress
	// Custom is called with each notification, or is nil. See [wire.Answers].
	Custom func(method string, params json.RawMessage)
	// Questions tells which operations the requests of the server belong to.
	Questions wire.Questions
	// Backpressure bounds what the server sends unasked.
	Backpressure wire.Backpressure
	// Skipped notes how much a server has written to its stdout that is no message. It does not
	// block.
	Skipped func(bytes int)
	// Panicked notes a panic of a server in memory. It does not block.
	Panicked func(*guard.Panic)
	// Watcher is told what happens to the session.
	Watcher Watcher

	// IsControl is true while the session only serves to settle doubt about another one.
	IsControl atomic.Bool
	// IsMute is true when the handshake has asked for an event stream that has brought no bytes.
	IsMute atomic.Bool
	// IsOpen is true when the handshake has succeeded.
	IsOpen atomic.Bool
}

// Watcher is told what a transport finds out about its session. No method blocks.
type Watcher interface {
	// Broke notes that an open connection has ended by itself. It is called once.
	Broke(error)
	// Expired notes that the server does not know the session. It is called once.
	Expired(*mcpbridge.Error)
	// Doubt has the session questioned: a request with this method was refused, or, with a nil
	// refusal, its stream ends again and again.
	Doubt(method string, refusal *mcpbridge.Error)
	// Announced returns the notifications that the server may send, or nil if that is not known.
	Announced() *mcp.NotificationSubscriptions
	// Missed notes that notifications may have been lost.
	Missed(*mcp.NotificationSubscriptions)
}

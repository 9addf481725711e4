package transport

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/hold"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/stderr"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// Session is what a transport knows about the session of a connection.
type Session struct {
	// Cut ends when the session ends. Everything that waits for the session ends with it.
	Cut context.Context
	// Life ends with the bridge. What continues after the end of the session ends with it.
	Life context.Context
	// Resume is the session to resume, or nil.
	Resume *mcpbridge.Resume
	// Credentials are those of the session's key, or nil.
	Credentials mcpbridge.Credentials
	// Identity is that of the owner of Credentials, or empty: see [mcpbridge.Identified].
	Identity string
	// Holds has the calls that servers do not want for a while. Nil means that of the session alone.
	Holds *hold.Book
	// ConnectTimeout is how long the handshake may take.
	ConnectTimeout time.Duration
	// Strays counts the responses to requests of other connections.
	Strays *atomic.Uint64
	// Stderr opens the writer of the stderr of a process. It may be nil.
	Stderr func() *stderr.Writer
	// Discovery watches the handshake.
	Discovery wire.Discovery
	// Progress reports the progress of operations.
	Progress wire.Progress
	// Custom is called with each notification, or is nil. See [wire.Answers].
	Custom func(method string, params json.RawMessage)
	// Questions finds the operations that the questions of the server belong to.
	Questions wire.Questions
	// Backpressure bounds what the server sends unasked.
	Backpressure wire.Backpressure
	// Skipped counts text that the server has written to its stdout. It does not block.
	Skipped func(bytes int)
	// Panicked notes a panic of a server in memory. It does not block.
	Panicked func(*guard.Panic)
	// Watcher is notified about the session.
	Watcher Watcher

	// IsControl is true while the session is a control.
	IsControl atomic.Bool
	// IsMute is true while an event stream that the handshake has asked for has brought no bytes.
	IsMute atomic.Bool
	// IsOpen is true when the handshake has succeeded.
	IsOpen atomic.Bool
}

// Watcher is notified by a transport about its session. Its methods do not block.
type Watcher interface {
	// Broke notes that an open connection has ended by itself. It is called once.
	Broke(error)
	// Expired notes that the server does not know the session. It is called once.
	Expired(*mcpbridge.Error)
	// Doubt notes that the session is in doubt: a request with this method was refused, or, with a nil refusal, its
	// stream has ended again and again.
	Doubt(method string, refusal *mcpbridge.Error)
	// Announced returns the notifications that the server may send, or nil if that is not known.
	Announced() *mcp.NotificationSubscriptions
	// Missed notes that notifications may have been lost.
	Missed(*mcp.NotificationSubscriptions)
}

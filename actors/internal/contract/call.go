package contract

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/bounds"
	"github.com/mcpactor/mcpactor/actors/internal/callctx"
	"github.com/mcpactor/mcpactor/actors/internal/ring"
	"github.com/mcpactor/mcpactor/internal/callbook"
	"github.com/mcpactor/mcpactor/internal/caller"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/internal/rounds"
	"github.com/mcpactor/mcpactor/internal/tasks"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Call is an operation that was accepted, and owes its caller one reply. It is immutable once sent, apart
// from Run and Ticket, each of which one actor at a time may change.
type Call struct {
	Op          messages.Operation
	Key         messages.Key
	Supervisor  string
	Caller      *actor.PID     // nil: the reply is dropped
	Values      *caller.Values // of the context of a client or an interceptor, or nil
	Accepted    time.Time      // when the command came
	Deadline    time.Time
	Serial      uint64          // counts the operations
	PassedOn    bool            // interceptors of this registry have passed it on
	Intercepted bool            // it has passed the interceptors, of this member or of another one
	List        messages.Key    // the key whose member answers from its catalogue, see [protocol.HandedBack], or zero
	Record      *callbook.Entry // of a durable call, once it was read
	Mint        Mint            // is told what becomes of a call that mints a handle, or nil
	Releases    bool            // the supervisor calls, to release handles

	Run    Run    // belongs to the session while that has the call, and else to the registry
	Ticket Ticket // belongs to the registry, also while the session has the call

	node ring.Node[*Call] // in a queue of whoever has the call
}

// Run is what has become of a call: how often it was run, what is known of that, and its reply. Once the call has its reply,
// Attempts and Generation do not change, and the registry reads them.
type Run struct {
	Attempts    int              // how often it was run
	unprocessed int              // runs that the server has said it did not process, without ending the session
	Generation  uint64           // of the MCP session of the last run
	Lost        *mcpbridge.Error // the error of the first run, if the operation may have run
	NeedsHint   bool             // it may be replayed only if its tool is annotated as safe
	Replied     bool             // it has its reply; it may still run
	Answered    CallReplied      // sent with the reply

	Rounds   rounds.Rounds   // that were answered with questions
	newRound bool            // the last run has sent the next round for the first time
	Task     *tasks.Task     // that the server has turned it into, or nil
	answered map[string]bool // the questions of the task, by their keys; belongs to the goroutine that follows the task

	// While it runs:
	quietAt  time.Time     // when it ends unless something is heard of it, or zero
	cut      time.Duration // from its deadline to when it has to return, if it was cut off
	Conn     dial.Conn
	Ctx      *callctx.Context // cancelled at the deadline, by the session
	FirstCtx callctx.Context  // of the first run
}

// Ticket is what the registry notes about a call.
type Ticket struct {
	At        Registration // the session that has the call, or nil
	Older     *Call        // and Newer: the calls of the same name before and after this one, see [table.Calls]
	Newer     *Call
	Cancelled bool // its cancellation was queued or sent
	Kept      bool // its session was restarted: it counts as accepted
	Undecided bool // it was resent, and whether it may be replayed is not decided
	Bounds    bounds.Taken
}

// CallReplied says that one call was answered. It is part of the call.
type CallReplied struct {
	Of     Registration
	Call   *Call
	Code   messages.Code // empty for a result
	Waited time.Duration // until the first run, if it was run
	// Bounded says that the call was beyond a limit of how often tools are called.
	Bounded bool
}

// Registration is what the registry knows of a session. The messages of a session carry it, and only
// the registry reads it.
type Registration interface{ Registered() }

// Value returns what a context of the call has for a key: the attributes and the trace of
// its operation, and the values of its caller.
func (k *Call) Value(key any) any {
	switch key.(type) {
	case caller.AttributesKey:
		return &k.Op.Head().Attributes
	case caller.TraceKey:
		return &k.Op.Head().Trace
	}
	return k.Values.Value(key)
}

package protocol

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/internal/caller"
	"github.com/mcpactor/mcpactor/messages"
)

// The messages between a registry and the node actor of a cluster, in which each member runs the
// sessions of the keys that it owns.
type (
	// Cluster makes the registry run only the calls of the keys that this member owns. It sends every other
	// call to HandBack. It looks at the key when the call comes, after the interceptors, and when a
	// session returns the call. A later Cluster replaces the earlier one.
	Cluster struct {
		// Owns reports whether this member owns a key. It must be fast, and is called from
		// any goroutine. nil owns all keys.
		Owns func(messages.Key) bool
		// HandBack gets a [HandedBack] for each call of another member. It must live until
		// the registry has stopped: it owes the callers their replies.
		//
		// It also gets a [Withdrawn] when an operation that interceptors have passed on was
		// cancelled, and its key is not owned: the operation may have been handed back.
		HandBack *actor.PID
		// Self describes this member, for a snapshot. It must be fast, and is called from any goroutine. nil leaves it out.
		Self func() messages.MemberSnapshot
	}

	// Timeouts tells the node how long what it waits for may take. It comes after [Cluster], and
	// after each reload.
	Timeouts struct {
		Calls   map[string]time.Duration // of an operation without a deadline, by server
		Call    time.Duration            // likewise, for a server that is not configured
		Connect time.Duration            // of the slowest server
		Close   time.Duration            // of a close command, or of [Release]
	}

	// HandedBack is a call that the registry does not run, and has forgotten. Whoever gets it
	// owes the caller the reply.
	HandedBack struct {
		// Op has the normal form of its key, and the deadline of the call.
		Op messages.Operation
		// Caller gets the reply. nil: there is none.
		Caller *actor.PID
		// Values are those of the context of the caller, until the caller has the reply. nil:
		// there are none.
		Values *caller.Values
		// Intercepted is true if the operation has passed the interceptors.
		Intercepted bool
		// List is not zero if the operation asks the owner of this key for a list of its catalogue, and not the owner
		// of its own key. If no owner is known, or it is lost, the operation fails at once with
		// [messages.CodeClosed].
		List messages.Key
		// Runs is how often the operation was run.
		Runs int
		// MayHaveRun is true if the connection of a run was lost. Detail is why.
		MayHaveRun bool
		Detail     string
	}

	// Withdrawn cancels the operations with a key and an id that were handed back. The registry
	// has cancelled its own.
	Withdrawn struct{ Cancel *messages.Cancel }

	// ResentCall is an operation that another member has handed back, or that was on its way to
	// a member that has left. Its sender gets the reply, as that of a [ClientCall]. If it may
	// have run, it is replayed under the same conditions as after a connection was lost, and
	// otherwise answered with [messages.CodeLost]. The fields are those of [HandedBack].
	ResentCall struct {
		Op          messages.Operation
		Values      *caller.Values
		Intercepted bool // it does not pass the interceptors again
		List        messages.Key
		Runs        int
		MayHaveRun  bool
		Detail      string
	}

	// Release closes the sessions of the keys that match. Calls that wait are handed back, and so
	// are those that may run again. Running calls have the drain timeout, and are then cut off
	// with [messages.CodeLost]. A dial is ended. MCP sessions that could not be closed before are
	// closed.
	//
	// Subscriptions, roots, the log level and the pin of a session end with it, also if
	// another member opens the next one. If a key that matches is owned, its next call opens
	// another session.
	//
	// The reply is a [messages.Closed], at the latest after [Timeouts].Close, or a [messages.Failure] if
	// the registry has stopped.
	Release struct {
		// Match selects keys. It is called from any goroutine.
		Match func(messages.Key) bool
		// Leave leaves an MCP session open on its server if it can be resumed, and its record
		// in the store as it is. Without a store it does nothing. Otherwise the MCP sessions
		// are closed, also those that only the store has.
		Leave bool
		// Now leaves running calls no time.
		Now bool
	}
)

// IgnoreDeadLetterLogging keeps the message out of Proto.Actor's dead letter log: the registry may
// have stopped.
func (*Cluster) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging is as above.
func (*Release) IgnoreDeadLetterLogging() {}

// States are the states of a session by their rank in a group: the order in which
// [messages.Inspect] lists sessions when it does not list all.
var States = [...]messages.State{
	1: messages.StateDraining, 2: messages.StateBroken, 3: messages.StateConnecting, 4: messages.StateWaiting, 5: messages.StateReady,
}

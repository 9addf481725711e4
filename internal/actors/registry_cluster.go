package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/internal/caller"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// The messages between a registry and the node actor of a cluster, in which each member runs the
// sessions of the keys that it owns.
type (
	// Cluster makes the registry run the calls of some keys only. From then on, a call whose key
	// is not owned is sent to HandBack, when it comes, when interceptors pass it on, or when a
	// session hands it back. A later Cluster replaces the earlier one.
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
		Runs        int
		MayHaveRun  bool
		Detail      string
	}

	// Release closes the sessions of the keys that match. Calls that wait are handed back, and so
	// are those that may run again. Running calls have the drain timeout, and are then cut off
	// with [messages.CodeLost]. A dial is ended. MCP sessions that could not be closed before are
	// closed.
	//
	// Subscriptions, roots, the log level, the pin and the tail of a session end with it, also if
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

// onCluster replaces the cluster.
func (r *registry) onCluster(c actor.Context, msg *Cluster) {
	r.cluster = *msg
	r.tellTimeouts(c)
}

// tellTimeouts tells the node the timeouts of the servers, if there is one.
func (r *registry) tellTimeouts(c actor.Context) {
	if r.cluster.HandBack == nil {
		return
	}
	t := &Timeouts{Calls: make(map[string]time.Duration, len(r.servers)), Call: r.defaults.CallTimeout, Close: r.closeTime()}
	for name, srv := range r.servers {
		t.Calls[name] = srv.limits.CallTimeout
		t.Connect = max(t.Connect, srv.limits.ConnectTimeout)
	}
	r.cfg.Post.Send(r.cluster.HandBack, t)
}

// handBack sends a call whose key another member owns to the cluster, and reports whether it has
// done so. The call has left the registry then.
func (r *registry) handBack(c actor.Context, k *call) bool {
	if r.cluster.Owns == nil || r.cluster.Owns(k.key) {
		return false
	}
	if _, is := k.op.(*reopen); is {
		r.reject(c, k, k.failure(messages.CodeClosed, "another member of the cluster runs the session"))
		return true
	}
	h := *k.op.Head()
	h.Key, h.Deadline = k.key, k.deadline
	back := &HandedBack{Op: messages.With(k.op, h), Caller: k.caller, Values: k.values, Intercepted: k.intercepted, Runs: k.runs}
	if k.lost != nil {
		back.MayHaveRun, back.Detail = true, k.lost.ForCaller()
	}
	r.disown(c, k)
	r.cfg.Post.Send(r.cluster.HandBack, back)
	return true
}

// newResentCall returns an operation of another member as a call of the sender.
func (r *registry) newResentCall(c actor.Context, msg *ResentCall) *call {
	k := r.newCall(c, msg.Op)
	k.values, k.intercepted, k.runs = msg.Values, msg.Intercepted, msg.Runs
	if msg.MayHaveRun {
		k.runs = max(1, msg.Runs)
		k.lost = &mcpbridge.Error{Class: mcpbridge.Lost, Detail: msg.Detail, Sent: true}
		k.undecided = true
	}
	return k
}

// unsafe returns the failure of a resent call that may have run and must not be replayed, or nil.
func (r *registry) unsafe(k *call) *messages.Failure {
	if !k.undecided {
		return nil
	}
	again, needsHint := k.mayReplay(k.lost)
	if !again {
		return k.failureOf(k.lost)
	}
	k.undecided, k.needsHint = false, needsHint
	return nil
}

// onRelease drains the sessions of the keys that match.
func (r *registry) onRelease(c actor.Context, msg *Release) {
	order := drain{evict: true, restart: true, moves: true, now: msg.Now, leave: msg.Leave && r.cfg.Store != nil}
	every := &messages.CloseMatching{} // its keys may be on all servers
	r.drainNext(c, r.newCloseCommand(c, every, msg.Match, order))
}

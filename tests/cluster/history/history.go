// Package history is what happened in a scenario on a cluster: the calls of its agents,
// what the MCP server has seen of them, and the faults. [History.Check] is the verifier
// that ends every scenario.
package history

import (
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/messages"
)

// The tools of the MCP server.
const (
	// Add adds one to the counter of the MCP session, and returns it.
	Add = "add"
	// Slow is Add, and takes some milliseconds.
	Slow = "slow"
	// Read returns the counter, and is annotated as read-only.
	Read = "read"
	// Big is Read, and returns many bytes.
	Big = "big"
)

// Safe reports whether a tool may run twice.
func Safe(tool string) bool { return tool == Read || tool == Big }

// Call is a call of an agent, as the agent has seen it.
type Call struct {
	ID    string `json:"id"`
	Scope string `json:"scope"`
	Tool  string `json:"tool"`
	// Member is the member that the agent belongs to.
	Member   string    `json:"member"`
	Started  time.Time `json:"started"`
	Deadline time.Time `json:"deadline"`
	// Ended is the time of the first reply, or zero.
	Ended time.Time `json:"ended,omitzero"`
	// Replies is the number of replies.
	Replies int `json:"replies"`
	// Code is that of the failure, or empty.
	Code       messages.Code `json:"code,omitempty"`
	Detail     string        `json:"detail,omitempty"`
	MayHaveRun bool          `json:"mayHaveRun,omitempty"`
	Replayed   bool          `json:"replayed,omitempty"`
	Generation uint64        `json:"generation,omitempty"`
	Attempt    int           `json:"attempt,omitempty"`
	// Supervisor is the member that has answered.
	Supervisor string `json:"supervisor,omitempty"`
	// Session and Count are what the tool has returned.
	Session string `json:"session,omitempty"`
	Count   int    `json:"count,omitempty"`
}

// ok reports whether the call has succeeded.
func (c *Call) ok() bool { return c.Replies > 0 && c.Code == "" }

// Execution is a run of a tool at the MCP server.
type Execution struct {
	Call  string
	Scope string
	Tool  string
	// Member is the member that has sent the request.
	Member  string
	Session string
	Count   int
	Started time.Time
	Ended   time.Time
}

// Session is an MCP session at the server.
type Session struct {
	ID    string
	Scope string
	// Opener is the member that has opened it.
	Opener string
	// Opened is when it was opened, and Ended when the server was told to end it, or zero.
	Opened time.Time
	Ended  time.Time
	// Used is when each member has last sent a request of the session.
	Used map[string]time.Time
}

// Kind is a kind of fault.
type Kind string

// The kinds of faults.
const (
	Kill  Kind = "kill"  // the member is killed
	Leave Kind = "leave" // the member leaves the cluster, and exits
	Join  Kind = "join"  // the member joins the cluster
	Pause Kind = "pause" // the member is stopped with SIGSTOP, and continued
	Cut   Kind = "cut"   // nothing passes between the member and the others
	Down  Kind = "down"  // etcd is down, which keeps the view
	// StoreDown: etcd is down, and only keeps the sessions.
	StoreDown Kind = "store down"
	// CutFromEtcd: nothing passes between the member and etcd.
	CutFromEtcd Kind = "cut from etcd"
	// Wires is a fault of the network that is not of one member: links are cut, or a connection is swallowed.
	Wires Kind = "wires"
)

// Fault is something that was done to a cluster.
type Fault struct {
	Kind   Kind
	Member string
	// At is when it began, and Until when it ended. They are the same for a fault that has
	// no duration.
	At, Until time.Time
	// Settled is when all members knew each other again.
	Settled time.Time
	// Rejoined is when the first of the others knew the member again after all had removed it,
	// or zero.
	Rejoined time.Time
}

// History is what has happened in a scenario.
type History struct {
	Calls      []*Call
	Executions []*Execution
	Sessions   []*Session
	Faults     []*Fault
	// Acts are what the members have done for keys, and States what they have said of themselves.
	Acts   []*Act
	States []*State
	// End is the end of the scenario, when no call was running and all members had stopped.
	End time.Time
	// Lease is the lease of the members.
	Lease time.Duration
	// Shared is true if the members share a store of sessions.
	Shared bool
}

// Begin records the beginning of a fault, which has no duration unless Until is set later.
func (h *History) Begin(kind Kind, member string) *Fault {
	now := time.Now()
	f := &Fault{Kind: kind, Member: member, At: now, Until: now}
	h.Faults = append(h.Faults, f)
	return f
}

// Sort sorts everything by time.
func (h *History) Sort() {
	slices.SortFunc(h.Calls, func(a, b *Call) int { return a.Started.Compare(b.Started) })
	slices.SortFunc(h.Executions, func(a, b *Execution) int { return a.Started.Compare(b.Started) })
	slices.SortFunc(h.Sessions, func(a, b *Session) int { return a.Opened.Compare(b.Opened) })
	slices.SortFunc(h.Acts, func(a, b *Act) int { return a.From.Compare(b.From) })
	slices.SortFunc(h.States, func(a, b *State) int { return a.At.Compare(b.At) })
	slices.SortFunc(h.Faults, func(a, b *Fault) int { return a.At.Compare(b.At) })
}

// fault returns the first fault of a kind of a member, or nil.
func (h *History) fault(kind Kind, member string) *Fault {
	for _, f := range h.Faults {
		if f.Kind == kind && f.Member == member {
			return f
		}
	}
	return nil
}

// moving is how long sessions may take to move after all members know each other.
const moving = 2 * time.Second

// disturbed reports whether the members of the cluster changed at a time, or sessions moved
// because of that.
func (h *History) disturbed(at time.Time) bool {
	for _, f := range h.Faults {
		if !at.Before(f.At) && (f.Settled.IsZero() || !at.After(f.Settled.Add(moving))) {
			return true
		}
	}
	return false
}

// inPause reports whether a member was stopped at some time between two times.
func (h *History) inPause(member string, from, to time.Time) bool {
	for _, f := range h.Faults {
		if f.Kind == Pause && f.Member == member && !from.After(f.Until) && !to.Before(f.At) {
			return true
		}
	}
	return false
}

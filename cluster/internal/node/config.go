package node

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/cluster/internal/lease"
	"github.com/mcpactor/mcpactor/cluster/internal/link"
	"github.com/mcpactor/mcpactor/cluster/internal/view"
	"github.com/mcpactor/mcpactor/messages"
)

// Config is the configuration of a node. There are no defaults: package cluster sets every
// field.
type Config struct {
	Name       string // of the member, and of its supervisor
	Address    string // the host and port at which others reach the member
	System     *actor.ActorSystem
	Supervisor *actor.PID
	Shards     int
	Logger     zerolog.Logger

	Placement *Placement // which the node sets
	Lease     *lease.Lease
	LeaseTime time.Duration // also if the lease does not run out
	// Ask asks the witness, and does not block. The answer, if there is one, is [Answered].
	Ask func(number uint64, q *view.Request)
	// Joined is called each time the node has its lease, and knows the members. The error is that
	// the configurations of two members do not fit.
	Joined func(error)
	// Observe has a function called with each event of the supervisor.
	Observe func(func(messages.Event)) (cancel func())

	CallTimeout time.Duration // of an operation without a deadline, until the supervisor has told its timeouts

	MaxWaiting int  // calls to other members, or that wait for an owner; -1 is no bound
	KeepOpen   bool // the members share a store: sessions stay open when they move
	LeaveOpen  bool // also those of the last member
}

// Address is one incarnation of a member, and where it is reached.
type Address = link.Address

// Network connects this member with others. Its methods never block.
type Network interface {
	// Begin begins an incarnation of this member. The links of the previous one have been closed.
	Begin(id string)
	// Link begins the link to an incarnation of another member, whose messages are received from then on.
	// There is no other link to it, and there was none.
	Link(to Address) Link
}

// Link carries messages to another member. Its methods never block. Package link says what happens to a
// message when a connection breaks.
type Link interface {
	// Send sends a message. It fails if it is too large, or if too much is waiting; urgent ones are sent
	// nevertheless.
	Send(m link.Message, urgent bool) (*link.Sent, error)
	// Cast sends a message that may be lost.
	Cast(m link.Message)
	// Withdraw takes a message back. It reports whether the other member will not get it.
	Withdraw(*link.Sent) bool
	// Crowded reports whether so much waits that messages that can be missed should be dropped.
	Crowded() bool
	// Idle reports whether the other member has all messages.
	Idle() bool
	// Drop ends the link but for casts: what waits is withdrawn.
	Drop()
	// Close ends the link.
	Close()
}

// From package cluster to the node.
type (
	// Joined brings the network: the node can begin.
	Joined struct{ Network Network }
	// Answered is an answer of the witness.
	Answered struct {
		Number uint64
		Answer view.Answer
	}
	// Changed brings the state of a link.
	Changed struct {
		Network string // the incarnation of this member
		Peer    string // the incarnation of the other member
		State   link.State
	}
	// Leave makes the node leave the cluster. The reply is [Left]. The last member of a cluster has left only when its
	// supervisor has stopped: until then it may write to the store. A second Leave is answered after that.
	Leave struct{}
	// LeaveNow says that a node that leaves does not wait for calls any longer.
	LeaveNow struct{}
	// Left says that the node has left the cluster.
	Left struct{}
	// Watch has a function, which must not block, called with the events of other members, until the next Watch. With nil,
	// none is.
	Watch struct{ Handle func(messages.Event) }
	// ListMembers asks for the members. The reply is [Members].
	ListMembers struct{}
	// Members are the members that the node knows.
	Members struct{ List []messages.MemberSnapshot }
)

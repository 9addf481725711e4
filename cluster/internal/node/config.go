package node

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/cluster/internal/lease"
	"github.com/mcpactor/mcpactor/cluster/internal/link"
	"github.com/mcpactor/mcpactor/messages"
)

// Config is the configuration of a node. There are no defaults: package cluster sets every
// field.
type Config struct {
	Name       string // of the member, and of its supervisor
	System     *actor.ActorSystem
	Supervisor *actor.PID
	Shards     int
	Logger     zerolog.Logger

	Lease     *lease.Lease
	LeaseTime time.Duration
	// Quorum returns how many members, this one included, must confirm that it is a member,
	// in a topology with the given number of members.
	Quorum func(members int) int

	// Owner returns the address of the member that owns a shard. It may be called from any goroutine,
	// and is fast for the list of members of the last call.
	Owner func(shard int, members []Address) string
	// Previous is as Owner, for lists of members that differ from call to call.
	Previous func(shard int, members []Address) string
	// Rejoin starts a new incarnation in the background, which is brought by [Joined].
	Rejoin func()
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

// Network is one incarnation of this member in the cluster. Its methods never block.
type Network interface {
	// ID returns the id of the incarnation.
	ID() string
	// Address returns the host and port at which others reach it.
	Address() string
	// Link begins the link to an incarnation of another member, whose messages are received from then on.
	// There is no other link to it, and there was none.
	Link(to Address) Link
	// Activate asks for the virtual actor of a shard. The answer is [Activated].
	Activate(shard int)
	// Leave tells the provider that the member leaves.
	Leave()
	// Stop ends the incarnation.
	Stop()
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
	// Joined brings a new incarnation.
	Joined struct{ Network Network }
	// Topology brings the members, this one included.
	Topology struct {
		Network string // the id of the incarnation that it comes from
		Members []Address
	}
	// Changed brings the state of a link.
	Changed struct {
		Network string
		Peer    string // the incarnation of the other member
		State   link.State
	}
	// Received brings a message or a cast.
	Received struct {
		Network string
		From    string // the incarnation of its sender
		Message link.Message
	}
	// Activated says whether the virtual actor of a shard is active here.
	Activated struct {
		Network string
		Shard   int
		Here    bool
	}
	// Deactivated says that the virtual actor of a shard ends here.
	Deactivated struct {
		Network string
		Shard   int
	}
	// Confirmed says that the coordinator of the cluster, if it has one, knows the
	// incarnation, at the time when it was asked.
	Confirmed struct {
		Network string
		At      time.Time
	}
	// Expelled says that the coordinator does not know the incarnation any longer.
	Expelled struct{ Network string }
	// Leave makes the node leave the cluster. The reply is [Left].
	Leave struct{}
	// LeaveNow says that a node that leaves does not wait for calls any longer.
	LeaveNow struct{}
	// Left says that the node has left the cluster.
	Left struct{}
	// Watch has the events of other members sent to a function, which must not block, or
	// ends that.
	Watch struct {
		Handle func(messages.Event)
		ID     uint64
		End    bool
	}
	// ListMembers asks for the members. The reply is [Members].
	ListMembers struct{}
	// Members are the members that the node knows.
	Members struct{ List []messages.MemberSnapshot }
)

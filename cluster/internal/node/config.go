package node

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/cluster/internal/lease"
	"github.com/mcpactor/mcpactor/cluster/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

// Config is the configuration of a node. There are no defaults: package cluster sets every
// field.
type Config struct {
	Cluster    string // the name of the cluster
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
type Address struct{ ID, Host string }

// Network is one incarnation of this member in the cluster. Its methods never block.
type Network interface {
	// ID returns the id of the incarnation.
	ID() string
	// Address returns the host and port at which others reach it.
	Address() string
	// Send sends an envelope to whoever listens at an address. The envelope may be lost, and is
	// read-only from then on.
	Send(address string, e *wire.Envelope)
	// Activate asks for the virtual actor of a shard. The answer is [Activated].
	Activate(shard int)
	// Leave tells the provider that the member leaves.
	Leave()
	// Stop ends the incarnation.
	Stop()
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
	// Disconnected says that the connection to a member has ended.
	Disconnected struct{ Network, Host string }
	// Received brings an envelope.
	Received struct {
		Network  string
		Envelope *wire.Envelope
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

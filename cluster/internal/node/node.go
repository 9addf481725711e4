package node

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/messages"
)

// node is the actor.
//
//	joining ──Joined──▶ member ──Leave──▶ leaving ──last call, or time over──▶ left
//	   ▲                  │
//	   └──── expelled ────┘
//
// It never blocks. Without a network, and while it is fenced, calls wait for an owner.
type node struct {
	cfg     *Config
	net     Network // nil while joining
	ownBits ownedShards
	view    atomic.Pointer[view] // for other goroutines; nil while joining
	peers   map[string]*peer     // other members, by incarnation; also those that have left, for a while
	members []Address            // the topology
	owners  []Address            // of these, who may own shards
	shards  map[int]*shard       // that are active here, or on their way

	toRelease []*shard // until releaseDue

	exchanges map[uint64]*exchange // commands to other members, without a reply
	byKey     map[messages.Key]*keyed
	lastID    uint64
	served    map[servedID]*served
	boxed     map[string]*served     // by the id of the box
	bindings  map[string]*binding    // by scope
	bindTime  int64                  // of the last Bind that is known
	sweptAt   time.Time              // when bindings were last forgotten
	watched   map[string]bool        // references of actors here that other members may know
	asked     map[uint64]*question   // questions of other members
	asking    map[uint64]ownQuestion // questions to handlers of other members
	lines     map[string][]*peer     // by reference of a subscriber here: the members whose lines it has not handled, in order

	stopped func() // has commands answered by the door in front of the node

	outside outside
	mail    *clusterapi.Post // to actors and processes of the user, and of the supervisor

	watchers map[uint64]func(messages.Event)
	observed func() // ends the observation of the own supervisor; nil if no member wants its events

	timeouts clusterapi.Timeouts // of the supervisor; Calls is nil until it has told them

	held   bool                 // the lease, at the last tick
	rivals map[string]time.Time // members at the own address, and since when: zero once that is logged

	conflict string // why this member conflicts with another one, or empty

	beats   uint64
	beatAt  time.Time // of the last tick
	beatLog map[uint64]*beat
	proven  bool // somebody has confirmed the membership since the last gap

	leaving      *actor.PID // who waits for Left, once leaving
	leftAt       time.Time  // when leaving ends at the latest
	announceBy   time.Time  // when the provider is told at the latest
	deregistered bool       // the provider is told
	left         bool       // it has said so to the others

	supervisorStopped bool

	ticker timer // of the heartbeat
}

// Start spawns a node in the actor system of its supervisor. The PID stays valid: after the node has
// left and its supervisor has stopped, commands are answered with [messages.CodeClosed]. places reports
// whether a key belongs to this member. It may be called from any goroutine.
func Start(cfg Config) (pid *actor.PID, places func(messages.Key) bool, err error) {
	cfg.Supervisor = actor.NewPID(cfg.Supervisor.GetAddress(), cfg.Supervisor.GetId()) // its own PID keeps it in memory
	n := newNode(&cfg)
	pid, err = n.spawn()
	return pid, n.places, err
}

// spawn spawns the node, and returns the PID that takes its messages.
func (n *node) spawn() (*actor.PID, error) {
	system, supervisor, name := n.cfg.System, n.cfg.Name, n.cfg.Name+"/node"
	post := n.mail
	late := func(message any, sender *actor.PID) { clusterapi.Answer(post, supervisor, message, sender) }
	ended := func(watcher, who *actor.PID) { post.Terminated(watcher, who, actor.TerminatedReason_Stopped) }
	pid, free := clusterapi.OpenDoor(system, name, late, ended, func(stopped func()) *actor.PID {
		n.stopped = stopped
		return system.Root.SpawnPrefix(actor.PropsFromProducer(func() actor.Actor { return n }, n.outside.props...), "node")
	})
	if !free {
		return nil, fmt.Errorf("an actor of the system has the name %q already", name)
	}
	return pid, nil
}

// maxLetters bounds the dead letters that wait for the handlers of the EventStream.
const maxLetters = 1 << 10

// newNode returns a node that is not spawned.
func newNode(cfg *Config) *node {
	n := &node{
		cfg: cfg, outside: newOutside(), peers: map[string]*peer{}, shards: map[int]*shard{}, exchanges: map[uint64]*exchange{},
		byKey: map[messages.Key]*keyed{}, served: map[servedID]*served{}, boxed: map[string]*served{},
		bindings: map[string]*binding{}, watched: map[string]bool{}, asked: map[uint64]*question{},
		asking: map[uint64]ownQuestion{}, lines: map[string][]*peer{}, watchers: map[uint64]func(messages.Event){}, rivals: map[string]time.Time{}, beatLog: map[uint64]*beat{},
	}
	events := clusterapi.NewRelay(maxLetters, func(event any) { cfg.System.EventStream.Publish(event) }, nil, nil)
	n.mail = clusterapi.NewPost(cfg.System, events, func(message, reason any, stack []byte) {
		cfg.Logger.Error().Type("message", message).Interface("reason", reason).Bytes("stack", stack).Msg("the process of a caller panicked")
	})
	n.ownBits.init(cfg.Shards)
	n.timeouts.Call = cfg.CallTimeout
	return n
}

// Receive handles a message.
func (n *node) Receive(c actor.Context) {
	defer n.recoverBug(c)
	n.handle(c)
	if n.leaving != nil {
		n.finishLeaving(c)
	}
}

// handle handles lifecycle messages and commands, and gives the rest to onReport.
func (n *node) handle(c actor.Context) {
	switch msg := c.Message().(type) {
	case *actor.Started:
		c.Send(n.cfg.Supervisor, &clusterapi.Cluster{Owns: n.ownBits.owns, HandBack: c.Self()})
		c.Watch(n.cfg.Supervisor)
		n.onTick(c)
	case *actor.Stopped:
		n.onFlushDue(c)
		n.stopped()
	case *actor.Terminated:
		n.onTerminated(c, msg.Who)
	case actor.SystemMessage, actor.AutoReceiveMessage: // must precede the cases below
	case *clusterapi.ClientCall:
		n.onOperation(c, msg.Op, msg)
	case messages.Command:
		n.onCommand(c, msg)
	case *clusterapi.Timeouts:
		n.timeouts = *msg
		n.tellJoined()
	case *clusterapi.HandedBack:
		n.onHandedBack(c, msg)
	case *clusterapi.Withdrawn:
		n.cancelElsewhere(c, msg.Cancel)
	default:
		n.onReport(c, msg)
	}
}

// onCommand handles the commands of callers.
func (n *node) onCommand(c actor.Context, cmd messages.Command) {
	if n.left {
		c.Forward(n.cfg.Supervisor) // which has stopped
		return
	}
	if _, ok := clusterapi.CommandOf(cmd); !ok {
		c.Forward(n.cfg.Supervisor) // which rejects it
		return
	}
	switch cmd := cmd.(type) {
	case messages.Operation:
		n.onOperation(c, cmd, nil)
	case *messages.Cancel:
		n.onCancel(c, cmd)
	case *messages.CloseSession:
		n.onKeyed(c, cmd, cmd.Key, n.closeTime())
	case *messages.Restart:
		n.onKeyed(c, cmd, cmd.Key, n.closeTime()+n.timeouts.Connect)
	case *messages.Tail:
		n.onKeyed(c, cmd, cmd.Key, controlTime)
	case *messages.Pin:
		n.onKeyed(c, cmd, cmd.Key, controlTime)
	case *messages.Check:
		n.onKeyed(c, cmd, cmd.Key, controlTime)
	case *messages.Bind:
		n.onBind(c, cmd)
	case *messages.CancelScope:
		n.onCancelScope(c, cmd)
	case *messages.CloseScope:
		n.gather(c, cmd, n.closeTime())
	case *messages.CloseServer:
		n.gather(c, cmd, n.closeTime())
	case *messages.CloseMatching:
		n.gather(c, cmd, n.closeTime())
	case *messages.CloseAll:
		n.gather(c, cmd, n.closeTime())
	case *messages.Inspect, *messages.Forget:
		n.gather(c, cmd, controlTime)
	default:
		c.Forward(n.cfg.Supervisor) // which rejects it
	}
}

// onReport handles the messages of the network, of processes, goroutines and timers.
func (n *node) onReport(c actor.Context, msg any) {
	switch msg := msg.(type) {
	case *Joined:
		n.onJoined(c, msg.Network)
	case *Topology:
		if n.is(msg.Network) {
			n.onTopology(c, msg.Members)
		}
	case *Changed:
		if n.is(msg.Network) {
			n.onChanged(c, n.peers[msg.Peer], msg.State)
		}
	case *Received:
		if n.is(msg.Network) {
			n.onReceived(c, msg.From, msg.Message)
		}
	case *Activated:
		if n.is(msg.Network) {
			n.onActivated(c, msg)
		}
	case *Deactivated:
		if n.is(msg.Network) {
			n.release(c, msg.Shard)
		}
	case *Confirmed:
		if n.is(msg.Network) {
			n.cfg.Lease.Renew(msg.At)
			n.proven = n.proven || n.cfg.Lease.Held() // it may be from before a pause
			n.tellJoined()
		}
	case *Expelled:
		if n.is(msg.Network) {
			n.expelled(c, "the coordinator of the cluster does not know it")
		}
	case *tick:
		n.onTick(c)
	case *encoded:
		n.onEncoded(c, msg)
	case *decoded:
		n.onDecoded(c, msg)
	case *boxed:
		n.onServed(c, msg.of, msg.message)
	case *ownPart:
		n.onOwnPart(c, msg.of, msg.message)
	case *proxied:
		n.onProxied(c, msg)
	case *proxyWatched:
		n.onProxyWatched(c, msg)
	case *answered:
		n.onAnswered(c, msg)
	case *questionDue:
		const reason = "there was no answer in time"
		n.withdrawQuestion(c, msg.number, &messages.Refusal{Reason: reason}, reason)
	case interface{ TakenBy() *actor.PID }: // the answer to a messages.StderrLine
		n.onTaken(c, msg.TakenBy())
	case *retryDue:
		n.routeKey(c, msg.key)
	case *overdue:
		n.onOverdue(c, msg.of)
	case *gatherDue:
		n.onGatherDue(c, msg.of)
	case *handoffDue:
		n.onHandoffDue(c, msg.of)
	case *releaseDue:
		n.onReleaseDue(c)
	case *shardsReleased:
		n.onShardsReleased(c, msg)
	case *observedEvent:
		n.onObserved(c, msg.event)
	case *Watch:
		n.onWatch(c, msg)
	case *ListMembers:
		n.mail.Send(c.Sender(), &Members{n.snapshot()})
	case *Leave:
		n.onLeave(c)
	case *LeaveNow:
		n.leftAt = time.Now()
	case *leaveDue:
		n.onLeaveDue(c)
	case *flushDue:
		n.onFlushDue(c)
	case *dropped:
		n.onDropped(c, msg)
	case *actor.DeadLetterResponse:
	default:
		n.onUnknownMessage(c, msg)
	}
}

// onUnknownMessage handles a command that was sent as a value. The supervisor rejects any other message
// that wants a reply.
func (n *node) onUnknownMessage(c actor.Context, msg any) {
	cmd, ok := clusterapi.CommandOf(msg)
	switch {
	case ok:
		n.onCommand(c, cmd)
	case c.Sender() != nil:
		c.Forward(n.cfg.Supervisor)
	default:
		n.cfg.Logger.Error().Type("message", msg).Msg("cluster node got an unknown message")
	}
}

// is reports whether a message comes from the current incarnation.
func (n *node) is(network string) bool { return n.net != nil && n.net.ID() == network }

// recoverBug logs a panic. A restart would lose all calls.
func (n *node) recoverBug(c actor.Context) {
	if r := recover(); r != nil {
		n.cfg.Logger.Error().Interface("reason", r).Type("message", c.Message()).Bytes("stack", debug.Stack()).Msg("cluster node panicked")
	}
}

// controlTime is how long a command that needs no work, and its reply, may be on their way between
// members.
const controlTime = 3 * time.Second

// closeTime returns how long a close command of another member, or the release of shards, takes at most.
func (n *node) closeTime() time.Duration {
	return n.timeouts.Close + controlTime
}

// failure returns the failure of a command.
func (n *node) failure(cmd messages.Command, code messages.Code, detail string) *messages.Failure {
	f := messages.NewFailure(cmd, code, detail)
	f.Supervisor = n.cfg.Name
	return f
}

// reply sends a reply to a caller, if there is one.
func (n *node) reply(caller *actor.PID, reply messages.Reply) {
	n.mail.Send(caller, reply)
}

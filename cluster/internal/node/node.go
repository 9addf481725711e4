package node

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/cluster/internal/wire"
	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/messages"
)

// node is the actor.
//
//	joining ──view──▶ inside ──Leave──▶ leaving ──last call, or time over──▶ left ──view──▶ ended
//	   ▲                │
//	   └─── removed ────┘
//
// It never blocks. While it is joining or fenced, calls wait for an owner.
type node struct {
	*base
	members   *membership // who is there
	shards    *ownShards  // what is served here
	routing   *routing    // commands of callers here
	serving   *serving    // commands of other members
	gathering *gathering  // commands to all members
	bindings  *bindings   // of scopes
	proxies   *proxies    // actors of other members
	questions *questions  // to handlers
	events    *events     // of supervisors
	leaving   *leaving    // the end

	stopped func() // has commands answered by the door in front of the node

	dropping bool // the supervisor drops the sessions of an incarnation that has ended
	telling  bool // the others are about to be told what this member holds
}

// Start spawns a node in the actor system of its supervisor. The PID stays valid: after the node has
// left and its supervisor has stopped, commands are answered with [messages.CodeClosed].
func Start(cfg Config) (*actor.PID, error) {
	cfg.Supervisor = actor.NewPID(cfg.Supervisor.GetAddress(), cfg.Supervisor.GetId()) // its own PID keeps it in memory
	return newNode(&cfg).spawn()
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

// newNode returns a node that is not spawned.
func newNode(cfg *Config) *node {
	n := &node{base: newBase(cfg)}
	n.members, n.shards = newMembership(n.base, n), &ownShards{base: n.base, released: n.onReleased}
	n.questions = newQuestions(n.base)
	n.proxies = newProxies(n.base, n.questions)
	n.leaving = &leaving{base: n.base, members: n.members, shards: n.shards, end: n.endNode}
	where := place{n.members, n.shards, n.leaving}
	n.routing = newRouting(n.base, where, n.proxies)
	n.events, n.bindings = newEvents(n.base), newBindings(cfg.Name, n.isThere)
	n.serving = newServing(n.base, where, n.routing, n.bindings)
	n.leaving.routing, n.leaving.serving = n.routing, n.serving
	n.gathering = &gathering{n.base, n.routing, n.bindings}
	return n
}

// Receive handles a message.
func (n *node) Receive(c actor.Context) {
	defer n.recoverBug(c)
	n.handle(c)
	n.leaving.finish(n.dropping)
}

// handle handles lifecycle messages and commands, and gives the rest to onReport.
func (n *node) handle(c actor.Context) {
	switch msg := c.Message().(type) {
	case *actor.Started:
		n.self = c.Self()
		c.Send(n.cfg.Supervisor, &clusterapi.Cluster{Owns: n.shards.owns, HandBack: c.Self(), Self: n.members.describe})
		c.Watch(n.cfg.Supervisor)
		n.onTick()
	case *actor.Stopped:
		n.endNode()
		n.stopped()
	case *actor.Terminated:
		if msg.Who.Equal(n.cfg.Supervisor) {
			n.leaving.onSupervisorStopped()
			n.quit()
		}
		ref := wire.Ref(msg.Who)
		n.routing.cancelOwned(ref)
		n.proxies.onTerminated(ref)
	case actor.SystemMessage, actor.AutoReceiveMessage: // must precede the cases below
	case *clusterapi.ClientCall:
		n.onCommand(c, msg.Op, &msg.Values)
	case messages.Command:
		n.onCommand(c, msg, nil)
	case *clusterapi.Timeouts:
		n.timeouts = *msg
		n.members.tellJoined()
	case *clusterapi.HandedBack:
		n.onHandedBack(msg)
	case *clusterapi.Withdrawn:
		n.cancelElsewhere(msg.Cancel)
	default:
		n.onReport(c, msg)
	}
}

// onCommand handles a command of a caller. values are of a call by a client.
func (n *node) onCommand(c actor.Context, cmd messages.Command, values *clusterapi.Values) {
	if n.leaving.left {
		n.onLate(c)
		return
	}
	if _, ok := clusterapi.CommandOf(cmd); !ok {
		c.Forward(n.cfg.Supervisor) // which rejects it
		return
	}
	switch cmd := cmd.(type) {
	case messages.Operation:
		n.onOperation(c, cmd, values)
	case *messages.Cancel:
		n.onCancel(cmd)
	case *messages.CloseSession, *messages.Restart, *messages.Pin, *messages.Check:
		n.onKeyed(c, cmd)
	case *messages.Bind:
		n.onBind(c, cmd)
	case *messages.CancelScope:
		n.onCancelScope(c, cmd)
	case *messages.CloseScope, *messages.CloseServer, *messages.CloseMatching, *messages.CloseAll, *messages.Inspect, *messages.Forget,
		*messages.ReleaseHandles, *messages.ListHandles:
		n.gather(c, cmd)
	default:
		c.Forward(n.cfg.Supervisor) // which rejects it
	}
}

// onReport handles the messages of the network and of package cluster, and tasks.
func (n *node) onReport(c actor.Context, msg any) {
	switch msg := msg.(type) {
	case *Joined:
		n.onJoined(msg.Network)
	case *Answered:
		n.members.onWitness(msg)
	case *Changed:
		if n.members.is(msg.Network) {
			n.members.onChanged(n.members.peers[msg.Peer], msg.State)
		}
	case *Received:
		if n.members.is(msg.Network) {
			n.members.onReceived(msg)
		}
	case *Watch:
		n.events.watch = msg.Handle
		for _, p := range inOrder(n.members.peers) {
			p.post(0, envelope{}, &wantEvents{msg.Handle != nil})
		}
	case *ListMembers:
		n.mail.Send(c.Sender(), &Members{n.members.snapshot()})
	case *Leave:
		n.leaving.onLeave(c.Sender())
	case *LeaveNow:
		n.leaving.leftAt = time.Now()
	case task:
		msg()
	case *actor.DeadLetterResponse:
	default:
		n.onUnknownMessage(c, msg)
	}
}

// onTick does what is due now and then.
func (n *node) onTick() {
	if n.leaving.ended {
		return
	}
	n.after(n.cfg.LeaseTime/4, n.onTick)
	n.bindings.sweep(time.Now())
	n.members.onTick()
}

// onUnknownMessage handles a command that was sent as a value. The supervisor rejects any other message
// that wants a reply.
func (n *node) onUnknownMessage(c actor.Context, msg any) {
	cmd, ok := clusterapi.CommandOf(msg)
	switch {
	case ok:
		n.onCommand(c, cmd, nil)
	case c.Sender() != nil:
		c.Forward(n.cfg.Supervisor)
	default:
		n.cfg.Logger.Error().Type("message", msg).Msg("cluster node got an unknown message")
	}
}

// recoverBug logs a panic. A restart would lose all calls.
func (n *node) recoverBug(c actor.Context) {
	if r := recover(); r != nil {
		n.cfg.Logger.Error().Interface("reason", r).Type("message", c.Message()).Bytes("stack", debug.Stack()).Msg("cluster node panicked")
	}
}

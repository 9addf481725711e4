package node

import (
	"cmp"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/cluster/internal/wire"
	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/messages"
)

// onOperation gives an operation to the owner of its key.
func (n *node) onOperation(c actor.Context, op messages.Operation, values *clusterapi.Values) {
	if n.stays(op) {
		c.Forward(n.cfg.Supervisor)
		return
	}
	if h := *op.Head(); h.Deadline.IsZero() {
		h.Deadline = time.Now().Add(cmp.Or(n.timeouts.Calls[h.Key.Server], n.timeouts.Call))
		op = messages.With(op, h)
	}
	if n.leaves() {
		n.reply(c.Sender(), n.failure(op, messages.CodeClosed, "this member is leaving the cluster"))
		return
	}
	n.routing.begin(&exchange{cmd: op, values: values, caller: c.Sender(), key: op.Head().Key.Normal(), deadline: op.Head().Deadline})
}

// onLate answers a command that comes when the member has left: the supervisor is about to stop. Calls that run there can still
// be cancelled.
func (n *node) onLate(c actor.Context) {
	switch c.Message().(type) {
	case *messages.Cancel, *messages.CancelScope:
		c.Forward(n.cfg.Supervisor)
	default:
		clusterapi.Answer(n.mail, n.cfg.Name, c.Message(), c.Sender())
	}
}

// stays reports whether an operation needs no other member, and need not wait for the lease: its shard is served here, or it
// is malformed, so that the supervisor rejects it.
func (n *node) stays(op messages.Operation) (here bool) {
	defer func() {
		if recover() != nil { // a nil pointer, or a type of the caller's around one
			here = true
		}
	}()
	key := op.Head().Key.Normal()
	return n.shards.owns(key) && n.cfg.Lease.Held() || !wire.Known(op) || key.Validate() != nil || op.Validate() != nil
}

// onKeyed gives a control command about a key to the owner of the key.
func (n *node) onKeyed(c actor.Context, cmd messages.Command) {
	key, _ := keyOf(cmd)
	if key.Validate() != nil || n.shards.owns(key) {
		c.Forward(n.cfg.Supervisor)
		return
	}
	n.routing.begin(&exchange{cmd: cmd, caller: c.Sender(), key: key, deadline: n.deadlineOf(cmd)})
}

// onCancel cancels the operations of a key wherever they are. The own supervisor may have some although
// the key belongs to another member, or the owner is not known: its shard has moved, or this member is
// fenced.
func (n *node) onCancel(cmd *messages.Cancel) {
	if cmd.ID == "" {
		return
	}
	n.toSupervisor(cmd)
	n.cancelElsewhere(cmd)
}

// cancelElsewhere cancels the operations of a key that the own supervisor does not have: those that wait
// here, and those that the owner has.
func (n *node) cancelElsewhere(cmd *messages.Cancel) {
	key := cmd.Key.Normal()
	n.routing.cancelID(key, cmd.ID)
	if owner, _ := n.members.ownerOf(ShardOf(key, n.cfg.Shards)); owner != nil {
		owner.post(0, envelope{}, cmd) // for the operations of callers elsewhere
	}
}

// onCancelScope cancels the operations of a scope on all members.
func (n *node) onCancelScope(c actor.Context, cmd *messages.CancelScope) {
	scope := messages.Key{Scope: cmd.Scope}.Normal().Scope
	n.routing.cancelScope(scope) // those that are on their way may arrive after the command
	n.gather(c, cmd)
}

// onHandedBack routes a call that the own supervisor does not run any longer.
func (n *node) onHandedBack(msg *clusterapi.HandedBack) {
	past := history{Runs: msg.Runs, MayHaveRun: msg.MayHaveRun, Detail: msg.Detail, Intercepted: msg.Intercepted, List: msg.List}
	if s := n.serving.servedBy(msg.Caller); s != nil {
		n.serving.answerMoved(s, past)
		return
	}
	key, _ := past.routedBy(msg.Op)
	n.routing.begin(&exchange{
		cmd: msg.Op, caller: msg.Caller, values: msg.Values, key: key, deadline: msg.Op.Head().Deadline, history: past,
	})
}

// onBind binds a scope on all members: its sessions may live on any of them.
func (n *node) onBind(c actor.Context, cmd *messages.Bind) {
	if (messages.Key{Scope: cmd.Scope}).Normal().Validate() != nil {
		c.Forward(n.cfg.Supervisor)
		return
	}
	n.proxies.watch(cmd)
	n.gather(c, cmd)
}

// gather gives a command to all members, if this member may do so.
func (n *node) gather(c actor.Context, cmd messages.Command) {
	_, inspects := cmd.(*messages.Inspect)
	if why := n.members.whyFenced(); why != "" && !inspects {
		n.reply(c.Sender(), n.failure(cmd, messages.CodeUnavailable, why))
		return
	}
	n.gathering.begin(cmd, c.Sender(), n.members.snapshot(), inOrder(n.members.peers))
}

package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/cluster/internal/link"
	"github.com/mcpactor/mcpactor/cluster/internal/wire"
	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/messages"
)

// exchange is a command of a caller here, or a part of a command to all members, until it has
// its reply.
//
//	waiting ──owner known──▶ encoding ──▶ sent ──reply──▶ done
//	   ▲                                   │
//	   └──── not here, moved, peer left ───┘
type exchange struct {
	id       uint64
	cmd      messages.Command
	values   *clusterapi.Values
	caller   *actor.PID
	key      messages.Key
	gather   *gather // of which it is a part, or nil
	deadline time.Time

	history // on the members that had it before
	tries   int

	to        *peer      // that it was given to, or nil
	sent      *link.Sent // nil until it is encoded
	cancelled bool       // the member that it was given to knows that it is cancelled
	late      bool       // its deadline is over
	timer     timer      // sends overdue; nil for a part of gather
}

// keyed are the exchanges of a key.
type keyed struct {
	all     []*exchange  // in the order in which they came
	first   [1]*exchange // room for one of all
	waiting []*exchange  // likewise, those that have no owner to be sent to
	retry   timer        // sends retryDue, or nil if none waits
}

type (
	// retryDue says that the exchanges of a key that wait are to be routed again.
	retryDue struct{ key messages.Key }
	// overdue says that the time of an exchange is over.
	overdue exchange
)

// grace is how long after the deadline the reply of a member that has got the command may come.
const grace = 500 * time.Millisecond

// onOperation gives an operation to the owner of its key. called is its message if a client
// sent it.
func (n *node) onOperation(c actor.Context, op messages.Operation, called *clusterapi.ClientCall) {
	if n.stays(op) {
		c.Forward(n.cfg.Supervisor)
		return
	}
	if h := *op.Head(); h.Deadline.IsZero() {
		h.Deadline = time.Now().Add(cmp.Or(n.timeouts.Calls[h.Key.Server], n.timeouts.Call))
		op = messages.With(op, h)
	}
	x := &exchange{cmd: op, caller: c.Sender(), key: op.Head().Key.Normal(), deadline: op.Head().Deadline}
	if called != nil {
		x.values = &called.Values
	}
	if n.leaving != nil && !n.left {
		n.reply(x.caller, n.failure(op, messages.CodeClosed, "this member is leaving the cluster"))
		return
	}
	n.begin(x)
}

// stays reports whether an operation needs no other member: its shard is served here, or it
// is malformed, so that the supervisor rejects it.
func (n *node) stays(op messages.Operation) (here bool) {
	defer func() {
		if recover() != nil { // a nil pointer, or a type of the caller's around one
			here = true
		}
	}()
	key := op.Head().Key.Normal()
	return n.ownBits.owns(key) || !wire.Known(op) || key.Validate() != nil || op.Validate() != nil
}

// onKeyed gives a control command about a key to the owner of the key.
func (n *node) onKeyed(c actor.Context, cmd messages.Command, key messages.Key, limit time.Duration) {
	if key = key.Normal(); key.Validate() != nil || n.ownBits.owns(key) {
		c.Forward(n.cfg.Supervisor)
		return
	}
	n.begin(&exchange{cmd: cmd, caller: c.Sender(), key: key, deadline: time.Now().Add(limit)})
}

// ownerTerminated is the detail of the failure of an operation whose owner has terminated.
const ownerTerminated = "its owner has terminated"

// begin adds an exchange, and routes it.
func (n *node) begin(x *exchange) {
	reject := func(code messages.Code, detail string) {
		n.reply(x.caller, x.complete(x.cmd, n.failure(x.cmd, code, detail)))
	}
	if n.left {
		reject(messages.CodeClosed, "this member has left the cluster")
		return
	}
	if !time.Now().Before(x.deadline) {
		reject(messages.CodeDeadline, "the deadline had passed before the call came")
		return
	}
	if n.cfg.MaxWaiting >= 0 && len(n.exchanges) >= n.cfg.MaxWaiting {
		reject(messages.CodeBusy, fmt.Sprintf("%d calls of this member wait for other members (MaxWaitingTotal)", len(n.exchanges)))
		return
	}
	if op, ok := x.cmd.(messages.Operation); ok {
		if owner := op.Head().Owner; owner != nil && !n.isThere(owner) { // also the member of a caller elsewhere
			reject(messages.CodeCancelled, ownerTerminated)
			return
		}
	}
	n.proxies.watch(x.cmd)
	n.add(x)
	x.timer = n.after(time.Until(x.waitEnd()), (*overdue)(x))
	of := n.byKey[x.key]
	if of == nil {
		of = new(keyed)
		of.all = of.first[:0]
		n.byKey[x.key] = of
	}
	of.all = append(of.all, x)
	if len(of.waiting) > 0 { // it must not pass them
		n.wait(x)
		return
	}
	n.route(x)
}

// add numbers an exchange.
func (n *node) add(x *exchange) {
	x.id = n.number()
	n.exchanges[x.id] = x
}

// route gives an exchange to the owner of its key, or keeps it waiting. An owner that is
// silent may be gone: what is not sent to it is not lost.
func (n *node) route(x *exchange) {
	number := ShardOf(x.key, n.cfg.Shards)
	owner, own := n.ownerOf(number)
	switch {
	case n.isLast():
		n.finish(x, n.failure(x.cmd, messages.CodeClosed, "this member has left the cluster"))
	case own:
		n.routeHere(x, number)
	case owner != nil && owner.version != 0:
		n.refuse(x, owner)
	case owner == nil || owner.silent():
		n.wait(x)
	default:
		n.give(x, owner)
	}
}

// routeHere gives an exchange to the own supervisor, when the shard of its key is served here.
func (n *node) routeHere(x *exchange, number int) {
	if !n.shards.Serves(number) {
		n.wait(x)
		n.waitersOf(number).keys[x.key] = true
		return
	}
	n.end(x)
	n.run(x.cmd, x.caller, x.values, x.history)
}

// run gives a command to the own supervisor.
func (n *node) run(cmd messages.Command, sender *actor.PID, values *clusterapi.Values, past history) {
	var msg any = cmd
	if op, ok := cmd.(messages.Operation); ok && (values != nil || past != history{}) {
		msg = &clusterapi.ResentCall{Op: op, Values: values, Intercepted: past.Intercepted, List: past.List, Runs: past.Runs, MayHaveRun: past.MayHaveRun, Detail: past.Detail}
	}
	n.request(msg, sender)
}

// give encodes an exchange for a member.
func (n *node) give(x *exchange, to *peer) {
	x.to = to
	n.encode(x.traced(), encoded{part: n, exchange: x, to: to, history: x.history})
}

// traced returns the command of an exchange for another member. The values of the context of its
// client do not cross: an operation without a trace gets the OpenTelemetry span among them.
func (x *exchange) traced() messages.Command {
	op, ok := x.cmd.(messages.Operation)
	if !ok || x.values == nil || op.Head().Trace != (messages.Trace{}) {
		return x.cmd
	}
	h := *op.Head()
	if h.Trace = clusterapi.TraceOf(x.values); h.Trace == (messages.Trace{}) {
		return op
	}
	return messages.With(op, h)
}

// onEncoded sends what is encoded.
func (n *node) onEncoded(msg encoded) {
	x := msg.exchange
	if n.exchanges[x.id] != x || x.to != msg.to || x.sent != nil {
		return // it was cancelled, or the member has left
	}
	if msg.err != nil {
		n.finish(x, n.failure(x.cmd, messages.CodeInvalid, msg.err.Error()))
		return
	}
	sent, err := x.to.link.Send(link.Message{Type: msg.typ, ID: x.id, Body: msg.body}, x.history != history{})
	if err != nil {
		code := messages.CodeBusy
		if errors.Is(err, link.ErrLarge) {
			code = messages.CodeInvalid
		}
		n.finish(x, n.failure(x.cmd, code, err.Error()))
		return
	}
	x.sent = sent
	n.proxies.introduce(x.to, x.cmd)
}

// wait keeps an exchange that has no owner to be sent to, and tries again later.
func (n *node) wait(x *exchange) {
	if n.giveUpList(x) {
		return
	}
	of := n.byKey[x.key]
	at, waits := slices.BinarySearchFunc(of.waiting, x, byID)
	if !waits {
		of.waiting = slices.Insert(of.waiting, at, x)
	}
	if of.retry == nil {
		x.tries++
		pause := min(10*time.Millisecond<<min(x.tries, 6), 500*time.Millisecond)
		of.retry = n.after(pause/2+n.outside.random(pause/2), &retryDue{x.key})
	}
}

// givenTo returns the exchanges that a member was given, in their order.
func (n *node) givenTo(p *peer) (all []*exchange) {
	for _, x := range n.exchanges {
		if x.to == p {
			all = append(all, x)
		}
	}
	slices.SortFunc(all, byID)
	return all
}

// byID compares exchanges by the order in which they came.
func byID(a, b *exchange) int { return cmp.Compare(a.id, b.id) }

// remove removes an exchange from a list that is in order, if it is there.
func remove(list *[]*exchange, x *exchange) {
	if at, there := slices.BinarySearchFunc(*list, x, byID); there {
		*list = slices.Delete(*list, at, at+1)
	}
}

// take removes and returns the exchanges that wait.
func (of *keyed) take() []*exchange {
	if of.retry != nil {
		of.retry.Stop()
		of.retry = nil
	}
	list := of.waiting
	of.waiting = nil
	return list
}

// detach removes an exchange from the member that it was given to.
func (x *exchange) detach() {
	x.to, x.sent = nil, nil
}

// routeKey routes the exchanges of a key that wait, in their order.
func (n *node) routeKey(key messages.Key) {
	if of := n.byKey[key]; of != nil {
		for _, x := range of.take() {
			n.route(x)
		}
	}
}

// routeWaiting routes all exchanges that wait: the topology has changed.
func (n *node) routeWaiting() {
	for _, key := range slices.SortedFunc(maps.Keys(n.byKey), messages.Key.Compare) {
		n.routeKey(key)
	}
}

// end removes an exchange.
func (n *node) end(x *exchange) {
	x.detach()
	delete(n.exchanges, x.id)
	if x.gather != nil {
		return
	}
	x.timer.Stop()
	of := n.byKey[x.key]
	remove(&of.waiting, x)
	if remove(&of.all, x); len(of.waiting) == 0 {
		of.take()
	}
	if len(of.all) == 0 {
		delete(n.byKey, x.key)
	}
}

// finish answers an exchange.
func (n *node) finish(x *exchange, reply messages.Reply) {
	if n.exchanges[x.id] != x {
		return
	}
	n.withdraw(x)
	if f, ok := reply.(*messages.Failure); ok {
		f.MayHaveRun = f.MayHaveRun || f.Supervisor == n.cfg.Name && x.sent != nil // made here, without a reply
		reply = x.complete(x.cmd, f)
	}
	n.end(x)
	if x.gather != nil {
		n.onPart(x, reply)
		return
	}
	n.reply(x.caller, reply)
}

// withdraw takes an exchange back that was not sent yet. It will not run then, and sent is nil.
func (n *node) withdraw(x *exchange) {
	if x.sent != nil && x.to.link.Withdraw(x.sent) {
		x.sent = nil
	}
}

// complete adds to a failure what was known before about the command. A member that has not run
// the command says nothing of the members before it, and one that does not understand it nothing of the
// command.
func (h history) complete(cmd messages.Command, f *messages.Failure) *messages.Failure {
	if f.Op == "" {
		of := messages.NewFailure(cmd, f.Code, f.Detail)
		f.ID, f.Key, f.Op, f.Target = of.ID, of.Key, of.Op, of.Target
	}
	f.Attempt, f.Replayed = max(f.Attempt, h.Runs), f.Replayed || h.Runs > 1
	f.MayHaveRun = f.MayHaveRun || h.MayHaveRun
	if _, isOperation := cmd.(messages.Operation); isOperation && f.MayHaveRun {
		switch f.Code {
		case messages.CodeUnavailable, messages.CodeBusy, messages.CodeDraining: // these say that it has not
			f.Code = messages.CodeLost
		}
	}
	return f
}

// onMoved routes an exchange again: the member has not run it, or has handed it back.
func (n *node) onMoved(x *exchange, m *moved) {
	x.history = history(*m)
	x.detach()
	switch {
	case x.gather != nil:
		n.finish(x, n.failure(x.cmd, messages.CodeUnavailable, "the member did not take it"))
	case x.cancelled:
		n.finish(x, n.failure(x.cmd, messages.CodeCancelled, ""))
	default:
		n.wait(x)
	}
}

// onPeerLost routes the exchanges that a member had again. Those that may have arrived there
// may have run.
func (n *node) onPeerLost(p *peer) {
	left := fmt.Sprintf("the member %s has left the cluster before it answered", p.label())
	for _, x := range n.givenTo(p) {
		n.withdraw(x)
		arrived := x.sent != nil
		x.detach()
		switch _, isOperation := x.cmd.(messages.Operation); {
		case x.gather != nil:
			n.finish(x, n.failure(x.cmd, messages.CodeUnavailable, "the member has left the cluster"))
		case x.cancelled:
			f := n.failure(x.cmd, messages.CodeCancelled, "")
			f.MayHaveRun = arrived
			n.finish(x, f)
		case !arrived:
			n.wait(x)
		case isOperation:
			x.Runs, x.MayHaveRun = x.Runs+1, true
			x.Detail = left
			n.wait(x)
		default:
			f := n.failure(x.cmd, messages.CodeLost, left)
			f.MayHaveRun = true
			n.finish(x, f)
		}
	}
	n.routeWaiting()
}

// onHandedBack routes a call that the own supervisor does not run any longer.
func (n *node) onHandedBack(msg *clusterapi.HandedBack) {
	past := history{Runs: msg.Runs, MayHaveRun: msg.MayHaveRun, Detail: msg.Detail, Intercepted: msg.Intercepted, List: msg.List}
	if s := n.servedBy(msg.Caller); s != nil {
		n.answerMoved(s, past)
		return
	}
	key, _ := past.routedBy(msg.Op)
	n.begin(&exchange{
		cmd: msg.Op, caller: msg.Caller, values: msg.Values, key: key, deadline: msg.Op.Head().Deadline, history: past,
	})
}

// waitEnd returns when an exchange that has not been sent is answered.
func (x *exchange) waitEnd() time.Time {
	if op, ok := x.cmd.(messages.Operation); ok && !x.MayHaveRun {
		if at := op.Head().WaitUntil; !at.IsZero() && at.Before(x.deadline) {
			return at
		}
	}
	return x.deadline
}

// onOverdue answers an exchange that got no reply in time, or that may not wait any longer. One that
// was sent has its time.
func (n *node) onOverdue(x *exchange) {
	if n.exchanges[x.id] != x {
		return
	}
	if wait := time.Until(x.deadline); wait > 0 {
		if n.withdraw(x); x.sent != nil || x.MayHaveRun {
			x.timer = n.after(wait, (*overdue)(x))
			return
		}
		n.finish(x, n.failure(x.cmd, messages.CodeUnavailable, cmp.Or(n.whyFenced(), "while waiting for the member that owns the key")))
		return
	}
	if n.withdraw(x); x.sent != nil && !x.late && !x.to.silent() {
		x.late, x.timer = true, n.after(grace, (*overdue)(x))
		return
	}
	f := n.failure(x.cmd, messages.CodeUnavailable, cmp.Or(n.whyFenced(), "the member that owns the key did not answer"))
	if x.to != nil {
		f = n.failure(x.cmd, messages.CodeDeadline, fmt.Sprintf("the member %s did not answer", x.to.label()))
	}
	f.Cause = context.DeadlineExceeded
	if x.sent != nil {
		x.to.post(x.id, &cancelled{})
	}
	n.finish(x, f)
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
	if of := n.byKey[key]; of != nil {
		for _, x := range slices.Clone(of.all) {
			if op, ok := x.cmd.(messages.Operation); ok && op.RequestID() == cmd.ID {
				n.cancel(x, "", true)
			}
		}
	}
	n.cancelServed(key, cmd.ID)
	if owner, _ := n.ownerOf(ShardOf(key, n.cfg.Shards)); owner != nil {
		owner.post(0, cmd) // for the operations of callers elsewhere
	}
}

// cancel cancels an exchange here, or has the member that it was given to cancel it.
func (n *node) cancel(x *exchange, why string, byID bool) {
	n.withdraw(x)
	if x.to == nil || x.sent == nil {
		n.finish(x, n.failure(x.cmd, messages.CodeCancelled, why))
		return
	}
	x.cancelled = true
	x.to.post(x.id, &cancelled{byID})
}

// cancelOwned cancels the exchanges of an owner that has terminated. Those that are on their way
// may arrive after the news of its end.
func (n *node) cancelOwned(ref string) {
	n.cancelAll(ownerTerminated, false, func(_ *exchange, op messages.Operation) bool {
		return op.Head().Owner != nil && (refs{}).Ref(op.Head().Owner) == ref
	})
}

// onCancelScope cancels the operations of a scope on all members.
func (n *node) onCancelScope(c actor.Context, cmd *messages.CancelScope) {
	scope := messages.Key{Scope: cmd.Scope}.Normal().Scope
	n.cancelAll("", true, func(x *exchange, _ messages.Operation) bool { return x.key.Scope == scope }) // those that are on their way may arrive after the command
	n.gather(c, cmd, controlTime)
}

// cancelAll cancels the operations that match.
func (n *node) cancelAll(why string, withID bool, match func(*exchange, messages.Operation) bool) {
	var all []*exchange
	for _, x := range n.exchanges {
		if op, ok := x.cmd.(messages.Operation); ok && match(x, op) {
			all = append(all, x)
		}
	}
	slices.SortFunc(all, byID)
	for _, x := range all {
		n.cancel(x, why, withID)
	}
}

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

// routing gives the commands of callers here to the members that own their keys. Those of a key keep their order.
type routing struct {
	*base
	place     placing
	proxies   *proxies
	exchanges map[uint64]*exchange // without a reply
	byKey     map[messages.Key]*keyed
	closed    bool // nothing is routed any longer
}

// placing says where commands belong. The membership of a node does.
type placing interface {
	// ownerOf returns the other member that owns a shard, or whether it is this one. It is neither if the owner is not
	// known, or if this member may not act.
	ownerOf(shard int) (other *peer, own bool)
	// serves reports whether a shard that this member owns is served here: the others have ceded it.
	serves(shard int) bool
	// whyFenced says why this member may not act, or returns "" if it may.
	whyFenced() string
	// leaves reports whether this member leaves the cluster, and isLast whether no other one is left.
	leaves() bool
	isLast() bool
}

func newRouting(b *base, place placing, proxies *proxies) *routing {
	return &routing{base: b, place: place, proxies: proxies, exchanges: map[uint64]*exchange{}, byKey: map[messages.Key]*keyed{}}
}

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
	part     func(messages.Reply) // takes the reply if it is a part of a command to all members, or nil
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

// ownerTerminated is the detail of the failure of an operation whose owner has terminated.
const ownerTerminated = "its owner has terminated"

// begin adds an exchange, and routes it.
func (r *routing) begin(x *exchange) {
	reject := func(code messages.Code, detail string) {
		r.reply(x.caller, x.complete(x.cmd, r.failure(x.cmd, code, detail)))
	}
	if r.closed {
		reject(messages.CodeClosed, "this member has left the cluster")
		return
	}
	if !time.Now().Before(x.deadline) {
		reject(messages.CodeDeadline, "the deadline had passed before the call came")
		return
	}
	if r.cfg.MaxWaiting >= 0 && len(r.exchanges) >= r.cfg.MaxWaiting {
		reject(messages.CodeBusy, fmt.Sprintf("%d calls of this member wait for other members (MaxWaitingTotal)", len(r.exchanges)))
		return
	}
	if op, ok := x.cmd.(messages.Operation); ok {
		if owner := op.Head().Owner; owner != nil && !r.isThere(owner) { // also the member of a caller elsewhere
			reject(messages.CodeCancelled, ownerTerminated)
			return
		}
	}
	r.proxies.watch(x.cmd)
	r.add(x)
	x.timer = r.after(time.Until(x.waitEnd()), (*overdue)(x))
	of := r.byKey[x.key]
	if of == nil {
		of = new(keyed)
		of.all = of.first[:0]
		r.byKey[x.key] = of
	}
	of.all = append(of.all, x)
	if len(of.waiting) > 0 { // it must not pass them
		r.wait(x)
		return
	}
	r.route(x)
}

// add numbers an exchange.
func (r *routing) add(x *exchange) {
	x.id = r.number()
	r.exchanges[x.id] = x
}

// route gives an exchange to the owner of its key, or keeps it waiting. An owner that is
// silent may be gone: what is not sent to it is not lost.
func (r *routing) route(x *exchange) {
	number := ShardOf(x.key, r.cfg.Shards)
	owner, own := r.place.ownerOf(number)
	switch {
	case r.place.isLast():
		r.finish(x, r.failure(x.cmd, messages.CodeClosed, "this member has left the cluster"))
	case own:
		r.routeHere(x, number)
	case owner != nil && owner.version != 0:
		r.refuse(x, owner)
	case owner == nil || owner.silent():
		r.wait(x)
	default:
		r.give(x, owner)
	}
}

// routeHere gives an exchange to the own supervisor, when the shard of its key is served here.
func (r *routing) routeHere(x *exchange, number int) {
	if !r.place.serves(number) {
		r.wait(x)
		return
	}
	r.end(x)
	r.run(x.cmd, x.caller, x.values, x.history)
}

// give encodes an exchange for a member.
func (r *routing) give(x *exchange, to *peer) {
	x.to = to
	r.encode(x.traced(), encoded{part: r, exchange: x, to: to, history: x.history})
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
func (r *routing) onEncoded(msg encoded) {
	x := msg.exchange
	if r.exchanges[x.id] != x || x.to != msg.to || x.sent != nil {
		return // it was cancelled, or the member has left
	}
	if msg.err != nil {
		r.finish(x, r.failure(x.cmd, messages.CodeInvalid, msg.err.Error()))
		return
	}
	sent, err := x.to.link.Send(link.Message{Type: msg.typ, ID: x.id, Body: msg.body}, x.history != history{})
	if err != nil {
		code := messages.CodeBusy
		if errors.Is(err, link.ErrLarge) {
			code = messages.CodeInvalid
		}
		r.finish(x, r.failure(x.cmd, code, err.Error()))
		return
	}
	x.sent = sent
	r.proxies.introduce(x.to, x.cmd)
}

// wait keeps an exchange that has no owner to be sent to, and tries again later.
func (r *routing) wait(x *exchange) {
	if r.giveUpList(x) {
		return
	}
	of := r.byKey[x.key]
	at, waits := slices.BinarySearchFunc(of.waiting, x, byID)
	if !waits {
		of.waiting = slices.Insert(of.waiting, at, x)
	}
	if of.retry == nil {
		x.tries++
		pause := min(10*time.Millisecond<<min(x.tries, 6), 500*time.Millisecond)
		of.retry = r.after(pause/2+r.outside.random(pause/2), &retryDue{x.key})
	}
}

// givenTo returns the exchanges that a member was given, in their order.
func (r *routing) givenTo(p *peer) (all []*exchange) {
	for _, x := range r.exchanges {
		if x.to == p {
			all = append(all, x)
		}
	}
	slices.SortFunc(all, byID)
	return all
}

// giveUpList fails an exchange that asks for a list, and whose owner is not known or not reached. It reports whether
// it has done so.
func (r *routing) giveUpList(x *exchange) bool {
	if !x.asksForList() {
		return false
	}
	r.finish(x, r.failure(x.cmd, messages.CodeClosed, "the member that has the list is not reached"))
	return true
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
func (r *routing) routeKey(key messages.Key) {
	if of := r.byKey[key]; of != nil {
		for _, x := range of.take() {
			r.route(x)
		}
	}
}

// routeAll routes all exchanges that wait: the topology has changed.
func (r *routing) routeAll() {
	for _, key := range slices.SortedFunc(maps.Keys(r.byKey), messages.Key.Compare) {
		r.routeKey(key)
	}
}

// routeShards routes the exchanges of some shards that wait: they are served from now on.
func (r *routing) routeShards(some []int) {
	in := inShards(r.cfg.Shards, some)
	for _, key := range slices.SortedFunc(maps.Keys(r.byKey), messages.Key.Compare) {
		if in(key) {
			r.routeKey(key)
		}
	}
}

// end removes an exchange.
func (r *routing) end(x *exchange) {
	x.detach()
	delete(r.exchanges, x.id)
	if x.part != nil {
		return
	}
	x.timer.Stop()
	of := r.byKey[x.key]
	remove(&of.waiting, x)
	if remove(&of.all, x); len(of.waiting) == 0 {
		of.take()
	}
	if len(of.all) == 0 {
		delete(r.byKey, x.key)
	}
}

// finish answers an exchange.
func (r *routing) finish(x *exchange, reply messages.Reply) {
	if r.exchanges[x.id] != x {
		return
	}
	r.withdraw(x)
	if f, ok := reply.(*messages.Failure); ok {
		f.MayHaveRun = f.MayHaveRun || f.Supervisor == r.cfg.Name && x.sent != nil // made here, without a reply
		reply = x.complete(x.cmd, f)
	}
	r.end(x)
	if x.part != nil {
		x.part(reply)
		return
	}
	r.reply(x.caller, reply)
}

// withdraw takes an exchange back that was not sent yet. It will not run then, and sent is nil.
func (r *routing) withdraw(x *exchange) {
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
func (r *routing) onMoved(x *exchange, m *moved) {
	x.history = history(*m)
	x.detach()
	switch {
	case x.part != nil:
		r.finish(x, r.failure(x.cmd, messages.CodeUnavailable, "the member did not take it"))
	case x.cancelled:
		r.finish(x, r.failure(x.cmd, messages.CodeCancelled, ""))
	default:
		r.wait(x)
	}
}

// lose routes the exchanges that a member had again. Those that may have arrived there
// may have run.
func (r *routing) lose(p *peer) {
	left := fmt.Sprintf("the member %s has left the cluster before it answered", p.label())
	for _, x := range r.givenTo(p) {
		r.withdraw(x)
		arrived := x.sent != nil
		x.detach()
		switch _, isOperation := x.cmd.(messages.Operation); {
		case x.part != nil:
			r.finish(x, r.failure(x.cmd, messages.CodeUnavailable, "the member has left the cluster"))
		case x.cancelled:
			f := r.failure(x.cmd, messages.CodeCancelled, "")
			f.MayHaveRun = arrived
			r.finish(x, f)
		case !arrived:
			r.wait(x)
		case isOperation:
			x.Runs, x.MayHaveRun = x.Runs+1, true
			x.Detail = left
			r.wait(x)
		default:
			f := r.failure(x.cmd, messages.CodeLost, left)
			f.MayHaveRun = true
			r.finish(x, f)
		}
	}
	r.routeAll()
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
func (r *routing) onOverdue(x *exchange) {
	if r.exchanges[x.id] != x {
		return
	}
	if wait := time.Until(x.deadline); wait > 0 {
		if r.withdraw(x); x.sent != nil || x.MayHaveRun {
			x.timer = r.after(wait, (*overdue)(x))
			return
		}
		r.finish(x, r.failure(x.cmd, messages.CodeUnavailable, cmp.Or(r.place.whyFenced(), "while waiting for the member that owns the key")))
		return
	}
	if r.withdraw(x); x.sent != nil && !x.late && !x.to.silent() {
		x.late, x.timer = true, r.after(grace, (*overdue)(x))
		return
	}
	f := r.failure(x.cmd, messages.CodeUnavailable, cmp.Or(r.place.whyFenced(), "the member that owns the key did not answer"))
	if x.to != nil {
		f = r.failure(x.cmd, messages.CodeDeadline, fmt.Sprintf("the member %s did not answer", x.to.label()))
	}
	f.Cause = context.DeadlineExceeded
	if x.sent != nil {
		x.to.post(x.id, &cancelled{})
	}
	r.finish(x, f)
}

// cancel cancels an exchange here, or has the member that it was given to cancel it.
func (r *routing) cancel(x *exchange, why string, byID bool) {
	r.withdraw(x)
	if x.to == nil || x.sent == nil {
		r.finish(x, r.failure(x.cmd, messages.CodeCancelled, why))
		return
	}
	x.cancelled = true
	x.to.post(x.id, &cancelled{byID})
}

// cancelOwned cancels the exchanges of an owner that has terminated. Those that are on their way
// may arrive after the news of its end.
func (r *routing) cancelOwned(ref string) {
	r.cancelAll(ownerTerminated, false, func(_ *exchange, op messages.Operation) bool {
		return op.Head().Owner != nil && (refs{}).Ref(op.Head().Owner) == ref
	})
}

// cancelAll cancels the operations that match.
func (r *routing) cancelAll(why string, withID bool, match func(*exchange, messages.Operation) bool) {
	var all []*exchange
	for _, x := range r.exchanges {
		if op, ok := x.cmd.(messages.Operation); ok && match(x, op) {
			all = append(all, x)
		}
	}
	slices.SortFunc(all, byID)
	for _, x := range all {
		r.cancel(x, why, withID)
	}
}

// cancelID cancels the operations of a key with an id.
func (r *routing) cancelID(key messages.Key, id string) {
	if of := r.byKey[key]; of != nil {
		for _, x := range slices.Clone(of.all) {
			if op, ok := x.cmd.(messages.Operation); ok && op.RequestID() == id {
				r.cancel(x, "", true)
			}
		}
	}
}

// cancelScope cancels the operations of a scope.
func (r *routing) cancelScope(scope string) {
	r.cancelAll("", true, func(x *exchange, _ messages.Operation) bool { return x.key.Scope == scope })
}

// onReply takes the reply of a member to an exchange.
func (r *routing) onReply(from *peer, id uint64, value any, err error) {
	x := r.exchanges[id]
	if x == nil || x.to != from {
		return
	}
	switch msg := value.(type) {
	case messages.Reply:
		r.finish(x, msg)
	case *moved:
		r.onMoved(x, msg)
	default:
		if err == nil {
			err = fmt.Errorf("%T is no reply", value)
		}
		r.cfg.Logger.Warn().Str("member", from.label()).Err(err).Msg("reply of a member was not understood")
		f := r.failure(x.cmd, messages.CodeProtocol, "the reply of the member "+from.label()+" is not understood: "+err.Error())
		f.MayHaveRun = true
		r.finish(x, f)
	}
}

// refuseAll fails what was given to a member of another version, which does not understand it.
func (r *routing) refuseAll(to *peer) {
	for _, x := range r.givenTo(to) {
		x.sent = nil
		r.refuse(x, to)
	}
}

// notRun notes that a member has not run what it has not answered.
func (r *routing) notRun(by *peer) {
	for _, x := range r.givenTo(by) {
		x.sent = nil
	}
}

// leave answers all exchanges: this member has left.
func (r *routing) leave() {
	r.closed = true
	for _, x := range inOrder(r.exchanges) {
		r.finish(x, r.failure(x.cmd, messages.CodeClosed, "this member has left the cluster"))
	}
}

// refuse fails an exchange whose owner is of another version.
func (r *routing) refuse(x *exchange, owner *peer) {
	r.finish(x, r.failure(x.cmd, messages.CodeUnavailable,
		fmt.Sprintf("the member %s speaks version %d of the protocol between members, this one %d", owner.label(), owner.version, wire.Version)))
}

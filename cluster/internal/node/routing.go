package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/cluster/internal/link"
	"github.com/mcpactor/mcpactor/messages"
)

// routing gives the commands of callers here to the members that own their keys. Those of a key keep their order. Beside them,
// commands of callers on other members wait until their shard is served here.
type routing struct {
	*base
	place     placing
	proxies   *proxies
	exchanges map[uint64]*exchange // without a reply
	byKey     map[messages.Key]*keyed
	served    int  // those of callers on other members
	closed    bool // nothing is routed any longer
}

// placing says where commands belong.
type placing interface {
	// ownerOf returns the other member that owns a shard, or whether it is this one. It is neither if the owner is not
	// known, or if this member may not act.
	ownerOf(shard int) (other *peer, own bool)
	// Serves reports whether a shard that this member owns is served here: the others have ceded it.
	Serves(shard int) bool
	// whyFenced says why this member may not act, or returns "" if it may.
	whyFenced() string
	// leaves reports whether this member leaves the cluster, and isLast whether no other one is left.
	leaves() bool
	isLast() bool
}

// place is the placing of a node.
type place struct {
	*membership
	*ownShards
	*leaving
}

func newRouting(b *base, place placing, proxies *proxies) *routing {
	return &routing{base: b, place: place, proxies: proxies, exchanges: map[uint64]*exchange{}, byKey: map[messages.Key]*keyed{}}
}

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
	if waiting := len(r.exchanges) - r.served; r.cfg.MaxWaiting >= 0 && waiting >= r.cfg.MaxWaiting {
		reject(messages.CodeBusy, fmt.Sprintf("%d calls of this member wait for other members (MaxWaitingTotal)", waiting))
		return
	}
	if op, ok := x.cmd.(messages.Operation); ok {
		if owner := op.Head().Owner; owner != nil && !r.isThere(owner) { // also the member of a caller elsewhere
			reject(messages.CodeCancelled, ownerTerminated)
			return
		}
	}
	r.proxies.watch(x.cmd)
	r.enter(x)
}

// enter adds an exchange that may be begun, and routes it.
func (r *routing) enter(x *exchange) {
	r.add(x)
	r.limit(x, time.Until(x.waitEnd()))
	of := r.byKey[x.key]
	if of == nil {
		of = new(keyed)
		of.all = of.first[:0]
		r.byKey[x.key] = of
	}
	of.all = append(of.all, x)
	if of.retry != nil { // it must not pass those that wait
		r.wait(x)
		return
	}
	r.route(x)
}

// add numbers an exchange.
func (r *routing) add(x *exchange) {
	x.id = r.number()
	r.exchanges[x.id] = x
	if x.served {
		r.served++
	}
}

// holds reports whether an exchange has no reply yet. It may be nil.
func (r *routing) holds(x *exchange) bool { return x != nil && r.exchanges[x.id] == x }

// route gives an exchange to the owner of its key, or keeps it waiting. An owner that is
// silent may be gone: what is not sent to it is not lost.
func (r *routing) route(x *exchange) {
	number := ShardOf(x.key, r.cfg.Shards)
	owner, own := r.place.ownerOf(number)
	switch {
	case x.served && !own && r.place.whyFenced() == "":
		r.giveBack(x)
	case r.place.isLast():
		r.finish(x, r.failure(x.cmd, messages.CodeClosed, "this member has left the cluster"))
	case x.isLate():
		f := r.failure(x.cmd, messages.CodeUnavailable, cmp.Or(r.place.whyFenced(), "it waited until it had no time left"))
		f.Cause = context.DeadlineExceeded
		r.finish(x, f)
	case own:
		r.routeHere(x, number)
	case owner == nil || owner.silent():
		r.wait(x)
	default:
		r.give(x, owner)
	}
}

// routeHere gives an exchange to the own supervisor, when the shard of its key is served here.
func (r *routing) routeHere(x *exchange, number int) {
	if !r.place.Serves(number) {
		r.wait(x)
		return
	}
	r.end(x)
	r.run(x.cmd, x.caller, x.values, x.history)
}

// giveBack gives up an exchange of a caller on another member, which looks for the owner itself.
func (r *routing) giveBack(x *exchange) {
	r.end(x)
	r.mail.Send(x.caller, (*moved)(&x.history))
}

// give encodes an exchange for a member.
func (r *routing) give(x *exchange, to *peer) {
	x.to = to
	r.encode(x.traced(), encoded{part: r, exchange: x, to: to, with: envelope{History: x.history}})
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
	msg.message.ID = x.id
	sent, err := x.to.link.Send(msg.message, x.history != history{})
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
	x.waited = true
	of := r.byKey[x.key]
	if of.retry == nil {
		x.tries++
		pause := min(10*time.Millisecond<<min(x.tries, 6), 500*time.Millisecond)
		of.retry = r.after(pause/2+r.outside.random(pause/2), func() { r.routeKey(x.key) })
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
	if x.served {
		r.served--
	}
	if x.part != nil {
		return
	}
	x.timer.Stop()
	of := r.byKey[x.key]
	if at, there := slices.BinarySearchFunc(of.all, x, byID); there {
		of.all = slices.Delete(of.all, at, at+1)
	}
	if of.retry != nil && !slices.ContainsFunc(of.all, waits) {
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
			f.MayHaveRun = f.MayHaveRun || arrived
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

package node

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/cluster/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

// The ends of an exchange without a reply of its member.

// grace is how long after the deadline the reply of a member that has got the command may come.
const grace = 500 * time.Millisecond

// limit has onOverdue called after a time. The task is only made then, because most exchanges have their reply before.
func (r *routing) limit(x *exchange, d time.Duration) {
	x.timer = r.outside.after(d, func() { r.do(func() { r.onOverdue(x) }) })
}

// onOverdue answers an exchange that got no reply in time, or that may not wait any longer. One that
// was sent, or that may have run, has its time.
func (r *routing) onOverdue(x *exchange) {
	if r.exchanges[x.id] != x {
		return
	}
	if wait := time.Until(x.deadline); wait > 0 {
		if !x.MayHaveRun {
			r.withdraw(x)
		}
		if x.sent != nil || x.MayHaveRun {
			r.limit(x, wait)
			return
		}
		r.finish(x, r.failure(x.cmd, messages.CodeUnavailable, cmp.Or(r.place.whyFenced(), "while waiting for the member that owns the key")))
		return
	}
	if r.withdraw(x); x.sent != nil && !x.late && !x.to.silent() {
		x.late = true
		r.limit(x, grace)
		return
	}
	f := r.failure(x.cmd, messages.CodeUnavailable, cmp.Or(r.place.whyFenced(), "the member that owns the key did not answer"))
	if x.to != nil {
		f = r.failure(x.cmd, messages.CodeDeadline, fmt.Sprintf("the member %s did not answer", x.to.label()))
	}
	f.Cause = context.DeadlineExceeded
	if x.sent != nil {
		x.to.post(x.id, envelope{}, &cancelled{})
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
	x.to.post(x.id, envelope{}, &cancelled{byID})
}

// cancelOwned cancels the exchanges of an owner that has terminated. Those that are on their way
// may arrive after the news of its end.
func (r *routing) cancelOwned(ref string) {
	r.cancelAll(ownerTerminated, false, func(_ *exchange, op messages.Operation) bool {
		return op.Head().Owner != nil && wire.Ref(op.Head().Owner) == ref
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
		if x.served {
			r.giveBack(x)
			continue
		}
		r.finish(x, r.failure(x.cmd, messages.CodeClosed, "this member has left the cluster"))
	}
}

package node

import (
	"cmp"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/cluster/internal/lease"
	"github.com/mcpactor/mcpactor/cluster/internal/link"
	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/messages"
)

// exchange is a command of a caller here, or a part of a command to all members, until it has
// its reply, or a command of another member while it waits for its shard.
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
	served   bool                 // its caller is on another member
	deadline time.Time

	history // on the members that had it before
	tries   int
	waited  bool // for an owner, or for its shard

	to        *peer      // that it was given to, or nil
	sent      *link.Sent // nil until it is encoded
	cancelled bool       // the member that it was given to knows that it is cancelled
	late      bool       // its deadline is over
	timer     timer      // calls onOverdue; nil for a part of gather
}

// keyed are the exchanges of a key. Those that were not given to a member wait.
type keyed struct {
	all   []*exchange  // in the order in which they came
	first [1]*exchange // room for one of all
	retry timer        // routes those that wait, or nil if none does
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

// detach removes an exchange from the member that it was given to.
func (x *exchange) detach() {
	x.to, x.sent = nil, nil
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

// isLate reports whether an exchange has waited until it has no time left in which it could be sent and answered.
func (x *exchange) isLate() bool { return x.waited && time.Until(x.deadline) < lease.LeastTime }

// waits reports whether an exchange has no owner to be sent to.
func waits(x *exchange) bool { return x.to == nil }

// byID compares exchanges by the order in which they came.
func byID(a, b *exchange) int { return cmp.Compare(a.id, b.id) }

// complete adds to a failure what was known before about the command. A member that has not run
// the command says nothing of the members before it, and one that does not understand it nothing of the
// command. A durable call that may have run before keeps its code, since its store can be asked again.
func (h history) complete(cmd messages.Command, f *messages.Failure) *messages.Failure {
	if f.Op == "" {
		of := messages.NewFailure(cmd, f.Code, f.Detail)
		f.ID, f.Key, f.Op, f.Target = of.ID, of.Key, of.Op, of.Target
	}
	f.Attempt, f.Replayed = max(f.Attempt, h.Runs), f.Replayed || h.Runs > 1
	f.MayHaveRun = f.MayHaveRun || h.MayHaveRun
	call, _ := cmd.(*messages.CallTool)
	if _, isOperation := cmd.(messages.Operation); isOperation && f.MayHaveRun && (call == nil || !call.Durable) {
		switch f.Code {
		case messages.CodeUnavailable, messages.CodeBusy, messages.CodeDraining: // these say that it has not
			f.Code = messages.CodeLost
		}
	}
	return f
}

// take returns the exchanges that wait, in their order, and stops the timer.
func (of *keyed) take() (waiting []*exchange) {
	if of.retry == nil {
		return nil
	}
	of.retry.Stop()
	of.retry = nil
	for _, x := range of.all {
		if waits(x) {
			waiting = append(waiting, x)
		}
	}
	return waiting
}

package questions

import (
	"iter"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/internal/operations"
)

// attribute finds the running calls that the question may belong to: those of its operation if
// that is known, and else all without a reply. It reports whether there were any, with or without
// a reply.
func (q *Question) attribute(running iter.Seq[*contract.Call]) (runs bool) {
	q.calls = map[*contract.Call]struct{}{}
	for k := range running {
		if q.of != nil && k.Op != q.of {
			continue
		}
		runs = true
		if !k.Run.Replied {
			q.calls[k] = struct{}{}
		}
	}
	return runs
}

// describe notes which operation the question belongs to, if only one is possible. No question is open for longer than the
// last call that it may belong to.
func (q *Question) describe() {
	origin := q.req.GetOrigin()
	if q.of != nil {
		origin.Operation = operations.RefTo(q.of)
	}
	var end time.Time // of the last call
	for k := range q.calls {
		if k.Deadline.After(end) {
			end = k.Deadline
		}
		if len(q.calls) == 1 {
			origin.Operation = operations.RefTo(k.Op)
		}
	}
	if len(q.calls) > 0 && end.Before(origin.Deadline) {
		origin.Deadline = end
	}
}

// chooseHandler returns the handler of the question, or nil. If the operation of the question is not
// known, the handler of an operation counts only if all running operations have the same one. Otherwise the first one of
// others is asked.
func (q *Question) chooseHandler(others []*actor.PID) *actor.PID {
	var common *actor.PID
	if q.of != nil {
		common = q.of.Head().Handler
	}
	for k := range q.calls {
		of := k.Op.Head().Handler
		if common != nil && !contract.SamePID(common, of) || of == nil {
			common = nil
			break
		}
		common = of
	}
	for _, handler := range append([]*actor.PID{common}, others...) {
		if handler != nil {
			return handler
		}
	}
	return nil
}

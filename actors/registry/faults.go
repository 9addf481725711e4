package registry

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors"
)

// HandleFailure is the supervision strategy of the sessions. A session actor is restarted
// at once, so that it serves deadlines and cancellations. To delay the next dial, the
// registry sends the grant later. The registry decides about the fault when the new
// incarnation sends Faulted. HandleFailure itself cannot decide, because a failure
// overtakes messages that the actor has sent before.
func (r *registry) HandleFailure(_ *actor.ActorSystem, _ actor.Supervisor, pid *actor.PID, _ *actor.RestartStatistics, reason, _ any) {
	reg := r.table.WithPID(pid)
	if reg == nil {
		return // it was told to stop
	}
	if _, typed := reason.(*actors.Fault); !typed {
		reg.Bugs++
	}
	directive, told := actor.RestartDirective, any(&actor.Restart{})
	if reg.Bugs > maxBugs {
		directive, told = actor.StopDirective, &actor.Stop{}
	} else {
		r.reports.Counters.Restarts++
		reg.Restarts++
	}
	r.cfg.Events.Put(&actor.SupervisorEvent{Child: pid, Reason: reason, Directive: directive})
	reg.Mailbox.PostSystemMessage(told)
}

// maxBugs is how many panics a session may have between two connections. The panic may be
// in the restart itself, and would then recur without end.
const maxBugs = 5

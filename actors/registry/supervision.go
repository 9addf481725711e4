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
	_, typed := reason.(*actors.Fault)
	directive, told := actor.StopDirective, any(&actor.Stop{})
	if reg.Faults.Restart(!typed) {
		directive, told = actor.RestartDirective, &actor.Restart{}
		r.reports.Counters.Restarts++
	}
	r.cfg.Events.Put(&actor.SupervisorEvent{Child: pid, Reason: reason, Directive: directive})
	reg.Mailbox.PostSystemMessage(told)
}

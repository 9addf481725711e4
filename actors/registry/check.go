package registry

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/messages"
)

// onCheck answers with the status of a key.
func (r *registry) onCheck(cmd *messages.Check, from *actor.PID) {
	key := cmd.Key.Normal()
	status := r.status(key)
	status.ID = cmd.ID
	r.respond(from, status)
}

// status returns the status of a key whose server is configured.
func (r *registry) status(key messages.Key) *messages.Status {
	s := &messages.Status{Key: key, Generation: r.table.Generations.Of(key)}
	ep, reg := r.table.Servers[key.Server].Turns.Home.Endpoint, (*table.Registration)(nil)
	if e := r.table.Entry(key); e != nil {
		if reg = e.Current; reg == nil {
			reg = e.Draining[len(e.Draining)-1]
		}
		one := reg.Snapshot(time.Now())
		s.State, s.Generation, s.Cause, s.RetryAt = one.State, e.Generation, one.Cause, one.RetryAt
		ep = reg.Place.Endpoint
	}
	s.Health, _, _ = ep.Health()
	if ep.Down && s.Cause == "" && s.State != messages.StateReady {
		s.Cause, s.RetryAt = reg.CauseOf(ep).Error(), ep.Next
	}
	return s
}

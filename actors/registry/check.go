package registry

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
)

// onCheck answers with the status of a key.
func (r *registry) onCheck(cmd *messages.Check, from *actor.PID) {
	key := cmd.Key.Normal()
	if !r.isConfigured(cmd, from, key.Server) || !r.isValid(cmd, from, key.Validate()) {
		return
	}
	status := r.status(key)
	status.ID = cmd.ID
	r.respond(from, status)
}

// status returns the status of a key whose server is configured.
func (r *registry) status(key messages.Key) *messages.Status {
	s := &messages.Status{Key: key, Generation: r.generations.of(key)}
	ep, reg := r.servers[key.Server].turns.Home.Endpoint, (*registration)(nil)
	if e := r.entries[key]; e != nil {
		if reg = e.current; reg == nil {
			reg = e.draining[len(e.draining)-1]
		}
		one := reg.snapshot(time.Now())
		s.State, s.Generation, s.Cause, s.RetryAt = one.State, e.generation, one.Cause, one.RetryAt
		ep = reg.Place.Endpoint
	}
	s.Health, _, _ = ep.Health()
	if ep.Down && s.Cause == "" && s.State != messages.StateReady {
		s.Cause, s.RetryAt = causeOf(ep, reg).Error(), ep.Next
	}
	return s
}

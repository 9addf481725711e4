package registry

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/messages"
)

// onForget forgets what is known of a server, and of its sessions in steps.
func (r *registry) onForget(cmd *messages.Forget, from *actor.PID) {
	r.cfg.Logger.Info().Str("server", cmd.Server).Msg("server forgotten")
	if r.cfg.Forget != nil {
		r.cfg.Forget(cmd.Server)
	}
	srv := r.table.Servers[cmd.Server]
	forgotten := map[*admission.Place]bool{srv.Turns.Home: true}
	r.gate.Forget(srv.Turns.Home)
	all := r.table.Cursor(func(server string) bool { return server == cmd.Server })
	forget := func(reg *table.Registration) {
		if reg.Server == srv && !forgotten[reg.Place] {
			forgotten[reg.Place] = true
			r.gate.Forget(reg.Place)
		}
		if !reg.Draining {
			r.forgetFaults(reg)
		}
	}
	r.do(&job{
		step: func() (more bool) {
			if more = all.Step(forget); !more {
				r.respond(from, &messages.Done{ID: cmd.ID})
			}
			return more
		},
		fail: func(code messages.Code, detail string) { r.respond(from, messages.NewFailure(cmd, code, detail)) },
	})
}

// forgetFaults forgets the faults of a session. If it waits for the end of its backoff, it
// is queued at once.
func (r *registry) forgetFaults(reg *table.Registration) {
	reg.Decider, reg.Cause, reg.FailedDials = nil, nil, 0
	reg.NotBefore, reg.BreakerUntil = time.Time{}, time.Time{}
	r.due.Remove(&reg.Backoff)
	if reg.State() == messages.StateBroken {
		r.setState(reg, messages.StateWaiting)
	}
	reg.Send(&contract.Forget{})
	r.advance(reg)
}

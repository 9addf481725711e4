package registry

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/jobs"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/messages"
)

// onForget forgets what is known of a server, and then, in steps, what is known of its sessions.
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
			r.dialing.ForgetFaults(reg)
		}
	}
	r.jobs.Do(&jobs.Job{
		Step: func() (more bool) {
			if more = all.Step(forget); !more {
				r.respond(from, &messages.Done{ID: cmd.ID})
			}
			return more
		},
		Fail: func(code messages.Code, detail string) { r.respond(from, messages.NewFailure(cmd, code, detail)) },
	})
}

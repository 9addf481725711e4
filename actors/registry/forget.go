package registry

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/messages"
)

// onForget forgets what is known of a server, and of its sessions in steps.
func (r *registry) onForget(cmd *messages.Forget, from *actor.PID) {
	if !r.isConfigured(cmd, from, cmd.Server) {
		return
	}
	r.cfg.Logger.Info().Str("server", cmd.Server).Msg("server forgotten")
	if r.cfg.Forget != nil {
		r.cfg.Forget(cmd.Server)
	}
	srv := r.servers[cmd.Server]
	forgotten := map[*admission.Place]bool{srv.turns.Home: true}
	r.gate.Forget(srv.turns.Home)
	r.beginWalk(&walk{
		cmd: cmd, caller: from, done: func() { r.cfg.Post.Send(from, &messages.Done{ID: cmd.ID}) },
		visit: func(reg *registration) {
			if reg.server == srv && !forgotten[reg.Place] {
				forgotten[reg.Place] = true
				r.gate.Forget(reg.Place)
			}
			if !reg.Draining {
				r.forgetFaults(reg)
			}
		},
	}, func(server string) bool { return server == cmd.Server })
}

// forgetFaults forgets the faults of a session. If it waits for the end of its backoff, it
// is queued at once.
func (r *registry) forgetFaults(reg *registration) {
	reg.decider, reg.cause, reg.failedDials = nil, nil, 0
	reg.notBefore, reg.breakerUntil = time.Time{}, time.Time{}
	reg.stopBackoffTimer()
	if reg.state() == messages.StateBroken {
		r.setState(reg, messages.StateWaiting)
	}
	reg.send(&contract.Forget{})
	r.advance(reg)
}

package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
)

// forgetStepDue says that the next sessions of a server are to forget their faults. Its
// sender is the sender of the command.
type forgetStepDue struct {
	cmd  *messages.Forget
	next *registration // or nil
	upTo uint64        // the serial of the last session
}

// onForget forgets what is known of a server, and of its sessions in steps.
func (r *registry) onForget(c actor.Context, cmd *messages.Forget) {
	if !r.isConfigured(c, cmd, cmd.Server) {
		return
	}
	r.cfg.Logger.Info().Str("server", cmd.Server).Msg("server forgotten")
	if r.cfg.Forget != nil {
		r.cfg.Forget(cmd.Server)
	}
	for place := range r.servers[cmd.Server].places() {
		for _, probe := range place.endpoint.probes {
			c.Send(probe.pid, &abandonDial{})
		}
		place.endpoint.forget()
	}
	r.grantDials(c)
	step := &forgetStepDue{cmd: cmd, upTo: r.index.serial}
	if g := r.index.groups[cmd.Server]; g != nil {
		step.next = g.first
	}
	r.forgetNext(c, step)
}

// forgetNext forgets the faults of the next sessions, at most drainStep of them.
func (r *registry) forgetNext(c actor.Context, step *forgetStepDue) {
	reg := step.next
	for n := 0; reg != nil && reg.serial <= step.upTo; reg = reg.newer {
		if n++; n > drainStep {
			c.RequestWithCustomSender(c.Self(), &forgetStepDue{step.cmd, reg, step.upTo}, c.Sender())
			return
		}
		if !reg.draining && reg.state() != "" {
			r.forgetFaults(c, reg)
		}
	}
	r.respond(c, &messages.Done{ID: step.cmd.ID})
}

// forgetFaults forgets the faults of a session. If it waits for the end of its backoff, it
// is queued at once.
func (r *registry) forgetFaults(c actor.Context, reg *registration) {
	reg.decider, reg.cause, reg.failedDials = nil, nil, 0
	reg.notBefore, reg.breakerUntil = time.Time{}, time.Time{}
	reg.stopBackoffTimer()
	if reg.state() == messages.StateBroken {
		r.setState(reg, messages.StateWaiting)
	}
	c.Send(reg.pid, &forget{})
	r.advance(c, reg)
}

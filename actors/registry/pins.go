package registry

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/messages"
)

// onPin pins the session of a key, or releases it. For a key without a session, a session actor is spawned, which does not dial:
// a pin always ends with a session actor.
func (r *registry) onPin(cmd *messages.Pin, from *actor.PID) {
	key := cmd.Key.Normal()
	r.closer.Apply(key)
	reg := r.table.Current(key)
	switch {
	case cmd.Release && reg != nil:
		r.dialing.Pin(reg, table.Pins{ByHandles: reg.ByHandles})
	case cmd.Release || reg != nil && reg.ByCommand:
	default:
		if full := r.refusal.FullOfPins(key, reg); full != "" {
			f := messages.NewFailure(cmd, messages.CodeBusy, full)
			f.Key = key
			r.respond(from, f)
			return
		}
		reg = r.sessions.Current(key)
		r.dialing.Pin(reg, table.Pins{ByCommand: true, ByHandles: reg.ByHandles})
	}
	r.respond(from, &messages.Pinned{ID: cmd.ID, Key: key, Pinned: !cmd.Release})
}

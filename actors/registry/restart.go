package registry

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/messages"
)

// onRestart drains the session of a key, and opens the next one. The call that opens it
// answers the command.
func (r *registry) onRestart(cmd *messages.Restart, from *actor.PID) {
	key := cmd.Key.Normal()
	if !r.isConfigured(cmd, from, key.Server) || !r.isValid(cmd, from, key.Validate()) || !r.isRunning(cmd, from) {
		return
	}
	e := r.entries[key]
	if e == nil {
		r.respond(from, &messages.Done{ID: cmd.ID})
		return
	}
	how := contract.Drain{Evict: true, Restart: true}
	for _, reg := range e.draining {
		r.drain(reg, how)
	}
	pinned := false
	if e.current != nil && !e.current.waitsForPredecessor(e) {
		pinned = e.current.Pinned
		r.drain(e.current, how)
	}
	limits := r.limits(key.Server)
	if most := limits.MaxInFlight + limits.MaxWaiting; e.current != nil && e.current.outstanding >= most {
		r.respond(from, messages.NewFailure(cmd, messages.CodeBusy, fmt.Sprintf("%d calls of this session are waiting (MaxInFlight, MaxWaiting)", most)))
		return
	}
	limit := limits.DrainTimeout + 2*limits.CloseTimeout + limits.ConnectTimeout
	op := &contract.Reopen{Header: messages.Header{Key: key, ID: cmd.ID}}
	k := &contract.Call{Op: op, Key: key, Supervisor: r.cfg.Name, Caller: from, Accepted: time.Now(), Deadline: time.Now().Add(limit), Serial: r.counters.Calls}
	if r.handBack(k) {
		return
	}
	r.forward(k)
	if pinned {
		r.gate.Pin(&e.current.Session, true)
		r.touch(e.current)
	}
}

// waitsForPredecessor reports whether the session has not dialed yet, because the previous
// session of the key is not closed.
func (reg *registration) waitsForPredecessor(e *entry) bool {
	return reg.DialedAt.IsZero() && e.predecessor(reg) != nil
}

// handSettingsOver gives the settings and the tail of a session that was restarted to the next session
// of the key, which has not dialed yet.
func (r *registry) handSettingsOver(msg *contract.SessionClosed) {
	e, tail := r.entries[registrationOf(msg.Of).key], msg.Tail
	if e.current != nil && e.current.tailSet {
		tail = nil
	}
	if e.current != nil && (!msg.Settings.Empty() || tail != nil) {
		e.current.send(&contract.AdoptSettings{Settings: msg.Settings, Tail: tail})
	}
}

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
	e := r.table.Entry(key)
	if e == nil {
		r.respond(from, &messages.Done{ID: cmd.ID})
		return
	}
	how := contract.Drain{Evict: true, Restart: true}
	for _, reg := range e.Draining {
		r.sessions.Drain(reg, how)
	}
	pinned := false
	if e.Current != nil && !e.WaitsFor(e.Current) {
		pinned = e.Current.Pinned
		r.sessions.Drain(e.Current, how)
	}
	limits := r.table.Limits(key.Server)
	if most := limits.MaxInFlight + limits.MaxWaiting; e.Current != nil && e.Current.Outstanding >= most {
		r.respond(from, messages.NewFailure(cmd, messages.CodeBusy, fmt.Sprintf("%d calls of this session are waiting (MaxInFlight, MaxWaiting)", most)))
		return
	}
	limit := limits.DrainTimeout + 2*limits.CloseTimeout + limits.ConnectTimeout
	op := &contract.Reopen{Header: messages.Header{Key: key, ID: cmd.ID}}
	k := &contract.Call{Op: op, Key: key, Supervisor: r.cfg.Name, Caller: from, Accepted: time.Now(), Deadline: time.Now().Add(limit), Serial: r.reports.Counters.Calls}
	if r.calls.HandBack(k) {
		return
	}
	r.calls.Forward(k)
	if pinned {
		r.gate.Pin(&e.Current.Session, true)
		r.dialing.Touch(e.Current)
	}
}

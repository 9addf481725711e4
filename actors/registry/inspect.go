package registry

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/inspection"
	"github.com/mcpactor/mcpactor/actors/internal/jobs"
	"github.com/mcpactor/mcpactor/messages"
)

// onCheck answers with the status of a key.
func (r *registry) onCheck(cmd *messages.Check, from *actor.PID) {
	status := inspection.Status(r.table, cmd.Key.Normal(), time.Now())
	status.ID = cmd.ID
	r.respond(from, status)
}

// onInspect answers with a snapshot.
func (r *registry) onInspect(cmd *messages.Inspect, from *actor.PID) {
	now, busy := r.inspections.Ask(inspection.QuestionOf(cmd), inspection.Asker{ID: cmd.ID, PID: from})
	switch {
	case busy:
		r.respond(from, messages.NewFailure(cmd, messages.CodeBusy, "too many snapshots are being put together"))
	case now != nil:
		r.jobs.Do(r.inspecting(now))
	}
}

// inspecting returns the job that puts a snapshot together, and answers.
func (r *registry) inspecting(l *inspection.Inspection) *jobs.Job {
	return &jobs.Job{Fail: r.failInspections, Step: func() (more bool) {
		if l.Snapshot == nil {
			l.Begin(r.table, r.snapshot(l.Server))
			r.member.Describe(l.Snapshot)
		}
		if l.Step() {
			return true
		}
		answer := func() { l.Answer(r.cfg.Name, func(to *actor.PID, s *messages.Snapshot) { r.cfg.Post.Send(to, s) }) }
		if l.Len() > contract.WalkStep { // sorting them takes longer than a step may
			r.cfg.Dispatcher.Schedule(answer)
		} else {
			answer()
		}
		if next := r.inspections.Next(); next != nil {
			r.jobs.Later(r.inspecting(next))
		}
		return false
	}}
}

// snapshot returns a snapshot without sessions, of all servers or of one.
func (r *registry) snapshot(server string) *messages.Snapshot {
	snap := &messages.Snapshot{
		Time: time.Now(), Counters: r.reports.Counters, Open: r.gate.Sessions.Open, Cap: r.cfg.MaxSessions,
		Waiting: r.table.Waiting + r.interceptors.Unpassed(), Stopping: r.table.Stopping,
		Servers: inspection.Servers(r.table, server, r.lists.Catalogue.Snapshot(time.Now())),
	}
	for i := range snap.Servers {
		snap.Servers[i].Handles = r.keeper.Snapshot(snap.Servers[i].Name)
	}
	snap.Counters.Dropped, snap.Counters.LinesDropped = r.cfg.Events.Dropped()+r.cfg.Post.Dropped(), r.cfg.Logger.Dropped()
	if r.cfg.Strays != nil {
		snap.Counters.Strays = r.cfg.Strays()
	}
	if r.cfg.Skipped != nil {
		snap.Counters.TextSkipped = r.cfg.Skipped()
	}
	return snap
}

// failInspections answers all who wait for a snapshot with a failure.
func (r *registry) failInspections(code messages.Code, detail string) {
	for _, asker := range r.inspections.Clear() {
		r.respond(asker.PID, messages.NewFailure(&messages.Inspect{ID: asker.ID}, code, detail))
	}
}

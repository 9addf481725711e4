package registry

import (
	"cmp"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/internal/relay"
	"github.com/mcpactor/mcpactor/messages"
)

// maxSelected is how many sessions are selected in one step. More are found by going through all.
const maxSelected = 1000

// listing puts the sessions of a snapshot together in steps. There is one at a time: the commands that come meanwhile wait for the next one, and those that select the same
// sessions share it.
type listing struct {
	of         inspected
	askers     []asker
	snapshot   *messages.Snapshot
	limit      int
	regs       []*table.Registration // of which snapshots are taken
	all        table.Cursor          // of the sessions of which they are taken in no order, if walks
	walks      bool
	listed     []listedSession
	supervisor string
}

// inspected is what an Inspect selects.
type inspected struct {
	table.Filter
	limit int
}

// asker waits for a snapshot.
type asker struct {
	id  string
	pid *actor.PID
}

// listedSession is a session with its place in a listing.
type listedSession struct {
	messages.SessionSnapshot
	rank  admission.Rank
	since uint64 // in the order in which sessions have got their states
}

// inspections are the listing that is put together, and those that wait.
type inspections struct {
	current *listing
	waiting []*listing
}

// onInspect answers with a snapshot. One with more sessions than a step may handle is put together in
// steps.
func (r *registry) onInspect(cmd *messages.Inspect, from *actor.PID) {
	of := inspected{table.Filter{Server: cmd.Server, Scope: cmd.Scope, State: cmd.State}, cmp.Or(cmd.Limit, messages.DefaultInspectLimit)}
	who := asker{cmd.ID, from}
	if r.inspections.current == nil {
		r.inspections.current = &listing{of: of, askers: []asker{who}}
		r.do(r.listingJob(r.inspections.current))
		return
	}
	for _, waiting := range r.inspections.waiting {
		if waiting.of == of {
			waiting.askers = append(waiting.askers, who)
			return
		}
	}
	if len(r.inspections.waiting) == maxSelected {
		r.respond(from, messages.NewFailure(cmd, messages.CodeBusy, "too many snapshots are being put together"))
		return
	}
	r.inspections.waiting = append(r.inspections.waiting, &listing{of: of, askers: []asker{who}})
}

// listingJob returns the job of a listing.
func (r *registry) listingJob(l *listing) *job {
	step := func() (more bool) {
		if l.snapshot == nil {
			r.beginListing(l)
		}
		more = l.step()
		if !more {
			r.endListing(l)
		}
		return more
	}
	return &job{step: step, fail: r.failListings}
}

// beginListing counts and selects the sessions of a listing.
func (r *registry) beginListing(l *listing) {
	counts, matching := r.table.Matching(l.of.Filter)
	l.supervisor = r.cfg.Name
	l.snapshot = &messages.Snapshot{
		Time: time.Now(), Counters: r.counters, States: counts,
		Open: r.gate.Sessions.Open, Cap: r.cfg.MaxSessions, Waiting: r.table.Waiting + r.unpassed, Stopping: r.table.Stopping,
		Servers: r.serverSnapshots(l.of.Server),
	}
	snap := l.snapshot
	snap.Counters.Dropped, snap.Counters.LinesDropped = r.cfg.Events.Dropped()+r.cfg.Post.Dropped(), r.cfg.Logger.Dropped()
	if r.cfg.Strays != nil {
		snap.Counters.Strays = r.cfg.Strays()
	}
	if r.cfg.Skipped != nil {
		snap.Counters.TextSkipped = r.cfg.Skipped()
	}
	for _, n := range counts {
		snap.Total += n
	}
	if r.cluster.Self != nil {
		self := r.cluster.Self()
		self.Sessions, self.Open, self.Cap = snap.Total, snap.Open, snap.Cap
		snap.Members = []messages.MemberSnapshot{self}
	}
	if l.limit = min(l.of.limit, snap.Total); l.of.limit < 0 {
		l.limit = snap.Total
	}
	if l.walks = l.limit > maxSelected && l.of.Scope == ""; l.walks {
		l.all = r.table.Cursor(func(server string) bool { return l.of.Server == "" || l.of.Server == server })
		return
	}
	for reg := range matching {
		if len(l.regs) == l.limit {
			break
		}
		l.regs = append(l.regs, reg)
	}
}

// step takes the next sessions. It reports whether there are more.
func (l *listing) step() (more bool) {
	n := min(contract.WalkStep, len(l.regs))
	for _, reg := range l.regs[:n] {
		if !reg.Removed() {
			l.take(reg)
		}
	}
	l.regs = l.regs[n:]
	return len(l.regs) > 0 || l.all.Step(func(reg *table.Registration) {
		if l.of.State == "" || reg.State() == l.of.State {
			l.take(reg)
		}
	})
}

// take adds the snapshot of a session.
func (l *listing) take(reg *table.Registration) {
	one := reg.Snapshot(l.snapshot.Time)
	one.Supervisor = l.supervisor
	rank, since := reg.Rank()
	l.listed = append(l.listed, listedSession{one, rank, since})
}

// endListing answers with a listing, and begins the next one. A long one is sorted in a goroutine.
func (r *registry) endListing(l *listing) {
	r.inspections.current = nil
	post := r.cfg.Post
	if len(l.listed) <= contract.WalkStep {
		l.answer(post)
	} else {
		r.cfg.Dispatcher.Schedule(func() { l.answer(post) })
	}
	if len(r.inspections.waiting) > 0 {
		r.inspections.current = r.inspections.waiting[0]
		r.inspections.waiting = r.inspections.waiting[1:]
		r.mailbox.PostUserMessage(r.listingJob(r.inspections.current))
	}
}

// failListings answers all who wait for a snapshot with a failure.
func (r *registry) failListings(code messages.Code, detail string) {
	all := r.inspections.waiting
	if r.inspections.current != nil {
		all = append(all, r.inspections.current)
	}
	r.inspections = inspections{}
	for _, l := range all {
		for _, asker := range l.askers {
			f := messages.NewFailure(&messages.Inspect{ID: asker.id}, code, detail)
			f.Supervisor = r.cfg.Name
			r.cfg.Post.Send(asker.pid, f)
		}
	}
}

// answer sends the snapshot to those who wait for it.
func (l *listing) answer(post *relay.Post) {
	if l.walks && l.limit < len(l.listed) {
		slices.SortFunc(l.listed, func(a, b listedSession) int {
			return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.Key.Server, b.Key.Server), cmp.Compare(a.since, b.since))
		})
		l.listed = l.listed[:l.limit]
	}
	slices.SortFunc(l.listed, func(a, b listedSession) int { return a.Key.Compare(b.Key) })
	sessions := make([]messages.SessionSnapshot, len(l.listed))
	for i := range l.listed {
		sessions[i] = l.listed[i].SessionSnapshot
	}
	for _, asker := range l.askers {
		mine := *l.snapshot
		mine.ID, mine.Sessions = asker.id, sessions
		post.Send(asker.pid, &mine)
	}
}

// serverSnapshots returns the snapshots of the configured servers, sorted by name, or that
// of one server. The time that it takes grows with the servers, and with the lists that the catalogue keeps.
func (r *registry) serverSnapshots(only string) []messages.ServerSnapshot {
	all := make([]messages.ServerSnapshot, 0, len(r.table.Servers))
	lists := r.catalogue.Snapshot(time.Now())
	for name, srv := range r.table.Servers {
		if only != "" && name != only {
			continue
		}
		ep := srv.Turns.Foremost()
		one := messages.ServerSnapshot{Name: name, Since: ep.Since, Lists: lists[name]}
		one.Health, one.Cause, one.RetryAt = ep.Health()
		r.table.Describe(&one)
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b messages.ServerSnapshot) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

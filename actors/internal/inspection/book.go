// Package inspection puts the snapshots together that callers ask for, in steps.
package inspection

import (
	"cmp"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/messages"
)

const (
	// maxSelected is how many sessions are selected in one step. More are found by going through all.
	maxSelected = 1000
	// maxWaiting is how many different snapshots may wait for the one that is put together.
	maxWaiting = 1000
)

// Book has the snapshot that is put together, and those that wait: one at a time is, the questions that come meanwhile wait for
// the next one, and those that select the same sessions share it.
type Book struct {
	current *Listing
	waiting []*Listing
}

// Question is what an Inspect asks for.
type Question struct {
	table.Filter
	Limit int // of sessions; negative is none
}

// QuestionOf returns what a command asks for.
func QuestionOf(cmd *messages.Inspect) Question {
	return Question{table.Filter{Server: cmd.Server, Scope: cmd.Scope, State: cmd.State}, cmp.Or(cmd.Limit, messages.DefaultInspectLimit)}
}

// Asker waits for a snapshot.
type Asker struct {
	ID  string
	PID *actor.PID
}

// Listing puts the sessions of a snapshot together.
type Listing struct {
	Question
	Snapshot *messages.Snapshot // nil until it begins

	askers []Asker
	regs   []*table.Registration // of which snapshots are taken
	all    table.Cursor          // of the sessions of which they are taken in no order, if there are many
	many   bool
	listed []listed
}

// listed is a session with its place in a listing.
type listed struct {
	messages.SessionSnapshot
	state admission.Rank
	since uint64 // in the order in which sessions have got their states
}

// Ask notes a question. It returns the listing that is to be begun now, or nil. busy is true if too many others wait, and the
// question is not noted.
func (b *Book) Ask(q Question, who Asker) (now *Listing, busy bool) {
	for _, waiting := range b.waiting {
		if waiting.Question == q {
			waiting.askers = append(waiting.askers, who)
			return nil, false
		}
	}
	l := &Listing{Question: q, askers: []Asker{who}}
	switch {
	case b.current == nil:
		b.current = l
		return l, false
	case len(b.waiting) == maxWaiting:
		return nil, true
	}
	b.waiting = append(b.waiting, l)
	return nil, false
}

// Next ends the listing, and returns the one that is to be begun next, or nil.
func (b *Book) Next() *Listing {
	if b.current = nil; len(b.waiting) > 0 {
		b.current, b.waiting = b.waiting[0], b.waiting[1:]
	}
	return b.current
}

// Clear forgets all listings, and returns who has waited for them.
func (b *Book) Clear() (all []Asker) {
	if b.current != nil {
		all = b.current.askers
	}
	for _, l := range b.waiting {
		all = append(all, l.askers...)
	}
	*b = Book{}
	return all
}

// Len returns how many sessions of the listing that is put together were taken.
func (b *Book) Len() int {
	if b.current == nil {
		return 0
	}
	return b.current.Len()
}

// Begin counts and selects the sessions, and adds their numbers to the snapshot.
func (l *Listing) Begin(t *table.Table, snapshot *messages.Snapshot) {
	counts, matching := t.Matching(l.Filter)
	l.Snapshot = snapshot
	snapshot.States = counts
	for _, n := range counts {
		snapshot.Total += n
	}
	if l.Limit = min(l.Limit, snapshot.Total); l.Limit < 0 {
		l.Limit = snapshot.Total
	}
	if l.many = l.Limit > maxSelected && l.Scope == ""; l.many {
		l.all = t.Cursor(func(server string) bool { return l.Server == "" || l.Server == server })
		return
	}
	for reg := range matching {
		if len(l.regs) == l.Limit {
			break
		}
		l.regs = append(l.regs, reg)
	}
}

// Step takes the snapshots of the next sessions. It reports whether there are more.
func (l *Listing) Step() (more bool) {
	n := min(contract.WalkStep, len(l.regs))
	for _, reg := range l.regs[:n] {
		if !reg.Removed() {
			l.take(reg)
		}
	}
	l.regs = l.regs[n:]
	return len(l.regs) > 0 || l.all.Step(func(reg *table.Registration) {
		if l.State == "" || reg.State() == l.State {
			l.take(reg)
		}
	})
}

// take adds the snapshot of a session.
func (l *Listing) take(reg *table.Registration) {
	state, since := reg.Rank()
	l.listed = append(l.listed, listed{reg.Snapshot(l.Snapshot.Time), state, since})
}

// Len returns how many sessions were taken.
func (l *Listing) Len() int { return len(l.listed) }

// Answer gives the snapshot to each who waits for it. It takes time that grows with its sessions, and may be called from any
// goroutine after the last step.
func (l *Listing) Answer(supervisor string, give func(to *actor.PID, snapshot *messages.Snapshot)) {
	if l.many && l.Limit < len(l.listed) {
		slices.SortFunc(l.listed, func(a, b listed) int {
			return cmp.Or(cmp.Compare(a.state, b.state), cmp.Compare(a.Key.Server, b.Key.Server), cmp.Compare(a.since, b.since))
		})
		l.listed = l.listed[:l.Limit]
	}
	slices.SortFunc(l.listed, func(a, b listed) int { return a.Key.Compare(b.Key) })
	sessions := make([]messages.SessionSnapshot, len(l.listed))
	for i := range l.listed {
		sessions[i] = l.listed[i].SessionSnapshot
		sessions[i].Supervisor = supervisor
	}
	for _, asker := range l.askers {
		mine := *l.Snapshot
		mine.ID, mine.Sessions = asker.ID, sessions
		give(asker.PID, &mine)
	}
}

// Servers returns the snapshots of the configured servers, sorted by name, or that
// of one server. The time that it takes grows with the servers.
func Servers(t *table.Table, only string, lists map[string]map[string]messages.ListsSnapshot) []messages.ServerSnapshot {
	all := make([]messages.ServerSnapshot, 0, len(t.Servers))
	for name, srv := range t.Servers {
		if only != "" && name != only {
			continue
		}
		ep := srv.Turns.Foremost()
		one := messages.ServerSnapshot{Name: name, Since: ep.Since, Lists: lists[name]}
		one.Health, one.Cause, one.RetryAt = ep.Health()
		t.Describe(&one)
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b messages.ServerSnapshot) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// Status returns the status of a key whose server is configured.
func Status(t *table.Table, key messages.Key, now time.Time) *messages.Status {
	s := &messages.Status{Key: key, Generation: t.Generations.Of(key)}
	ep, reg := t.Servers[key.Server].Turns.Home.Endpoint, (*table.Registration)(nil)
	if e := t.Entry(key); e != nil {
		if reg = e.Current; reg == nil {
			reg = e.Draining[len(e.Draining)-1]
		}
		one := reg.Snapshot(now)
		s.State, s.Generation, s.Cause, s.RetryAt = one.State, e.Generation, one.Cause, one.RetryAt
		ep = reg.Place.Endpoint
	}
	s.Health, _, _ = ep.Health()
	if ep.Down && s.Cause == "" && s.State != messages.StateReady {
		s.Cause, s.RetryAt = reg.CauseOf(ep).Error(), ep.Next
	}
	return s
}

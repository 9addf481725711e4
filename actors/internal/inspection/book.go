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

// Book has the inspections that are not done. One snapshot is put together at a time. The questions that come meanwhile wait, and
// those that select the same sessions share an inspection.
type Book struct {
	current *Inspection
	waiting []*Inspection
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

// Inspection puts one snapshot together.
type Inspection struct {
	Question
	Snapshot *messages.Snapshot // nil until it begins

	askers []Asker
	regs   []*table.Registration // of which snapshots are taken
	all    table.Cursor          // of the sessions of which they are taken in no order, if there are many
	many   bool
	rows   []row
}

// row is a session with what the sessions of a snapshot are ordered by.
type row struct {
	messages.SessionSnapshot
	state admission.Rank
	since uint64 // in the order in which sessions have got their states
}

// Ask notes a question. It returns the inspection that is to be begun now, or nil. busy is true if too many others wait, and the
// question is not noted.
func (b *Book) Ask(q Question, who Asker) (now *Inspection, busy bool) {
	for _, waiting := range b.waiting {
		if waiting.Question == q {
			waiting.askers = append(waiting.askers, who)
			return nil, false
		}
	}
	i := &Inspection{Question: q, askers: []Asker{who}}
	switch {
	case b.current == nil:
		b.current = i
		return i, false
	case len(b.waiting) == maxWaiting:
		return nil, true
	}
	b.waiting = append(b.waiting, i)
	return nil, false
}

// Next ends the inspection, and returns the one that is to be begun next, or nil.
func (b *Book) Next() *Inspection {
	if b.current = nil; len(b.waiting) > 0 {
		b.current, b.waiting = b.waiting[0], b.waiting[1:]
	}
	return b.current
}

// Clear forgets all inspections, and returns who waits for them.
func (b *Book) Clear() (all []Asker) {
	if b.current != nil {
		all = b.current.askers
	}
	for _, i := range b.waiting {
		all = append(all, i.askers...)
	}
	*b = Book{}
	return all
}

// Len returns how many sessions of the current inspection were taken.
func (b *Book) Len() int {
	if b.current == nil {
		return 0
	}
	return b.current.Len()
}

// Begin counts and selects the sessions, and adds their numbers to the snapshot.
func (i *Inspection) Begin(t *table.Table, snapshot *messages.Snapshot) {
	counts, matching := t.Matching(i.Filter)
	i.Snapshot = snapshot
	snapshot.States = counts
	for _, n := range counts {
		snapshot.Total += n
	}
	if i.Limit = min(i.Limit, snapshot.Total); i.Limit < 0 {
		i.Limit = snapshot.Total
	}
	if i.many = i.Limit > maxSelected && i.Scope == ""; i.many {
		i.all = t.Cursor(func(server string) bool { return i.Server == "" || i.Server == server })
		return
	}
	for reg := range matching {
		if len(i.regs) == i.Limit {
			break
		}
		i.regs = append(i.regs, reg)
	}
}

// Step takes the snapshots of the next sessions. It reports whether there are more.
func (i *Inspection) Step() (more bool) {
	n := min(contract.WalkStep, len(i.regs))
	for _, reg := range i.regs[:n] {
		if !reg.Removed() {
			i.take(reg)
		}
	}
	i.regs = i.regs[n:]
	return len(i.regs) > 0 || i.all.Step(func(reg *table.Registration) {
		if i.State == "" || reg.State() == i.State {
			i.take(reg)
		}
	})
}

// take adds the snapshot of a session.
func (i *Inspection) take(reg *table.Registration) {
	state, since := reg.Rank()
	i.rows = append(i.rows, row{reg.Snapshot(i.Snapshot.Time), state, since})
}

// Len returns how many sessions were taken.
func (i *Inspection) Len() int { return len(i.rows) }

// Answer gives the snapshot to each who waits for it. It takes time that grows with its sessions, and may be called from any
// goroutine after the last step.
func (i *Inspection) Answer(supervisor string, give func(to *actor.PID, snapshot *messages.Snapshot)) {
	if i.many && i.Limit < len(i.rows) {
		slices.SortFunc(i.rows, func(a, b row) int {
			return cmp.Or(cmp.Compare(a.state, b.state), cmp.Compare(a.Key.Server, b.Key.Server), cmp.Compare(a.since, b.since))
		})
		i.rows = i.rows[:i.Limit]
	}
	slices.SortFunc(i.rows, func(a, b row) int { return a.Key.Compare(b.Key) })
	sessions := make([]messages.SessionSnapshot, len(i.rows))
	for at := range i.rows {
		sessions[at] = i.rows[at].SessionSnapshot
		sessions[at].Supervisor = supervisor
	}
	for _, asker := range i.askers {
		mine := *i.Snapshot
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
		if s.State == messages.StateReady {
			s.Declared = reg.Info.Declared
		}
	}
	s.Health, _, _ = ep.Health()
	if ep.Down && s.Cause == "" && s.State != messages.StateReady {
		s.Cause, s.RetryAt = reg.CauseOf(ep).Error(), ep.Next
	}
	return s
}

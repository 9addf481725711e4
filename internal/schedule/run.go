package schedule

import (
	"fmt"
	"time"
)

// Run is one schedule of a simulation: its choices, its log, and what came of it. Simulations embed it. Whoever has the turn
// uses it.
type Run struct {
	*Tape
	Began time.Time
	Keep  bool // the log
	Steps int  // so far

	now       func() time.Time
	log       []string
	crossings map[string]int
	violation string
	kind      string
}

// Begin returns a run that has not made any choice. now is its clock.
func Begin(tape *Tape, keep bool, now func() time.Time) *Run {
	return &Run{Tape: tape, Keep: keep, Began: now(), now: now, crossings: map[string]int{}}
}

// Intact reports whether all holds so far.
func (r *Run) Intact() bool { return r.violation == "" }

// Violation says what did not hold, or is empty.
func (r *Run) Violation() string { return r.violation }

// Violate notes that something of a kind does not hold. Only the first violation counts. The format may say it all, and
// be the kind.
func (r *Run) Violate(kind, format string, args ...any) {
	if r.Intact() {
		r.kind, r.violation = kind, fmt.Sprintf(format, args...)
		if format != kind {
			r.violation = kind + ": " + r.violation
		}
		r.Logf("VIOLATION %s", r.violation)
		r.Keep = false // what follows only ends the schedule
	}
}

// Crossed counts a crossing: an order of events that matters.
func (r *Run) Crossed(what string) { r.crossings[what]++ }

// Log returns the lines of the log.
func (r *Run) Log() []string { return r.log }

// Logf adds a line to the log.
func (r *Run) Logf(format string, args ...any) {
	if r.Keep {
		r.log = append(r.log, fmt.Sprintf("%5d %8.3f ", r.Steps, r.now().Sub(r.Began).Seconds())+fmt.Sprintf(format, args...))
	}
}

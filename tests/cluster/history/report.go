package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mcpactor/mcpactor/messages"
)

// Report is a history in numbers.
type Report struct {
	Calls, Answered, Succeeded int
	// Failures are the failures by code, and MayHaveRun how many of them may have run.
	Failures   map[messages.Code]int
	MayHaveRun int
	// Duplicates is the number of calls that ran twice and must not, and Replays the number
	// of those that may.
	Duplicates, Replays int
	// Sessions is the number of MCP sessions, and Scopes that of the scopes.
	Sessions, Scopes int
	// Overlaps is the number of times that a scope had two live sessions, and Longest the
	// longest of these times. Those of a control are counted by Controls.
	Overlaps, Controls int
	Longest            time.Duration
	// Had is the number of scopes with a result before the first fault and one after the
	// last, and Kept how many of them had the same MCP session.
	Had, Kept int
	// Bystanders are those of Had whose member had no fault, and Undisturbed how many of them
	// had the same MCP session.
	Bystanders, Undisturbed int
	// InPause is the number of calls that ran when their member, or that of their agent, was
	// stopped.
	InPause int
	// Recoveries are the times of recovery after each fault.
	Recoveries []Recovery
}

// Recovery is how long the scopes of a member took after a fault.
type Recovery struct {
	Fault         *Fault
	Scopes        int
	Median, Worst time.Duration
}

// Report returns the numbers.
func (h *History) Report() *Report {
	r := &Report{Calls: len(h.Calls), Failures: map[messages.Code]int{}, Sessions: len(h.Sessions)}
	scopes := map[string]bool{}
	for _, c := range h.Calls {
		scopes[c.Scope] = true
		if c.Replies > 0 {
			r.Answered++
		}
		switch {
		case c.ok():
			r.Succeeded++
		case c.Code != "":
			r.Failures[c.Code]++
			if c.MayHaveRun {
				r.MayHaveRun++
			}
		}
		if h.inPause(c.Member, c.Started, c.Ended) || h.inPause(c.Supervisor, c.Started, c.Ended) {
			r.InPause++
		}
	}
	r.Scopes = len(scopes)
	for _, runs := range h.executions() {
		switch {
		case len(runs) < 2:
		case Safe(runs[0].Tool):
			r.Replays++
		default:
			r.Duplicates++
		}
	}
	for _, o := range h.Overlaps() {
		if o.Control {
			r.Controls++
			continue
		}
		r.Overlaps++
		r.Longest = max(r.Longest, o.To.Sub(o.From))
	}
	h.reportKept(r)
	for _, f := range h.Faults {
		if f.Kind == Join {
			continue
		}
		times := slices.Sorted(maps.Values(h.recovery(f, true)))
		if len(times) == 0 {
			continue
		}
		r.Recoveries = append(r.Recoveries, Recovery{f, len(times), times[len(times)/2], times[len(times)-1]})
	}
	return r
}

// reportKept counts the sessions that kept their state from before the first fault until after
// the last.
func (h *History) reportKept(r *Report) {
	if len(h.Faults) == 0 {
		return
	}
	first, last := h.Faults[0].At, h.Faults[0].Settled
	faulty := map[string]bool{}
	for _, f := range h.Faults {
		faulty[f.Member] = true
		if f.Settled.After(last) {
			last = f.Settled
		}
	}
	before, after := map[string]*Call{}, map[string]*Call{}
	for _, c := range h.Calls {
		switch {
		case !c.ok() || c.Session == "":
		case c.Ended.Before(first):
			before[c.Scope] = c
		case c.Started.After(last):
			after[c.Scope] = c
		}
	}
	for scope, was := range before {
		is := after[scope]
		if is == nil {
			continue
		}
		same := was.Session == is.Session
		r.Had++
		if same {
			r.Kept++
		}
		if !faulty[was.Supervisor] {
			r.Bystanders++
			if same {
				r.Undisturbed++
			}
		}
	}
}

// String returns the report as a table.
func (r *Report) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(name string, format string, args ...any) {
		fmt.Fprintf(w, "%s\t"+format+"\n", append([]any{name}, args...)...)
	}
	row("calls", "%d", r.Calls)
	row("answered", "%d, with a result %d", r.Answered, r.Succeeded)
	for _, code := range slices.Sorted(maps.Keys(r.Failures)) {
		row("  "+string(code), "%d", r.Failures[code])
	}
	row("failures that may have run", "%d", r.MayHaveRun)
	row("in flight at a member that was stopped", "%d", r.InPause)
	row("duplicate executions", "%d, and %d safe replays", r.Duplicates, r.Replays)
	row("MCP sessions", "%d of %d scopes", r.Sessions, r.Scopes)
	row("two sessions of a scope", "%d times, the longest %v, and %d controls", r.Overlaps, r.Longest.Round(time.Millisecond), r.Controls)
	row("kept their state", "%d of %d, and of members without a fault %d of %d", r.Kept, r.Had, r.Undisturbed, r.Bystanders)
	for _, one := range r.Recoveries {
		row(fmt.Sprintf("recovery after %s %s", one.Fault.Kind, one.Fault.Member), "median %v, worst %v of %d scopes",
			one.Median.Round(time.Millisecond), one.Worst.Round(time.Millisecond), one.Scopes)
	}
	w.Flush() //nolint:errcheck // it writes to memory
	return b.String()
}

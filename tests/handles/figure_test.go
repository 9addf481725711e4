//go:build handles && linux

package handles

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"
)

// figure is what has come of a run.
type figure struct {
	run    run
	report report // of the last platform
	counts counts // of the server, while the platform still runs
	first  counts // of the server that was killed
	before int    // handles that were held when something was killed
	atEnd  int    // handles that are held after the end of the platform
	took   time.Duration
}

// check returns what is wrong.
func (f figure) check() error {
	if f.run.bound == undeclared {
		return f.checkUndeclared()
	}
	r, c := f.report, f.counts
	// After a restart, the numbers of handles that agents still have are those of others.
	mayBeMistaken := f.run.counted && f.run.killsServer
	mayBeMissing, mayBeReleasedTwice := 0, 0
	if f.run.killsServer { // whoever has held one notices at its next use, and so does the one to whom it was lent
		mayBeMissing = 2 * capacity
	}
	if f.run.killsPlatform { // a release was on its way, or its record was still in the store
		mayBeMissing, mayBeReleasedTwice = capacity, capacity
	}
	// If all are left, there is no room for anybody.
	mayStarve := f.run.counted && f.run.killsPlatform && r.Named == capacity
	var errs []error
	wrong := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	wrong(r.Starved > 0 && !mayStarve || r.Served+r.Starved != f.run.agents, "%d agents of %d were served, and %d starved", r.Served, f.run.agents, r.Starved)
	// A server may restart unnoticed, between two calls: seldom a release of a former number is on its way then.
	wrong(c.Wrong > 0 && !mayBeMistaken || c.Wrong > 1, "%d handles were released while somebody held them", c.Wrong)
	wrong(c.WrongByAgents > 0 && !mayBeMistaken, "agents have released %d handles that somebody else held", c.WrongByAgents)
	wrong(c.Doubles > mayBeReleasedTwice, "%d handles were released twice", c.Doubles)
	wrong(c.Taken > 0, "%d uses found that the supervisor had released the handle", c.Taken)
	wrong(r.Missing > mayBeMissing, "%d handles were no more when they were used", r.Missing)
	wrong(f.run.killsPlatform && r.Back == 0, "no agent has found its handle again")
	wrong(r.Unanswered > 0 && f.run.drops == 0 && !f.run.killsPlatform && !f.run.killsServer, "%d mints were not answered", r.Unanswered)
	wrong(r.InBook > 0, "%d handles are in the book at the end, and not left", r.InBook)
	wrong(f.atEnd > r.Named, "%d handles are held at the end, and %d are named", f.atEnd, r.Named)
	wrong(f.atEnd > 0 && !f.run.counted, "%d unique handles are held at the end", f.atEnd)
	return errors.Join(errs...)
}

// checkUndeclared returns what is wrong if handles are not declared: that they are no problem.
func (f figure) checkUndeclared() error {
	if f.report.Starved == 0 || f.counts.Held < capacity/2 || f.report.Served+f.report.Starved != f.run.agents {
		return fmt.Errorf("of %d agents %d were served, %d starved, and %d handles are held", f.run.agents, f.report.Served, f.report.Starved, f.counts.Held)
	}
	return nil
}

// table returns a table of figures.
func table(figures []figure) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "agents\tserved\tstarved\theld at a kill\theld\tnamed\tlongest wait\tminted\ttwice\twrong\twrong by agents\ttaken\tmissing\tback\tlost answers\ttime\t  run")
	for _, f := range figures {
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%d\t%.1f s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%.0f s\t  %s\n", f.run.agents, f.report.Served, f.report.Starved, f.before, f.atEnd,
			f.report.Named, f.report.Longest.Seconds(), f.counts.Minted, f.counts.Doubles, f.counts.Wrong, f.counts.WrongByAgents, f.counts.Taken, f.report.Missing,
			f.report.Back, f.counts.Dropped, f.took.Seconds(), f.run.name)
	}
	w.Flush()
	return text.String()
}

func TestFiguresSayWhatIsWrong(t *testing.T) {
	good := func() figure {
		return figure{run: run{agents: 64, bound: declared}, report: report{Served: 64}, counts: counts{Minted: 64}}
	}
	require.NoError(t, good().check())
	for wrong, change := range map[string]func(*figure){
		"63 agents of 64 were served, and 1 starved":            func(f *figure) { f.report.Served, f.report.Starved = 63, 1 },
		"63 agents of 64 were served, and 0 starved":            func(f *figure) { f.report.Served = 63 },
		"64 agents of 65 were served, and 0 starved":            func(f *figure) { f.run.agents = 65 },
		"1 handles were released while somebody held them":      func(f *figure) { f.counts.Wrong = 1 },
		"2 handles were released while somebody held them":      func(f *figure) { f.run.counted, f.run.killsServer, f.counts.Wrong = true, true, 2 },
		"agents have released 1 handles that somebody else":     func(f *figure) { f.counts.WrongByAgents = 1 },
		"1 handles were released twice":                         func(f *figure) { f.counts.Doubles = 1 },
		"no agent has found its handle again":                   func(f *figure) { f.run.killsPlatform = true },
		"17 handles were released twice":                        func(f *figure) { f.run.killsPlatform, f.counts.Doubles = true, capacity+1 },
		"1 uses found that the supervisor had released":         func(f *figure) { f.counts.Taken = 1 },
		"1 handles were no more when they were used":            func(f *figure) { f.report.Missing = 1 },
		"33 handles were no more when they were used":           func(f *figure) { f.run.killsServer, f.report.Missing = true, 2*capacity+1 },
		"1 mints were not answered":                             func(f *figure) { f.report.Unanswered = 1 },
		"1 handles are in the book at the end":                  func(f *figure) { f.report.InBook = 1 },
		"2 handles are held at the end, and 1 are named":        func(f *figure) { f.run.counted, f.atEnd, f.report.Named = true, 2, 1 },
		"1 unique handles are held at the end":                  func(f *figure) { f.atEnd, f.report.Named = 1, 1 },
		"of 64 agents 64 were served, 0 starved, and 16 handle": func(f *figure) { f.run.bound, f.counts.Held = undeclared, 16 },
		"of 64 agents 32 were served, 32 starved, and 0 handle": func(f *figure) { f.run.bound, f.report.Served, f.report.Starved = undeclared, 32, 32 },
	} {
		f := good()
		change(&f)
		require.ErrorContains(t, f.check(), wrong)
	}
	named := good()
	named.run.counted, named.atEnd, named.report.Named = true, 2, 2
	require.NoError(t, named.check())
}

//go:build linux

package calls

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"
)

// ledger reads what the server has written.
type ledger struct {
	mu   sync.Mutex
	file *os.File
	rest []byte // of a line
	runs map[string]int
}

// openLedger creates a ledger.
func openLedger(path string) (*ledger, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o600)
	return &ledger{file: file, runs: map[string]int{}}, err
}

// read reads what is new, with the lock.
func (l *ledger) read() error {
	more, err := io.ReadAll(l.file)
	lines := bytes.Split(append(l.rest, more...), []byte("\n"))
	l.rest = lines[len(lines)-1]
	for _, line := range lines[:len(lines)-1] {
		l.runs[string(line)]++
	}
	return err
}

// runsOf returns how often a call has run.
func (l *ledger) runsOf(n int) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.read()
	return l.runs[fmt.Sprint(n)], err
}

// outcome is what was told of a call in the end.
type outcome struct {
	n     int
	id    string
	told  told
	met   bool // the call was in flight at a kill
	asked int  // how often it was asked for
	// wrong is what was told of the call before, and was wrong.
	wrong string
}

// isOK reports whether a result was told.
func (t told) isOK() bool { return t.Code == "" }

// String returns what was told.
func (t told) String() string {
	if t.isOK() {
		return t.Text
	}
	return fmt.Sprintf("%s, may have run: %t: %s", t.Code, t.MayHaveRun, t.Detail)
}

// String says what was told of which call.
func (o outcome) String() string {
	return fmt.Sprintf("%s (asked for %d times, met by a kill: %t): %v", o.id, o.asked, o.met, o.told)
}

// verdict compares what was told with what has run.
type verdict struct {
	calls, met, ok int

	twice   []string // have run twice
	denied  []string // have run, and it was said that they have not
	claimed []string // have not run, and there is a result, or that of another call
	unknown []string // it is not known whether they have run
	notRun  []string // have not run, and it was said so
	strange []string // have run, and nobody has asked for them
}

// judge compares outcomes with how often each call has run. A call that was asked for in two programs at once has two outcomes.
func judge(outcomes []outcome, runs map[string]int) *verdict {
	v := new(verdict)
	asked, met := map[string]bool{}, map[string]bool{}
	for _, o := range outcomes {
		name := fmt.Sprint(o.n)
		if n := runs[name]; n > 1 && !asked[name] {
			v.twice = append(v.twice, fmt.Sprintf("ran %d times: %v", n, o))
		}
		asked[name], met[name] = true, met[name] || o.met
		ran := runs[name] > 0
		if o.wrong != "" {
			v.denied = append(v.denied, o.id+": "+o.wrong)
		}
		switch {
		case o.told.isOK() && ran && o.told.Text == receipt(o.n):
			v.ok++
		case o.told.isOK():
			v.claimed = append(v.claimed, o.String())
		case o.told.MayHaveRun:
			v.unknown = append(v.unknown, o.String())
		case ran:
			v.denied = append(v.denied, o.String())
		default:
			v.notRun = append(v.notRun, o.String())
		}
	}
	for name := range runs {
		if !asked[name] {
			v.strange = append(v.strange, name)
		}
	}
	v.calls = len(asked)
	for _, is := range met {
		if is {
			v.met++
		}
	}
	return v
}

// check returns what is wrong, with the ids of the calls.
func (v *verdict) check() error {
	var all strings.Builder
	for _, wrong := range []struct {
		text  string
		calls []string
	}{
		{"ran twice", v.twice},
		{"ran, and were said not to have run", v.denied},
		{"did not run, and have a result", v.claimed},
		{"ran, and nobody asked for them", v.strange},
	} {
		if len(wrong.calls) > 0 {
			fmt.Fprintf(&all, "%d calls %s:\n\t%s\n", len(wrong.calls), wrong.text, strings.Join(wrong.calls, "\n\t"))
		}
	}
	if len(v.unknown)*100 > v.met {
		fmt.Fprintf(&all, "of %d calls it is unknown whether they ran, and a kill met %d:\n\t%s\n",
			len(v.unknown), v.met, strings.Join(v.unknown, "\n\t"))
	}
	if v.met*100 < v.calls {
		fmt.Fprintf(&all, "kills met %d of %d calls, less than one in a hundred\n", v.met, v.calls)
	}
	if all.Len() > 0 {
		return fmt.Errorf("%s", all.String())
	}
	return nil
}

// column is a column of the table.
type column struct {
	name    string
	verdict *verdict
	kills   kills
	took    time.Duration
}

// table returns a table of what has come of the set-ups.
func table(columns []column) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, value func(column) any) {
		for _, c := range columns {
			fmt.Fprintf(w, "%v\t", value(c))
		}
		fmt.Fprintf(w, "  %s\n", name)
	}
	row("", func(c column) any { return c.name })
	row("calls", func(c column) any { return c.verdict.calls })
	row("programs that were killed", func(c column) any { return c.kills.programs })
	row("servers that were killed", func(c column) any { return c.kills.servers })
	row("cuts of the store", func(c column) any { return c.kills.cuts })
	row("calls in flight at a kill", func(c column) any { return c.verdict.met })
	row("ran twice or more", func(c column) any { return len(c.verdict.twice) })
	row("ran, and were said to have failed", func(c column) any { return len(c.verdict.denied) })
	row("did not run, and have a result", func(c column) any { return len(c.verdict.claimed) })
	row("unknown at the end", func(c column) any { return len(c.verdict.unknown) })
	row("did not run, and were said so", func(c column) any { return len(c.verdict.notRun) })
	row("time", func(c column) any { return c.took.Round(time.Second) })
	w.Flush()
	return text.String()
}

func TestVerdictFindsWhatIsWrong(t *testing.T) {
	said := func(n int, told told) outcome {
		return outcome{n: n, id: fmt.Sprint("call-", n), told: told, met: true}
	}
	ok := func(n int) outcome { return said(n, told{Text: receipt(n)}) }
	notRun, unknown := told{Code: "unavailable"}, told{Code: "lost", MayHaveRun: true}
	earlier := ok(1)
	earlier.wrong = "unavailable"
	for name, test := range map[string]struct {
		outcomes []outcome
		runs     map[string]int
		wrong    string // empty if nothing is
	}{
		"all is well":                    {[]outcome{ok(1), said(2, notRun)}, map[string]int{"1": 1}, ""},
		"it was asked for by two":        {[]outcome{ok(1), ok(1)}, map[string]int{"1": 1}, ""},
		"it ran twice":                   {[]outcome{ok(1), ok(1)}, map[string]int{"1": 2}, "1 calls ran twice:\n\tran 2 times: call-1"},
		"it is said not to have run":     {[]outcome{said(1, notRun)}, map[string]int{"1": 1}, "said not to have run:\n\tcall-1"},
		"it was said not to have run":    {[]outcome{earlier}, map[string]int{"1": 1}, "said not to have run:\n\tcall-1: unavailable"},
		"it did not run":                 {[]outcome{ok(1)}, nil, "did not run, and have a result:\n\tcall-1"},
		"it has the result of another":   {[]outcome{said(1, told{Text: receipt(2)})}, map[string]int{"1": 1}, "have a result:\n\tcall-1"},
		"nobody has asked for it":        {[]outcome{ok(1)}, map[string]int{"1": 1, "2": 1}, "nobody asked for them:\n\t2"},
		"too many are unknown":           {[]outcome{ok(1), said(2, unknown)}, map[string]int{"1": 1}, "of 1 calls it is unknown whether"},
		"the kills have met hardly any":  {[]outcome{{n: 1, told: told{Text: receipt(1)}}}, map[string]int{"1": 1}, "kills met 0 of 1 calls"},
		"there is neither told nor runs": {nil, nil, ""},
	} {
		err := judge(test.outcomes, test.runs).check()
		if test.wrong == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, test.wrong, name)
	}
	many := make([]outcome, 0, 100)
	runs := map[string]int{}
	for n := range 99 {
		many, runs[fmt.Sprint(n)] = append(many, ok(n)), 1
	}
	require.NoError(t, judge(append(many, said(99, unknown)), runs).check(), "one in a hundred")
}

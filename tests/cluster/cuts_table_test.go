//go:build linux

package cluster_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mcpactor/mcpactor/messages"
)

// cutTable returns the tables of all cases, and of all groups of cases.
func cutTable(rows []cutRow) string {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 1, ' ', tabwriter.Debug)
	fmt.Fprintln(w, "\ncase\tcalls\tanswered\tfailed, by code\tmay have run\tran twice\tboth acted\tserve\tafter\trecovered\tkept\tleft\t")
	var groups []string
	of := map[string][]*cutRow{}
	for i := range rows {
		r := &rows[i]
		r.write(w)
		if r.report == nil {
			continue
		}
		if of[r.group] == nil {
			groups = append(groups, r.group)
		}
		of[r.group] = append(of[r.group], r)
		of[""] = append(of[""], r)
	}
	w.Flush() // it writes to memory
	fmt.Fprintln(&b, "\n| cases | | calls | failed: median, worst | may have run | both acted | served after the cut: median, worst | recovered after the healing | sessions kept | left |")
	fmt.Fprintln(&b, "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
	for _, name := range append(groups, "") {
		if len(of[name]) > 0 {
			writeGroup(&b, name, of[name])
		}
	}
	return b.String()
}

// write writes the row of a case.
func (r *cutRow) write(w io.Writer) {
	name := r.witness + ": " + r.name
	if !r.passed {
		name += " FAILED"
	}
	if r.report == nil {
		fmt.Fprintf(w, "%s%s\n", name, strings.Repeat("\t", 12))
		return
	}
	after := "never"
	if r.serve > 0 {
		after = rounded(r.worked)
	}
	fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%d\t%d\t%v\t%d\t%s\t%s\t%d of %d\t%d\t\n", name, r.report.Calls, r.report.Answered, codesOf(r.report.Failures),
		r.report.MayHaveRun, r.report.Duplicates, r.doubled.Round(time.Millisecond), r.served.Most, after, rounded(r.recovered), r.kept, r.had, r.left)
}

// writeGroup writes the row of a group, or of all cases.
func writeGroup(w io.Writer, name string, rows []*cutRow) {
	sum := func(figure func(r *cutRow) int) (all int) {
		for _, r := range rows {
			all += figure(r)
		}
		return all
	}
	most := func(figure func(r *cutRow) time.Duration) string {
		var all []time.Duration
		for _, r := range rows {
			all = append(all, figure(r))
		}
		slices.Sort(all)
		return rounded(all[len(all)/2]) + ", " + rounded(all[len(all)-1])
	}
	var failed []int
	var doubled time.Duration
	serves := false
	for _, r := range rows {
		failed = append(failed, r.report.Answered-r.report.Succeeded)
		doubled = max(doubled, r.doubled)
		serves = serves || r.serve > 0
	}
	slices.Sort(failed)
	after := "nobody serves"
	if serves {
		after = most(func(r *cutRow) time.Duration { return r.worked })
	}
	if name == "" {
		name = "all"
	}
	fmt.Fprintf(w, "| %s | %d | %d | %d, %d | %d | %v | %s | %s | %d of %d | %d |\n", name, len(rows),
		sum(func(r *cutRow) int { return r.report.Calls }), failed[len(failed)/2], failed[len(failed)-1],
		sum(func(r *cutRow) int { return r.report.MayHaveRun }), doubled.Round(time.Millisecond), after,
		most(func(r *cutRow) time.Duration { return r.recovered }),
		sum(func(r *cutRow) int { return r.kept }), sum(func(r *cutRow) int { return r.had }), sum(func(r *cutRow) int { return r.left }))
}

// rounded is a time in a table.
func rounded(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// codesOf lists failures by code.
func codesOf(failures map[messages.Code]int) string {
	var all []string
	for _, code := range slices.Sorted(maps.Keys(failures)) {
		all = append(all, fmt.Sprintf("%s %d", code, failures[code]))
	}
	return strings.Join(all, ", ")
}

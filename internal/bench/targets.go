package bench

import (
	"fmt"
	"strings"
)

// target is a bound for contenders, in all cases that match a pattern.
type target struct {
	what  string
	of    []string // contenders
	cases string
	kind  figure
	by    string // the contender that they are compared with
	unit  string // of what is compared; empty is time
	limit float64
}

// figure is what a target bounds: it is at most the limit.
type figure int

const (
	ratio      figure = iota // the value divided by that of the other contender
	difference               // the value minus that of the other contender
	value                    // the value itself
)

// targets returns all targets.
func targets() (all []target) {
	ours, client, manyKeys := []string{messageName, clientName}, []string{clientName}, []string{messageName + "-100000"}
	transports := []string{"memory", "stdio", nameJSON, nameSSE}
	for _, transport := range transports {
		all = append(all, target{"time relative to `bare`", ours, "warm/transport=" + transport, ratio, bareName, "", 1.02})
	}
	all = append(all, []target{
		{"aim: time relative to `bare`", client, "warm/transport=http-json/callers=64", ratio, bareName, "", 0.95},
		{"aim: time relative to `bare`", client, "warm/transport=http-sse/callers=64", ratio, bareName, "", 0.90},
		{"time relative to `per-call`", ours, "warm/transport=http-*", ratio, perCallName, "", 0.125},
		{"time relative to `initialize` and a call", ours, "recovery", ratio, bareName, "", 1.2},
		{"sessions opened for one that expired", ours, "herd", value, "", rebuilds, 1},
		{"time relative to `initialize` and the same calls", ours, "herd", ratio, bareName, "", 2},
		{"time with 100,000 keys relative to 10", manyKeys, "registry/callers=1", ratio, messageName + "-10", "", 1.3},
		{"time with 100,000 keys relative to 10", manyKeys, "registry/callers=64", ratio, messageName + "-10", "", 1.3},
		{"memory added to a session", ours, "idle/transport=http-json/stream=with", difference, bareName, bytesPerSession, 4096},
		{"memory added to a session", ours, "idle/transport=http-json/stream=without", difference, bareName, bytesPerSession, 4096},
		{"bytes allocated, in sizes of the result", ours, "large/content=text/transport=http-json", value, "", bodiesPerOp, 2.2},
		{"bytes allocated, in sizes of the result", ours, "large/content=image/transport=http-json", value, "", bodiesPerOp, 2.0},
	}...)
	for i, limit := range []float64{12, 16, 24, 24} {
		all = append(all, target{"allocations added to a call", ours, "warm/transport=" + transports[i] + "/callers=1", difference, bareName, allocsPerOp, limit})
	}
	return all
}

// check is a target with what was measured in one case by one contender.
type check struct {
	target
	where string
	spread
}

// verdict says whether a target is met, or that it is within the interquartile range.
func (c check) verdict() string {
	switch {
	case c.low < c.limit && c.limit < c.high:
		return "uncertain"
	case c.median <= c.limit:
		return "met"
	}
	return "missed"
}

// values returns what a contender has measured, round by round.
func (t target) values(c *caseResult, how string) []float64 {
	unit := t.unit
	if unit == "" {
		unit = c.timeUnit()
	}
	switch t.kind {
	case difference:
		return c.differences(how, t.by, unit)
	case value:
		return c.values[series{how, unit}]
	}
	return c.ratios(how, t.by, unit)
}

// worst returns the check of the case and the contender that are furthest from the
// target, if anything was measured.
func (r *Report) worst(t target) (worst check, found bool) {
	for _, c := range r.matching(t.cases) {
		for _, how := range t.of {
			values := t.values(c, how)
			if len(values) == 0 {
				continue
			}
			s := spreadOf(values)
			if !found || s.median > worst.median {
				worst, found = check{t, c.name + "/how=" + how, s}, true
			}
		}
	}
	return worst, found
}

// targetTable returns the targets with what was measured.
func (r *Report) targetTable() string {
	var b strings.Builder
	b.WriteString("| what | target | median | interquartile range | | furthest from the target |\n|---|---|---|---|---|---|\n")
	for _, t := range targets() {
		c, found := r.worst(t)
		if !found {
			continue
		}
		fmt.Fprintf(&b, "| %s | ≤ %s | %s | %s to %s | %s | `%s` |\n", c.what, format(c.limit, c.unit),
			format(c.median, c.unit), format(c.low, c.unit), format(c.high, c.unit), c.verdict(), c.where)
	}
	return b.String()
}

package bench

import (
	"fmt"
	"math"
	"strings"
)

// target is a bound for supervised contenders, in all cases that match a pattern.
type target struct {
	what  string
	cases string
	kind  figure
	by    string // the contender that they are compared with
	unit  string // of what is compared; empty is time
	limit float64
}

// figure is what a target bounds.
type figure int

const (
	ratio      figure = iota // the value divided by that of the other contender: at most
	throughput               // the inverse: at least
	difference               // the value minus that of the other contender: at most
	value                    // the value itself: at most
)

// ours are the contenders that the targets are for.
var ours = []string{messageName, clientName}

// targets returns all targets.
func targets() []target {
	all := []target{
		{"throughput relative to `bare`", "warm/transport=http-json/callers=64", throughput, bareName, "", 0.97},
		{"throughput relative to `bare`", "warm/transport=http-sse/callers=64", throughput, bareName, "", 0.97},
		{"throughput relative to `per-call`", "warm/transport=http-*", throughput, perCallName, "", 8},
		{"latency relative to `bare`", "warm/transport=memory/callers=1", ratio, bareName, "", 1.05},
	}
	for _, transport := range []string{"memory", "stdio", nameJSON, nameSSE} {
		all = append(all, target{"time relative to `mutex-map`", "warm/transport=" + transport, ratio, mutexMapName, "", 1.03})
	}
	all = append(all, []target{
		{"time relative to `initialize` and a call", "recovery", ratio, bareName, "", 1.25},
		{"sessions opened for one that expired", "herd", value, "", rebuilds, 1},
		{"time relative to `initialize` and the same calls", "herd", ratio, bareName, "", 2},
		{"time with 100,000 keys relative to 10", "registry/callers=1", ratio, messageName + "-10", "", 1.3},
		{"time with 100,000 keys relative to 10", "registry/callers=64", ratio, messageName + "-10", "", 1.3},
		{"memory added to a session", "idle/transport=http-json/stream=with", difference, bareName, bytesPerSession, 4096},
		{"memory added to a session", "idle/transport=http-json/stream=without", difference, bareName, bytesPerSession, 4096},
	}...)
	for _, transport := range []string{"memory", "stdio", nameJSON, nameSSE} {
		all = append(all, target{"allocations added to a call", "warm/transport=" + transport + "/callers=1", difference, bareName, allocsPerOp, 12})
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
	met := c.median <= c.limit
	if c.kind == throughput {
		met = c.median >= c.limit
	}
	switch {
	case c.low < c.limit && c.limit < c.high:
		return "uncertain"
	case met:
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
	case throughput:
		return c.ratios(t.by, how, unit)
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
		for _, how := range ours {
			if c.scenario.name == "registry" {
				how += "-100000"
			}
			values := t.values(c, how)
			if len(values) == 0 {
				continue
			}
			s := spreadOf(values)
			if found && math.Signbit(s.median-worst.median) != (t.kind == throughput) {
				continue
			}
			worst, found = check{t, c.name + "/how=" + how, s}, true
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
		sign := "≤"
		if t.kind == throughput {
			sign = "≥"
		}
		fmt.Fprintf(&b, "| %s | %s %s | %s | %s to %s | %s | `%s` |\n", c.what, sign, format(c.limit, c.unit),
			format(c.median, c.unit), format(c.low, c.unit), format(c.high, c.unit), c.verdict(), c.where)
	}
	return b.String()
}

package bench

import (
	"fmt"
	"slices"
	"strings"
)

// Check is a target, and what was measured.
type Check struct {
	// What is to hold, and where it was measured.
	What, Where string
	// Value is the median over the rounds. Half of the rounds were between Low and
	// High.
	Value, Low, High float64
	// Bare is the same of a bare session, or 0.
	Bare float64
	// Limit is the target; 0 is none, for what is only shown.
	Limit float64
	// AtLeast is a target from below; the others are from above.
	AtLeast bool
	// Unit is that of the values; empty is a ratio.
	Unit string
}

// Verdict says whether the target is met, or that the rounds do not tell: the limit
// is among the half of them that is in the middle. It is empty without a target.
func (c *Check) Verdict() string {
	met := c.Value <= c.Limit
	if c.AtLeast {
		met = c.Value >= c.Limit
	}
	switch {
	case c.Limit == 0:
		return ""
	case c.Low < c.Limit && c.Limit < c.High:
		return "uncertain"
	case met:
		return "met"
	}
	return "missed"
}

// ours are the contenders that are held to the targets.
var ours = []string{nameMessage, nameClient}

// figure is what a contender came to in a case, round by round.
type figure func(c *CaseResult, name string) []float64

// Checks holds the report against the targets. Those of which nothing was measured
// are left out. Of several cases the one that is furthest off is there.
func (r *Report) Checks() (all []Check) {
	worst := func(c Check, prefix string, of figure) {
		found := false
		for i := range r.Cases {
			at := &r.Cases[i]
			if !strings.HasPrefix(at.Name, prefix) {
				continue
			}
			for _, name := range ours {
				values := of(at, name)
				if len(values) == 0 {
					continue
				}
				v := median(values) // which sorts
				if found && (v < c.Value) != c.AtLeast {
					continue
				}
				found, c.Where, c.Bare = true, fmt.Sprintf("%s/how=%s", at.Name, name), 0
				c.Value, c.Low, c.High = v, quantile(values, 0.25), quantile(values, 0.75)
				simple := nameBare
				if at.Scenario == "registry" { // there is no such session
					simple = nameMutexMap
				}
				if reference := of(at, simple); len(reference) > 0 {
					c.Bare = median(reference)
				}
			}
		}
		if found {
			all = append(all, c)
		}
	}
	for _, t := range []string{nameJSON, nameSSE} {
		at := "warm/transport=" + t + "/callers=64"
		worst(Check{What: "throughput by that of the bare session, tuned", Limit: 0.97, AtLeast: true}, at, throughputBy(nameBare))
		worst(Check{What: "throughput by that of the bare session, untuned, server in a process of its own", AtLeast: true}, at, throughputBy(nameUntuned))
	}
	worst(Check{What: "throughput by that of the bare session, untuned, server in the same process", Limit: 1.5, AtLeast: true}, "within/", throughputBy(nameUntuned))
	worst(Check{What: "latency by that of the bare session, one caller in memory", Limit: 1.05}, "warm/transport=memory/callers=1", timeBy(nameBare))
	for _, t := range []string{"memory", "stdio", "http-json", "http-sse"} {
		worst(Check{What: "time by that of the map with a mutex, " + t, Limit: 1.03}, "warm/transport="+t, timeBy(nameMutexMap))
	}
	worst(Check{What: "throughput by that of a session for each call, over HTTP", Limit: 8, AtLeast: true}, "warm/transport=http", throughputBy(namePerCall))
	worst(Check{What: "recovery by initialize and a call", Limit: 1.25}, "recovery/", timeBy(nameBare))
	worst(Check{What: "sessions opened for one that expired under many callers", Limit: 1, Unit: Rebuilds}, "herd/", valuesOf(Rebuilds))
	worst(Check{What: "the last of those callers by initialize and the same calls", Limit: 2}, "herd/", timeBy(nameBare))
	for _, n := range []string{"1", "64"} {
		worst(Check{What: "a message at 100,000 keys by one at 10 keys", Limit: 1.3}, "registry/callers="+n, func(c *CaseResult, name string) []float64 {
			return c.ratios(name+"-100000", name+"-10", c.timeUnit())
		})
	}
	for _, stream := range []string{"with", "without"} {
		worst(Check{What: "memory added to an idle session, " + stream + " a stream", Limit: 4096, Unit: BytesPerSession}, "idle/transport=http-json/stream="+stream, addedTo(nameBare, BytesPerSession))
	}
	for _, t := range []string{"memory", "stdio", "http-json", "http-sse"} {
		worst(Check{What: "allocations added to a call", Limit: 12, Unit: AllocsPerOp}, "warm/transport="+t+"/callers=1", addedTo(nameBare, AllocsPerOp))
	}
	return all
}

// timeUnit is what times are compared by: with one caller the latency in the middle,
// which does not see what else the machine does now and then.
func (c *CaseResult) timeUnit() string {
	if slices.Contains(c.Params, Param{"callers", "1"}) || c.Scenario == "recovery" {
		return P50
	}
	return c.Unit
}

func timeBy(by string) figure {
	return func(c *CaseResult, name string) []float64 {
		if name == by {
			return nil
		}
		return c.ratios(name, by, c.timeUnit())
	}
}

func throughputBy(by string) figure {
	return func(c *CaseResult, name string) []float64 {
		if name == by {
			return nil
		}
		return c.ratios(by, name, c.timeUnit())
	}
}

func valuesOf(unit string) figure {
	return func(c *CaseResult, name string) []float64 {
		one := c.Contender(name)
		if one == nil || one.Median == nil || name == nameBare {
			return nil
		}
		return one.values(unit)
	}
}

func addedTo(by, unit string) figure {
	return func(c *CaseResult, name string) (all []float64) {
		one, two := c.Contender(name), c.Contender(by)
		if one == nil || two == nil || name == by {
			return nil
		}
		for i := range min(len(one.Rounds), len(two.Rounds)) {
			all = append(all, one.Rounds[i][unit]-two.Rounds[i][unit])
		}
		return all
	}
}

package bench

import (
	"fmt"
	"strings"
)

// Check is a target, and what was measured.
type Check struct {
	// What is to hold, and where it was measured.
	What, Where string
	Value       float64
	Limit       float64
	// AtLeast is a target from below; the others are from above.
	AtLeast bool
	// Unit is that of Value and Limit; empty is a ratio.
	Unit string
}

// Met reports whether the target is met.
func (c *Check) Met() bool {
	if c.AtLeast {
		return c.Value >= c.Limit
	}
	return c.Value <= c.Limit
}

// ours are the contenders that are held to the targets.
var ours = []string{nameMessage, nameClient}

// Checks holds the report against the targets. Those of which nothing was measured
// are left out. Of several cases the one that is furthest off is there.
func (r *Report) Checks() (all []Check) {
	worst := func(c Check, prefix string, value func(c *CaseResult, name string) float64) {
		found := false
		for i := range r.Cases {
			of := &r.Cases[i]
			if !strings.HasPrefix(of.Name, prefix) {
				continue
			}
			for _, name := range ours {
				v := value(of, name)
				if v == 0 || found && (v < c.Value) != c.AtLeast {
					continue
				}
				found, c.Value, c.Where = true, v, fmt.Sprintf("%s/how=%s", of.Name, name)
			}
		}
		if found {
			all = append(all, c)
		}
	}
	ratio := func(by string) func(*CaseResult, string) float64 {
		return func(c *CaseResult, name string) float64 { return c.Ratio(name, by, c.Unit) }
	}
	throughput := func(by string) func(*CaseResult, string) float64 {
		return func(c *CaseResult, name string) float64 { return c.Ratio(by, name, c.Unit) }
	}
	added := func(by, unit string) func(*CaseResult, string) float64 {
		return func(c *CaseResult, name string) float64 {
			one, two := c.Contender(name), c.Contender(by)
			if one == nil || two == nil || one.Median == nil || two.Median == nil {
				return 0
			}
			return one.Median[unit] - two.Median[unit]
		}
	}
	for _, t := range []string{"http-json", "http-sse"} {
		at := "warm/transport=" + t + "/callers=64"
		worst(Check{What: "throughput by that of the bare session, tuned", Limit: 0.97, AtLeast: true}, at, throughput(nameBare))
		worst(Check{What: "throughput by that of the bare session, untuned", Limit: 1.5, AtLeast: true}, at, throughput(nameUntuned))
	}
	worst(Check{What: "time by that of the bare session", Limit: 1.05}, "warm/transport=memory/callers=1", ratio(nameBare))
	worst(Check{What: "time by that of the map with a mutex, on any warm path", Limit: 1.03}, "warm/", ratio(nameMutexMap))
	worst(Check{What: "throughput by that of a session for each call, over HTTP", Limit: 8, AtLeast: true}, "warm/transport=http", throughput(namePerCall))
	worst(Check{What: "recovery by initialize and a call", Limit: 1.25}, "recovery/", ratio(nameBare))
	worst(Check{What: "sessions opened for one that expired under many callers", Limit: 1, Unit: Rebuilds}, "herd/", func(c *CaseResult, name string) float64 {
		if one := c.Contender(name); one != nil {
			return one.Median[Rebuilds]
		}
		return 0
	})
	worst(Check{What: "the last of those callers by initialize and the same calls", Limit: 2}, "herd/", ratio(nameBare))
	for _, n := range []string{"1", "64"} {
		worst(Check{What: "a message at 100,000 keys by one at 10 keys", Limit: 1.3}, "registry/callers="+n, func(c *CaseResult, name string) float64 {
			return c.Ratio(name+"-100000", name+"-10", c.Unit)
		})
	}
	for _, stream := range []string{"with", "without"} {
		worst(Check{What: "memory added to an idle session, " + stream + " a stream", Limit: 4096, Unit: BytesPerSession}, "idle/transport=http-json/stream="+stream, added(nameBare, BytesPerSession))
	}
	for _, t := range []string{"memory", "stdio", "http-json", "http-sse"} {
		worst(Check{What: "allocations added to a call", Limit: 12, Unit: AllocsPerOp}, "warm/transport="+t+"/callers=1", added(nameBare, AllocsPerOp))
	}
	return all
}

//go:build linux

package cluster_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/tests/cluster/history"
	"github.com/mcpactor/mcpactor/tests/cluster/member"
)

// cutRow is a case that has run.
type cutRow struct {
	cut
	passed          bool
	report          *history.Report // nil if it could not be made
	doubled         time.Duration   // the longest time in which two members have acted for one key
	served          history.Served  // from 5 s after the cut on
	worked          time.Duration   // when all calls at the members that serve succeeded, after the cut
	recovered       time.Duration   // and at all members, after the healing
	had, kept, left int             // sessions
}

// run runs the case. No two members act for one key; each call is answered, and what failed and is not said to have
// run has not run; the members of the view, which are as many as can be, serve all keys 5 s after the cut, and all
// members 5 s after the healing; with a store each session is kept; and members that stop leave none open.
func (r *cutRow) run(t *testing.T) {
	c := start(t, setting{witness: r.witness, shared: r.shared, wired: true, tls: true})
	c.start(member.Load{Scopes: scopes(keys), Rate: 12, Timeout: callTime, Seed: 1})
	<-time.After(2 * time.Second)
	f, end := r.begin(c)
	<-time.After(settles + holds)
	held := time.Now()
	end()
	c.record(func() { f.Until = time.Now() })
	<-time.After(settles)
	c.settled(f)
	c.awaitMembers()
	<-time.After(3 * time.Second)
	stopped := time.Now()
	r.report = c.finish()
	require.NoError(t, errors.Join(c.verify(r.report, messages.CodeLost, messages.CodeDeadline, messages.CodeUnavailable), r.verify(c, f, held, stopped)))
	r.passed = true
}

// begin begins what the case does.
func (r *cutRow) begin(c *cluster) (f *history.Fault, end func()) {
	if r.stops > 0 {
		n := c.slots[r.stops-1].running
		return c.fault(history.Pause, n.name), n.pause()
	}
	f = c.fault(history.Wires, "")
	if r.fault != nil {
		return f, r.fault(c)
	}
	c.wires.cut(r.links...)
	return f, func() { c.wires.heal(r.links...) }
}

// verify fills in the figures, and returns what is wrong with them. The cut was whole until one time, and the load ended
// at another.
func (r *cutRow) verify(c *cluster, f *history.Fault, held, stopped time.Time) error {
	h := &c.history
	if all := h.DoublyActing(); len(all) > 0 {
		r.doubled = all[0].For
	}
	served, errs := h.Serves(f.At.Add(settles), held)
	again, more := h.Serves(f.Until.Add(settles), stopped)
	r.served, r.worked, r.recovered = served, h.Worked(f.At, held, served.Members), h.Worked(f.Until, stopped, again.Members)
	r.kept, r.had, r.left = r.report.Kept, r.report.Had, c.server.Live()
	errs = append(errs, more...)
	check := func(holds bool, format string, args ...any) {
		if !holds {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(served.Least == r.serve && served.Most == r.serve, "%d to %d members served from %v after the cut on, not %d", served.Least, served.Most, settles, r.serve)
	check(again.Least == size && again.Most == size, "%d to %d members served from %v after the healing on", again.Least, again.Most, settles)
	check(r.recovered >= 0 && r.recovered <= settles, "the members recovered %v after the healing", r.recovered)
	if c.shared {
		check(r.had == keys && r.kept == r.had, "%d sessions of %d were kept", r.kept, r.had)
	}
	check(r.left == 0, "%d sessions are open when all members have stopped", r.left)
	return errors.Join(errs...)
}

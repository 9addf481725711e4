//go:build mutations

package registry

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	mutationTime = flag.Duration("mutation.time", 30*time.Second, "how long a mutation is looked for")
	mutationOnly = flag.String("mutation.only", "", "a part of the names of the mutations to run; empty is all")
)

// mutation is a bug that the simulation must find. Each change replaces a text that is in a file once.
type mutation struct {
	name    string
	changes []change
}

type change struct{ file, before, after string }

const (
	inCalls    = "../internal/session/calls.go"
	inDial     = "../internal/session/dial.go"
	inDrain    = "../internal/session/drain.go"
	inRelease  = "../internal/session/release.go"
	inDeadline = "../internal/session/deadlines.go"
	inCall     = "../internal/contract/call.go"
	inGate     = "../internal/admission/gate.go"
	inTurns    = "../internal/admission/turns.go"
)

var mutations = []mutation{
	{"a call that is cancelled as it runs is not reported", []change{{
		inCalls, "	s.report(&k.Answered)\n", "	if k.Answered.Code != messages.CodeCancelled || !s.running.Has(k) {\n		s.report(&k.Answered)\n	}\n",
	}}},
	{"a slot is returned twice", []change{{inGate, "	if !s.Held {\n		return\n	}\n	s.count(-1)", "	s.count(-1)"}}},
	{"a second reply after a deadline", []change{{
		inCalls, "	case k.Replied:\n	case e == nil:", "	case k.Replied && k.Answered.Code != messages.CodeDeadline:\n	case e == nil:",
	}}},
	{"a replay without the annotations of the tool", []change{{inCalls, "if k.NeedsHint && !s.decideReplay(c, k) {", "if k.NeedsHint && s.drainOrder != nil && !s.decideReplay(c, k) {"}}},
	{"the connection of an abandoned dial is not closed", []change{
		{inDial, "	s.endDial(c, msg.conn)\n", "	s.endDial(c, nil)\n"},
		{inDial, "if msg.conn != nil && errors.Is(context.Cause(wanted), context.Canceled) {", "if false {"},
	}},
	{"only a goroutine closes the connection of an abandoned dial", []change{{inDial, "	s.endDial(c, msg.conn)\n", "	s.endDial(c, nil)\n"}}},
	{"the caller is answered before the registry is told", []change{{
		inCalls, "	s.report(&k.Answered)\n	s.cfg.Post.Send(k.Caller, reply)\n", "	s.cfg.Post.Send(k.Caller, reply)\n	s.report(&k.Answered)\n",
	}}},
	{"a grant that crosses becameIdle is ignored", []change{{
		"../internal/session/session.go", "	case *contract.Grant: // it crossed becameIdle\n		s.onGrant(c, msg)\n", "	case *contract.Grant:\n",
	}}},
	{"a dial is not waited for in a drain", []change{{inDrain, "case s.abortDial != nil || s.closingConn != nil:", "case s.closingConn != nil:"}}},
	{"MayHaveRun is false for a call that was lost before", []change{{inCall, "k.Runs > 1, k.Lost != nil\n", "k.Runs > 1, false\n"}}},
	{"a timer is not awaited at the end", []change{{
		inDeadline, "	if s.wakeTimer == nil || s.wakeTimer.Stop() {\n		s.wakeTimer = nil\n		return true\n	}\n	return false",
		"	if s.wakeTimer != nil {\n		s.wakeTimer.Stop()\n	}\n	s.wakeTimer = nil\n	return true",
	}}},
	{"an expired session is resumed", []change{{inDial, "if s.resumable != nil && !s.expired {", "if s.resumable != nil {"}}},
	{"the end of the connection of an earlier incarnation is believed", []change{{"../internal/session/fault.go", "	if msg.from == s {", "	if msg.from != nil && s.conn != nil {"}}},

	{"a session keeps its slot while it is queued", []change{{inGate, "	g.returnSlot(s)\n	g.enqueue(s, now)", "	g.enqueue(s, now)"}}},
	{"a permit is not given to others", []change{{inGate, "	p.dialing--\n	g.released(p)", "	p.dialing--"}}},
	{"a permit is not returned", []change{{inGate, "	g.returnStart(s)\n	g.returnPermit(s.Place)\n", "	g.returnStart(s)\n"}}},
	{"the permit to start a process is not returned", []change{{inGate, "		s.starting = false\n		g.starts--\n", "		s.starting = false\n"}}},
	{"a probe that has ended is counted", []change{{inGate, "	s.Dialing = false\n	s.Place.Endpoint.EndProbe(s)\n", "	s.Dialing = false\n"}}},
	{"nothing wakes those who wait for the next probe", []change{{inTurns, "		g.probes.set(ep, ep.Next)\n", "		_ = ep\n"}}},
	{"a free slot does not wake the tenant", []change{{inGate, "	if s.Tenant != nil {\n		g.unstick(s.Tenant)\n	}\n	g.use(s)\n	g.changed = true", "	g.use(s)\n	g.changed = true"}}},
	{"a free slot wakes nobody", []change{{inGate, "		g.unstick(s.Tenant)\n	}\n	g.use(s)\n	g.changed = true", "		g.unstick(s.Tenant)\n	}\n	g.use(s)"}}},
	{"the quota of a tenant is not looked at", []change{{inTurns, "if t := l.tenant; t != nil && t.Room() == 0 {", "if t := l.tenant; t != nil && t.Room() < 0 {"}}},
	{"the cap is not looked at", []change{{inTurns, "			case g.Sessions.Room() == 0:", "			case g.Sessions.Room() < 0:"}}},
	{"the permits of a place are not looked at", []change{{inTurns, "		if p.permits(now) == 0 {", "		if p.Endpoint.Down && p.permits(now) == 0 {"}}},
	{"a session that is pinned may be evicted", []change{{"../internal/admission/session.go", "	case s.Draining || s.Pinned:", "	case s.Draining:"}}},
	{"a pin outlives its session", []change{{"../internal/admission/session.go", "	s.pin(false)\n", ""}}},
	{"a second session does not hold the slot", []change{{inGate, "	if s.lent = s.Held && s.controls > 0; s.lent {", "	if s.lent = false; s.lent {"}}},
	{"a second session keeps its permit", []change{{"../internal/admission/control.go", "		k.dialing = false\n		g.returnPermit(k.place)\n", "		k.dialing = false\n"}}},

	{"a session does not wait for the one before it", []change{{"admission.go", " && r.entries[reg.key].predecessor(reg) == nil", ""}}},
	{"a session that becomes idle as it dials loses its slot", []change{{"admission.go", "	if reg.Dialing || reg.Draining {\n		return\n	}\n	reg.wantsDial = false", "	if reg.Draining {\n		return\n	}\n	reg.wantsDial = false"}}},
	{"the end of a backoff is missed", []change{{"admission.go", "			reg.backoffTimer = contract.After(r.mailbox, wait, &backoffDue{reg})\n", ""}}},
	{"the generation is that of the spawning", []change{{"admission.go", "&contract.Grant{Generation: r.entries[reg.key].generation}", "&contract.Grant{}"}}},
	{"the next session of a key is not told of the end of the one before", []change{{"registration.go", "	case e.current != nil:\n		r.advance(c, e.current)\n", "	case e.current != nil:\n"}}},
	{"a call that is handed back is forgotten", []change{{"cancellation.go", "		k.Kept = reg.drainedBy.Restart\n		r.accept(c, k)\n", "		k.Kept = reg.drainedBy.Restart\n"}}},
	{"a close command forgets a session that waits", []change{{"close.go", "		r.drain(c, reg, closing.drain)\n	}\n}", "	}\n}"}}},
	{"a close command waits for what has closed", []change{{"drain.go", "		delete(closing.waiting, reg)\n", ""}}},
	{"what could not be closed is forgotten", []change{{"drain.go", "		r.leftovers.add(reg.key, left)\n", ""}}},
	{"a call that has timed out stays counted", []change{{"timeouts.go", "		reg.outstanding--\n", ""}}},
	{"an owner keeps calls that are answered", []change{{"calls.go", "	if msg.Call.Op.Head().Owner != nil {\n		r.disown(c, msg.Call)\n	}\n", ""}}},
	{"interceptors answer twice", []change{{"intercepting.go", "	if !f.interceptions.has(i) {\n		return\n	}\n	f.interceptions.remove(i)", "	f.interceptions.remove(i)"}}},
	{"a call of interceptors stays counted", []change{{"intercepting.go", "		msg.of.passesOn = true\n		f.unpassed--\n", "		msg.of.passesOn = true\n"}}},

	{"a call that is parked when an eviction comes is lost", []change{{inDrain, "		s.report(&contract.CallsHandedBack{Of: s.registration, Calls: part})\n	}\n	s.graceEnds", "		_ = part\n	}\n	s.graceEnds"}}},
	{"the connection of a dial that ends in a drain is forgotten", []change{{inDrain, "	s.abortDial, s.conn = nil, msg.conn\n", "	s.abortDial = nil\n"}}},
	{"a connection that was being detached in a drain is not closed", []change{{inDrain, "		s.oldConn, s.resumable = nil, s.oldConn\n", "		s.oldConn = nil\n"}}},
	{"a connection that could not be closed is forgotten", []change{{inDrain, "	if msg.err != nil {\n		s.lastMessage.Leftovers", "	if false {\n		s.lastMessage.Leftovers"}}},
	{"a session that is lost is not resumed", []change{{inRelease, "		s.resumable = msg.conn\n", "		_ = msg\n"}}},
	{"a dial does not wait for the old connection", []change{{"../internal/session/session.go", "	case s.oldConn != nil || s.abortDial != nil:", "	case s.abortDial != nil:"}}},
	{"one call more than MaxInFlight runs", []change{{inCalls, "if s.running.Count >= s.limits.MaxInFlight {", "if s.running.Count > s.limits.MaxInFlight {"}}},
	{"a call is replayed twice", []change{{inCall, "case k.Runs-k.unprocessed > 1 ||", "case k.Runs-k.unprocessed > 2 ||"}}},
	{"a call is replayed although it may not be", []change{{inCall, "	return safe || !known, !known\n", "	return safe || true, !known\n"}}},
	{"a call that waits has no deadline", []change{{inCalls, "	s.openedUnused = false\n	s.wakeBy(c, k.ParkedUntil())\n", "	s.openedUnused = false\n"}}},
	{"a call that runs has no deadline", []change{{inDeadline, "		case !k.Replied:\n			s.cutOff(c, k, messages.CodeDeadline, \"\")\n", "		case !k.Replied:\n"}}},
}

// rare are the mutations that a run of a minute may miss.
var rare = map[string]bool{
	"the end of the connection of an earlier incarnation is believed": true,
	"a timer is not awaited at the end":                               true,
	"a call is replayed although it may not be":                       true,
}

var violationLine = regexp.MustCompile(`seed (\d+), after ([^:]+): ([^\n]*)`)

// The simulation finds each of these bugs, but for those that are rare.
func TestMutations(t *testing.T) {
	found, missed := 0, []string{}
	for _, m := range mutations {
		if !strings.Contains(m.name, *mutationOnly) {
			continue
		}
		how, is := look(t, m)
		if is {
			found++
		} else if !rare[m.name] {
			missed = append(missed, m.name)
		}
		fmt.Printf("%-75s %s\n", m.name, how)
	}
	fmt.Printf("%d found, %d not found that must be\n", found, len(missed))
	require.Empty(t, missed)
}

// look runs the simulation with a mutation, and reports whether it has found it, and how.
func look(t *testing.T, m mutation) (how string, found bool) {
	dir := t.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for i, c := range m.changes {
		path, err := filepath.Abs(c.file)
		require.NoError(t, err)
		from := path
		if mutated := overlay.Replace[path]; mutated != "" {
			from = mutated
		}
		source, err := os.ReadFile(from)
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(string(source), c.before), "%s: the text of change %d is not in %s once", m.name, i, c.file)
		overlay.Replace[path] = filepath.Join(dir, fmt.Sprint(i, ".go"))
		require.NoError(t, os.WriteFile(overlay.Replace[path], []byte(strings.Replace(string(source), c.before, c.after, 1)), 0o644))
	}
	listed, err := json.Marshal(overlay)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.json"), listed, 0o644))
	program := filepath.Join(dir, "mutated.test")
	out, err := exec.Command("go", "test", "-vet=off", "-overlay", filepath.Join(dir, "overlay.json"), "-c", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s: %s", m.name, out)
	run := exec.Command(program, "-test.run", "^TestSimulation$", "-simulation.time", mutationTime.String(), "-simulation.shrink", "0",
		"-test.timeout", (2 * *mutationTime).String(), "-simulation.crossings=false")
	began := time.Now()
	out, err = run.CombinedOutput()
	switch line := violationLine.FindSubmatch(out); {
	case err == nil:
		return "NOT FOUND", false
	case line == nil:
		first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		return fmt.Sprintf("ended after %v: %.120s", time.Since(began).Round(time.Millisecond), first), true
	default:
		return fmt.Sprintf("seed %s after %s: %.100s", line[1], line[2], line[3]), true
	}
}

package registry

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mutation is a bug that a simulation must find. Each change replaces a text that is in a file of the module once.
type mutation struct {
	name    string
	changes []change
}

type change struct{ file, before, after string }

// mutated returns the changed files, by their paths in the module.
func (m mutation) mutated(t *testing.T) map[string]string {
	changed := map[string]string{}
	for _, c := range m.changes {
		text, ok := changed[c.file]
		if !ok {
			source, err := os.ReadFile(filepath.Join(moduleRoot, c.file))
			require.NoError(t, err, m.name)
			text = string(source)
		}
		require.Equal(t, 1, strings.Count(text, c.before), "%s: the text %q is not in %s once", m.name, c.before, c.file)
		changed[c.file] = strings.Replace(text, c.before, c.after, 1)
	}
	return changed
}

// The texts of the mutations are in the source. make mutations shows that the simulations find them.
func TestMutationsFitTheSource(t *testing.T) {
	for _, m := range slices.Concat(mutations, doubtMutations, callMutations, handleMutations) {
		m.mutated(t)
	}
	for _, m := range directedMutations {
		m.mutated(t)
	}
}

// Each test that the package documentation of supervisor names for a guarantee has a bug that it must find.
func TestEachTestOfAGuaranteeHasAMutation(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(moduleRoot, "supervisor/doc.go"))
	require.NoError(t, err)
	named, tried := map[int][]string{}, map[int][]string{}
	guarantee := 0
	for _, found := range regexp.MustCompile(`(?m)^//  (\d+)\. |Test\w+`).FindAllStringSubmatch(string(doc), -1) {
		switch number, err := strconv.Atoi(found[1]); {
		case err == nil:
			guarantee = number
		case found[0] != "TestSimulation": // make mutations tries it, too
			named[guarantee] = append(named[guarantee], found[0])
		}
	}
	for _, m := range directedMutations {
		if m.guarantee > 0 && !slices.Contains(tried[m.guarantee], m.test) {
			tried[m.guarantee] = append(tried[m.guarantee], m.test)
		}
	}
	require.Len(t, named, 12)
	for guarantee, tests := range named {
		require.ElementsMatch(t, tests, tried[guarantee], "guarantee %d", guarantee)
		require.Greater(t, len(tests), 1, "guarantee %d", guarantee)
	}
}

// moduleRoot is the folder of the module.
const moduleRoot = "../.."

const (
	inCalls    = "actors/internal/session/calls.go"
	inDial     = "actors/internal/session/dial.go"
	inDials    = "actors/internal/session/dials.go"
	inAttempt  = "actors/internal/session/attempt.go"
	inOutbox   = "actors/internal/session/outbox.go"
	inDrain    = "actors/internal/session/drain.go"
	inRelease  = "actors/internal/session/release.go"
	inConns    = "actors/internal/connections/connections.go"
	inDeadline = "actors/internal/session/deadlines.go"
	inReplay   = "actors/internal/contract/call_replay.go"
	inGate     = "actors/internal/admission/gate.go"
	inQueue    = "actors/internal/admission/queue.go"
	inSlots    = "actors/internal/admission/slots.go"
	inNext     = "actors/internal/admission/next.go"
	inJudge    = "mcpbridge/internal/doubt/judge.go"
	inInquiry  = "mcpbridge/internal/doubt/inquiry.go"
	inMachine  = "mcpbridge/internal/doubt/machine.go"
	inOutcome  = "mcpbridge/internal/doubt/outcome.go"
	inBook     = "internal/callbook/book.go"
	inDo       = "internal/callbook/do.go"
	inEntry    = "internal/callbook/entry.go"
	inRecord   = "internal/callbook/record.go"

	inHandleAttempt = "actors/internal/handles/attempt.go"
	inHandleBook    = "actors/internal/handles/book.go"
	inHandleEnd     = "actors/internal/handles/end.go"
	inHandleKind    = "actors/internal/handles/kind.go"
	inHandleLine    = "actors/internal/handles/line.go"
	inHandleLook    = "actors/internal/handles/look.go"
	inHandleMint    = "actors/internal/handles/mint.go"
	inHandleMinted  = "actors/internal/handles/minted.go"
	inHandleRelease = "actors/internal/handles/release.go"
	inHandleRestore = "actors/internal/handles/restore.go"
	inHandle        = "actors/internal/handles/handle.go"
	inHandleUse     = "actors/internal/handles/use.go"
)

var mutations = []mutation{
	{"a call that is cancelled as it runs is not reported", []change{{
		inOutbox, "	o.report(&k.Run.Answered)\n", "	if k.Run.Answered.Code != messages.CodeCancelled || k.Run.Conn == nil {\n		o.report(&k.Run.Answered)\n	}\n",
	}}},
	{"a slot is returned twice", []change{{inSlots, "	s.hold(false)\n", "	s.count(-1)\n	s.hold(false)\n"}}},
	{"a second reply after a deadline", []change{{
		inCalls, "	case k.Run.Replied:\n	case e == nil:", "	case k.Run.Replied && k.Run.Answered.Code != messages.CodeDeadline:\n	case e == nil:",
	}}},
	{"a replay without the annotations of the tool", []change{{inCalls, "if k.Run.NeedsHint && !s.decideReplay(k) {", "if k.Run.NeedsHint && s.drainOrder != nil && !s.decideReplay(k) {"}}},
	{"the connection of an abandoned dial is not closed", []change{
		{inDial, "	s.endDial(msg.conn)\n", "	s.endDial(nil)\n"},
		{inDials, "conn != nil && errors.Is(context.Cause(wanted), context.Canceled) {", "conn != nil && false {"},
	}},
	{"only a goroutine closes the connection of an abandoned dial", []change{{inDial, "	s.endDial(msg.conn)\n", "	s.endDial(nil)\n"}}},
	{"the caller is answered before the registry is told", []change{{
		inOutbox, "	o.report(&k.Run.Answered)\n	o.post.Send(k.Caller, reply)\n", "	o.post.Send(k.Caller, reply)\n	o.report(&k.Run.Answered)\n",
	}}},
	{"a grant that crosses BecameIdle is ignored", []change{{
		"actors/internal/session/states.go", "	case *contract.Grant: // it crossed BecameIdle\n		s.state = s.connecting\n		s.onGrant(msg)\n", "	case *contract.Grant:\n",
	}}},
	{"a dial is not waited for in a drain", []change{{inDrain, "case s.dials.isRunning() || s.dials.closing > 0 ||", "case s.dials.closing > 0 ||"}}},
	{"what a dial has left is not waited for in a drain", []change{{inDrain, "s.dials.closing > 0 ||", "false ||"}}},
	{"what a dial has left is forgotten", []change{{inDials, "	if msg.left == nil {", "	if msg.left != nil {"}}},
	{"MayHaveRun is false for a call that was lost before", []change{{"actors/internal/contract/call_reply.go", "k.Run.Attempts > 1, k.MayHaveRun()\n", "k.Run.Attempts > 1, false\n"}}},
	{"an expired session is resumed", []change{{inConns, "if c.Resumable != nil && !c.IsGone(c.Resumable) {", "if c.Resumable != nil {"}}},
	{"the end of the connection of an earlier incarnation is believed", []change{{"actors/internal/session/states.go", "		if msg.from == s.incarnation {\n			s.connectionEnded(", "		if s.conns.Current != nil {\n			s.connectionEnded("}}},

	{"a call does not make its session the most recently used one", []change{{"actors/internal/admission/session.go", "if q := &s.quotas[i]; q.of != nil {\n			q.of.LRU.Put(", "if q := &s.quotas[i]; q.of != nil && to != before {\n			q.of.LRU.Put("}}},
	{"busy sessions are evicted before idle ones", []change{{"actors/internal/admission/session.go", "[]Rank{UnusedSlot, UsedSlot}", "[]Rank{UsedSlot, UnusedSlot}"}}},
	{"who comes last dials first", []change{{inQueue, "		s.line.sessions.Push(&s.turn, s)", "		s.line.sessions.PushFront(&s.turn, s)"}}},
	{"a server keeps its turn", []change{{inQueue, "	q.servers.Remove(&l.place.server.turn)\n", ""}}},
	{"a place keeps its turn", []change{{inQueue, "	l.place.server.places.Remove(&l.place.turn)\n", ""}}},
	{"a tenant keeps its turn", []change{{inQueue, "	l.place.lines.Remove(&l.turn)\n", ""}}},
	{"a session keeps its slot while it is queued", []change{{"actors/internal/admission/facts.go", "	g.slots.giveBack(s)\n	ep := s.Place.Endpoint\n", "	ep := s.Place.Endpoint\n"}}},
	{"a permit is not given to others", []change{{inGate, "	p.dialing--\n	g.giveOut(p)", "	p.dialing--"}}},
	{"a permit is not returned", []change{{inGate, "	g.Started(s)\n	g.returnPermit(s.Place)\n", "	g.Started(s)\n"}}},
	{"the permit to start a process is not returned", []change{{inGate, "		s.start.end()\n", ""}}},
	{"a probe that has ended is counted", []change{{inGate, "	s.Dialing = false\n	s.Place.Endpoint.endProbe(s)\n", "	s.Dialing = false\n"}}},
	{"nothing wakes those who wait for the next probe", []change{{inQueue, "		q.probes.Set(&ep.wake, ep.Next)\n", "		_ = ep\n"}}},
	{"a free slot does not wake the tenant", []change{{inSlots, "	if s.Tenant != nil {\n		sl.queue.unstick(s.Tenant)\n	}\n	sl.use(s)\n", "	sl.use(s)\n"}}},
	{"a free slot wakes nobody", []change{{inSlots, "	sl.use(s)\n	sl.queue.changed = true", "	sl.use(s)"}}},
	{"the quota of a tenant is not looked at", []change{{inNext, "if t := l.tenant; t != nil && t.Room() == 0 {", "if t := l.tenant; t != nil && t.Room() < 0 {"}}},
	{"the cap is not looked at", []change{{inNext, "			case g.Sessions.Room() == 0:", "			case g.Sessions.Room() < 0:"}}},
	{"the permits of a place are not looked at", []change{{inNext, "		if p.permits(now) == 0 {", "		if p.Endpoint.Down && p.permits(now) == 0 {"}}},
	{"an idle session is evicted after half of its timeout", []change{{"actors/internal/dialing/use.go", "at := reg.UsedAt.Add(timeout); at.After(now)", "at := reg.UsedAt.Add(timeout / 2); at.After(now)"}}},
	{"a session that is pinned may be evicted", []change{{"actors/internal/admission/session.go", "	case s.Draining || s.Pinned:", "	case s.Draining:"}}},
	{"a pin outlives its session", []change{{"actors/internal/admission/session.go", "	s.Pinned, s.Draining = false, true\n", "	s.Draining = true\n"}}},
	{"a second session does not hold the slot", []change{{inSlots, "	if s.onlyControls = s.Held && s.controls > 0; s.onlyControls {", "	if s.onlyControls = false; s.onlyControls {"}}},
	{"a second session keeps its permit", []change{{"actors/internal/admission/control.go", "		k.dialing = false\n		g.returnPermit(k.place)\n", "		k.dialing = false\n"}}},

	{"a session does not wait for the one before it", []change{{"actors/internal/dialing/admission.go", "first := d.Table.Entry(reg.Key).Predecessor(reg) == nil; !rested || !first {", "first := d.Table.Entry(reg.Key) != nil; !rested || !first {"}}},
	{"a session that becomes idle as it dials loses its slot", []change{{"actors/internal/dialing/admission.go", "	if reg.Dialing || reg.Draining {\n		return\n	}\n	reg.WantNoDial", "	if reg.Draining {\n		return\n	}\n	reg.WantNoDial"}}},
	{"the end of a backoff is missed", []change{{"actors/internal/dialing/admission.go", "			d.Alarm.Set(&reg.Backoff, reg.NotBefore)\n", ""}}},
	{"the generation is that of the spawning", []change{{"actors/internal/dialing/admission.go", "&contract.Grant{Generation: d.Table.Entry(reg.Key).Generation}", "&contract.Grant{}"}}},
	{"the next session of a key is not told of the end of the one before", []change{{"actors/registry/closed.go", "		r.dialing.Advance(other)\n", "		_ = other\n"}}},
	{"a call that is handed back is forgotten", []change{{"actors/internal/calls/calls.go", "		k.Ticket.Kept = reg.DrainedBy.Restart\n		c.Accept(k)\n", "		k.Ticket.Kept = reg.DrainedBy.Restart\n"}}},
	{"a close command forgets a session that waits", []change{{"actors/internal/closer/closer.go", "		c.Sessions.Drain(reg, closes.How)\n", ""}}},
	{"a close command waits for what has closed", []change{{"actors/internal/closing/book.go", "		delete(c.waiting, reg)\n", ""}}},
	{"what could not be closed is forgotten", []change{{"actors/registry/closed.go", "		r.closings.Leftovers.Add(reg.Key, left)\n", ""}}},
	{"a restart leaves the MCP session in the store", []change{{"actors/internal/closer/closer.go", "	if reg.DrainedBy.Restart && !reg.DrainedBy.Moves && c.Member.Owns(reg.Key) {", "	if false {"}}},
	{"what the store has of a key is closed although another member has the key", []change{{"actors/internal/closing/book.go", "	if foreign && (", "	if false && ("}}},
	{"a session that the store does not have is left open", []change{{inDrain, "leave := s.drainOrder.Leave && s.last.saved && ", "leave := s.drainOrder.Leave && "}}},
	{"a session that has expired is left open", []change{{inDrain, " && !s.conns.IsGone(conn)", ""}}},
	{"closing what was left forgets another session of the key", []change{{"actors/internal/cleanup/sessions.go", "store.Forget(known, generation)", "store.SaveGeneration(generation)"}}},
	{"a leftover keeps another session of its key from being resumed", []change{{"actors/internal/sessions/sessions.go", "NoResume: e.ClosesRecord(), Leftovers", "NoResume: e.ClosesRecord() || len(s.Closings.Left(key)) > 0, Leftovers"}}},
	{"a bug forgets what the store has of a key", []change{{"actors/internal/cleanup/cleanup.go", "		a.sessions.keep(msg.record)\n", "		_ = msg\n"}}},
	{"the store has another generation than callers", []change{{inAttempt, "if !info.Attached || msg.generation != d.last.generation {", "if !info.Attached {"}}},
	{"nobody fetches a list whose first caller has gone", []change{{"actors/internal/lists/interceptor.go", "	report := &listFetched{", "	if ctx.Err() != nil {\n		return nil, messages.NewFailure(op, messages.CodeCancelled, \"\")\n	}\n	report := &listFetched{"}}},
	{"a bug forgets what could not be closed", []change{{"actors/internal/session/session.go", "	d.incarnation++\n", "	d.incarnation++\n	d.lastMessage.Leftovers = nil\n"}}},
	{"a call that has timed out stays counted", []change{{"actors/internal/calls/calls.go", "	c.Table.Gave(reg, len(msg.Calls))\n	c.Dialing.Touch(reg)\n", "	c.Dialing.Touch(reg)\n"}}},
	{"an owner keeps calls that are answered", []change{{"actors/internal/calls/calls.go", "	c.answered(msg.Call)\n", "	msg.Call.Ticket.Bounds.End(true, time.Now())\n"}}},
	{"a call that is answered counts for its bounds", []change{{"actors/internal/calls/calls.go", "	k.Ticket.Bounds.End(k.Run.Attempts > 0, time.Now())\n", ""}}},
	{"a call that is handed back counts again for its bounds", []change{{"actors/internal/calls/calls.go", " || k.Ticket.Bounds != nil || ", " || "}}},
	{"interceptors answer twice", []change{{"actors/internal/interception/interceptors.go", "	if !f.all.has(i) {\n		return\n	}\n	f.all.remove(i)", "	f.all.remove(i)"}}},
	{"a call of interceptors stays counted", []change{{"actors/internal/interception/interceptors.go", "		msg.of.passesOn = true\n		f.unpassed--\n", "		msg.of.passesOn = true\n"}}},

	{"a call that is parked when an eviction comes is lost", []change{{inDrain, "		s.out.report(&contract.CallsHandedBack{Of: s.out.of, Calls: part})\n	}\n	s.graceEnds", "		_ = part\n	}\n	s.graceEnds"}}},
	{"the connection of a dial that ends in a drain is forgotten", []change{{"actors/internal/session/states.go", "		s.dials.returnedLate(msg, s.limits.CloseTimeout)\n		s.conns.Current = msg.conn\n", "		s.dials.returnedLate(msg, s.limits.CloseTimeout)\n"}}},
	{"a connection that was being detached in a drain is not closed", []change{{inConns, "		c.Old, c.Resumable = nil, c.Old\n", "		c.Old = nil\n"}}},
	{"a connection that could not be closed is forgotten", []change{{inDrain, "	if msg.err != nil {\n		s.lastMessage.Leftovers", "	if false {\n		s.lastMessage.Leftovers"}}},
	{"a session that is lost is not resumed", []change{{inConns, "		c.Resumable = conn\n", "		_ = conn\n"}}},
	{"a dial does not wait for the old connection", []change{{"actors/internal/session/states.go", "	case s.undirected || s.conns.Old != nil || s.dials.isRunning():", "	case s.undirected || s.dials.isRunning():"}}},
	{"one call more than MaxInFlight runs", []change{{inCalls, "if s.calls.Running.Count >= s.limits.MaxInFlight {", "if s.calls.Running.Count > s.limits.MaxInFlight {"}}},
	{"a call is replayed twice", []change{{inReplay, "case k.Run.Attempts-k.Run.unprocessed > 1 ||", "case k.Run.Attempts-k.Run.unprocessed > 2 ||"}}},
	{"a call is replayed although it may not be", []change{{inReplay, "	return safe || !known, !known\n", "	return safe || true, !known\n"}}},
	{"a call that another member has lost is replayed although it may not be", []change{{"actors/internal/calls/calls.go", "	if !again {\n", "	if !again && k.Run.Lost == nil {\n"}}},
	{"a call that waits has no deadline", []change{{inCalls, "	s.history.openedUnused = false\n	s.timer.By(k.ParkedUntil())\n", "	s.history.openedUnused = false\n"}}},
	{"a call that runs has no deadline", []change{{inDeadline, "		case !k.Run.Replied:\n			s.cutOff(k, messages.CodeDeadline, \"\")\n", "		case !k.Run.Replied:\n"}}},
}

// doubtMutations are in the settling of doubt about sessions, which has a simulation of its own.
var doubtMutations = []mutation{
	{"dead without a second refusal of the first session", []change{{inJudge, "(one.read() == readGone || before.isRefusal() && one.isRefusal() && wire.Alike(one.Refusal, before.Refusal))", "true"}}},
	{"a result of an operation that was sent before the refusal counts as life", []change{{inInquiry, "\tcase s.Succeeded > i.began, f.verdict == Alive:", "\tcase s.Succeeded > 0, f.verdict == Alive:"}}},
	{"the proof is not required", []change{{inOutcome, "return isAlike(unknown) && unknown.Own == e.Own && wire.EvidenceOf(unknown).Digest == digest", "return isAlike(unknown)"}}},
	{"alive is remembered without the digest of the text", []change{{inMachine, "import (\n", "import (\n\t\"maps\"\n\t\"slices\"\n"}, {inMachine, "\tcase s.Now.Before(m.alive[k]):", "\tcase slices.ContainsFunc(slices.Collect(maps.Keys(m.alive)), func(other Kind) bool { other.digest = k.digest; return other == k }):"}}},
	{"an unsettled inquiry pauses although the server was away", []change{{inInquiry, "\tcase Away:\n\t\tm.pace", "\tcase Away:\n\t\tm.next = s.Now.Add(PauseMax)\n\t\tm.pace"}}},
	{"operations are held until the verdict, however late", []change{{inInquiry, "i.holdUntil = s.Now.Add(holdTimeout)", "i.holdUntil = s.Now.Add(time.Hour)"}}},
	{"the control is not ended at the end of the session", []change{{inInquiry, "\tcase comparing, confirming:\n\t\ti.discard(Unsettled)\n", "\tcase comparing, confirming:\n\t\ti.conclude(s, Unsettled)\n"}}},
	{"a control that opens after the end of the session is used", []change{{inInquiry, "if i.isSame = isSame; i.machine.ended {", "if i.isSame = isSame; false {"}}},
	{"the answer to an earlier step is believed", []change{{inMachine, "i != nil && step == m.step && i.open[which] {", "i != nil && i.open[which] {"}}},
	{"a front is never forgotten", []change{{inInquiry, "\tif m.fronts == i.fronts && v != Away {\n\t\tm.front = nil\n", "\tif m.fronts == i.fronts && v == Dead {\n\t\tm.front = nil\n"}}},
	{"each caller has an inquiry of its own", []change{{inMachine, "\tcase m.running != nil:\n\t\tm.running.later = m.running.later.with(k)\n\t\treturn m.running, false\n", ""}}},
	{"rounds follow at once while the server is away", []change{{inInquiry, "\t\ti.due = s.Now.Add(max(i.pace, i.least))", "\t\ti.due = s.Now"}}},
	{"an inquiry begins without a pause after the last checks", []change{{inMachine, "\tif i.due = m.asked.Add(pace); !s.Now.Before(i.due) {", "\tif i.due = s.Now.Add(0 * pace); true {"}}},
	{"alive is remembered although a front has answered since", []change{{inInquiry, "\tm.alive = nil\n", ""}}},
	{"a refusal that came during the checks is settled by them", []change{{inInquiry, "\t\tfor _, k := range i.kinds {\n\t\t\tm.alive[k]", "\t\tfor _, k := range i.allKinds() {\n\t\t\tm.alive[k]"}}},
	{"a control that is not kept is not ended", []change{{inInquiry, "\tcase v != Dead:\n\t\ti.discard(v)\n\tcase", "\tcase v != Dead:\n\t\ti.compared(s, v)\n\tcase"}}},
	{"the dead session is forgotten", []change{{inInquiry, "\tcase Dead:\n\t\tm.dead = i\n", "\tcase Dead:\n\t\tm.next = s.Now.Add(PauseMax)\n"}}},
	{"a session that knows its requests late is dead", []change{{inInquiry, "\t\t\t\ti.settled(s, Late)", "\t\t\t\ti.settled(s, Dead)"}}},
	{"any refusal of the first session confirms that it is dead", []change{{inJudge, "before.isRefusal() && one.isRefusal() && wire.Alike(one.Refusal, before.Refusal))", "one.isRefusal() || one.read() == readSilent)"}}},
	{"a check that both sessions are refused shows that the first is dead", []change{{inJudge, "case other.isAnswer() && !isSame && (one", "case (other.isAnswer() || isSame) && (one"}}},
	{"one refused check is enough", []change{{inJudge, "\t\t\tf.again = append(f.again, Check(which))\n\t\t}\n\t}\n\tswitch {", "\t\t\tf.again = append(f.again, Check(which))\n\t\t}\n\t}\n\tswitch {\n\tcase len(f.again) > 0:\n\t\treturn finding{verdict: Dead}"}}},
	{"a refusal of a stream is compared with those of checks", []change{{inJudge, "!k.isCall ||", "k == (Kind{}) ||"}}},
	{"after a front, only what is like the refusals before it is in doubt", []change{{inInquiry, "i.machine.front != nil || i.mixed > 0 || i.allKinds()", "i.allKinds()"}}},
	{"an inquiry pauses although a front has answered since", []change{{inMachine, "m.front == nil && s.Now.Before(m.next):", "s.Now.Before(m.next):"}}},
	{"an attempt to attach takes a page of a front for the end of the session", []change{{inInquiry, "a.Refusal, a.read() == readGone", "a.Refusal, a.read() == readGone || a.read() == readAway"}}},
}

// callMutations are in the records of durable calls, which have a simulation of their own.
var callMutations = []mutation{
	{"a record is saved without a comparison", []change{{inEntry, "done, err = e.book.store.Swap(context.WithoutCancel(ctx), e.key, e.version, record)", "done, err = true, e.book.store.Save(context.WithoutCancel(ctx), e.key, record)"}}},
	{"a call is sent before that is written", []change{{inEntry, "began, err := e.change(ctx, ", "began, err := true, error(nil)\n\tgo e.change(ctx, "}}},
	{"a call is sent although that could not be written", []change{{inEntry, "	case err != nil:\n		return err\n	case !began", "	case !began && err == nil"}}},
	{"a call is sent although another process has sent it", []change{{inEntry, "	case !began && !e.isMine():", "	case !began && e.me == \"\":"}}},
	{"a call that is lost may be sent again", []change{{inDo, "return r.Lose(e.book.keptFailure(f)), e.sent(r)", "return r.Allow(), e.sent(r)"}}},
	{"nobody waits until a call has ended", []change{{inRecord, "		case now.Before(r.Ends):\n			return Wait\n", "		case now.Before(r.Ends) && r.State == Proposed:\n			return Wait\n"}}},
	{"two find out what became of a call", []change{
		{inDo, "	mine, err := e.change(ctx, func(r Record) (Record, bool) {\n		return r.Ask(e.me, ends), r.Next(e.call, e.book.process, true, time.Now()) == Learn\n	})", "	mine, err := !ends.IsZero(), error(nil)"},
		{inDo, "asked := r.State == Asking && r.By == e.me", "asked := true"},
	}},
	{"what was found out is believed although somebody else finds out", []change{{inDo, "asked := r.State == Asking && r.By == e.me", "asked := r.State == Asking || r.State == Sent"}}},
	{"a proposed call that has failed may be sent again", []change{{inDo, "return r.Fail(e.book.keptFailure(f)), r.State == Allowed || e.sent(r)", "return r.Allow(), e.sent(r)"}}},
	{"a call has not run although its record cannot be read", []change{{inDo, "		f.MayHaveRun = true\n", ""}}},
	{"a call has not run although another process has sent it", []change{{inDo, "err, changed := e.load(ctx), false", "err, changed := error(nil), false"}}},
	{"a request that has failed has changed nothing", []change{{inEntry, "	if err != nil { // it may have been saved\n", "	if err != nil {\n		return false, err\n	}\n	if err != nil {\n"}}},
	{"what is known is forgotten when it cannot be read", []change{{inEntry, "	if e.isStale = err != nil; e.isStale {\n		return err\n	}\n	e.known, e.version = r, version\n	return nil\n", "	e.known, e.version = r, version\n	return err\n"}}},
	{"a run begins after its caller has gone", []change{{inEntry, "	if e.users == 0 {\n		return false\n	}\n", ""}}},
	{"a task that could not be followed has not run", []change{{inDo, "		f.MayHaveRun = true // it only could not be followed\n", "		_ = f\n"}}},
	{"a task whose state could not be written has not run", []change{{inEntry, "return r.Allow(), e.sent(r) && !e.isTask", "return r.Allow(), e.sent(r)"}}},
	{"a call that another process has meanwhile has not run", []change{{inDo, "	case !changed && r.State != None && r.State != Allowed:\n		return Wait\n", "	case !changed && r.State == Done && r.Proposal == nil:\n		return Wait\n"}}},
	{"a call is sent whatever its record says", []change{{inEntry, "return r.Send(e.me, ends), (r.State == Allowed || r.State == Asked) && r.Call == e.call", "return r.Send(e.me, ends), r.State != Done && r.Call == e.call"}}},
	{"a call is another one", []change{{inRecord, "	case r.Call != call, r.State == Proposed:", "	case r.State == Proposed:"}}},
	{"a call is sent without an answer", []change{
		{inRecord, "	case r.Call != call, r.State == Proposed:", "	case r.Call != call:"},
		{inRecord, "	case Allowed, Task:\n		return Run", "	case Proposed, Allowed, Task:\n		return Run"},
		{inEntry, "return r.Send(e.me, ends), (r.State == Allowed || r.State == Asked) && r.Call == e.call", "return r.Send(e.me, ends), (r.State == Allowed || r.State == Asked || r.State == Proposed) && r.Call == e.call"},
	}},
	{"a process takes another one for itself", []change{{inBook, "return strings.HasPrefix(by, process+\" \")", "return strings.HasPrefix(by, process[:0])"}}},
}

// handleMutations are in the book of handles, which has a simulation of its own.
var handleMutations = []mutation{
	{"a list waits for mints that wait for it", []change{{inHandleLook, "return m.state == underWay }) {", "return m.state == underWay || m.state == lost }) {"}}},
	{"an id that ended after the list was made is released again", []change{{inHandleRelease, "		k.look.ended[at] = true\n", "		_ = k.look\n"}}},
	{"a mint that is under way when the list comes is a lost one", []change{{inHandleLook, "			k.look.sent = append(k.look.sent, m)\n", "			_ = m\n"}}},
	{"a list settles a mint that may still run", []change{{inHandleLook, "case len(ids) == 0 && l.at.Before(m.lostAt.Add(runsFor)):", "case len(ids) == 0 && l.at.IsZero():"}}},
	{"the record of a handle is deleted before it is released", []change{{inHandleRelease, "		b.decide(Decision{Release: h, Until: until})\n", "		b.decide(Decision{Release: h, Until: until})\n		b.decide(Decision{Forget: h.Record})\n"}}},
	{"a full server keeps the place of a mint", []change{{inHandleMint, "		delete(k.mints, m)\n		k.line.used--\n		k.line.isFull", "		delete(k.mints, m)\n		k.line.isFull"}}},
	{"a mint that was given up as the server was full waits on", []change{{inHandleMint, "	case m.state == waiting:\n		k.line.remove(m)\n		m.state = done\n		b.forget(m)\n", ""}}},
	{"the record of a mint that is not sent again is kept", []change{{inHandleMinted, "	if m.Since.IsZero() {\n", "	if m.Since.IsZero() || m.state == done && len(m.ends) == 0 {\n"}}},
	{"who has held a former handle is not refused", []change{{inHandleUse, "slices.Contains(k.stale[at], by) {", "slices.Contains(k.stale[at], by) && h == nil {"}}},
	{"who shares a handle that is no more is not refused", []change{{inHandleRelease, "	if !h.Kind.IsUnique(h.ID) {\n		k.stale", "	if h.state == releasing {\n		k.stale"}}},
	{"an id is released after a restart that may be another one's", []change{{inHandleRestore, "	h.suspect.raise()\n", ""}, {inHandleRestore, ", IsDoubtful: true,", ","}}},
	{"an id is released after a lost connection that may be another one's", []change{{inHandleUse, "				h.suspect.raise()\n			}\n", "				_ = h\n			}\n"}}},
	{"an attempt is not told of a lost connection", []change{{inHandleAttempt, "	if a.suspect.isRaised() && !a", "	if a.Outcome.Gone && !a"}}},
	{"what was minted before a lost connection is taken for sure", []change{{inHandleUse, "			m.suspect = m.suspect || all || m.By == key\n", "			_ = m\n"}}},
	{"a release that may have run is repeated although the id may be another one's", []change{{inHandleAttempt, "	case a.Kind.IsUnique(a.ID) && (known || a.calls == 0):", "	case known || a.calls == 0:"}}},
	{"an end is over while a handle is being released", []change{{inHandleEnd, "	e.waits[h] = true\n	h.ends = append(h.ends, e)\n	switch", "	switch"}}},
	{"an end is never over by its time", []change{{inHandleEnd, "	if now.Before(e.by) {\n", "	if now.Before(e.by) || len(e.waits) > 0 {\n"}}},
	{"the late answer of a lost mint is dropped", []change{{inHandleMint, "	case m.state != underWay && m.state != lost:", "	case m.state != underWay:"}}},
	{"the late answer of a mint that a list has settled is dropped", []change{{inHandleMint, "	case id != m.found && k.all[k.fullID(id, m.By.Scope)] == nil:\n", "	case id == \"\":\n"}}},
	{"an orphan is released although its scope has come back", []change{{inHandleUse, "				h.isOrphan = false\n			}\n		}\n	}\n", "				h.isOrphan = h.busy == 0\n			}\n		}\n	}\n"}}},
	{"a handle is released over the session of somebody who has ended", []change{{inHandleEnd, "len(h.holders) > 0 {\n		h.handsOver()\n", "len(h.holders) > 0 {\n"}}},
	{"an end waits for a handle that others hold", []change{{inHandleRelease, "held && !h.Kind.Bound {", "held && h.Kind.Bound {"}}},
	{"processes that count for themselves share their numbers", []change{{inHandleKind, "if k.PerScope &&", "if false &&"}}},
	{"a handle is released although another one holds it", []change{{inHandleEnd, "	if h.holders = without(h.holders, matches); len(h.holders) > 0 {", "	if h.holders = without(h.holders, matches); len(h.holders) > 1 {"}}},
	{"who uses a handle does not hold it", []change{{inHandle, "	if !slices.Contains(h.holders, by) {\n", "	if h.state == left {\n"}}},
	{"who uses a handle while it is being released loses it later", []change{{inHandleRelease, "		if len(h.holders) > 0 { // somebody", "		if o.Refused && len(h.holders) > 0 { // somebody"}}},
	{"more are granted than declared once there were too many", []change{{inHandleLine, "	if l.most = n; l.declared > 0 {", "	if l.most = n; l.declared < 0 {"}}},
	{"one holder takes all turns", []change{{inHandleLine, "		l.turns = append(l.turns, holder)\n", "		l.turns = slices.Insert(l.turns, 0, holder)\n"}}},
	{"nobody tries again when the server was full", []change{{inHandleBook, "	if k.line.waiting > 0 {\n		b.at(", "	if k.line.waiting < 0 {\n		b.at("}}},
	{"an idle handle with a call under way is due at once, again and again", []change{{inHandleBook, "h.Kind.Idle > 0 && h.busy == 0 {", "h.Kind.Idle > 0 {"}}},
	{"a handle that is minted anew has no place", []change{{inHandleMinted, "	k.all[at] = h // first: it has a place\n", ""}, {inHandleMinted, "	if k.Bound {\n", "	k.all[at] = h\n	if k.Bound {\n"}}},
	{"a handle is kept although its session was lost before its answer came", []change{{inHandleMinted, "generation < m.opened {", "generation > m.opened && m.moved {"}}},
}

package registry

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// afterStep checks what holds after each step.
func (s *simulation) afterStep() {
	if p := s.ran; p != nil && !p.dead && !p.stopped {
		p.checkGate()
		p.checkOrder()
	}
	s.checkEvents()
}

// checkEvents looks for events without a cause.
func (s *simulation) checkEvents() {
	s.mu.Lock()
	events := s.events
	s.events = nil
	s.mu.Unlock()
	for _, event := range events {
		switch e := event.(type) {
		case *messages.SessionLost:
			s.checkCause(e.Key, e.Cause)
		case *messages.SessionExpired:
			s.checkCause(e.Key, e.Cause)
		case *messages.SessionOpened:
			s.checkGeneration(e.Stamp, e.Attached)
		case *messages.SessionRestarted:
			s.checkGeneration(e.Stamp, e.Attached)
		case *messages.SessionEvicted:
			// A pin ends with its session, also if user code has stopped that.
			if s.supervisorNamed(e.Supervisor).pins[e.Key] && !s.meddledWith[e.Key] {
				s.violate("a session that is pinned was evicted", "%s: %s", e.Key, e.Reason)
			}
			s.supervisorNamed(e.Supervisor).checkEviction(e)
			s.Crossed("a session was evicted: " + string(e.Reason))
		case *actor.DeadLetterEvent:
			s.checkDeadLetter(e)
		case *actor.SupervisorEvent:
			if _, typed := e.Reason.(*actors.Fault); !typed && e.Reason != planted {
				s.violate("a panic", "an actor panicked: %v", e.Reason)
			}
		case bugLine:
			text, _, _ := strings.Cut(string(e), `"stack"`)
			s.violate("a bug was logged", "%s", text)
		}
	}
}

// checkCause checks that a session was not restarted without a cause.
func (s *simulation) checkCause(key messages.Key, cause string) {
	for _, c := range s.conns {
		if c.key == key && c.pings > 0 {
			c.blame()
		}
	}
	if s.causes[key]--; s.causes[key] < 0 {
		s.violate("a restart without a cause", "%s: %s", key, cause)
	}
}

// checkGeneration checks that a new session of a key has a new generation, also in another process if the store has it.
func (s *simulation) checkGeneration(stamp messages.Stamp, attached bool) {
	last := s.generations[stamp.Key]
	if last.Supervisor != stamp.Supervisor && s.failed[stamp.Key] {
		last = messages.Stamp{}
	}
	if attached && stamp.Generation < last.Generation || !attached && stamp.Generation <= last.Generation {
		s.violate("a generation is wrong", "%s: %d after %d, resumed %v", stamp.Key, stamp.Generation, last.Generation, attached)
	}
	s.generations[stamp.Key] = stamp
}

// checkDeadLetter checks that a message is not lost.
func (s *simulation) checkDeadLetter(e *actor.DeadLetterEvent) {
	_, ignored := e.Message.(actor.IgnoreDeadLetterLogging)
	kind := fmt.Sprintf("%T", e.Message)
	room, _, _ := strings.Cut(strings.TrimPrefix(kind, "*"), ".")
	ours := slices.Contains([]string{"contract", "session", "cleanup", "questions", "registry"}, room)
	if ours && !ignored {
		s.violate("a dead letter", "%s", kind)
	}
}

// checkGate checks the quotas.
func (p *supervisor) checkGate() {
	s, g := p.s, p.registry.gate
	if g.Sessions.Open > g.Sessions.Limit || g.Sessions.Open < 0 {
		s.violate("the cap does not hold", "%d slots of %d", g.Sessions.Open, g.Sessions.Limit)
	}
	if p.registry.table.Waiting < 0 {
		s.violate("waiting calls are counted wrong", "%d calls wait", p.registry.table.Waiting)
	}
	for name, srv := range p.registry.table.Servers {
		if q := srv.Turns.Quota; q.Open > q.Limit && !s.changed[name] {
			s.violate("the quota of a server does not hold", "%s has %d slots of %d", name, q.Open, q.Limit)
		}
	}
	for name, t := range p.registry.table.Tenants.All() {
		if t.Open > t.Limit || t.Waiting() < 0 {
			s.violate("the quota of a tenant does not hold", "%s has %d slots of %d, and %d waiting calls", name, t.Open, t.Limit, t.Waiting())
		}
	}
}

// checkInTime looks for commands that should have their replies.
func (s *simulation) checkInTime() {
	for _, k := range s.commands {
		if over := time.Since(k.by) - s.late; over > 0 && len(k.replies) == 0 && !k.gone {
			s.violate("a late reply", "%v has no reply, %v too late", k, over)
		}
	}
}

// passTo lets time pass, up to a time or until something happens.
func (s *simulation) passTo(until time.Time, works bool) {
	may := s.isQuick
	if works {
		may = s.isReady
	}
	for s.Intact() && s.step(may) {
		s.afterStep()
	}
	if left := time.Until(until); left > 0 && s.Intact() {
		s.sleepChecked(left)
	}
}

// sleepChecked lets time pass, and looks for replies that are late.
func (s *simulation) sleepChecked(d time.Duration) {
	s.sleep(d)
	if s.unanswered > 0 {
		s.checkInTime()
	}
}

// awaitGone lets the time pass in which other processes may still have commands of callers that were killed.
func (s *simulation) awaitGone() {
	for _, k := range s.commands {
		if k.gone && time.Now().Before(k.by) {
			s.passTo(k.by, true)
		}
	}
}

// checkRest checks that nothing is counted when nothing is left to do.
func (s *simulation) checkRest() {
	for _, p := range s.living() {
		if s.Intact() && !p.stopped {
			p.checkRest()
		}
	}
}

func (p *supervisor) checkRest() {
	var snap *messages.Snapshot
	s := p.s
	s.send(p, &messages.Inspect{Limit: -1}, "the last look", time.Second, func(reply any) { snap, _ = reply.(*messages.Snapshot) })
	s.runUntil(time.Second, "a snapshot", func() bool { return s.unanswered == 0 })
	if snap == nil {
		return
	}
	if snap.Waiting != 0 || snap.Open != p.total {
		s.violate("not at rest", "%d calls wait, %d slots for %d transports", snap.Waiting, snap.Open, p.total)
	}
	for _, one := range snap.Sessions {
		if one.Outstanding != 0 || one.Waiting != 0 {
			s.violate("not at rest", "%s has %d outstanding calls, %d waiting", one.Key, one.Outstanding, one.Waiting)
		}
	}
	r := p.registry
	if n := len(r.table.Calls) + r.controls.Count() + r.jobs.Awaited() + r.closings.Count() + r.cancellations.Keys() + r.interceptors.Unpassed(); n != 0 {
		s.violate("not at rest", "%d calls, %d controls, %d pending, %d close commands, %d cancellations, %d intercepted",
			len(r.table.Calls), r.controls.Count(), r.jobs.Awaited(), r.closings.Count(), r.cancellations.Keys(), r.interceptors.Unpassed())
	}
	if n := r.owners.Calls(); n > 0 {
		s.violate("not at rest", "owners have %d calls", n)
	}
	if n := p.registry.interceptors.Count(); n > 0 {
		s.violate("not at rest", "%d operations run through interceptors", n)
	}
}

// checkRecovery checks that each server works again: soon, one call after the other succeeds.
func (s *simulation) checkRecovery() {
	for _, name := range serverNames {
		if _, there := s.servers[name]; !there {
			continue
		}
		works := false
		for end := time.Now().Add(recovery); !works && s.Intact(); s.pass(time.Second, true) {
			op := &messages.CallTool{Header: messages.Header{Key: messages.Key{Server: name, Scope: "a"}, ID: s.nextID()}, Params: &mcp.CallToolParams{Name: "tool"}}
			s.do(op, func(reply any) {
				f, failed := reply.(*messages.Failure)
				works = !failed || strings.Contains(f.Detail, "pinned")
			})
			s.runUntil(recovery, "a call after the faults is answered", func() bool { return s.unanswered == 0 })
			if time.Now().After(end) && !works {
				s.violate("a server does not recover", "%s", name)
			}
		}
	}
}

// checkEnd checks that nothing is left after the supervisors have stopped.
func (s *simulation) checkEnd() {
	s.checkEvents()
	for _, k := range s.commands {
		if !s.Intact() {
			return
		}
		if k.gone {
			continue
		}
		if len(k.replies) != 1 {
			s.violate("no reply", "%v has %d replies", k, len(k.replies))
			return
		}
		s.checkReply(k)
	}
	told := map[messages.Key]bool{}
	for _, p := range s.living() {
		if !s.Intact() {
			return
		}
		p.checkEnd()
		for _, left := range p.left {
			told[left.Key] = true
		}
	}
	for _, of := range s.sessions {
		if s.meddledWith[of.key] {
			continue // nobody is told what could not be closed
		}
		if of.known && of.excuse == "" && !told[of.key] && !s.isStored(of) {
			s.violate("a session is left on its server", "%s of %s", of.id, of.key)
		}
		if of.known && s.isStored(of) && of.excuse == "" && !told[of.key] && !s.mayBeLeft(of) {
			s.violate("a session that the store has is left on its server", "%s of %s", of.id, of.key)
		}
	}
	for _, p := range s.processes {
		if len(p.watchers) > 0 && len(s.living()) == len(s.all) { // questions of a process that was killed watch it still
			s.violate("something is left", "%s is watched by %v", p.name, p.watchers)
		}
	}
}

// mayBeLeft reports whether a session of the store may be left open at the end: by the configuration, or because nobody has its
// key any more.
func (s *simulation) mayBeLeft(of *served) bool {
	return s.cfg.LeaveOpen || s.isCluster && s.ownerOf(of.key) == nil
}

// checkEnd checks that nothing is left of a supervisor that has stopped. It may not have read that a second session, which used
// the slot of its key, has ended, or what an actor that was stopped has sent.
func (p *supervisor) checkEnd() {
	s, r := p.s, p.registry
	maps.DeleteFunc(r.table.Calls, func(of table.CallName, _ *contract.Call) bool { return s.meddledWith[of.Session.Key] })
	tenants, lent := len(maps.Collect(r.table.Tenants.All())), r.controls.Count()
	if n := r.table.Sessions() + r.table.Keys() + max(0, r.gate.Sessions.Open-lent) + r.closings.Count() + tenants + len(r.table.Calls) + r.table.Waiting + p.controls; n != 0 {
		s.violate("something is left", "%d sessions, %d keys, %d slots, %d close commands, %d tenants, %d calls, %d waiting, %d controls",
			r.table.Sessions(), r.table.Keys(), r.gate.Sessions.Open, r.closings.Count(), tenants, len(r.table.Calls), r.table.Waiting, p.controls)
	}
	if n := r.calls.Bounds.InFlight(); n != 0 && len(s.meddledWith) == 0 {
		s.violate("something is left", "%d calls count for bounds", n)
	}
	if !r.gate.Wake().IsZero() {
		s.violate("something is left", "the gate waits")
	}
	for _, srv := range r.table.Servers {
		if srv.Turns.Waiting() > 0 || srv.Turns.Quota.Open > lent || srv.Turns.Quota.Pins != 0 {
			s.violate("something is left", "%s: %d places have turns, %d slots, %d pins", srv.Name, srv.Turns.Waiting(), srv.Turns.Quota.Open, srv.Turns.Quota.Pins)
		}
	}
	for key, n := range p.live {
		if n != 0 {
			s.violate("a transport is left", "%s has %d", key, n)
		}
	}
}

// supervisorNamed returns the supervisor with a name.
func (s *simulation) supervisorNamed(name string) *supervisor {
	return s.all[slices.IndexFunc(s.all, func(p *supervisor) bool { return p.cfg.Name == name })]
}

// onRead counts crossings.
func (s *simulation) onRead(by *mailbox.Mailbox, message any) {
	switch msg := actor.UnwrapEnvelopeMessage(message).(type) {
	case *contract.Grant:
		s.dials[by] = true
	case *contract.AbandonDial:
		if s.dials[by] {
			s.Crossed("a dial was abandoned")
		} else {
			s.Crossed("an order to abandon a dial came too late")
		}
	case *contract.Drain:
		if s.dials[by] {
			s.Crossed("a drain during a dial")
		}
		s.onDrained(by)
	case *contract.BecameIdle:
		if reg := table.Of(msg.Of); reg.Dialing {
			s.Crossed("a session was granted a dial as it became idle")
		}
	case *contract.DialAbandoned:
		reg := table.Of(msg.Of)
		if s.supervisorOf(by).order.abandoned[reg] = reg.Dialing; reg.Probing {
			s.Crossed("a probe was abandoned")
		}
	case *contract.CallsHandedBack:
		s.Crossed("calls were handed back")
	case *contract.CallsTimedOut:
		s.Crossed("calls have waited too long")
	case *contract.CallReplayed:
		s.Crossed("a call was replayed")
	case *contract.Faulted:
		s.supervisorOf(by).use(table.Of(msg.Of))
		if table.Of(msg.Of).Draining {
			s.Crossed("a fault of a session that drains")
		}
	case *contract.Unheard:
		if msg.Cause != nil {
			s.Crossed("a session was unheard")
		}
	default:
		if fmt.Sprintf("%T", msg) == "*session.dialed" {
			s.dials[by] = false
		}
	}
}

// remember gives the store sessions from before the simulation.
func (s *simulation) remember() {
	for i, key := range []messages.Key{{Server: "one", Scope: "a"}, {Server: "keyed", Scope: "cc"}, {Server: "other", Scope: "b"}} {
		if s.N(2) == 0 {
			continue
		}
		of := &served{id: fmt.Sprint("stored-", i), key: key, at: s.addressOf(s.servers[key.Server], key), known: s.N(2) == 0}
		s.sessions = append(s.sessions, of)
		s.stored[key] = &mcpbridge.Record{Resume: *resumeOf(of), Generation: 7}
	}
}

// onDrained notes that a session drains: its pin ends.
func (s *simulation) onDrained(by *mailbox.Mailbox) {
	if p := s.supervisorOf(by); p != nil {
		if reg := p.registrationOf(by); reg != nil {
			delete(p.pins, reg.Key)
		}
	}
}

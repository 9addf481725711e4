package node

import (
	"slices"
	"strings"
	"time"

	"github.com/mcpactor/mcpactor/cluster/internal/link"
	"github.com/mcpactor/mcpactor/messages"
)

// recovery is how long after the end of all faults everything works.
const recovery = 30 * time.Second

// overlap is two processes that may both run a shard.
type overlap struct {
	shard int
	a, b  *process
}

// acts reports whether a process may start calls of a shard.
func (p *process) acts(shard int) bool {
	return !p.dead && !p.left && !p.paused && p.node.ownBits.words[0].Load()&(1<<shard) != 0 && p.lease.Held()
}

// checkOverlaps checks that no two processes act for a shard.
func (s *simulation) checkOverlaps() {
	now := time.Now()
	for x, a := range s.processes {
		for _, b := range s.processes[x+1:] {
			both := a.node.ownBits.words[0].Load() & b.node.ownBits.words[0].Load()
			for shard := range clusterSize {
				at := overlap{shard, a, b}
				since, before := s.overlaps[at]
				switch is := both&(1<<shard) != 0 && a.acts(shard) && b.acts(shard); {
				case is && !before:
					s.overlaps[at] = now
				case before && !is:
					delete(s.overlaps, at)
				case is && now.Sub(since) > 0:
					s.overlapped(at, now.Sub(since))
				}
			}
		}
	}
}

// staleView is for how long two members may both act today while both are registered: one of them has not heard of a change
// of the members, and its registration ends if it does not hear from etcd.
const staleView = etcdTTL + time.Second

// overlapped notes for how long two processes have acted for a shard. Two that list the same members never both act.
//
// What is excluded today ends when there is one witness, the view: a member with a view of its own goes on for as long as other
// members renew its lease. With etcd, it is not registered any longer, or it has not heard of a change yet, and then for a
// time that is bounded. Without etcd, each member decides for itself whom it lists.
func (s *simulation) overlapped(at overlap, d time.Duration) {
	a, b := at.a, at.b
	registered := s.cfg.etcd && s.etcd.registered[a.current.id] != nil && s.etcd.registered[b.current.id] != nil
	switch {
	case slices.Equal(a.node.members, b.node.members):
		s.violate("two members act", "%s and %s both run shard %d, for %v", a.name, b.name, at.shard, d)
	case registered && d > staleView:
		s.violate("two members act for long", "%s and %s both run shard %d, for %v", a.name, b.name, at.shard, d)
	case registered:
		s.crossed("two members act, one of which has a stale view")
		s.stale = max(s.stale, d)
	default:
		s.crossed("two members act, as they have two witnesses")
		s.longest = max(s.longest, d)
	}
}

// onReply takes a reply.
func (s *simulation) onReply(k *command, reply messages.Reply) {
	if k.replies = append(k.replies, reply); len(k.replies) > 1 {
		s.violate("two replies", "%s: %v", describe(k.cmd), reply)
		return
	}
	k.at = time.Now()
	s.logf("%s: reply to %s: %v", k.p.name, describe(k.cmd), reply)
	op, is := k.cmd.(*messages.CallTool)
	if !is {
		return
	}
	late := k.deadline
	if k.p.resumed.After(late) {
		late = k.p.resumed
	}
	if k.at.After(late.Add(time.Second)) {
		s.violate("late reply", "%s: %v after its deadline", op.ID, k.at.Sub(k.deadline))
	}
	runs := s.executed[op.ID]
	switch r := reply.(type) {
	case *messages.ToolResult:
		if runs == 0 || runs > 1 && !r.Replayed {
			s.violate("untrue result", "%s: it ran %d times: %+v", op.ID, runs, r.Receipt)
		}
	case *messages.Failure:
		s.checkFailure(op, runs, r)
	}
}

// checkFailure checks what a failure says of a call.
func (s *simulation) checkFailure(op *messages.CallTool, runs int, f *messages.Failure) {
	if runs > 0 && !f.MayHaveRun {
		s.violate("untrue failure", "%s: it is said not to have run, and ran: %v", op.ID, f)
	}
	switch f.Code {
	case messages.CodeUnavailable, messages.CodeBusy, messages.CodeDraining:
		if f.MayHaveRun {
			s.violate("untrue failure", "%s: the code says that it did not run, but it may have: %v", op.ID, f)
		}
	case messages.CodeInternal, messages.CodeProtocol, messages.CodeInvalid:
		s.violate("untrue failure", "%s: %v", op.ID, f)
	}
}

// stable reports whether all processes know each other, and may act.
func (s *simulation) stable() bool {
	live := s.live()
	for _, p := range live {
		n, known := p.node, 1
		if s.cfg.etcd && p.current != nil {
			if r := s.etcd.registered[p.current.id]; r == nil || time.Until(r.expires) < clusterLease {
				return false
			}
		}
		if n.net == nil || !n.isListed(n.members) || !p.lease.Held() || p.leaving || p.current == nil || len(n.members) != len(live) {
			return false
		}
		for _, other := range n.peers {
			if other.member && !n.silent(other) {
				known++
			}
		}
		if known != len(live) {
			return false
		}
	}
	return true
}

// logState logs what the processes know.
func (s *simulation) logState() {
	for _, p := range s.live() {
		s.logf("%s: leaving %v, lease %v, net %v, members %v", p.name, p.leaving, p.lease.Held(), p.node.net != nil, p.node.members)
	}
}

// checkRecovery checks that calls of all keys work everywhere.
func (s *simulation) checkRecovery() {
	var probes []*command
	for _, p := range s.live() {
		for n := range 6 {
			probes = append(probes, s.send(p, s.call("scope"+string(rune('0'+n)), "quick", callTime)))
		}
	}
	s.await(5*time.Second, "all keys work", func() bool { return s.unanswered() == 0 })
	for _, k := range probes {
		if len(k.replies) > 0 {
			if f, failed := k.replies[0].(*messages.Failure); failed {
				s.violate("not recovered", "%v", f)
			}
		}
	}
}

// checkEnd checks that nothing is left.
func (s *simulation) checkEnd() {
	for _, p := range s.processes {
		if p.dead || !s.intact() {
			continue
		}
		n := p.node
		for what, size := range map[string]int{
			"exchanges": len(n.exchanges), "keys of exchanges": len(n.byKey), "served": len(n.served), "boxed": len(n.boxed), "asked": len(n.asked),
			"asking": len(n.asking), "lines": len(n.lines), "shards": len(n.shards), "peers": len(n.peers), "sessions": len(p.runs.sessions),
		} {
			if size > 0 {
				s.violate("left "+what, "%d %s of %s", size, what, p.name)
			}
		}
		for _, id := range p.system.ProcessRegistry.LocalPIDs.LocalPIDs[0].Keys() {
			switch prefix, _, _ := strings.Cut(id, "$"); prefix {
			case "remote", "gather", "ask", "proxy", "question":
				s.violate("left processes", "%s of %s", id, p.name)
			}
		}
	}
	for _, k := range s.commands {
		if op, is := k.cmd.(*messages.CallTool); is && s.executed[op.ID] > 1 && !mayRunTwice(op) {
			s.violate("ran twice", "%s ran %d times", op.ID, s.executed[op.ID])
		}
	}
}

// sent counts what is sent between members.
func (s *simulation) sent(m link.Message) {
	switch m.Type {
	case "resent":
		s.crossed("a call is sent to a second member")
	case "moved":
		s.crossed("a call comes to a member that does not own its key")
	case "cancelled":
		s.crossed("a call is cancelled on its way")
	}
}

// observe counts the crossings that a step of a process has reached.
func (s *simulation) observe(p *process) {
	if p == nil || p.dead {
		return
	}
	n := p.node
	for _, sh := range n.shards {
		if sh.state == releasing && len(sh.waiting) > 0 {
			s.crossed("a shard is claimed while it is released")
		}
		if sh.state == activating && len(sh.served)+len(sh.keys) > 0 && len(sh.claimed) > 0 {
			s.crossed("a call waits for a shard to be ceded")
		}
	}
}

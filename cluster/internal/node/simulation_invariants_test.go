package node

import (
	"strings"
	"time"

	"github.com/mcpactor/mcpactor/messages"
)

// recovery is how long after the end of all faults everything works, if processes may have been killed and started just before.
const recovery = 10 * time.Second

// overlap is two processes that may both run a shard.
type overlap struct {
	shard int
	a, b  *process
}

// acts reports whether a process may start calls of a shard.
func (p *process) acts(shard int) bool {
	return !p.dead && !p.left && !p.paused && p.node.shards.Serves(shard) && p.lease.Held()
}

// mayOverlap reports whether two members may act for a key because etcd has lost views.
func (e *etcd) mayOverlap() bool {
	return !e.lostAt.IsZero() && time.Since(e.lostAt) < clusterLease*102/100
}

// checkOverlaps checks that no two processes act for a shard.
func (s *simulation) checkOverlaps() {
	now := time.Now()
	for x, a := range s.processes {
		for _, b := range s.processes[x+1:] {
			for shard := range clusterSize {
				at := overlap{shard, a, b}
				since, before := s.overlaps[at]
				switch is := a.acts(shard) && b.acts(shard); {
				case is && !before:
					s.overlaps[at] = now
				case before && !is:
					delete(s.overlaps, at)
				case is && now.Sub(since) > 0 && !s.etcd.mayOverlap():
					s.Violate("two members act", "%s and %s both run shard %d, for %v", a.name, b.name, shard, now.Sub(since))
				}
			}
		}
	}
}

// onReply takes a reply.
func (s *simulation) onReply(k *command, reply messages.Reply) {
	if k.replies = append(k.replies, reply); len(k.replies) > 1 {
		s.Violate("two replies", "%s: %v", describe(k.cmd), reply)
		return
	}
	k.at = time.Now()
	s.Logf("%s: reply to %s: %v", k.p.name, describe(k.cmd), reply)
	op, is := k.cmd.(*messages.CallTool)
	if !is {
		return
	}
	late := k.deadline
	if k.p.resumed.After(late) {
		late = k.p.resumed
	}
	if k.at.After(late.Add(time.Second)) {
		s.Violate("late reply", "%s: %v after its deadline", op.ID, k.at.Sub(k.deadline))
	}
	runs := s.executed[op.ID]
	switch r := reply.(type) {
	case *messages.ToolResult:
		if runs == 0 || runs > 1 && !r.Replayed {
			s.Violate("untrue result", "%s: it ran %d times: %+v", op.ID, runs, r.Receipt)
		}
	case *messages.Failure:
		s.checkFailure(op, runs, r)
	}
}

// checkFailure checks what a failure says of a call.
func (s *simulation) checkFailure(op *messages.CallTool, runs int, f *messages.Failure) {
	if runs > 0 && !f.MayHaveRun {
		s.Violate("untrue failure", "%s: it is said not to have run, and ran: %v", op.ID, f)
	}
	switch f.Code {
	case messages.CodeUnavailable, messages.CodeBusy, messages.CodeDraining:
		if f.MayHaveRun {
			s.Violate("untrue failure", "%s: the code says that it did not run, but it may have: %v", op.ID, f)
		}
	case messages.CodeInternal, messages.CodeProtocol, messages.CodeInvalid:
		s.Violate("untrue failure", "%s: %v", op.ID, f)
	}
}

// stable reports whether all processes know each other, and may act.
func (s *simulation) stable() bool {
	live := s.live()
	for _, p := range live {
		n, known := p.node, 1
		if !n.members.inside() || !p.lease.Held() || p.leaving || len(n.members.keeper.View().Members) != len(live) || n.members.keeper.View().Number != live[0].node.members.keeper.View().Number {
			return false
		}
		for _, other := range n.members.peers {
			if other.member && !other.silent() {
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
		n := p.node
		s.Logf("%s: id %s, view %d, leaving %v, lease %v, inside %v, shards %+v, waiting %d", p.name, n.members.id, n.members.keeper.View().Number, p.leaving, p.lease.Held(), n.members.inside(), n.shards, n.routing.served)
		for _, x := range inOrder(n.routing.exchanges) {
			s.Logf("%s: waits for %s, given to %v, sent %v", p.name, describe(x.cmd), x.to, x.sent)
		}
		for _, other := range inOrder(n.members.peers) {
			s.Logf("%s: peer %s, member %v, greets %v, silent %v, ended %v, idle %v", p.name, other.ID, other.member, other.greets, other.silent(), other.ended, other.link.Idle())
		}
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
				s.Violate("not recovered", "%v", f)
			}
		}
	}
}

// checkEnd checks that nothing is left.
func (s *simulation) checkEnd() {
	for _, p := range s.processes {
		if p.dead || !s.Intact() {
			continue
		}
		n := p.node
		for what, size := range map[string]int{
			"exchanges": len(n.routing.exchanges), "keys of exchanges": len(n.routing.byKey), "served": len(n.serving.all), "asked": len(n.questions.asked),
			"waiting": n.routing.served, "peers": len(n.members.peers), "sessions": len(p.runs.sessions),
		} {
			if size > 0 {
				s.Violate("left "+what, "%d %s of %s", size, what, p.name)
			}
		}
		for _, id := range p.system.ProcessRegistry.LocalPIDs.LocalPIDs[0].Keys() {
			switch prefix, _, _ := strings.Cut(id, "$"); prefix {
			case "remote", "ask", "proxy", "question":
				s.Violate("left processes", "%s of %s", id, p.name)
			}
		}
	}
	for _, k := range s.commands {
		if op, is := k.cmd.(*messages.CallTool); is && s.executed[op.ID] > 1 && !mayRunTwice(op) {
			s.Violate("ran twice", "%s ran %d times", op.ID, s.executed[op.ID])
		}
	}
}

// observe counts the crossings that a step of a process has reached.
func (s *simulation) observe(p *process) {
	if p == nil || p.dead {
		return
	}
	n := p.node
	if n.members.inside() && n.shards.Releasing() {
		s.Crossed("a shard is released")
	}
	if n.routing.served > 0 {
		s.Crossed("a call waits for a shard to be ceded")
	}
	if n.members.inside() && !p.lease.Held() && len(n.routing.byKey) > 0 {
		s.Crossed("a member is fenced with calls that wait")
	}
}

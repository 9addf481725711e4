package node

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
)

// callers are the actors that send commands, with what they have got, and what the servers have run.
type callers struct {
	s        *simulation
	commands []*command
	owners   []*ownerProcess
	executed map[string]int    // runs, by call
	at       map[string]string // the process of the last run
}

// command is a command that was sent.
type command struct {
	p        *process
	cmd      messages.Command
	deadline time.Time
	replies  []messages.Reply
	at       time.Time // of the first reply
}

// send sends a command to the node of a process.
func (c *callers) send(p *process, cmd messages.Command) *command {
	k := &command{p: p, cmd: cmd, deadline: time.Now().Add(callTime)}
	if op, ok := cmd.(messages.Operation); ok {
		k.deadline = op.Head().Deadline
	}
	c.commands = append(c.commands, k)
	c.s.Logf("%s gets %s", p.name, describe(cmd))
	pid := c.s.box(p, func(msg any) {
		if reply, is := msg.(messages.Reply); is {
			c.s.onReply(k, reply)
		}
	})
	p.system.Root.RequestWithCustomSender(p.pid, cmd, pid)
	return k
}

// call returns a call of a key.
func (c *callers) call(scope, tool string, within time.Duration) *messages.CallTool {
	op := &messages.CallTool{Header: messages.To("s", scope), Params: &mcp.CallToolParams{Name: tool}}
	op.ID, op.Deadline = fmt.Sprintf("c%03d", len(c.commands)), time.Now().Add(within)
	return op
}

// ran notes that a server has run a call.
func (c *callers) ran(p *process, op *messages.CallTool) {
	if before := c.at[op.ID]; before != "" && before != p.name {
		c.s.Crossed("a call runs again on another member")
	}
	c.executed[op.ID]++
	c.at[op.ID] = p.name
	c.s.Logf("%s runs %s", p.name, op.ID)
}

// unanswered returns how many commands of processes that run have no reply.
func (c *callers) unanswered() (n int) {
	for _, k := range c.commands {
		if len(k.replies) == 0 && !k.p.dead {
			n++
		}
	}
	return n
}

// actions are what can be done to a cluster, and how often.
var actions = []struct {
	name   string
	weight int
	do     func(s *simulation)
}{
	{"call", 60, (*simulation).anyCall},
	{"let time pass", 14, func(s *simulation) {
		s.pass([]time.Duration{time.Second, 100 * time.Millisecond, 4 * time.Second, 10 * time.Second}[s.Rarely(4, 2)])
	}},
	{"cancel", 6, func(s *simulation) {
		if k := s.anyCommand(); k != nil && !k.p.dead {
			if op, is := k.cmd.(messages.Operation); is {
				p := s.anyProcess()
				s.Logf("%s cancels %s", p.name, op.RequestID())
				p.tell(&messages.Cancel{Key: op.Head().Key, ID: op.RequestID()})
			}
		}
	}},
	{"cut a link", 8, func(s *simulation) { s.cut(s.anyHost(), s.anyHost(), s.N(2) == 0) }},
	{"cut off a process", 2, func(s *simulation) {
		p := s.anyProcess()
		for _, host := range s.hosts() {
			s.cut(p.name, host, true)
		}
	}},
	{"heal a link", 4, func(s *simulation) { s.restore(s.anyHost(), s.anyHost()) }},
	{"heal all links", 3, (*simulation).restoreAll},
	{"pause a process", 5, func(s *simulation) {
		s.anyProcess().pause([]time.Duration{300, 1500, 3000, 6000, 15_000}[s.N(5)] * time.Millisecond)
	}},
	{"etcd hangs", 2, func(s *simulation) {
		s.Logf("etcd hangs")
		s.etcd.hung = true
		s.later(nil, []time.Duration{500, 2500, 8000}[s.N(3)]*time.Millisecond, "etcd goes on", func() { s.etcd.hung = false })
	}},
	{"kill a process", 2, func(s *simulation) {
		if s.canSpare() {
			s.anyProcess().kill()
		}
	}},
	{"start a process", 3, (*simulation).startProcess},
	{"a process leaves", 2, func(s *simulation) {
		if p := s.anyProcess(); s.canSpare() && !p.paused {
			p.leave()
		}
	}},
	{"an owner ends", 4, func(s *simulation) {
		if len(s.owners) > 0 {
			o := s.owners[s.N(len(s.owners))]
			if !o.p.dead {
				o.end()
			}
		}
	}},
	{"close a scope", 3, func(s *simulation) { s.send(s.anyProcess(), &messages.CloseScope{ID: "close", Scope: s.anyScope()}) }},
	{"cancel a scope", 2, func(s *simulation) {
		s.send(s.anyProcess(), &messages.CancelScope{ID: "cancel", Scope: s.anyScope()})
	}},
	{"bind a scope", 3, func(s *simulation) {
		p := s.anyProcess()
		s.send(p, &messages.Bind{ID: "bind", Scope: s.anyScope(), Owner: s.anyOwner(p)})
	}},
	{"inspect", 1, func(s *simulation) { s.send(s.anyProcess(), &messages.Inspect{ID: "inspect"}) }},
	{"a connection ends", 2, func(s *simulation) {
		p, other := s.anyProcess(), s.anyProcess()
		if l := p.port.links[other.port.id]; l != nil {
			l.breaks()
		}
	}},
	{"etcd loses views", 1, func(s *simulation) {
		if s.cfg.etcd {
			views := s.N(len(s.etcd.backups) + 1)
			s.Logf("etcd loses its last %d views", views)
			s.etcd.loses(views)
		}
	}},
}

var actionWeights = func() (all []int) {
	for _, a := range actions {
		all = append(all, a.weight)
	}
	return all
}()

// act does one thing, and lets some time pass.
func (s *simulation) act() {
	s.Part()
	a := actions[s.Weighted(actionWeights)]
	a.do(s)
	s.pass([]time.Duration{0, 2, 20, 200, 1000}[s.N(5)] * time.Millisecond)
}

func (s *simulation) anyProcess() *process {
	live := s.live()
	return live[s.N(len(live))]
}

// canSpare reports whether there are enough processes without one: with raft more than half of its voters. A host that was
// killed as it joined may become one later, and the log of one that joins may not know that it is none any longer. Nor does one that has
// been cut off for a lease: it loses its vote when another one leaves.
func (s *simulation) canSpare() bool {
	stay, voters, votes := 0, 0, 0
	hosts := map[string]bool{} // that run, or were killed
	for _, p := range s.processes {
		hosts[p.name] = !p.left
	}
	for _, is := range hosts {
		if is {
			voters++
		}
	}
	for _, p := range s.live() {
		if p.leaving {
			continue
		}
		if stay++; p.host != nil {
			if n := p.host.Voters(); n > 0 && p.node.members.inside() && p.lease.Held() {
				votes, voters = votes+1, max(voters, n)
			}
		}
	}
	return stay > 2 && (s.cfg.etcd || votes-1 > voters/2)
}

// hosts returns the names of all that have links.
func (s *simulation) hosts() (all []string) {
	for _, p := range s.live() {
		all = append(all, p.name)
	}
	if s.cfg.etcd {
		all = append(all, etcdHost)
	}
	return all
}

func (s *simulation) anyHost() string {
	all := s.hosts()
	return all[s.N(len(all))]
}

func (s *simulation) anyScope() string { return fmt.Sprint("scope", s.N(6)) }

func (s *simulation) anyCommand() *command {
	if len(s.commands) == 0 {
		return nil
	}
	back := s.Choose(len(s.commands), func(r *rand.Rand) int { return min(r.IntN(len(s.commands)), r.IntN(8)) })
	return s.commands[len(s.commands)-1-back]
}

func (s *simulation) anyOwner(p *process) *actor.PID {
	o := s.newOwner(p)
	s.owners = append(s.owners, o)
	return o.pid
}

// anyCall sends a call.
func (s *simulation) anyCall() {
	p := s.anyProcess()
	tool := []string{"quick", "slow", "long", "quick/ro", "slow/ro", "long/ro"}[s.N(6)]
	op := s.call(s.anyScope(), tool, []time.Duration{callTime, time.Second, 5 * time.Second}[s.Rarely(3, 3)])
	op.Replay = []messages.Replay{messages.ReplaySafe, messages.ReplayNever, messages.ReplayAlways}[s.N(3)]
	if s.Rarely(2, 4) == 1 {
		op.Owner = s.anyOwner(p)
	}
	if s.Rarely(2, 6) == 1 {
		op.WaitUntil = time.Now().Add(500 * time.Millisecond)
	}
	s.send(p, op)
}

// startProcess starts a process: again, or another one if etcd knows who is there.
func (s *simulation) startProcess() {
	if len(s.processes) == maxProcesses {
		return
	}
	var names []string
	for n := range 5 {
		name := string(rune('a' + n))
		if s.byName(name) == nil && (s.cfg.etcd || n < s.cfg.members) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		s.spawn(names[s.N(len(names))])
	}
}

// cut cuts a link, or both directions.
func (s *simulation) cut(from, to string, both bool) {
	if from == to {
		return
	}
	s.Logf("cut %s→%s, both %v", from, to, both)
	s.link(from, to).cut = true
	if both {
		s.link(to, from).cut = true
	}
}

// restore heals both directions of a link.
func (s *simulation) restore(a, b string) {
	s.Logf("heal %s and %s", a, b)
	s.link(a, b).cut, s.link(b, a).cut = false, false
}

// restoreAll heals all links.
func (s *simulation) restoreAll() {
	s.Logf("heal all links")
	for _, l := range s.links {
		l.cut = false
	}
}

// heal ends all faults.
func (s *simulation) heal() {
	s.Logf("== all faults end")
	s.healed, s.etcd.hung = true, false
	s.restoreAll()
	for _, p := range s.processes {
		p.resume()
	}
}

package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// supervisor is a process with a supervisor: its actors, and its part of the bridge. Supervisors that share the store are
// a cluster.
type supervisor struct {
	s        *simulation
	name     string
	cfg      protocol.Config
	mailbox  *mailbox.Mailbox // of the registry
	registry *registry
	pid      *actor.PID

	servers    map[string]mcpbridge.Server // as its dialer knows them
	live       map[messages.Key]int        // transports, but controls
	controls   int                         // that have not ended
	total      int
	tenants    map[string]int            // the same, by tenant
	dialing    map[string]int            // by server and address
	adoptable  map[messages.Key]*control // second sessions that the next dial adopts
	beside     map[messages.Key]int      // how many second sessions use the slot of a key
	orphaned   map[messages.Key]bool     // whose second session has ended, and that have not dialed since
	pins       map[messages.Key]bool     // sessions that must not be evicted
	lingering  int                       // goroutines that let time pass
	order      order
	controlled map[messages.Key]bool // that have had a second session, whose slot it used

	dead     bool // it was killed: nothing of it runs any more
	departed bool // it has left the cluster
	stopping bool
	stopped  bool
	left     []messages.Left
}

// runs reports whether the process runs.
func (p *supervisor) runs() bool { return p == nil || !p.dead || p.s.ended }

// takes reports whether the supervisor takes commands.
func (p *supervisor) takes() bool { return !p.dead && !p.stopping }

// work waits for the turn of what the bridge of the process does.
func (p *supervisor) work(ctx context.Context, label string, ready func() bool) {
	p.s.work(p, ctx, p.name+label, ready)
}

// linger lets time pass in the goroutine that has the turn, and waits for another turn.
func (p *supervisor) linger(d time.Duration, label string) {
	p.lingering++
	time.Sleep(d)
	p.work(context.Background(), label, nil)
	p.lingering--
}

// startSupervisor starts a process with the configuration of the others.
func (s *simulation) startSupervisor() *supervisor {
	p := &supervisor{
		s: s, cfg: s.cfg, mailbox: new(mailbox.Mailbox), live: map[messages.Key]int{}, tenants: map[string]int{}, dialing: map[string]int{},
		adoptable: map[messages.Key]*control{}, beside: map[messages.Key]int{}, orphaned: map[messages.Key]bool{}, pins: map[messages.Key]bool{}, servers: s.servers,
		order: newOrder(), controlled: map[messages.Key]bool{},
	}
	if s.store != nil {
		p.name = fmt.Sprint("process ", len(s.all), ": ")
		p.cfg.Store = p
	}
	s.all = append(s.all, p)
	p.cfg.Name, p.cfg.Dialer, p.cfg.Probe = fmt.Sprint("simulated-", len(s.all)), p, p.probe
	p.cfg.Stopped = func(left []messages.Left) { p.stopped, p.left = true, left }
	if s.intercepts {
		p.cfg.Interceptors = []actors.Interceptor{p.intercept}
	}
	p.cfg.Servers = nil
	for _, name := range serverNames {
		if srv, there := s.servers[name]; there {
			p.cfg.Servers = append(p.cfg.Servers, srv)
		}
	}
	shared := configOf(p.cfg, &s.scheduler)
	p.registry = newRegistry(&shared, p.mailbox)
	s.scheduler.names[p.mailbox] = p.name + "registry"
	p.pid = s.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return p.registry }, shared.RunsOn(p.mailbox)...))
	if s.isCluster {
		s.system.Root.Send(p.pid, &protocol.Cluster{Owns: func(key messages.Key) bool { return s.owns(p, key) }, HandBack: s.router.pid(p)})
	}
	return p
}

// probe panics at a message of a session, once a bug was planted.
func (p *supervisor) probe(c actor.Context) {
	s := p.s
	if s.plantedIn == 0 {
		return
	}
	if s.plantedIn--; s.plantedIn > 0 {
		return
	}
	if reg := p.registry.table.WithPID(c.Self()); reg != nil {
		s.Logf("a bug in %s at %T", reg.Key, c.Message())
		s.causes[reg.Key]++
		s.outlived = s.outlived || reg.Dialing
		s.Crossed("a bug in a session")
		if _, starts := c.Message().(*actor.Started); starts {
			s.meddledWith[reg.Key] = true // nobody is told what the actor was spawned to close
		}
		panic(planted)
	}
}

// supervisorOf returns the supervisor that has the actor with a mailbox.
func (s *simulation) supervisorOf(m *mailbox.Mailbox) *supervisor {
	if m.Parent != nil {
		m = m.Parent
	}
	for _, p := range s.all {
		if p.mailbox == m {
			return p
		}
	}
	return nil
}

// nameOfMailbox returns the name of the actor of a session.
func (s *simulation) nameOfMailbox(m *mailbox.Mailbox) string {
	if p := s.supervisorOf(m); p != nil {
		if reg := p.registrationOf(m); reg != nil {
			return fmt.Sprintf("%s%s session %d", p.name, reg.Key, reg.Serial)
		}
	}
	return "a session that has ended"
}

// registrationOf returns the registration of the session with a mailbox, or nil.
func (p *supervisor) registrationOf(m *mailbox.Mailbox) *table.Registration {
	for reg := range p.registry.table.All() {
		if reg.Mailbox == m {
			return reg
		}
	}
	return nil
}

// living returns the supervisors of processes that run.
func (s *simulation) living() []*supervisor {
	return slices.DeleteFunc(slices.Clone(s.all), func(p *supervisor) bool { return p.dead })
}

// taking returns the supervisors that take commands.
func (s *simulation) taking() []*supervisor {
	return slices.DeleteFunc(slices.Clone(s.all), func(p *supervisor) bool { return !p.takes() })
}

// anySupervisor returns a supervisor that takes commands. Without one, it returns the last one that runs.
func (s *simulation) anySupervisor() *supervisor {
	takes := s.taking()
	if len(takes) == 0 {
		takes = s.living()
		return takes[len(takes)-1]
	}
	return takes[s.N(len(takes))]
}

// supervisorFor returns a supervisor for a command about a key: in a cluster that which owns it.
func (s *simulation) supervisorFor(key messages.Key) *supervisor {
	if p := s.ownerOf(key); s.isCluster && p != nil && p.takes() {
		return p
	}
	return s.anySupervisor()
}

// live returns how many transports of a key there are.
func (s *simulation) live(key messages.Key) (n int) {
	for _, p := range s.living() {
		n += p.live[key]
	}
	return n
}

// kill ends a process without any warning. Another one takes over its keys, which may be a new one.
func (s *simulation) kill(p *supervisor) {
	s.Logf("%sis killed", p.name)
	s.Crossed("a process was killed")
	p.dead = true
	for _, c := range s.conns {
		if c.p == p && !c.gone() {
			c.broken = true
			c.of.known = c.of.known && c.Resume() != nil
		}
	}
	for _, of := range s.sessions {
		if (of.by == p || len(p.leftovers(of.key)) > 0) && (!s.isStored(of) || s.changed[of.key.Server]) {
			of.excuse = "its process was killed, and nobody else has its record, or its configuration"
		}
	}
	for _, caller := range s.processes { // they watched it
		caller.watchers = slices.DeleteFunc(caller.watchers, func(pid *actor.PID) bool { return strings.HasPrefix(pid.Id, p.pid.Id) })
	}
	for _, k := range s.commands {
		if k.at == p && len(k.replies) == 0 && !k.gone {
			k.gone = true
			s.unanswered--
		}
	}
	s.replace(p)
	s.router.lose(p)
}

// leftovers returns the MCP sessions of a key that the process could not close, perhaps in a close command.
func (p *supervisor) leftovers(key messages.Key) []contract.Leftover {
	all := slices.Clone(p.registry.closings.Left(key))
	for reg := range p.registry.table.All() {
		if reg.Key == key {
			all = append(all, reg.Leftovers...)
		}
	}
	return all
}

// replace gives the keys of a supervisor that ends to others, or to a new one.
func (s *simulation) replace(p *supervisor) {
	takes := s.taking()
	if !s.isStopping && (len(takes) == 0 || len(takes) < s.most && s.N(2) == 1) {
		takes = append(takes, s.startSupervisor())
	}
	if len(takes) == 0 {
		return
	}
	s.owners.pass(p, func() *supervisor { return takes[s.N(len(takes))] })
}

// killOne kills a process.
func (s *simulation) killOne() {
	if p := s.anySupervisor(); s.store != nil && p.takes() {
		s.kill(p)
	}
}

// restartOne stops a supervisor, and then starts one in its place.
func (s *simulation) restartOne() {
	p := s.anySupervisor()
	if s.store == nil || !p.takes() {
		return
	}
	s.Logf("%sis stopped", p.name)
	s.Crossed("a supervisor was stopped, and another one started")
	if s.isCluster { // it hands its keys over before
		for _, scope := range s.owners.scopesOf(p) {
			s.move(scope, s.cfg.LeaveOpen)
		}
		s.runUntil(time.Minute, "the keys are handed over", func() bool { return p.dead || len(s.owners.moving) == 0 })
	}
	if p.dead || !s.Intact() {
		return
	}
	p.stop()
	s.runUntil(2*time.Minute, "the supervisor has stopped", func() bool { return p.stopped || p.dead })
	if s.Intact() && !p.dead {
		s.replace(p)
	}
}

// stop tells the supervisor to stop, which leaves the cluster before.
func (p *supervisor) stop() {
	p.s.rest()
	p.stopping = true
	if !p.s.isCluster {
		p.s.system.Root.Send(p.pid, &protocol.Stop{})
		return
	}
	go func() {
		p.s.router.leave(p)
		p.s.system.Root.Send(p.pid, &protocol.Stop{})
	}()
}

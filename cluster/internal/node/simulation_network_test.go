package node

import (
	"fmt"
	"maps"
	"time"

	"github.com/mcpactor/mcpactor/cluster/internal/quorum"
	"github.com/mcpactor/mcpactor/cluster/internal/view"
	"github.com/mcpactor/mcpactor/messages"
)

// config is what a world is like.
type config struct {
	etcd    bool // it is the witness; otherwise the processes are, with raft
	members int
	drifts  bool // the clocks of processes go wrong by up to 0.9 %, so that two differ by less than 2 %
	holds   bool // a link that is cut keeps what it has until it is healed, as TCP does; otherwise that is lost
	lossy   bool // also links that are not cut lose messages
	store   bool // the members share a store
	fast    bool // all messages take the same time
	forgets bool // a process that is killed, and starts again, has lost the log of raft
}

const (
	clusterLease = 2 * time.Second
	etcdHost     = "etcd"
	clusterSize  = 8 // shards
	tickTime     = clusterLease / 20
)

// network has the links, and the witness.
type network struct {
	s     *simulation
	cfg   config
	links map[[2]string]*line
	etcd  etcd
	disks map[string]quorum.State // by host: what raft has stored
}

// etcd is a witness with a register.
type etcd struct {
	lane     *lane // what it has to do
	hung     bool
	register view.Register
	beats    int             // so far: each is another one
	backups  []view.Register // one of each view
	lostAt   time.Time       // when it was replaced by a backup, or by nothing
}

// do does a request, as the witness in etcd does.
func (e *etcd) do(q *view.Request) view.Answer {
	if q.Next != nil && q.Stored != e.stored() || q.Silent != nil && q.Silent.Stored != e.register.Beats[q.Silent.From.ID].Stored {
		other := *q
		other.Next, other.Silent = nil, nil
		q = &other
	}
	before := e.stored()
	a := e.register.Do(q)
	if beat, beats := e.register.Beats[q.From.ID]; q.Beat && beats {
		e.beats++
		beat.Stored = fmt.Sprint(e.beats)
		e.register.Beats[q.From.ID], a.Beats[q.From.ID] = beat, beat
	}
	if a.Stored = e.stored(); a.Stored != before {
		e.backups = append(e.backups, view.Register{Revision: e.register.Revision, View: a.View, Beats: maps.Clone(a.Beats)})
	}
	return a
}

// stored returns the view as etcd has it.
func (e *etcd) stored() string {
	if e.register.View.Number == 0 {
		return ""
	}
	return fmt.Sprint(e.register.View)
}

// loses replaces the last views, up to all.
func (e *etcd) loses(views int) {
	e.backups = e.backups[:max(0, len(e.backups)-views)]
	e.register, e.lostAt = view.Register{}, time.Now()
	if n := len(e.backups); n > 0 {
		e.register = e.backups[n-1]
		e.register.Beats = maps.Clone(e.register.Beats)
	}
}

// line carries messages from one host to another one, in their order.
type line struct {
	lane *lane
	last time.Time // when the last message arrives
	cut  bool
}

// link returns the link from one host to another one.
func (n *network) link(from, to string) *line {
	at := [2]string{from, to}
	if n.links[at] == nil {
		l := &line{}
		l.lane = n.s.newLane(func() bool { return l.cut && n.cfg.holds })
		n.links[at] = l
	}
	return n.links[at]
}

// connected reports whether messages arrive in both directions.
func (n *network) connected(a, b string) bool { return !n.link(a, b).cut && !n.link(b, a).cut }

// carry carries a message to another host.
func (n *network) carry(from, to, label string, arrive, lost func()) {
	l := n.link(from, to)
	loses := l.cut && !n.cfg.holds || n.cfg.lossy && !n.s.healed && from != etcdHost && to != etcdHost && n.s.Rarely(2, 50) == 1
	if loses {
		n.s.Logf("%s→%s loses %s", from, to, label)
		lost()
		return
	}
	delay := time.Millisecond
	if !n.cfg.fast && !n.s.healed {
		delay = []time.Duration{1, 3, 10, 50, 300}[n.s.Rarely(5, 6)] * time.Millisecond
	}
	e := n.s.event(nil, delay, from+"→"+to+" "+label, nil)
	if !e.at.After(l.last) {
		e.at = l.last
	}
	l.last = e.at
	e.do = func() {
		if l.cut {
			lost()
		} else {
			arrive()
		}
	}
	l.lane.events = append(l.lane.events, e)
}

// port is the network of a process.
type port struct {
	p     *process
	id    string                   // of the incarnation
	links map[string]*scriptedLink // to other incarnations
}

var _ Network = (*port)(nil)

// Begin begins an incarnation.
func (i *port) Begin(id string) {
	if i.id != "" {
		i.p.s.Crossed("a member joins again")
	}
	i.id, i.links = id, map[string]*scriptedLink{}
}

// Link begins the link to another incarnation.
func (i *port) Link(to Address) Link {
	s, id := i.p.s, i.id
	there := func() *port {
		if p := s.byName(hostOf(to.Host)); p != nil {
			return p.port
		}
		return nil
	}
	i.links[to.ID] = newScriptedLink(&s.mu, over{
		from: Address{ID: id, Host: i.p.address}, to: to,
		carry: func(how way, arrive, lost func()) {
			from, to := i.p.name, hostOf(to.Host)
			if how.back {
				from, to = to, from
			}
			s.carry(from, to, how.label, arrive, lost)
		},
		far: func() (*scriptedLink, bool) {
			other := there()
			if other == nil || other.id == "" {
				return nil, false
			}
			return other.links[id], other.id != to.ID
		},
		after: func(d time.Duration, f func()) { s.later(i.p, d, "", f) },
		tell: func(msg any) {
			if m, is := msg.(*Received); is {
				s.sent(m)
			}
			i.p.tell(msg)
		},
		pause: func() time.Duration { return 200*time.Millisecond + time.Duration(s.N(4))*100*time.Millisecond },
	})
	return i.links[to.ID]
}

// hostOf returns the name of the process at an address.
func hostOf(address string) string { return address[:len(address)-len(":1")] }

// ask asks the witness.
func (p *process) ask(number uint64, q *view.Request) {
	if p.s.cfg.etcd {
		p.askEtcd(number, q)
		return
	}
	p.host.Ask(number, q)
	p.drive()
}

// askEtcd asks etcd.
func (p *process) askEtcd(number uint64, q *view.Request) {
	s, none := p.s, func() {}
	s.carry(p.name, etcdHost, fmt.Sprintf("request %d, beat %v", number, q.Beat), func() {
		e := s.event(nil, 0, "etcd does a request of "+p.name, func() {
			a := s.etcd.do(q)
			s.carry(etcdHost, p.name, fmt.Sprintf("answer %d, view %d", number, a.View.Number), func() {
				p.tell(&Answered{number, a})
			}, none)
		})
		s.etcd.lane.events = append(s.etcd.lane.events, e)
	}, none)
}

// enter begins: with raft by what its disk has.
func (p *process) enter() {
	s := p.s
	if !s.cfg.etcd {
		var hosts []string
		for n := range s.cfg.members {
			hosts = append(hosts, string(rune('a'+n))+":1")
		}
		state := s.disks[p.name]
		if state.ID == 0 || s.cfg.forgets {
			s.voters++
			state = quorum.State{ID: s.voters}
		}
		var err error
		if p.host, err = quorum.NewHost(p.address, hosts, state); err != nil {
			panic(err)
		}
		p.tick()
	}
	p.tell(&Joined{p.port})
}

// tick has the time of raft go on.
func (p *process) tick() {
	p.host.Tick()
	p.drive()
	p.s.later(p, tickTime, "", p.tick)
}

// drive does what raft wants.
func (p *process) drive() {
	s, none := p.s, func() {}
	for {
		out, some := p.host.Ready()
		if !some {
			return
		}
		if out.Save != nil {
			s.disks[p.name] = p.host.State()
		}
		for _, packet := range out.Packets {
			to := hostOf(packet.To)
			s.carry(p.name, to, "raft", func() {
				if there := s.byName(to); there != nil && there.host != nil {
					s.later(there, 0, "", func() { there.host.Receive(p.address, packet.Data); there.drive() })
				}
			}, none)
		}
		for _, a := range out.Answers {
			p.tell(&Answered{a.Number, a.Answer})
		}
	}
}

// sent counts what is sent between members.
func (s *simulation) sent(m *Received) {
	switch m.value.(type) {
	case *messages.CallTool:
		if m.with != (envelope{}) {
			s.Crossed("a call is sent to a second member")
		}
	case *moved:
		s.Crossed("a call comes to a member that does not own its key")
	case *cancelled:
		s.Crossed("a call is cancelled on its way")
	}
}

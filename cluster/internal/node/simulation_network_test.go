package node

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/cluster/internal/link"
)

// config is what a world is like.
type config struct {
	etcd    bool // it knows the members; otherwise they poll each other, as with "automanaged"
	members int
	drifts  bool // the clocks of processes, and of etcd, go wrong by up to a percent
	holds   bool // a link that is cut keeps what it has until it is healed, as TCP does; otherwise that is lost
	lossy   bool // also links that are not cut lose messages
	store   bool // the members share a store
	fast    bool // all messages take the same time
}

const (
	clusterLease = 2 * time.Second
	etcdTTL      = clusterLease + time.Second // as package cluster asks for
	etcdHost     = "etcd"
	clusterSize  = 8 // shards
)

// network has the links, and who knows the members.
type network struct {
	s     *simulation
	cfg   config
	links map[[2]string]*line
	etcd  etcd
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
		n.s.logf("%s→%s loses %s", from, to, label)
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

// engine is an incarnation of a process.
type engine struct {
	p       *process
	id      string
	seen    int // the revision of etcd that it knows
	view    []Address
	gone    map[string]bool          // incarnations that it has known, and that have ended: they do not come back
	links   map[string]*scriptedLink // to other incarnations
	grains  map[int]bool             // shards that are active here
	ending  bool                     // it has told the others that it leaves
	stopped bool
	failed  bool // its last request to etcd has failed
}

var _ Network = (*engine)(nil)

func (i *engine) ID() string      { return i.id }
func (i *engine) Address() string { return i.p.address }

// enter begins a new incarnation of a process, and tries until it has joined.
func (p *process) enter() {
	p.s.later(p, 50*time.Millisecond, p.name+" enters", func() {
		if p.leaving {
			return
		}
		p.s.entered++
		i := &engine{p: p, id: fmt.Sprintf("%s%d", p.name, p.s.entered), gone: map[string]bool{}, links: map[string]*scriptedLink{}, grains: map[int]bool{}}
		if !p.s.cfg.etcd {
			i.join()
			i.poll()
			return
		}
		i.register()
	})
}

// join tells the node that the incarnation has joined.
func (i *engine) join() {
	i.p.current = i
	i.p.tell(&Joined{i})
}

// publish tells the node who is a member, as the engine does.
func (i *engine) publish(members []Address) {
	if i.stopped || i.p.current != i {
		return
	}
	there := map[string]bool{}
	for _, m := range members {
		there[m.ID] = true
	}
	if !there[i.id] { // it believes that it is a member until it is told
		there[i.id], members = true, append(slices.Clone(members), Address{ID: i.id, Host: i.p.address})
	}
	for _, m := range i.view {
		i.gone[m.ID] = i.gone[m.ID] || !there[m.ID]
	}
	view := slices.DeleteFunc(slices.Clone(members), func(m Address) bool { return i.gone[m.ID] })
	slices.SortFunc(view, func(a, b Address) int { return cmp.Compare(a.ID, b.ID) })
	if slices.Equal(view, i.view) {
		return
	}
	i.view = view
	i.p.tell(&Topology{Network: i.id, Members: slices.Clone(view)})
	for shard := range inOrder(i.grains) {
		if ownerOf(shard, view) != i.p.address {
			delete(i.grains, shard)
			i.p.s.later(i.p, 10*time.Millisecond, "", func() { i.p.tell(&Deactivated{Network: i.id, Shard: shard}) })
		}
	}
}

// Link begins the link to another incarnation.
func (i *engine) Link(to Address) Link {
	s, host := i.p.s, hostOf(to.Host)
	l := newScriptedLink(&s.mu, over{
		from: Address{ID: i.id, Host: i.p.address}, to: to, tell: i.p.tell,
		carry: func(how way, arrive, lost func()) {
			from, to := i.p.name, host
			if how.back {
				from, to = to, from
			}
			if i.stopped && !how.back {
				return
			}
			s.carry(from, to, how.label, func() {
				if !i.p.dead && i.p.current == i {
					arrive()
				}
			}, lost)
		},
		far: func() (there *scriptedLink, ended bool) {
			p := s.byName(host)
			if p == nil || p.current == nil || p.current.stopped {
				return nil, false
			}
			return p.current.links[i.id], p.current.id != to.ID
		},
		after: func(d time.Duration, f func()) { s.later(i.p, d, "", f) },
		pause: func() time.Duration { return []time.Duration{20, 500, 3000}[s.Rarely(3, 3)] * time.Millisecond },
	})
	i.links[to.ID] = l
	return &countedLink{l, s}
}

// countedLink counts what is sent between members.
type countedLink struct {
	*scriptedLink
	s *simulation
}

func (l *countedLink) Send(m link.Message, urgent bool) (*link.Sent, error) {
	l.s.sent(m)
	return l.scriptedLink.Send(m, urgent)
}

// hostOf returns the name of the process at an address.
func hostOf(address string) string { return address[:len(address)-len(":1")] }

// Activate activates the virtual actor of a shard on the member that owns it by the topology that is known here.
func (i *engine) Activate(shard int) {
	i.p.s.later(i.p, 10*time.Millisecond, fmt.Sprintf("%s activates %d", i.p.name, shard), func() {
		here := !i.stopped && ownerOf(shard, i.view) == i.p.address
		if here {
			i.grains[shard] = true
		}
		i.p.tell(&Activated{Network: i.id, Shard: shard, Here: here})
	})
}

// Leave tells the others that the incarnation leaves.
func (i *engine) Leave() {
	if i.ending = true; i.p.s.cfg.etcd {
		i.p.request("revoke", func() any { i.p.s.etcd.remove(i.p.s, i.id); return nil }, func(any, bool) {})
	}
}

// Stop ends the incarnation.
func (i *engine) Stop() {
	i.stopped = true
	if !i.ending {
		i.Leave()
	}
}

// etcd has the registrations, each for a time.
type etcd struct {
	lane       *lane // what it has to do
	hung       bool
	rate       float64 // of its clock
	revision   int
	registered map[string]*registration
}

// registration is an incarnation that is a member by etcd, which everybody else believes.
type registration struct {
	address Address
	expires time.Time
}

// request asks etcd, and gives the answer to then, or that there is none in time.
func (p *process) request(label string, do func() any, then func(answer any, ok bool)) {
	s, done := p.s, false
	answer := func(v any, ok bool) {
		if !done {
			done = true
			then(v, ok)
		}
	}
	s.later(p, clusterLease/2, "", func() { answer(nil, false) })
	nothing := func() {}
	s.carry(p.name, etcdHost, label, func() {
		e := s.event(nil, 0, "etcd does "+label+" of "+p.name, func() {
			v := do()
			s.carry(etcdHost, p.name, "answer to "+label, func() { s.later(p, 0, "", func() { answer(v, true) }) }, nothing)
		})
		s.etcd.lane.events = append(s.etcd.lane.events, e)
	}, nothing)
}

// register registers the incarnation, and tries again if etcd does not answer.
func (i *engine) register() {
	s := i.p.s
	i.p.request("register "+i.id, func() any {
		s.etcd.registered[i.id] = &registration{address: Address{ID: i.id, Host: i.p.address}}
		s.etcd.extend(s, i.id)
		s.etcd.changed(s)
		return s.etcd.members()
	}, func(members any, ok bool) {
		if !ok {
			i.p.enter()
			return
		}
		i.join()
		i.publish(members.([]Address))
		i.renew()
		i.watch()
	})
}

// renew renews the registration, and again after a while.
func (i *engine) renew() {
	s, asked := i.p.s, time.Now()
	if i.stopped {
		return
	}
	next := func() { s.later(i.p, clusterLease/4-time.Since(asked), "", i.renew) }
	keep := func() {
		i.p.request("keep alive", func() any { return s.etcd.extend(s, i.id) }, func(there any, ok bool) {
			i.failed = !ok
			switch {
			case ok && !there.(bool):
				i.p.tell(&Expelled{Network: i.id})
				return
			case ok:
				i.p.tell(&Confirmed{Network: i.id, At: asked})
			}
			next()
		})
	}
	if !i.failed {
		keep()
		return
	}
	i.p.request("get", func() any { return nil }, func(_ any, ok bool) { // whether answers arrive
		if ok {
			keep()
		} else {
			next()
		}
	})
}

// watch takes the members from etcd now and then.
func (i *engine) watch() {
	if i.look(); !i.stopped && !i.p.dead {
		i.p.s.later(nil, 250*time.Millisecond, "", i.watch)
	}
}

// look takes the members from etcd if they have changed.
func (i *engine) look() {
	s := i.p.s
	if i.stopped || i.seen == s.etcd.revision || s.etcd.hung || !s.connected(i.p.name, etcdHost) {
		return
	}
	revision, members := s.etcd.revision, s.etcd.members()
	s.carry(etcdHost, i.p.name, fmt.Sprint("members ", revision), func() {
		if i.seen < revision {
			i.seen = revision
			i.publish(members)
		}
	}, func() {})
}

// members returns who is registered.
func (e *etcd) members() (all []Address) {
	for _, r := range inOrder(e.registered) {
		all = append(all, r.address)
	}
	return all
}

// extend extends a registration, if it is there.
func (e *etcd) extend(s *simulation, id string) bool {
	r := e.registered[id]
	if r == nil || !r.expires.IsZero() && !time.Now().Before(r.expires) {
		return false
	}
	r.expires = time.Now().Add(time.Duration(float64(etcdTTL) / e.rate))
	s.later(nil, time.Until(r.expires), "", func() { e.lane.events = append(e.lane.events, s.event(nil, 0, "", func() { e.expire(s, id) })) })
	return true
}

// expire removes a registration that was not extended.
func (e *etcd) expire(s *simulation, id string) {
	if r := e.registered[id]; r != nil && !time.Now().Before(r.expires) {
		s.logf("etcd expires %s", id)
		e.remove(s, id)
	}
}

// remove removes a registration.
func (e *etcd) remove(s *simulation, id string) {
	if e.registered[id] != nil {
		delete(e.registered, id)
		e.changed(s)
	}
}

// changed tells all that watch.
func (e *etcd) changed(s *simulation) {
	e.revision++
	for _, p := range s.processes {
		if i := p.current; i != nil && !p.dead {
			s.later(nil, time.Millisecond, "", i.look)
		}
	}
}

// poll asks all hosts who they are, as "automanaged" does, and again after a while.
func (i *engine) poll() {
	s, answers, done := i.p.s, map[string]Address{i.id: {ID: i.id, Host: i.p.address}}, false
	if i.stopped {
		return
	}
	left := s.cfg.members - 1
	end := func() {
		if !done {
			done = true
			i.publish(slices.Collect(maps.Values(answers)))
			s.later(i.p, 500*time.Millisecond, "", i.poll)
		}
	}
	if left == 0 {
		end()
		return
	}
	s.later(i.p, 2*time.Second, "", end)
	for n := range s.cfg.members {
		host := string(rune('a' + n))
		if host == i.p.name {
			continue
		}
		answered := func() {
			if left--; left == 0 {
				end()
			}
		}
		s.carry(i.p.name, host, "poll", func() {
			p := s.byName(host)
			if p == nil || p.current == nil || p.current.ending {
				s.carry(host, i.p.name, "refusal", func() { s.later(i.p, 0, "", answered) }, func() {})
				return
			}
			s.later(p, 0, "", func() {
				there := Address{ID: p.current.id, Host: p.address}
				s.carry(host, i.p.name, "is "+there.ID, func() {
					s.later(i.p, 0, "", func() { answers[there.ID] = there; answered() })
				}, func() {})
			})
		}, func() {})
	}
}

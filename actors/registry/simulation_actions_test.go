package registry

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// action is what a user does, or what happens to the world.
type action struct {
	name   string
	weight int
	do     func(s *simulation)
}

// actions are all actions, the simplest first.
var actions = []action{
	{"call", 60, func(s *simulation) { s.do(s.newCall(s.anyKey()), nil) }},
	{"let time pass", 18, (*simulation).letTimePass},
	{"cancel", 12, (*simulation).cancel},
	{"break a connection", 7, func(s *simulation) {
		if c := s.anyConn(); c != nil {
			c.breakOff(s.N(2) == 0)
		}
	}},
	{"expire a session", 5, func(s *simulation) {
		if c := s.anyConn(); c != nil {
			c.blame()
			c.of.known = false
		}
	}},
	{"outage", 10, func(s *simulation) {
		if at := s.anyAddress(); at != nil {
			at.down = !at.down
			s.Logf("%s is down: %v", at.name, at.down)
		}
	}},
	{"front", 2, func(s *simulation) {
		if at := s.anyAddress(); at != nil {
			at.front = !at.front
			s.Logf("%s has a front: %v", at.name, at.front)
		}
	}},
	{"another operation", 6, (*simulation).otherOperation},
	{"calls one after the other", 2, func(s *simulation) {
		key := messages.Key{Server: s.anyServer(), Scope: "alone-" + s.nextID()}
		s.owners.of[key.Scope] = s.anySupervisor()
		s.serially(5, key)
	}},
	{"crowd", 2, (*simulation).crowd},
	{"close", 9, (*simulation).close},
	{"restart", 4, func(s *simulation) {
		key := s.anyKey()
		s.send(s.supervisorFor(key), &messages.Restart{Key: key, ID: s.nextID()}, s.nextID(), drainTimeout+2*closeTimeout+connectTimeout+time.Second, nil)
	}},
	{"forget", 2, func(s *simulation) {
		s.send(s.anySupervisor(), &messages.Forget{Server: s.anyServer(), ID: s.nextID()}, s.nextID(), time.Second, nil)
	}},
	{"pin", 4, func(s *simulation) {
		key := s.anyKey()
		s.pin(s.supervisorFor(key), key, s.N(2) == 1)
	}},
	{"cancel a scope", 2, func(s *simulation) {
		s.send(s.anySupervisor(), &messages.CancelScope{Scope: s.anyKey().Scope, ID: s.nextID()}, s.nextID(), time.Second, nil)
	}},
	{"bind", 4, (*simulation).bind},
	{"end a process", 4, func(s *simulation) {
		if len(s.processes) > 0 {
			if p := s.processes[s.N(len(s.processes))]; !p.dead {
				s.Logf("%s ends", p.name)
				p.die()
			}
		}
	}},
	{"reload", 4, (*simulation).reload},
	{"inspect", 1, func(s *simulation) {
		s.send(s.anySupervisor(), &messages.Inspect{ID: s.nextID(), Limit: -1}, s.nextID(), time.Second, nil)
	}},
	{"notify", 2, func(s *simulation) {
		if c := s.anyConn(); c != nil && c.req.Heard != nil {
			c.of.at.lists++
			go c.req.Heard(&messages.ToolsChanged{}, nil)
		}
	}},
	{"check", 3, func(s *simulation) {
		key := s.anyKey()
		s.send(s.supervisorFor(key), &messages.Check{Key: key, ID: s.nextID()}, s.nextID(), time.Second, nil)
	}},
	{"stop an actor", 1, (*simulation).stopActor},
	{"kill a process", 2, (*simulation).killOne},
	{"restart a supervisor", 2, (*simulation).restartOne},
	{"move a scope", 4, func(s *simulation) {
		if scope := scopes[s.N(len(scopes))]; s.isCluster {
			s.move(scope, s.N(4) > 0)
		}
	}},
	{"plant a bug", 1, func(s *simulation) {
		if s.bugs < 3 {
			s.bugs++
			s.plantedIn = 1 + s.N(30)
		}
	}},
}

var actionWeights = func() (weights []int) {
	for _, a := range actions {
		weights = append(weights, a.weight)
	}
	return weights
}()

// act does the next action, and then some steps.
func (s *simulation) act() {
	s.Part()
	s.rest()
	a := actions[s.Weighted(actionWeights)]
	s.Logf("== %s", a.name)
	a.do(s)
	switch s.N(4) {
	case 0:
		for s.Intact() && s.step(s.isReady) {
			s.afterStep()
		}
	case 1:
		s.some(1 + s.N(6))
	case 2:
		s.some(1 + s.N(40))
	}
	if s.Rarely(2, 8) == 1 {
		s.tick()
	}
}

// some takes some steps.
func (s *simulation) some(steps int) {
	for ; steps > 0 && s.Intact() && s.step(s.isReady); steps-- {
		s.afterStep()
	}
}

func (s *simulation) anyServer() string { return serverNames[s.N(len(serverNames))] }

func (s *simulation) anyKey() messages.Key {
	return messages.Key{Server: s.anyServer(), Scope: scopes[s.N(len(scopes))]}
}

// anyConn returns a connection that is open, or nil.
func (s *simulation) anyConn() *simConn {
	open := slices.DeleteFunc(slices.Clone(s.world.conns), (*simConn).gone)
	at := s.N(max(1, len(open)))
	if len(open) == 0 {
		return nil
	}
	return open[at]
}

// anyAddress returns an address that was dialed, or nil.
func (s *simulation) anyAddress() *address {
	var all []*address
	for _, srv := range serverNames {
		if configured, there := s.world.servers[srv]; there {
			for _, scope := range []string{"a", "cc"} {
				all = append(all, s.world.addressOf(configured, messages.Key{Server: srv, Scope: scope}))
			}
		}
	}
	at := s.N(max(1, len(all)))
	if len(all) == 0 {
		return nil
	}
	return all[at]
}

func (s *simulation) letTimePass() {
	d := []time.Duration{20, 200, 1500, 6000, 31000}[s.N(5)] * time.Millisecond
	works := s.N(2) == 0
	s.Logf("%v pass", d)
	for until := time.Now().Add(d); s.Intact() && time.Until(until) > 0; {
		s.passTo(until, works)
	}
}

func (s *simulation) cancel() {
	if len(s.commands) == 0 {
		return
	}
	back := s.Choose(len(s.commands), func(r *random) int { return min(r.IntN(len(s.commands)), r.IntN(8)) })
	if op, is := s.commands[len(s.commands)-1-back].message.(messages.Operation); is {
		s.Logf("%s is cancelled", op.RequestID())
		cmd := &messages.Cancel{Key: op.Head().Key, ID: op.RequestID()}
		s.system.Root.Send(s.commands[len(s.commands)-1-back].at.pid, cmd)
		s.router.cancel(cmd)
	}
}

func (s *simulation) otherOperation() {
	h := s.header(s.anyKey())
	subscriber := s.process("subscriber").pid
	var op messages.Operation
	switch s.N(11) {
	case 0:
		op = &messages.Open{Header: h}
	case 1:
		op = &messages.Ping{Header: h}
	case 2:
		op = &messages.ListTools{Header: h}
	case 3:
		h.Subscriber = subscriber
		op = &messages.Subscribe{Header: h, URI: "file:///a"}
	case 4:
		h.Subscriber = subscriber
		op = &messages.Unsubscribe{Header: h, URI: "file:///a"}
	case 5:
		op = &messages.SetLogLevel{Header: h, Level: "error"}
	case 6:
		op = &messages.ReadResource{Header: h, Params: &mcp.ReadResourceParams{URI: "file:///a"}}
	case 7:
		op = &messages.Custom{Header: h, Name: []string{"acme/do", "acme/unknown"}[s.Rarely(2, 4)]}
	case 8, 9:
		op = &messages.ListTools{Header: h, Shared: true}
	case 10:
		op = &messages.ListPrompts{Header: h, Shared: true}
	}
	s.do(op, nil)
}

// crowd has many scopes of a server call it at once, beside one of each other server: they wait for their turns.
func (s *simulation) crowd() {
	crowded, id := s.anyServer(), s.nextID()
	call := func(server, scope string) {
		if s.owners.of[scope] == nil && s.owners.moving[scope] == nil {
			s.owners.of[scope] = s.anySupervisor()
		}
		s.do(s.newCall(messages.Key{Server: server, Scope: scope}), nil)
	}
	for i := range 8 {
		call(crowded, fmt.Sprintf("crowd-%s-%0*d", id, 1+i%4/2, i))
	}
	for _, server := range serverNames {
		call(server, scopes[s.N(len(scopes))])
	}
}

func (s *simulation) close() {
	key, now, id := s.anyKey(), s.N(2) == 1, s.nextID()
	var cmd messages.Command
	switch s.N(5) {
	case 0:
		cmd = &messages.CloseSession{ID: id, Key: key, Now: now}
	case 1:
		cmd = &messages.CloseScope{ID: id, Scope: key.Scope, Now: now}
	case 2:
		cmd = &messages.CloseServer{ID: id, Server: key.Server, Now: now}
	case 3:
		cmd = &messages.CloseMatching{ID: id, Scopes: "?", Now: now}
	case 4:
		cmd = &messages.CloseAll{ID: id, Now: now}
	}
	to := s.supervisorFor(key)
	s.send(to, cmd, id, to.registry.closer.Time()+time.Second, nil)
}

// pin pins the session of a key, or ends that.
func (s *simulation) pin(to *supervisor, key messages.Key, release bool) {
	s.send(to, &messages.Pin{Key: key, ID: s.nextID(), Release: release}, s.nextID(), time.Second, func(reply any) {
		if _, done := reply.(*messages.Pinned); done {
			to.pins[key] = !release
		}
	})
}

// stopActor stops an actor of a session, as user code may do. It does so in few schedules: whoever is stopped like that
// cannot see to the order of what ends.
func (s *simulation) stopActor() {
	p := s.anySupervisor()
	all := slices.SortedFunc(p.registry.table.All(), func(a, b *table.Registration) int { return cmp.Compare(a.Serial, b.Serial) })
	if at := s.N(max(1, len(all))); s.meddles && len(all) > 0 {
		s.Crossed("user code has stopped an actor")
		s.meddledWith[all[at].Key] = true
		s.outlived = s.outlived || all[at].Dialing
		s.system.Root.Stop(all[at].PID)
	}
}

func (s *simulation) bind() {
	cmd := &messages.Bind{Scope: s.anyKey().Scope, ID: s.nextID()}
	if s.N(3) > 0 {
		cmd.Owner = s.process("owner").pid
	}
	if s.N(3) == 1 {
		cmd.Handler = s.process("handler").pid
	}
	s.send(s.anySupervisor(), cmd, cmd.ID, time.Second, nil)
}

// reload changes, removes or adds one server, or changes the limits of one.
func (s *simulation) reload() {
	if slices.ContainsFunc(s.living(), func(p *supervisor) bool {
		return slices.ContainsFunc(slices.Collect(p.registry.table.All()), (*table.Registration).Queued)
	}) {
		s.Crossed("a reload with sessions that are queued")
	}
	name := s.anyServer()
	servers := map[string]mcpbridge.Server{}
	for name, srv := range s.world.servers {
		servers[name] = srv
	}
	srv, there := servers[name]
	if !there {
		srv = s.newServer(name, 0)
	}
	switch s.N(4) {
	case 0: // its limits
		srv.Limits.MaxDials = 1 + s.N(2)
		srv.Limits.MaxSessions = s.N(3)
		servers[name] = srv
	case 1:
		s.version++
		limits := srv.Limits
		srv = s.newServer(name, s.version)
		srv.Limits = limits
		servers[name] = srv
	case 2:
		delete(servers, name)
	case 3:
		servers[name] = srv
	}
	s.world.changed[name] = true
	s.excuse("its server was changed", func(of *served) bool {
		return of.key.Server == name && (s.isKept(of) || s.isLeaving(of) || s.isLeftover(of))
	})
	list := []mcpbridge.Server{}
	for _, name := range serverNames {
		if srv, there := servers[name]; there {
			list = append(list, srv)
		}
	}
	s.world.servers = servers // of processes that start from now on
	for _, p := range s.living() {
		reload := &protocol.Reload{Servers: list, Classes: protocol.ClassesOf(list, p.cfg.Capabilities), Apply: func() { p.servers = servers }}
		s.send(p, reload, "reload "+s.nextID(), p.registry.closer.Time()+time.Second, nil)
	}
}

// newServer returns a version of a server.
func (s *simulation) newServer(name string, version int) mcpbridge.Server {
	srv := mcpbridge.Server{Name: name}
	switch name {
	case "command":
		srv.Command = fmt.Sprint("command-", version)
	case "keyed":
		srv.URL, srv.PerKeyID = fmt.Sprint("http://keyed.invalid/", version), "id"
		base := srv
		srv.PerKey = func(_ context.Context, key messages.Key) (mcpbridge.Server, error) {
			found := base
			found.URL = addressOf(found.URL, key)
			return found, nil
		}
	default:
		srv.URL = fmt.Sprint("http://", name, ".invalid/", version)
	}
	if name == "one" {
		srv.CustomMethods = []string{"acme/do"}
	}
	if name == "other" {
		srv.KeepAlive = 5 * time.Second
		srv.Setup = []*mcp.CallToolParams{{Name: "setup"}}
	}
	return srv
}

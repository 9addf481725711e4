package registry

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/messages"
)

// ownership says which supervisor of a cluster has the keys of which scope.
type ownership struct {
	of     map[string]*supervisor // by scope
	moving map[string]*supervisor // by scope: the one that hands it over, while it has no owner
	leaves map[string]bool        // by scope: its sessions stay open when it moves, or has moved last
}

// scopesOf returns the scopes of a supervisor.
func (o *ownership) scopesOf(p *supervisor) (all []string) {
	for _, scope := range slices.Sorted(maps.Keys(o.of)) {
		if o.of[scope] == p {
			all = append(all, scope)
		}
	}
	return all
}

// pass gives the scopes of a supervisor that has ended to others.
func (o *ownership) pass(p *supervisor, to func() *supervisor) {
	for _, scope := range o.scopesOf(p) {
		o.of[scope] = to()
	}
	for _, scope := range slices.Sorted(maps.Keys(o.moving)) {
		if o.moving[scope] == p {
			delete(o.moving, scope)
			o.of[scope] = to()
		}
	}
}

// ownerOf returns the supervisor of a cluster that has a key, or nil while it moves.
func (s *simulation) ownerOf(key messages.Key) *supervisor { return s.owners.of[key.Scope] }

// owns reports whether a supervisor has a key.
func (s *simulation) owns(p *supervisor, key messages.Key) bool {
	return !s.isCluster || s.ownerOf(key) == p
}

// move has a scope handed over to another supervisor.
func (s *simulation) move(scope string, leave bool) {
	from := s.owners.of[scope]
	if from == nil || !from.takes() {
		return
	}
	s.Logf("%s of %s moves", scope, from.name)
	delete(s.owners.of, scope)
	s.owners.moving[scope], s.owners.leaves[scope] = from, leave
	release := &protocol.Release{Match: func(key messages.Key) bool { return key.Scope == scope }, Leave: leave, Now: s.N(4) == 1}
	s.send(from, release, "release "+s.nextID(), from.registry.closer.Time()+time.Second, func(any) {
		if s.owners.moving[scope] != from {
			return
		}
		delete(s.owners.moving, scope)
		takes := slices.DeleteFunc(s.taking(), func(p *supervisor) bool { return p == from })
		if len(takes) == 0 && !s.isStopping {
			takes = append(takes, from)
		}
		if len(takes) == 0 {
			return
		}
		s.owners.of[scope] = takes[s.N(len(takes))]
		s.Crossed("a scope has moved")
	})
}

// isLeaving reports whether a session is about to be left open. Then only the store has it, and nobody can close it on a
// server that is not configured any more.
func (s *simulation) isLeaving(of *served) bool {
	moves := s.owners.moving[of.key.Scope] != nil && s.owners.leaves[of.key.Scope]
	return moves || s.cfg.LeaveOpen && of.by != nil && of.by.stopping
}

// isLeftover reports whether a process is still to close a session that it knows from the store: a dial finds out whether
// it is there.
func (s *simulation) isLeftover(of *served) bool {
	return slices.ContainsFunc(s.living(), func(p *supervisor) bool {
		return slices.ContainsFunc(p.leftovers(of.key), func(l contract.Leftover) bool { return l.Conn == nil && l.SessionID() == of.id })
	})
}

// router sends the calls that supervisors hand back to those that have their keys, as the nodes of a cluster do.
type router struct {
	s      *simulation
	resent []*resent // that have no reply yet
}

// resent is a call that a supervisor has handed back, and the process that gets its reply.
type resent struct {
	quiet
	*protocol.HandedBack
	r    *router
	pid  *actor.PID
	from *supervisor // that has taken it from its caller
	at   *supervisor // that it was sent to, or nil
}

// handBack is the process that takes what a supervisor hands back.
type handBack struct {
	quiet
	r *router
	p *supervisor
}

// pid returns the PID that takes what a supervisor hands back.
func (r *router) pid(p *supervisor) *actor.PID { return r.s.register(&handBack{r: r, p: p}) }

// SendUserMessage takes a call.
func (h *handBack) SendUserMessage(_ *actor.PID, message any) {
	switch msg := actor.UnwrapEnvelopeMessage(message).(type) {
	case *protocol.HandedBack:
		h.r.s.Crossed("a call was handed to another process")
		for _, x := range h.r.resent {
			if x.pid.Equal(msg.Caller) {
				again := *msg
				again.Caller = x.Caller
				x.HandedBack, x.at = &again, nil
				go x.send()
				return
			}
		}
		x := h.r.take(msg, h.p)
		if h.p.departed {
			x.fail(messages.CodeClosed, x.MayHaveRun)
			return
		}
		go x.send()
	case *protocol.Withdrawn:
		h.r.cancel(msg.Cancel)
	}
}

// take takes a call that a supervisor has handed back.
func (r *router) take(msg *protocol.HandedBack, from *supervisor) *resent {
	x := &resent{HandedBack: msg, r: r, from: from}
	x.pid = r.s.register(x)
	r.resent = append(r.resent, x)
	return x
}

// send waits until somebody has the key, and sends the call there.
func (x *resent) send() {
	s, op := x.r.s, x.Op
	ctx, cancel := context.WithDeadline(context.Background(), op.Head().Deadline)
	defer cancel()
	x.from.work(ctx, "routing of "+op.RequestID(), func() bool { return ctx.Err() != nil || s.ownerOf(op.Head().Key) != nil || s.isStopping })
	if !x.waits() {
		return
	}
	if x.at = s.ownerOf(op.Head().Key); ctx.Err() != nil || x.at == nil {
		x.fail(messages.CodeDeadline, x.MayHaveRun)
		return
	}
	s.system.Root.RequestWithCustomSender(x.at.pid, &protocol.ResentCall{
		Op: op, Values: x.Values, Intercepted: x.Intercepted, Runs: x.Runs, MayHaveRun: x.MayHaveRun, Detail: x.Detail,
	}, x.pid)
	if !x.waits() { // its process has left before the call arrived
		x.cancel()
	}
}

// waits reports whether the call has no reply.
func (x *resent) waits() bool { return slices.Contains(x.r.resent, x) }

// cancel cancels the call where it is.
func (x *resent) cancel() {
	x.r.s.system.Root.Send(x.at.pid, &messages.Cancel{Key: x.Op.Head().Key, ID: x.Op.RequestID()})
}

// SendUserMessage takes the reply.
func (x *resent) SendUserMessage(_ *actor.PID, message any) {
	if !x.waits() {
		return
	}
	x.r.resent = slices.DeleteFunc(x.r.resent, func(other *resent) bool { return other == x })
	x.r.s.system.Root.Send(x.Caller, actor.UnwrapEnvelopeMessage(message))
}

// fail answers the call.
func (x *resent) fail(code messages.Code, mayHaveRun bool) {
	f := messages.NewFailure(x.Op, code, "by the router")
	f.MayHaveRun = mayHaveRun
	x.SendUserMessage(nil, f)
}

// lose sends the calls again that a process has taken with it: they may have run.
func (r *router) lose(p *supervisor) {
	for _, x := range slices.Clone(r.resent) {
		switch {
		case x.from == p: // its caller has gone with it
			r.resent = slices.DeleteFunc(r.resent, func(other *resent) bool { return other == x })
			if x.at != nil {
				x.cancel()
			}
		case x.at == p:
			r.s.lost[x.Op.RequestID()] = true
			again := *x.HandedBack
			again.Runs, again.MayHaveRun, again.Detail = x.Runs+1, true, "its process was killed"
			r.resent = slices.DeleteFunc(r.resent, func(other *resent) bool { return other == x })
			go r.take(&again, x.from).send()
		}
	}
}

// leave waits for the calls that a process has handed to others, for as long as its sessions have to close. It ends those
// that are left: the caller has its reply, and who has the call cancels it.
func (r *router) leave(p *supervisor) {
	ctx, cancel := context.WithTimeout(context.Background(), p.registry.closer.Time())
	defer cancel()
	waits := func(x *resent) bool { return x.from == p }
	p.work(ctx, "leaves", func() bool { return ctx.Err() != nil || !slices.ContainsFunc(r.resent, waits) })
	p.departed = true
	for _, x := range slices.Clone(r.resent) {
		if !waits(x) {
			continue
		}
		r.s.Crossed("a process has left before a call that it had handed to another one")
		r.s.lost[x.Op.RequestID()] = true
		if x.fail(messages.CodeClosed, x.MayHaveRun || x.at != nil); x.at != nil {
			x.cancel()
		}
	}
}

// cancel cancels an operation where it is, or while nobody has its key. Others run as it sends, and calls get their replies.
func (r *router) cancel(cmd *messages.Cancel) {
	for _, x := range slices.Clone(r.resent) {
		switch {
		case x.Op.RequestID() != cmd.ID:
		case x.at != nil:
			x.cancel()
		default:
			x.fail(messages.CodeCancelled, x.MayHaveRun)
		}
	}
}

// register adds a process to the engine, which finish removes.
func (s *simulation) register(p actor.Process) *actor.PID {
	pid, _ := s.system.ProcessRegistry.Add(p, s.system.ProcessRegistry.NextId())
	s.registered = append(s.registered, pid)
	return pid
}

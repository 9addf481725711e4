package node

import (
	"cmp"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/cluster/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

// serving runs the commands of callers on other members. A command of a key whose shard is not served here yet waits
// beside those of callers here.
type serving struct {
	*base
	place    placing
	routing  *routing
	proxies  *proxies
	bindings *bindings
	all      map[servedID]*served
}

func newServing(b *base, place placing, routing *routing, bindings *bindings) *serving {
	return &serving{base: b, place: place, routing: routing, proxies: routing.proxies, bindings: bindings, all: map[servedID]*served{}}
}

// servedID names an exchange of another member.
type servedID struct {
	from string
	id   uint64
}

// served is a command of another member, until it has its reply. Its box is the sender that
// the supervisor replies to.
type served struct {
	id      servedID
	peer    *peer
	cmd     messages.Command
	box     box        // its sender
	sender  *actor.PID // of the box; nil once it has its reply
	proxies []*proxy   // that it keeps
	waits   *exchange  // for its shard, or nil
}

// Between nodes, beside the messages of package messages.
type (
	// history is what was done with a command before.
	history struct {
		Runs        int          `json:"runs"`
		MayHaveRun  bool         `json:"mayHaveRun"`
		Detail      string       `json:"detail,omitempty"`
		Intercepted bool         `json:"intercepted"` // it has passed the interceptors of a member
		List        messages.Key `json:"list,omitzero"`
		Binding     bindVersion  `json:"binding,omitzero"`
	}
	// moved is the answer to a command that the member has not run, or hands back.
	moved history
	// cancelled cancels one exchange.
	cancelled struct {
		ByID bool `json:"byID"` // and the other operations with the same key and id
	}
)

func init() {
	wire.Register[moved]("moved")
	wire.Register[cancelled]("cancelled")
}

// isReply marks the id of a message that answers a command: the ids of both sides are the same
// numbers.
const isReply = 1 << 63

// serve runs a command of another member.
func (s *serving) serve(from *peer, id uint64, cmd messages.Command, past history) {
	if from.cancelled.take(id) {
		if op, ok := cmd.(messages.Operation); ok {
			from.answer(id, s.failure(op, messages.CodeCancelled, ""))
			return
		}
	}
	if cancel, ok := cmd.(*messages.Cancel); ok {
		s.routing.cancelID(cancel.Key.Normal(), cancel.ID)
		s.toSupervisor(cancel)
		return
	}
	if bind, binds := cmd.(*messages.Bind); binds && !s.bindings.accept(from, bind, past.Binding, time.Now()) {
		from.answer(id, &messages.Bound{ID: bind.ID, Scope: scopeOf(bind)})
		return
	}
	one := &served{id: servedID{from.ID, id}, peer: from, cmd: cmd}
	one.proxies = s.proxies.adopt(from, cmd)
	key, keyed := past.routedBy(cmd)
	number := ShardOf(key, s.cfg.Shards)
	if _, own := s.place.ownerOf(number); keyed && (!own || s.place.leaves()) {
		s.answerMoved(one, past)
		return
	}
	s.all[one.id] = one
	s.openBox(one)
	if op, ok := cmd.(messages.Operation); ok && op.Head().Owner == nil {
		op.Head().Owner = one.sender
	}
	if keyed && !s.place.Serves(number) && !past.asksForList() {
		one.waits = &exchange{cmd: cmd, caller: one.sender, key: key, deadline: s.deadlineOf(cmd), history: past, served: true}
		s.routing.enter(one.waits)
		return
	}
	s.run(cmd, one.sender, nil, past)
}

// keyOf returns the key of a command that belongs to one.
func keyOf(cmd messages.Command) (messages.Key, bool) {
	switch cmd := cmd.(type) {
	case messages.Operation:
		return cmd.Head().Key.Normal(), true
	case *messages.CloseSession:
		return cmd.Key.Normal(), true
	case *messages.Restart:
		return cmd.Key.Normal(), true
	case *messages.Pin:
		return cmd.Key.Normal(), true
	case *messages.Check:
		return cmd.Key.Normal(), true
	}
	return messages.Key{}, false
}

// onServed encodes the reply of the own supervisor.
func (s *serving) onServed(one *served, message any) {
	if s.all[one.id] != one || one.sender == nil {
		return
	}
	if past, has := message.(*moved); has {
		s.answerMoved(one, history(*past))
		return
	}
	reply, ok := message.(messages.Reply)
	if !ok { // a dead letter
		reply = s.failure(one.cmd, messages.CodeClosed, "the supervisor of the member has stopped")
	}
	s.closeBox(one)
	s.bindings.settle(one.cmd, reply)
	s.encode(reply, encoded{part: s, served: one, to: one.peer})
}

// onEncoded sends a reply to the member of its caller.
func (s *serving) onEncoded(msg encoded) {
	one := msg.served
	if s.all[one.id] != one {
		return
	}
	s.forget(one)
	if err := msg.send(one.id.id | isReply); err != nil {
		f := s.failure(one.cmd, messages.CodeProtocol, "the reply cannot be sent to the caller's member: "+err.Error())
		f.MayHaveRun = true
		one.peer.answer(one.id.id, f)
	}
}

// answerMoved tells the member of the caller that the command was not run, or is handed back.
func (s *serving) answerMoved(one *served, past history) {
	s.closeBox(one)
	s.forget(one)
	one.peer.answer(one.id.id, (*moved)(&past))
}

// forget removes a command that has its reply.
func (s *serving) forget(one *served) {
	delete(s.all, one.id)
	s.proxies.release(one.proxies)
	one.proxies = nil
}

// onExchangeCancelled cancels a command of another member. One that runs ends with its owner, or at its
// deadline, without a Cancel, which could be for commands of other callers.
func (s *serving) onExchangeCancelled(from *peer, id uint64, byID bool) {
	one := s.all[servedID{from.ID, id}]
	switch {
	case one == nil:
		from.cancelled.add(id)
	case s.routing.holds(one.waits):
		s.routing.cancel(one.waits, "", false)
	case byID:
		if op, ok := one.cmd.(messages.Operation); ok {
			s.toSupervisor(&messages.Cancel{Key: op.Head().Key, ID: op.RequestID()})
		}
	}
}

// lose ends the commands of a member that has left. Their owners end as well, which cancels them.
func (s *serving) lose(p *peer) {
	var all []*served
	for id, one := range s.all {
		if id.from == p.ID {
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b *served) int { return cmp.Compare(a.id.id, b.id.id) })
	for _, one := range all {
		if s.routing.holds(one.waits) {
			s.routing.end(one.waits)
		}
		if one.sender != nil {
			one.box.end(one.sender)
		}
		s.closeBox(one)
		s.forget(one)
	}
}

// openBox gives a command of another member its sender.
func (s *serving) openBox(one *served) {
	processes := s.cfg.System.ProcessRegistry
	one.box.of, one.box.serving = one, s
	one.box.watchers = one.box.first[:0]
	one.sender, _ = processes.Add(&one.box, "remote"+processes.NextId())
}

// closeBox removes the sender. What has got to know it as the owner of an operation that crosses again, is told.
func (s *serving) closeBox(one *served) {
	if one.sender != nil {
		s.endProcess(one.sender)
		if one.box.isWatchedBy(s.self) {
			s.proxies.onTerminated(wire.Ref(one.sender))
		}
		one.sender = nil
	}
}

// servedBy returns the command whose sender a PID is, or nil.
func (s *serving) servedBy(pid *actor.PID) *served {
	if pid == nil {
		return nil
	}
	process, _ := s.cfg.System.ProcessRegistry.GetLocal(pid.Id)
	if b, is := process.(*box); is && s.all[b.of.id] == b.of {
		return b.of
	}
	return nil
}

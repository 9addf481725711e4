package node

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/cluster/internal/link"
	"github.com/mcpactor/mcpactor/cluster/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

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
	sender  *actor.PID // of the box, while it runs: nil before, and once it has its reply
	proxies []*proxy   // that it keeps
	history history
	waits   bool // for its shard
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
	// resent is a command with a history.
	resent struct {
		History history         `json:"history"`
		Type    string          `json:"type"`
		Body    json.RawMessage `json:"body"`
	}
	// moved is the answer to a command that the member has not run, or hands back.
	moved history
	// cancelled cancels one exchange.
	cancelled struct {
		ByID bool `json:"byID"` // and the other operations with the same key and id
	}
)

func init() {
	wire.Register[resent]("resent")
	wire.Register[moved]("moved")
	wire.Register[cancelled]("cancelled")
}

// isReply marks the id of a message that answers a command: the ids of both sides are the same
// numbers.
const isReply = 1 << 63

// maxInline is how large a body may be that the node decodes itself.
const maxInline = 8 << 10

// decoded brings a message of another member.
type decoded struct {
	from  *peer
	id    uint64
	value any
	past  history // of a command
	ref   string  // of the handler of a question
	err   error
}

// decode decodes a message of another member.
func decode(from *peer, m link.Message) decoded {
	d := decoded{from: from, id: m.ID}
	d.value, d.err = wire.Decode(m.Type, m.Body, refs{})
	switch outer := d.value.(type) {
	case *resent:
		d.past = outer.History
		d.value, d.err = wire.Decode(outer.Type, outer.Body, refs{})
	case *ask:
		d.ref = outer.Ref
		d.value, d.err = wire.Decode(outer.Type, outer.Body, refs{})
	}
	return d
}

// onMessage decodes a message of another member.
func (n *node) onMessage(from *peer, m link.Message) {
	if len(m.Body) <= maxInline || m.ID == 0 { // the latter keep their order
		n.onDecoded(decode(from, m))
		return
	}
	n.work(func() any {
		d := decode(from, m)
		return &d
	})
}

// onDecoded handles a message of another member.
func (n *node) onDecoded(d decoded) {
	from, id := d.from, d.id
	switch {
	case !from.member || from.ended:
		return
	case id&isReply != 0:
		n.onReplyDecoded(from, id&^isReply, d.value, d.err)
		return
	case d.err != nil:
		n.onUndecodable(from, id, d.err)
		return
	}
	switch msg := d.value.(type) {
	case messages.Command:
		n.serve(from, id, msg, d.past)
	case *cancelled:
		n.onExchangeCancelled(from, id, msg.ByID)
	case *tell:
		n.proxies.onTell(from, msg)
	case messages.Request:
		n.questions.onAsk(from, id, d.ref, msg)
	case *gone:
		n.proxies.onGone(from, msg.Ref)
	case *taken:
		n.proxies.onLineTaken(from, msg.Ref)
	case *wantEvents:
		n.events.onWantEvents(from, msg.Want)
	case *event:
		n.events.onEvent(msg)
	case *bindingsEnded:
		for _, bind := range n.bindings.end(from, msg.Bindings, time.Now()) {
			n.toSupervisor(bind)
		}
	case *leaves:
		n.onLeaves(from, msg)
	default:
		n.cfg.Logger.Warn().Str("member", from.label()).Type("message", msg).Msg("member sent an unexpected message")
	}
}

// onReplyDecoded handles the reply to an exchange or to a question.
func (n *node) onReplyDecoded(from *peer, id uint64, value any, err error) {
	if n.questions.asks(from, id) {
		n.questions.onAnswer(id, value)
		return
	}
	x := n.exchanges[id]
	if x == nil || x.to != from {
		return
	}
	switch msg := value.(type) {
	case messages.Reply:
		n.finish(x, msg)
	case *moved:
		n.onMoved(x, msg)
	default:
		if err == nil {
			err = fmt.Errorf("%T is no reply", value)
		}
		n.cfg.Logger.Warn().Str("member", from.label()).Err(err).Msg("reply of a member was not understood")
		f := n.failure(x.cmd, messages.CodeProtocol, "the reply of the member "+from.label()+" is not understood: "+err.Error())
		f.MayHaveRun = true
		n.finish(x, f)
	}
}

// onUndecodable refuses a message that this version does not know, or that is malformed.
func (n *node) onUndecodable(from *peer, id uint64, err error) {
	n.cfg.Logger.Warn().Str("member", from.label()).Err(err).Msg("message of a member was refused")
	if id != 0 {
		from.answer(id, n.failure(nil, messages.CodeInvalid, "the member "+n.cfg.Name+" does not understand the command: "+err.Error()))
	}
}

// serve runs a command of another member.
func (n *node) serve(from *peer, id uint64, cmd messages.Command, past history) {
	if from.cancelled.take(id) {
		if op, ok := cmd.(messages.Operation); ok {
			from.answer(id, n.failure(op, messages.CodeCancelled, ""))
			return
		}
	}
	if cancel, ok := cmd.(*messages.Cancel); ok {
		n.cancelServed(cancel.Key.Normal(), cancel.ID)
		n.toSupervisor(cancel)
		return
	}
	if bind, binds := cmd.(*messages.Bind); binds && !n.bindings.accept(from, bind, past.Binding, time.Now()) {
		from.answer(id, &messages.Bound{ID: bind.ID, Scope: scopeOf(bind)})
		return
	}
	s := &served{id: servedID{from.ID, id}, peer: from, cmd: cmd, history: past}
	s.proxies = n.proxies.adopt(from, cmd)
	key, keyed := past.routedBy(cmd)
	if !keyed {
		n.start(s)
		return
	}
	number := ShardOf(key, n.cfg.Shards)
	if _, own := n.ownerOf(number); !own || n.leaving != nil {
		n.answerMoved(s, past)
		return
	}
	if n.shards.Serves(number) || past.asksForList() {
		n.start(s)
		return
	}
	s.waits = true
	w := n.waitersOf(number)
	w.served = append(w.served, s)
	n.served[s.id] = s
}

// start gives a command of another member to the own supervisor.
func (n *node) start(s *served) {
	n.served[s.id] = s
	s.waits = false
	n.openBox(s)
	if op, ok := s.cmd.(messages.Operation); ok && op.Head().Owner == nil {
		op.Head().Owner = s.sender
	}
	n.run(s.cmd, s.sender, nil, s.history)
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
	case *messages.Tail:
		return cmd.Key.Normal(), true
	case *messages.Pin:
		return cmd.Key.Normal(), true
	case *messages.Check:
		return cmd.Key.Normal(), true
	}
	return messages.Key{}, false
}

// onServed encodes the reply of the own supervisor.
func (n *node) onServed(s *served, message any) {
	reply, ok := message.(messages.Reply)
	if n.served[s.id] != s || s.sender == nil {
		return
	}
	if !ok { // a dead letter
		reply = n.failure(s.cmd, messages.CodeClosed, "the supervisor of the member has stopped")
	}
	n.closeBox(s)
	n.bindings.settle(s.cmd, reply)
	n.encode(reply, encoded{part: replying{n}, served: s, to: s.peer})
}

// replying sends replies.
type replying struct{ *node }

// onEncoded sends a reply to the member of its caller.
func (n replying) onEncoded(msg encoded) {
	s := msg.served
	if n.served[s.id] != s {
		return
	}
	n.forget(s)
	if err := msg.send(s.id.id | isReply); err != nil {
		f := n.failure(s.cmd, messages.CodeProtocol, "the reply cannot be sent to the caller's member: "+err.Error())
		f.MayHaveRun = true
		s.peer.answer(s.id.id, f)
	}
}

// answerMoved tells the member of the caller that the command was not run, or is handed back.
func (n *node) answerMoved(s *served, past history) {
	n.closeBox(s)
	n.forget(s)
	s.peer.answer(s.id.id, (*moved)(&past))
}

// forget removes a command that has its reply.
func (n *node) forget(s *served) {
	delete(n.served, s.id)
	n.proxies.release(s.proxies)
	s.proxies = nil
}

// onExchangeCancelled cancels a command of another member. One that runs ends with its owner, or at its
// deadline, without a Cancel, which could be for commands of other callers.
func (n *node) onExchangeCancelled(from *peer, id uint64, byID bool) {
	s := n.served[servedID{from.ID, id}]
	switch {
	case s == nil:
		from.cancelled.add(id)
	case s.waits:
		n.forget(s)
		from.answer(id, n.failure(s.cmd, messages.CodeCancelled, ""))
	case byID:
		if op, ok := s.cmd.(messages.Operation); ok {
			n.toSupervisor(&messages.Cancel{Key: op.Head().Key, ID: op.RequestID()})
		}
	}
}

// cancelServed cancels the operations of other members that wait for the shard of a key.
func (n *node) cancelServed(key messages.Key, id string) {
	shard := n.waiting[ShardOf(key, n.cfg.Shards)]
	if shard == nil {
		return
	}
	for _, s := range shard.served {
		if op, ok := s.cmd.(messages.Operation); ok && s.waits && n.served[s.id] == s && op.RequestID() == id && op.Head().Key.Normal() == key {
			n.onExchangeCancelled(s.peer, s.id.id, true)
		}
	}
}

// dropServed ends the commands of a member that has left. Their owners end as well, which cancels them.
func (n *node) dropServed(p *peer) {
	var all []*served
	for id, s := range n.served {
		if id.from == p.ID {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *served) int { return cmp.Compare(a.id.id, b.id.id) })
	for _, s := range all {
		if s.sender != nil {
			s.box.end(s.sender)
		}
		n.closeBox(s)
		n.forget(s)
	}
}

// expired reports whether the deadline of an operation has passed while its shard was ceded by the others: the member
// of its caller has answered it.
func (s *served) expired(now time.Time) bool {
	op, ok := s.cmd.(messages.Operation)
	return ok && !op.Head().Deadline.IsZero() && now.After(op.Head().Deadline)
}

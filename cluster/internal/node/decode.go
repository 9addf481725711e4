package node

import (
	"time"

	"github.com/mcpactor/mcpactor/cluster/internal/link"
	"github.com/mcpactor/mcpactor/cluster/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

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
		n.serving.serve(from, id, msg, d.past)
	case *cancelled:
		n.serving.onExchangeCancelled(from, id, msg.ByID)
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
	n.routing.onReply(from, id, value, err)
}

// onUndecodable refuses a message that this version does not know, or that is malformed.
func (n *node) onUndecodable(from *peer, id uint64, err error) {
	n.cfg.Logger.Warn().Str("member", from.label()).Err(err).Msg("message of a member was refused")
	if id != 0 {
		from.answer(id, n.failure(nil, messages.CodeInvalid, "the member "+n.cfg.Name+" does not understand the command: "+err.Error()))
	}
}

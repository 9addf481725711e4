package node

import (
	"encoding/json"
	"time"

	"github.com/mcpactor/mcpactor/cluster/internal/link"
	"github.com/mcpactor/mcpactor/cluster/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

// Received brings a message or a cast. It is made by [Decode].
type Received struct {
	Network string // the incarnation of this member
	From    string // the incarnation of its sender

	id    uint64
	with  envelope
	value any
	err   error
}

// Decode decodes what another member has sent. It may be called from any goroutine, and takes long for a large message.
func Decode(network, from string, m link.Message) *Received {
	r := &Received{Network: network, From: from, id: m.ID}
	if r.value, r.err = wire.Decode(m.Type, m.Body); r.err == nil && len(m.Head) > 0 {
		r.err = json.Unmarshal(m.Head, &r.with)
	}
	return r
}

// onMessage handles a message of another member.
func (n *node) onMessage(from *peer, m *Received) {
	switch {
	case m.id&isReply != 0:
		n.onReplyReceived(from, m.id&^isReply, m.value, m.err)
		return
	case m.err != nil:
		n.onUndecodable(from, m.id, m.err)
		return
	}
	switch msg := m.value.(type) {
	case messages.Command:
		n.serving.serve(from, m.id, msg, m.with.History)
	case *cancelled:
		n.serving.onExchangeCancelled(from, m.id, msg.ByID)
	case messages.Request:
		n.questions.onAsk(from, m.id, m.with.Ref, msg)
	case *gone:
		n.proxies.onGone(from, msg.Ref)
	case *taken:
		n.proxies.onLineTaken(from, msg.Ref)
	case *wantEvents:
		n.events.onWantEvents(from, msg.Want)
	case *bindingsEnded:
		for _, bind := range n.bindings.end(from, msg.Bindings, time.Now()) {
			n.toSupervisor(bind)
		}
	case *leaves:
		n.onLeaves(from, msg)
	default:
		event, is := msg.(messages.Event)
		switch {
		case m.with.Ref != "":
			n.proxies.onTell(from, m.with, msg)
		case is:
			n.events.onEvent(event)
		default:
			n.cfg.Logger.Warn().Str("member", from.label()).Type("message", msg).Msg("member sent an unexpected message")
		}
	}
}

// onReplyReceived handles the reply to an exchange or to a question.
func (n *node) onReplyReceived(from *peer, id uint64, value any, err error) {
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

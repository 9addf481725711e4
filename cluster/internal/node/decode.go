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
	if len(m.Head) > 0 {
		r.err = json.Unmarshal(m.Head, &r.with)
	}
	if r.err == nil {
		r.value, r.err = wire.Decode(m.Type, m.Body)
	}
	return r
}

// onMessage handles a message of another member.
func (n *node) onMessage(from *peer, m *Received) {
	switch {
	case m.id == isReply:
		n.questions.onAnswer(m.with.Ref, m.value)
		return
	case m.id&isReply != 0:
		n.routing.onReply(from, m.id&^isReply, m.value, m.err)
		return
	case m.err != nil:
		n.onUndecodable(from, m)
		return
	}
	switch msg := m.value.(type) {
	case messages.Command:
		n.serving.serve(from, m.id, msg, m.with.History)
	case *cancelled:
		n.serving.onExchangeCancelled(from, m.id, msg.ByID)
	case messages.Request:
		n.questions.onAsk(from, m.with, msg)
	case *gone:
		n.proxies.onGone(from, msg.Ref)
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

// onUndecodable refuses a message that this version does not know, or that is malformed.
func (n *node) onUndecodable(from *peer, m *Received) {
	n.cfg.Logger.Warn().Str("member", from.label()).Err(m.err).Msg("message of a member was refused")
	why := "the member " + n.cfg.Name + " does not understand the command: " + m.err.Error()
	switch {
	case m.id != 0:
		from.answer(m.id, n.failure(nil, messages.CodeInvalid, why))
	case m.with.Sender != "": // a question
		from.post(isReply, envelope{Ref: m.with.Sender}, &messages.Refusal{Reason: "the question is not understood"})
	}
}

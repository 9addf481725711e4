package node

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/cluster/internal/link"
	"github.com/mcpactor/mcpactor/cluster/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

// The types of envelopes that are outside of the links.
const (
	typeHeartbeat = "heartbeat"
	typeConfirm   = "confirm" // the answer to a heartbeat
	typeRefused   = "refused" // the answer to an envelope of another version
	typeUnknown   = "unknown" // the answer to an envelope for an incarnation that has ended
)

// linkTick says that a link may have something to repeat or to acknowledge.
type linkTick struct{}

// post encodes a message, and queues it for a member, unless that is lost. It reports false if the
// message is too large.
func (n *node) post(c actor.Context, p *peer, id uint64, msg any) bool {
	if n.peers[p.ID] != p || !p.alive() {
		return true
	}
	typ, body, err := wire.Encode(msg, refs{})
	if err != nil {
		n.cfg.Logger.Error().Err(err).Type("message", msg).Msg("message for a member cannot be encoded")
		return true
	}
	if _, err := p.link.Queue(link.Message{Type: typ, ID: id, Body: body}, true); err != nil {
		n.cfg.Logger.Warn().Str("member", p.label()).Err(err).Type("message", msg).Msg("message for a member was dropped")
		return false
	}
	n.flush(c, p)
	return true
}

// queue queues what was encoded for a member, unless that is lost.
func (n *node) queue(c actor.Context, msg *encoded, id uint64) error {
	if msg.err != nil || n.peers[msg.to.ID] != msg.to || !msg.to.alive() {
		return msg.err
	}
	if _, err := msg.to.link.Queue(link.Message{Type: msg.typ, ID: id, Body: msg.body}, true); err != nil {
		return err
	}
	n.flush(c, msg.to)
	return nil
}

// flush sends what the link of a member may send.
func (n *node) flush(c actor.Context, p *peer) {
	if n.net == nil || n.peers[p.ID] != p {
		return
	}
	n.tickLinks(c, p.link.Tick(time.Now(), func(f *link.Frame) { n.transmit(p, f) }))
}

// transmit gives a frame to the network.
func (n *node) transmit(p *peer, f *link.Frame) {
	n.net.Send(p.Host, &wire.Envelope{
		Version: wire.Version, Cluster: n.cfg.Cluster, From: n.net.ID(), To: p.ID, Address: n.net.Address(),
		Seq: f.Seq, Ack: f.Ack, Message: f.Message, Last: f.Last, Type: f.Type, Id: f.ID, Body: f.Body,
	})
}

// tickLinks has onLinkTick called at a time.
func (n *node) tickLinks(c actor.Context, at time.Time) {
	if at.IsZero() || n.linkTimer != nil && !at.Before(n.linkDue) {
		return
	}
	if n.linkTimer != nil {
		n.linkTimer.Stop()
	}
	n.linkDue, n.linkTimer = at, n.after(c, max(time.Until(at), time.Millisecond), &linkTick{})
}

// onLinkTick repeats and acknowledges what is due.
func (n *node) onLinkTick(c actor.Context) {
	n.linkTimer = nil
	for _, p := range inOrder(n.peers) {
		if p.alive() {
			n.flush(c, p)
		}
	}
}

// onReceived handles an envelope. What is not of this cluster, not of this version, not for
// this incarnation or not of a member changes nothing.
func (n *node) onReceived(c actor.Context, e *wire.Envelope) {
	if e.GetCluster() != n.cfg.Cluster {
		return
	}
	p := n.peers[e.GetFrom()]
	switch {
	case e.GetType() == typeRefused:
		if p != nil && e.GetTo() == n.net.ID() && e.GetVersion() != wire.Version {
			n.onRefused(c, p, e)
		}
	case e.GetType() == typeUnknown && p != nil && e.GetSeq() == 0:
		if p.alive() {
			p.ended, p.goneAt = true, time.Now()
			n.losePeer(c, p)
		}
	case e.GetVersion() != wire.Version:
		n.sendAlone(e.GetAddress(), e.GetFrom(), typeRefused, nil)
	case e.GetTo() != n.net.ID():
		n.answerUnknown(e)
	case e.GetType() == typeHeartbeat && e.GetSeq() == 0 && e.GetMessage() == 0:
		n.onHeartbeat(c, p, e)
	case e.GetType() == typeConfirm && e.GetSeq() == 0 && e.GetMessage() == 0:
		n.onConfirm(c, p, e)
	case p == nil || !p.alive(): // it is not a member here yet, or no longer
	default:
		p.link.Receive(time.Now(), &link.Frame{
			Seq: e.GetSeq(), Ack: e.GetAck(), Message: e.GetMessage(), Last: e.GetLast(), Type: e.GetType(), ID: e.GetId(), Body: e.GetBody(),
		}, func(m link.Message) { n.onMessage(c, p, m) })
		n.flush(c, p)
	}
}

// sendAlone sends an envelope outside of the links.
func (n *node) sendAlone(address, to, typ string, body []byte) {
	if address == "" || address == n.net.Address() {
		return
	}
	n.net.Send(address, &wire.Envelope{
		Version: wire.Version, Cluster: n.cfg.Cluster, From: n.net.ID(), To: to, Address: n.net.Address(), Type: typ, Body: body,
	})
}

// answerUnknown answers an envelope for another incarnation at this address, which has ended.
func (n *node) answerUnknown(e *wire.Envelope) {
	if e.GetType() == typeUnknown || e.GetAddress() == "" {
		return
	}
	n.net.Send(e.GetAddress(), &wire.Envelope{
		Version: wire.Version, Cluster: n.cfg.Cluster, From: e.GetTo(), To: e.GetFrom(), Address: n.net.Address(), Type: typeUnknown,
	})
}

// onRefused fails what a member of another version does not understand.
func (n *node) onRefused(c actor.Context, p *peer, e *wire.Envelope) {
	if p.version != e.GetVersion() {
		p.version = e.GetVersion()
		n.cfg.Logger.Error().Str("member", p.label()).Uint32("version", p.version).Msg("member speaks another version of the protocol between members")
	}
	for _, x := range slices.SortedFunc(maps.Keys(p.exchanges), byID) {
		x.sent = nil
		n.refuse(c, x, p)
	}
	p.link = link.Link{}
	n.cedeFor(c, p)
	n.routeWaiting(c)
}

// refuse fails an exchange whose owner is of another version.
func (n *node) refuse(c actor.Context, x *exchange, owner *peer) {
	n.finish(c, x, n.failure(x.cmd, messages.CodeUnavailable,
		fmt.Sprintf("the member %s speaks version %d of the protocol between members, this one %d", owner.label(), owner.version, wire.Version)))
}

package node

import "github.com/mcpactor/mcpactor/cluster/internal/link"

// The types of casts.
const (
	typeHeartbeat = "heartbeat"
	typeConfirm   = "confirm" // the answer to a heartbeat
)

// onReceived handles a message or a cast. What comes from a member that was removed changes nothing.
func (n *node) onReceived(from string, m link.Message) {
	p := n.peers[from]
	switch {
	case p == nil: // it was on its way when the member was forgotten
	case m.Type == typeHeartbeat:
		n.onHeartbeat(p, m.Body)
	case m.Type == typeConfirm:
		n.onConfirm(p, m.Body)
	case p.member && !p.ended:
		n.onMessage(p, m)
	}
}

// onChanged notes what has become of a link.
func (n *node) onChanged(p *peer, state link.State) {
	if p == nil {
		return
	}
	ends := p.connected && !state.Connected
	p.connected = state.Connected
	switch {
	case state.Connected && p.silent(): // what was cast before may be lost
		n.cast(p, typeHeartbeat, n.beats)
	case p.ended || !p.member:
	case state.Ended:
		p.ended = true
		n.losePeer(p)
	case state.Version != 0:
		n.onOtherVersion(p, state.Version)
	case ends && !p.cut: // it may be gone
		p.cut = true
		n.cfg.Logger.Info().Str("member", p.label()).Msg("connection to a member has ended")
	}
}

// onOtherVersion fails what a member of another version does not understand.
func (n *node) onOtherVersion(p *peer, version uint32) {
	if p.version != version {
		p.version = version
		n.cfg.Logger.Error().Str("member", p.label()).Uint32("version", p.version).Msg("member speaks another version of the protocol between members")
	}
	n.routing.refuseAll(p)
	p.link.Drop()
	n.routing.routeAll()
}

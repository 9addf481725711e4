package node

import (
	"github.com/mcpactor/mcpactor/cluster/internal/link"
	"github.com/mcpactor/mcpactor/cluster/internal/view"
)

// addPeer adds a member, or one that wants to be one.
func (m *membership) addPeer(one view.Member) {
	at := Address{ID: one.ID, Host: one.Host}
	p := &peer{
		Address: at, name: one.Name, shards: one.Shards, heardAt: m.cfg.Lease.Now(), link: m.net.Link(at), cfg: m.cfg,
		proxies: map[string]*proxy{},
	}
	m.peers[one.ID] = p
	m.beatTo(p)
}

// removePeer forgets one that is neither a member nor wants to be one.
func (m *membership) removePeer(p *peer) {
	if p.member {
		m.cfg.Logger.Info().Str("member", p.label()).Bool("leaving", p.leaving).Msg("member was removed from the cluster")
		p.member = false
		m.node.lost(p)
	}
	m.forgetPeer(p)
}

// forgetPeer ends the link to a member that is lost.
func (m *membership) forgetPeer(p *peer) {
	p.member = false
	p.link.Close()
	delete(m.peers, p.ID)
}

// onReceived handles a message or a cast. What comes from a member that was removed changes nothing.
func (m *membership) onReceived(msg *Received) {
	p := m.peers[msg.From]
	if p == nil { // it was on its way when the member was forgotten
		return
	}
	switch one := msg.value.(type) {
	case *heartbeat:
		m.onHeartbeat(p, one)
	case *confirm:
		m.onConfirm(p, one)
	default:
		if p.member && !p.ended {
			m.node.onMessage(p, msg)
		}
	}
}

// onChanged notes what has become of a link.
func (m *membership) onChanged(p *peer, state link.State) {
	if p == nil {
		return
	}
	switch {
	case state.Connected && p.silent(): // what was cast before may be lost
		m.beatTo(p)
	case p.ended || !p.member:
	case state.Ended:
		p.ended = true
		m.node.lost(p)
	case !state.Connected && p.heard && !p.cut: // it may be gone
		p.cut = true
		m.cfg.Logger.Info().Str("member", p.label()).Msg("connection to a member has ended")
	}
}

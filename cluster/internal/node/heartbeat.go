package node

import (
	"encoding/json"

	"github.com/mcpactor/mcpactor/cluster/internal/link"
	"github.com/mcpactor/mcpactor/cluster/internal/view"
)

// heartbeat is the body of a heartbeat and of its answer. It shows that two members reach each other, and says what its sender
// holds.
type heartbeat struct {
	Number  uint64       `json:"number"`
	Holding view.Holding `json:"holding,omitzero"`
}

type (
	// tick says that the next heartbeat is due.
	tick struct{}
	// tellDue says that the others are to be told what this member holds.
	tellDue struct{}
)

// keptBeats is how many rounds of heartbeats may be confirmed.
const keptBeats = 8

// onTick sends a round of heartbeats, and asks the witness.
func (m *membership) onTick() {
	m.ticker = m.after(m.cfg.LeaseTime/4, &tick{})
	if m.net == nil {
		return
	}
	now := m.cfg.Lease.Now()
	if now-m.tickAt > m.cfg.LeaseTime/2 { // what was sent meanwhile may still be on its way
		m.awakeAt = now
	}
	m.tickAt = now
	m.beat()
	m.ask()
	m.tellJoined()
	m.logLease()
}

// beat sends a heartbeat to all others.
func (m *membership) beat() {
	m.beats++
	for _, p := range inOrder(m.peers) {
		m.cast(p, typeHeartbeat, m.beats)
	}
}

// cast sends a heartbeat, or the answer to one.
func (m *membership) cast(p *peer, typ string, number uint64) {
	h := heartbeat{Number: number}
	if m.inside && p.member {
		h.Holding = m.node.holding()
	}
	body, _ := json.Marshal(h)
	p.link.Cast(link.Message{Type: typ, Body: body})
}

// logLease logs when the lease was lost, and when it is held again.
func (m *membership) logLease() {
	held := m.cfg.Lease.Held()
	switch {
	case m.held && !held:
		m.cfg.Logger.Warn().Str("member", m.cfg.Name).Msg("member starts no calls: the witness of the cluster does not answer")
	case held && !m.held:
		m.cfg.Logger.Info().Str("member", m.cfg.Name).Msg("member has its lease")
	}
	m.held = held
}

// onHeartbeat answers a heartbeat.
func (m *membership) onHeartbeat(p *peer, body []byte) {
	var h heartbeat
	if json.Unmarshal(body, &h) != nil {
		return
	}
	m.cast(p, typeConfirm, h.Number)
	if !p.heard { // it did not know this member when this one has sent its own
		m.cast(p, typeHeartbeat, m.beats)
	}
	m.onHolding(p, h.Holding)
}

// onConfirm notes that a member is reached, in both directions.
func (m *membership) onConfirm(p *peer, body []byte) {
	var h heartbeat
	if json.Unmarshal(body, &h) != nil {
		return
	}
	if h.Number+keptBeats >= m.beats { // it is not from before a pause
		m.hear(p)
	}
	m.onHolding(p, h.Holding)
}

// onHolding notes what another member holds. If its view is newer, the witness is asked for it.
func (m *membership) onHolding(p *peer, h view.Holding) {
	if h.View == 0 {
		return
	}
	if !p.greets {
		p.greets = true
		m.node.welcome(p)
	}
	if h.View > m.keeper.View().Number {
		m.ask()
	}
	if !p.member || !m.inside {
		return
	}
	m.node.onHolding(p, h)
}

// hear notes that a member is there, and gives it what waits.
func (m *membership) hear(p *peer) {
	silent, first := p.silent(), !p.heard
	p.heardAt, p.heard, p.cut, p.version = m.cfg.Lease.Now(), true, false, 0
	if first {
		m.checkConflict(p)
		if !m.inside {
			m.ask()
		}
	}
	if silent && p.alive() {
		m.node.reached()
	}
}

// reach tells the keeper which members are not reached, and whether all are.
func (m *membership) reach() {
	now, all := m.cfg.Lease.Now(), m.conflict == ""
	var unheard []string
	for _, one := range m.keeper.View().Members {
		p := m.peers[one.ID]
		switch {
		case one.ID == m.id:
		case p == nil: // it is at the own address, and was not removed yet
			all = false
		default:
			if now-max(p.heardAt, m.awakeAt) > m.cfg.LeaseTime {
				unheard = append(unheard, one.ID)
			}
			all = all && p.heard && now-p.heardAt < m.cfg.LeaseTime/2
		}
	}
	m.keeper.Hears(unheard, all)
}

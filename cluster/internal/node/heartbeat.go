package node

import (
	"cmp"
	"time"

	"github.com/mcpactor/mcpactor/cluster/internal/view"
	"github.com/mcpactor/mcpactor/cluster/internal/wire"
)

// heartbeat shows that two members reach each other, and says what its sender holds.
type heartbeat struct {
	Number  uint64       `json:"number"`
	Holding view.Holding `json:"holding,omitzero"`
}

// confirm answers a heartbeat.
type confirm heartbeat

func init() {
	wire.Register[heartbeat]("heartbeat")
	wire.Register[confirm]("confirm")
}

// keptBeats is how many rounds of heartbeats may be confirmed.
const keptBeats = 8

// onTick sends a round of heartbeats, and asks the witness.
func (m *membership) onTick() {
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
	var slowest time.Duration
	for _, p := range inOrder(m.peers) {
		slowest = max(slowest, p.hop)
		m.beatTo(p)
	}
	m.hop.Store(int64(slowest))
}

// beatTo sends a heartbeat.
func (m *membership) beatTo(p *peer) {
	p.beatAt = m.cfg.Lease.Now()
	m.cast(p, &heartbeat{m.beats, m.holdingFor(p)})
}

// holdingFor returns what another member is to know of what this one holds.
func (m *membership) holdingFor(p *peer) (h view.Holding) {
	if m.inside() && p.member {
		h = m.node.holding()
	}
	return h
}

// cast sends what may be lost.
func (m *membership) cast(p *peer, msg any) {
	if cast, err := encode(envelope{}, msg); err == nil {
		p.link.Cast(cast)
	}
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
func (m *membership) onHeartbeat(p *peer, h *heartbeat) {
	m.cast(p, &confirm{h.Number, m.holdingFor(p)})
	if !p.heard { // it did not know this member when this one has sent its own
		m.beatTo(p)
	}
	m.onHolding(p, h.Holding)
}

// onConfirm notes that a member is reached, in both directions.
func (m *membership) onConfirm(p *peer, h *confirm) {
	if h.Number+keptBeats >= m.beats { // it is not from before a pause
		m.hear(p)
	}
	if h.Number == m.beats {
		p.hop = m.cfg.Lease.Now() - p.beatAt
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
	if !p.member || !m.inside() {
		return
	}
	m.node.onHolding(p, h)
}

// hear notes that a member is there, and gives it what waits.
func (m *membership) hear(p *peer) {
	silent, first := p.silent(), !p.heard
	p.heardAt, p.heard, p.cut = m.cfg.Lease.Now(), true, false
	if first && !m.inside() {
		m.ask()
	}
	if silent && p.alive() {
		m.node.reached()
	}
}

// reach tells the keeper which members of the view are not reached, and whether all are, and fit.
func (m *membership) reach() {
	now, all, conflict := m.cfg.Lease.Now(), true, ""
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
			conflict = cmp.Or(conflict, m.conflictWith(p))
		}
	}
	if m.conflict != conflict && conflict != "" {
		m.cfg.Logger.Error().Str("member", m.cfg.Name).Str("why", conflict).Msg("member does not join, because its configuration does not fit")
	}
	m.conflict = conflict
	m.keeper.Hears(unheard, all && conflict == "")
}

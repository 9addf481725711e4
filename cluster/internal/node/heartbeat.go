package node

import (
	"encoding/json"
	"time"

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
func (n *node) onTick() {
	if n.ended {
		return
	}
	n.ticker = n.after(n.cfg.LeaseTime/4, &tick{})
	if n.net == nil {
		return
	}
	now := n.cfg.Lease.Now()
	if now-n.tickAt > n.cfg.LeaseTime/2 { // what was sent meanwhile may still be on its way
		n.awakeAt = now
	}
	n.tickAt = now
	n.bindings.sweep(time.Now())
	n.beat()
	n.ask()
	n.tellJoined()
	n.logLease()
}

// beat sends a heartbeat to all others.
func (n *node) beat() {
	n.beats++
	for _, p := range inOrder(n.peers) {
		n.cast(p, typeHeartbeat, n.beats)
	}
}

// cast sends a heartbeat, or the answer to one.
func (n *node) cast(p *peer, typ string, number uint64) {
	h := heartbeat{Number: number}
	if n.inside && p.member {
		h.Holding = n.shards.Holding()
	}
	body, _ := json.Marshal(h)
	p.link.Cast(link.Message{Type: typ, Body: body})
}

// onTellDue tells the others what this member still holds.
func (n *node) onTellDue() {
	n.telling = false
	n.beat()
}

// logLease logs when the lease was lost, and when it is held again.
func (n *node) logLease() {
	held := n.cfg.Lease.Held()
	switch {
	case n.held && !held:
		n.cfg.Logger.Warn().Str("member", n.cfg.Name).Msg("member starts no calls: the witness of the cluster does not answer")
	case held && !n.held:
		n.cfg.Logger.Info().Str("member", n.cfg.Name).Msg("member has its lease")
	}
	n.held = held
}

// onHeartbeat answers a heartbeat.
func (n *node) onHeartbeat(p *peer, body []byte) {
	var h heartbeat
	if json.Unmarshal(body, &h) != nil {
		return
	}
	n.cast(p, typeConfirm, h.Number)
	if !p.heard { // it did not know this member when this one has sent its own
		n.cast(p, typeHeartbeat, n.beats)
	}
	n.onHolding(p, h.Holding)
}

// onConfirm notes that a member is reached, in both directions.
func (n *node) onConfirm(p *peer, body []byte) {
	var h heartbeat
	if json.Unmarshal(body, &h) != nil {
		return
	}
	if h.Number+keptBeats >= n.beats { // it is not from before a pause
		n.hear(p)
	}
	n.onHolding(p, h.Holding)
}

// onHolding notes what another member holds. If its view is newer, the witness is asked for it.
func (n *node) onHolding(p *peer, h view.Holding) {
	if h.View == 0 {
		return
	}
	if !p.greets {
		p.greets = true
		n.welcome(p)
	}
	if h.View > n.keeper.View().Number {
		n.ask()
	}
	if !p.member || !n.inside {
		return
	}
	n.shards.Heard(p.ID, h)
	n.beginShards()
}

// hear notes that a member is there, and gives it what waits.
func (n *node) hear(p *peer) {
	silent, first := p.silent(), !p.heard
	p.heardAt, p.heard, p.cut, p.version = n.cfg.Lease.Now(), true, false, 0
	if first {
		n.checkConflict(p)
		if !n.inside {
			n.ask()
		}
	}
	if silent && p.alive() {
		n.routing.routeAll()
	}
}

// reach tells the keeper which members are not reached, and whether all are.
func (n *node) reach() {
	now, all := n.cfg.Lease.Now(), n.conflict == ""
	var unheard []string
	for _, m := range n.keeper.View().Members {
		p := n.peers[m.ID]
		switch {
		case m.ID == n.id:
		case p == nil: // it is at the own address, and was not removed yet
			all = false
		default:
			if now-max(p.heardAt, n.awakeAt) > n.cfg.LeaseTime {
				unheard = append(unheard, m.ID)
			}
			all = all && p.heard && now-p.heardAt < n.cfg.LeaseTime/2
		}
	}
	n.keeper.Hears(unheard, all)
}

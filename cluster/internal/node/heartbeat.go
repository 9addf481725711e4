package node

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/cluster/internal/link"
)

// heartbeat is the body of a heartbeat and of its answer.
type heartbeat struct {
	Number uint64 `json:"number"`
	Name   string `json:"name"`
	Shards int    `json:"shards"`
	Known  bool   `json:"known"` // in an answer: the sender of the heartbeat is a member
	Fenced bool   `json:"fenced,omitempty"`
}

type (
	// beat is a round of heartbeats.
	beat struct {
		at        time.Time
		confirmed map[string]bool // by incarnation
	}
	// tick says that the next heartbeat is due.
	tick struct{}
)

const (
	// departedBeats is in how many rounds a member that was removed gets one heartbeat. They are few,
	// because the engine tries to connect each time.
	departedBeats = 8
	// keptBeats is how many rounds of heartbeats may be confirmed.
	keptBeats = 8
)

// onTick sends a round of heartbeats, which renew the lease when they are confirmed.
func (n *node) onTick(c actor.Context) {
	if n.left {
		return
	}
	n.ticker = n.after(c, n.cfg.LeaseTime/4, &tick{})
	now := time.Now()
	if n.net == nil {
		return
	}
	n.sweepBindings(now)
	n.checkGap(now)
	n.beatAt = now
	n.beats++
	n.beatLog[n.beats] = &beat{now, map[string]bool{}}
	delete(n.beatLog, n.beats-keptBeats)
	for _, p := range inOrder(n.peers) {
		switch {
		case p.member:
		case p.leaving && now.Sub(p.heardAt) > 2*n.cfg.LeaseTime:
			n.losePeer(c, p)
		case now.Sub(p.goneAt) > departedFor:
			n.forgetPeer(p)
			continue
		case !p.leaving && n.beats%departedBeats != 0:
			continue
		}
		p.link.Cast(link.Message{Type: typeHeartbeat, Body: n.heartbeat(n.beats, false)})
	}
	n.renewAlone(now)
	n.tellJoined()
	n.logLease()
	n.logRivals(now)
}

// logLease logs when the lease was lost, and when it is held again.
func (n *node) logLease() {
	held := n.cfg.Lease.Held()
	switch {
	case n.held && !held:
		n.cfg.Logger.Warn().Str("member", n.cfg.Name).Msg("member starts no calls: too few others confirm that it is a member")
	case held && !n.held:
		n.cfg.Logger.Info().Str("member", n.cfg.Name).Msg("member has its lease")
	}
	n.held = held
}

// logRivals logs once that the provider lists another member at the own address. Its earlier incarnations
// may be listed until their registration ends, of which a member that is cut off does not hear.
func (n *node) logRivals(now time.Time) {
	if !n.held {
		clear(n.rivals)
		return
	}
	for _, m := range n.members {
		if m.Host != n.net.Address() || m.ID == n.net.ID() {
			continue
		}
		since, seen := n.rivals[m.ID]
		switch {
		case !seen:
			n.rivals[m.ID] = now
		case !since.IsZero() && now.Sub(since) > rivalAfter*n.cfg.LeaseTime:
			n.rivals[m.ID] = time.Time{}
			n.cfg.Logger.Error().Str("member", n.cfg.Name).Str("address", m.Host).Msg("another member has the same address: Config.Advertise must be unique in the cluster")
		}
	}
}

// rivalAfter is how many leases a member at the own address must be listed until it is taken for another one.
const rivalAfter = 5

// checkGap ends the lease if the process was stopped for longer than the lease. It is
// renewed when somebody confirms the membership, whom a member that is alone may not have.
func (n *node) checkGap(now time.Time) {
	gap := max(now.Sub(n.beatAt), now.Round(0).Sub(n.beatAt.Round(0)))
	if n.beatAt.IsZero() || gap < n.cfg.LeaseTime || !n.proven || len(n.members) == 1 && n.cfg.Quorum(2) <= 1 {
		return
	}
	n.proven = false
	clear(n.beatLog)
	n.cfg.Lease.End()
	n.cfg.Logger.Warn().Str("member", n.cfg.Name).Dur("gap", gap).Msg("member was stopped for longer than its lease")
}

// heartbeat returns the body of a heartbeat, or of its answer.
func (n *node) heartbeat(number uint64, known bool) []byte {
	body, _ := json.Marshal(heartbeat{Number: number, Name: n.cfg.Name, Shards: n.cfg.Shards, Known: known, Fenced: !n.cfg.Lease.Held()})
	return body
}

// onHeartbeat confirms the heartbeat of a member, or tells its sender that it was removed.
func (n *node) onHeartbeat(c actor.Context, p *peer, body []byte) {
	var h heartbeat
	if json.Unmarshal(body, &h) != nil {
		return
	}
	n.heard(c, p, h)
	known := p.member || p.leaving
	if !known && !n.cfg.Lease.Held() && !h.Fenced { // maybe this member was removed, and not the other one
		return
	}
	p.link.Cast(link.Message{Type: typeConfirm, Body: n.heartbeat(h.Number, known)})
}

// silent reports whether a member was not heard yet, or not since its connection has ended, or
// whether its heartbeats are overdue.
func (n *node) silent(p *peer) bool {
	return p.name == "" || p.cut || time.Since(p.heardAt) > n.cfg.LeaseTime/2
}

// heard notes that a member is there, and gives it what waits.
func (n *node) heard(c actor.Context, p *peer, h heartbeat) {
	silent := n.silent(p)
	first := p.name == ""
	p.heardAt, p.name, p.cut, p.version = time.Now(), h.Name, false, 0
	if silent && p.alive() {
		n.routeWaiting(c)
	}
	if first && h.Name == n.cfg.Name {
		n.conflict = fmt.Sprintf("the member at %s has the same name: Config.Member must be unique in the cluster", p.Host)
		n.cfg.Logger.Error().Str("member", p.label()).Str("address", p.Host).Msg("another member has the same name: Config.Member must be unique in the cluster")
	}
	if first && h.Shards != n.cfg.Shards {
		n.conflict = fmt.Sprintf("the member %s has %d shards: Config.Shards must be the same on all members", p.label(), h.Shards)
		n.cfg.Logger.Error().Str("member", p.label()).Int("shards", h.Shards).Int("own", n.cfg.Shards).Msg("member has another number of shards: Config.Shards must be the same on all members")
	}
}

// onConfirm renews the lease if enough members have confirmed a round of heartbeats. A member
// that does not know this one any longer has removed it.
func (n *node) onConfirm(c actor.Context, p *peer, body []byte) {
	var h heartbeat
	if json.Unmarshal(body, &h) != nil {
		return
	}
	n.heard(c, p, h)
	if !h.Known {
		n.onRemoved(c, p)
		return
	}
	n.checkGap(time.Now()) // first: it forgets the rounds from before a pause
	b := n.beatLog[h.Number]
	if b == nil {
		return
	}
	n.proven = true
	if p.member {
		b.confirmed[p.ID] = true
	}
	if len(b.confirmed)+1 >= n.cfg.Quorum(len(n.members)) {
		n.cfg.Lease.Renew(b.at)
		n.tellJoined()
	}
}

// onRemoved handles that another member has removed this one.
func (n *node) onRemoved(c actor.Context, p *peer) {
	if n.leaving == nil {
		n.expelled(c, "the member "+p.label()+" has removed it")
		return
	}
	p.ended = true
	n.losePeer(c, p)
}

// whyFenced says why this member may not act, or returns "" if it may.
func (n *node) whyFenced() string {
	switch {
	case n.net == nil:
		return "this member is joining the cluster"
	case !n.cfg.Lease.Held():
		return "this member is cut off from the cluster"
	}
	return ""
}

// renewAlone renews the lease without others, if that is enough. There are no members before the first
// topology, and when the last one has told the provider that it leaves.
func (n *node) renewAlone(now time.Time) {
	if n.net != nil && n.proven && (len(n.members) > 0 || n.deregistered) && n.cfg.Quorum(len(n.members)) <= 1 {
		n.cfg.Lease.Renew(now)
	}
}

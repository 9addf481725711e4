package node

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/internal/actors"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor/cluster/internal/link"
	"github.com/mcpactor/mcpactor/supervisor/cluster/internal/wire"
)

// peer is one incarnation of another member.
//
//	member ──leaves──▶ leaving ──no longer heard──▶ forgotten
//	   └────removed────▶ departed ──after a while──▶ forgotten
type peer struct {
	Address
	name    string // "" until it is heard
	version uint32 // of the protocol that it speaks, if that is another one, or 0
	member  bool   // in the topology
	leaving bool   // it has said so, and still answers
	ended   bool   // it has ended, or has removed this member: nothing reaches it
	link    link.Link
	heardAt time.Time
	cut     bool      // its connection has ended since it was heard
	goneAt  time.Time // when it was removed

	exchanges map[*exchange]struct{} // that it has
	decoding  map[uint64]bool        // ids of commands that are being decoded
	cancelled idSet                  // ids of commands that are on their way, and cancelled
	proxies   map[string]*proxy      // of actors there, by reference
	knows     map[string]bool        // references of watched actors here
	events    bool                   // it wants our events
}

// alive reports whether messages reach the member, as far as is known.
func (p *peer) alive() bool { return !p.ended && (p.member || p.leaving) }

// label returns the name of a member, or its address.
func (p *peer) label() string { return cmp.Or(p.name, p.Host) }

// maxCancelled bounds the ids that a member may have cancelled in advance.
const maxCancelled = 1024

// idSet is a bounded set of ids.
type idSet []uint64

// add adds an id, and forgets the oldest one if there are too many.
func (s *idSet) add(id uint64) {
	if *s = append(*s, id); len(*s) > maxCancelled {
		*s = slices.Delete(*s, 0, 1)
	}
}

// take removes an id, and reports whether it was there.
func (s *idSet) take(id uint64) bool {
	i := slices.Index(*s, id)
	if i < 0 {
		return false
	}
	*s = slices.Delete(*s, i, i+1)
	return true
}

// The types of envelopes that are outside of the links.
const (
	typeHeartbeat = "heartbeat"
	typeConfirm   = "confirm" // the answer to a heartbeat
	typeRefused   = "refused" // the answer to an envelope of another version
	typeUnknown   = "unknown" // the answer to an envelope for an incarnation that has ended
)

// heartbeat is the body of a heartbeat and of its answer.
type heartbeat struct {
	Number uint64 `json:"number"`
	Name   string `json:"name"`
	Shards int    `json:"shards"`
	Known  bool   `json:"known"` // in an answer: the sender of the heartbeat is a member
}

type (
	// beat is a round of heartbeats.
	beat struct {
		at        time.Time
		confirmed map[string]bool // by incarnation
	}
	// tick says that the next heartbeat is due.
	tick struct{}
	// linkTick says that a link may have something to repeat or to acknowledge.
	linkTick struct{}
	// leaves says that a member leaves the cluster, and hands over its shards; with Done, that
	// it has done so. Clean: each command that the member ran was answered.
	leaves struct {
		Done  bool `json:"done"`
		Clean bool `json:"clean"`
	}
)

func init() { wire.Register[leaves]("leaves") }

const (
	// departedFor is how long a member that was removed gets heartbeats: if it still runs, it
	// learns that it was removed.
	departedFor = 10 * time.Minute
	// departedBeats is in how many rounds such a member gets one heartbeat. They are few, because the
	// engine tries to connect each time.
	departedBeats = 8
	// keptBeats is how many rounds of heartbeats may be confirmed.
	keptBeats = 8
)

// onJoined begins a new incarnation.
func (n *node) onJoined(c actor.Context, net Network) {
	if n.left || n.leaving != nil {
		net.Stop()
		return
	}
	n.net, n.proven, n.beatAt = net, true, time.Time{}
	n.cfg.Logger.Info().Str("member", n.cfg.Name).Str("address", net.Address()).Str("incarnation", net.ID()).Msg("member joined the cluster")
}

// onTopology takes the members from the provider. A member that the provider does not list any longer
// was removed. Members that joined later cannot tell it so.
func (n *node) onTopology(c actor.Context, members []Address) {
	if n.isListed(n.members) && !n.isListed(members) && n.leaving == nil {
		n.expelled(c, "the provider does not list it any longer")
		return
	}
	n.members = members
	n.setOwners()
	now := time.Now()
	there := map[string]bool{}
	for _, m := range members {
		there[m.ID] = true
	}
	for _, p := range n.peers {
		if p.member && !there[p.ID] {
			n.removePeer(c, p, now)
		}
	}
	for _, m := range members {
		if m.ID == n.net.ID() || m.Host == n.net.Address() { // the latter is an incarnation that has ended
			continue
		}
		if n.peers[m.ID] == nil { // one that was removed stays so: the states of the links do not fit any longer
			n.addPeer(c, m, now)
		}
	}
	n.checkGap(now)
	if len(members) == 1 && n.isListed(members) {
		n.proven = true
	}
	n.renewAlone(now)
	n.releaseMoved(c)
	n.routeWaiting(c)
	n.tellJoined()
}

// isListed reports whether members have this one.
func (n *node) isListed(members []Address) bool {
	return n.net != nil && slices.ContainsFunc(members, func(m Address) bool { return m.ID == n.net.ID() })
}

// tellJoined says that the node can take calls: the provider lists it, and others have confirmed that.
//
// It waits for the others to say their configuration, but not for one that is silent.
func (n *node) tellJoined() {
	if !n.isListed(n.members) || !n.cfg.Lease.Held() || n.timeouts.Calls == nil {
		return
	}
	for _, p := range n.peers {
		if p.alive() && p.name == "" && n.conflict == "" && time.Since(p.heardAt) < n.cfg.LeaseTime {
			return
		}
	}
	var err error
	if n.conflict != "" {
		err = errors.New(n.conflict)
	}
	n.cfg.Joined(err)
}

// addPeer adds a member, and tells it what it needs to know.
func (n *node) addPeer(c actor.Context, m Address, now time.Time) {
	for id, p := range n.peers {
		if p.Host == m.Host && !p.member { // its successor at the same address
			n.losePeer(c, p)
			delete(n.peers, id)
		}
	}
	p := &peer{
		Address: m, member: true, heardAt: now, exchanges: map[*exchange]struct{}{},
		decoding: map[uint64]bool{}, proxies: map[string]*proxy{}, knows: map[string]bool{},
	}
	n.peers[m.ID] = p
	n.cfg.Logger.Info().Str("member", p.label()).Msg("member was added to the cluster")
	n.sendAlone(p.Host, p.ID, typeHeartbeat, n.heartbeat(0, false)) // it answers if it knows this member
	if len(n.watchers) > 0 {
		n.post(c, p, 0, &wantEvents{true})
	}
	n.sendBindings(c, p)
}

// removePeer notes that a member is no longer in the topology. One that leaves still hands
// over its shards.
func (n *node) removePeer(c actor.Context, p *peer, now time.Time) {
	p.member, p.goneAt = false, now
	n.cfg.Logger.Info().Str("member", p.label()).Bool("leaving", p.leaving).Msg("member was removed from the cluster")
	if !p.leaving {
		n.losePeer(c, p)
	}
}

// losePeer ends all that the nodes had with each other.
func (n *node) losePeer(c actor.Context, p *peer) {
	p.leaving = false
	n.onPeerLost(c, p)
	n.dropServed(c, p)
	n.dropQuestions(c, p)
	for ref := range p.proxies {
		n.onGone(c, p, ref)
	}
	for ref, from := range n.lines {
		if from = slices.DeleteFunc(from, func(other *peer) bool { return other == p }); len(from) == 0 {
			delete(n.lines, ref)
		} else {
			n.lines[ref] = from
		}
	}
	n.onWantEvents(c, p, false)
	n.cedeFor(c, p)
	if n.net != nil && !n.left && n.cfg.Lease.Held() { // otherwise it may be this member that was removed
		n.spreadBindings(c, p)
	}
	p.link, p.decoding, p.cancelled, p.knows = link.Link{}, map[uint64]bool{}, nil, map[string]bool{}
}

// cedeFor does as if a member that does not answer had ceded all shards.
func (n *node) cedeFor(c actor.Context, p *peer) {
	for _, s := range n.shards {
		delete(s.waiting, p)
		if s.claimed[p] {
			n.onCeded(c, p, s.number)
		}
	}
}

// onLeaves notes that a member leaves, or has left.
func (n *node) onLeaves(c actor.Context, p *peer, msg *leaves) {
	if msg.Done {
		p.ended = true
		for x := range p.exchanges {
			if msg.Clean { // it has not run what it has not answered
				x.sent = nil
			}
		}
		n.losePeer(c, p)
		return
	}
	p.leaving = true
	n.cfg.Logger.Info().Str("member", p.label()).Msg("member leaves the cluster")
	n.setOwners()
	n.routeWaiting(c)
}

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
	n.linkDue, n.linkTimer = at, after(c, max(time.Until(at), time.Millisecond), &linkTick{})
}

// onLinkTick repeats and acknowledges what is due.
func (n *node) onLinkTick(c actor.Context) {
	n.linkTimer = nil
	for _, p := range n.peers {
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
	for x := range p.exchanges {
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

// onTick sends a round of heartbeats, which renew the lease when they are confirmed.
func (n *node) onTick(c actor.Context) {
	if n.left {
		return
	}
	n.ticker = after(c, n.cfg.LeaseTime/4, &tick{})
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
	for id, p := range n.peers {
		switch {
		case p.member:
		case p.leaving && now.Sub(p.heardAt) > 2*n.cfg.LeaseTime:
			n.losePeer(c, p)
		case now.Sub(p.goneAt) > departedFor:
			delete(n.peers, id)
			continue
		case !p.leaving && n.beats%departedBeats != 0:
			continue
		}
		n.sendAlone(p.Host, p.ID, typeHeartbeat, n.heartbeat(n.beats, false))
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
// may be listed until their registration ends.
func (n *node) logRivals(now time.Time) {
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
// renewed when somebody confirms the membership.
func (n *node) checkGap(now time.Time) {
	gap := max(now.Sub(n.beatAt), now.Round(0).Sub(n.beatAt.Round(0)))
	if n.beatAt.IsZero() || gap < n.cfg.LeaseTime || !n.proven {
		return
	}
	n.proven = false
	clear(n.beatLog)
	n.cfg.Lease.End()
	n.cfg.Logger.Warn().Str("member", n.cfg.Name).Dur("gap", gap).Msg("member was stopped for longer than its lease")
}

// heartbeat returns the body of a heartbeat, or of its answer.
func (n *node) heartbeat(number uint64, known bool) []byte {
	body, _ := json.Marshal(heartbeat{Number: number, Name: n.cfg.Name, Shards: n.cfg.Shards, Known: known})
	return body
}

// onHeartbeat confirms the heartbeat of a member, or tells its sender that it was removed.
func (n *node) onHeartbeat(c actor.Context, p *peer, e *wire.Envelope) {
	var h heartbeat
	if json.Unmarshal(e.GetBody(), &h) != nil {
		return
	}
	if p == nil { // the provider has not announced it here yet
		return
	}
	n.heard(c, p, h)
	known := p.member || p.leaving
	if !known && !n.cfg.Lease.Held() { // maybe this member was removed, and not the other one
		return
	}
	n.sendAlone(p.Host, p.ID, typeConfirm, n.heartbeat(h.Number, known))
}

// silent reports whether a member was not heard yet, or not since its connection has ended, or
// whether its heartbeats are overdue.
func (n *node) silent(p *peer) bool {
	return p.name == "" || p.cut || time.Since(p.heardAt) > n.cfg.LeaseTime/2
}

// onDisconnected notes that a connection has ended: the member may be gone.
func (n *node) onDisconnected(host string) {
	for _, p := range n.peers {
		if p.Host == host && p.alive() {
			p.cut = true
			n.cfg.Logger.Info().Str("member", p.label()).Msg("connection to a member has ended")
		}
	}
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
func (n *node) onConfirm(c actor.Context, p *peer, e *wire.Envelope) {
	var h heartbeat
	if p == nil || json.Unmarshal(e.GetBody(), &h) != nil {
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

// expelled ends the incarnation, because others have removed it from the cluster for ever, and
// has a new one started. Its sessions belong to other members now.
func (n *node) expelled(c actor.Context, why string) {
	if n.net == nil || n.leaving != nil {
		return
	}
	n.cfg.Logger.Warn().Str("member", n.cfg.Name).Str("cause", why).Msg("member was removed from the cluster, and joins it again")
	n.cfg.Lease.End()
	n.net.Stop()
	for number, s := range n.shards {
		n.ownBits.set(number, false)
		if s.state == activating {
			n.drop(c, s)
		}
	}
	clear(n.shards)
	n.toRelease = nil
	var ended []*proxy
	for _, p := range n.peers {
		for _, proxy := range p.proxies {
			n.endProxy(proxy)
			ended = append(ended, proxy)
		}
		n.losePeer(c, p)
	}
	n.net, n.members, n.owners = nil, nil, nil
	n.view.Store(nil)
	clear(n.peers)
	clear(n.beatLog)
	all := func(messages.Key) bool { return true }
	n.askSupervisor(c, &actors.Release{Match: all, Leave: n.cfg.KeepOpen, Now: true}, func() any { return &dropped{ended} })
}

// dropped says that the supervisor has dropped all sessions of an incarnation that has ended. The
// proxies have ended with it.
type dropped struct{ proxies []*proxy }

// onDropped has a new incarnation started. It tells those who watch the proxies only now: told before,
// the supervisor would have closed the sessions of scopes that are bound to them.
func (n *node) onDropped(c actor.Context, msg *dropped) {
	for _, p := range msg.proxies {
		p.tellWatchers(c)
	}
	if n.leaving == nil && !n.left {
		n.cfg.Rejoin()
	}
}

// snapshot returns the members.
func (n *node) snapshot() []messages.MemberSnapshot {
	own := messages.MemberSnapshot{Name: n.cfg.Name, Self: true, Answered: true, Leaving: n.leaving != nil}
	if n.net != nil {
		own.Address, own.ID = n.net.Address(), n.net.ID()
	}
	list := []messages.MemberSnapshot{own}
	for _, p := range n.peers {
		if p.member || p.leaving {
			list = append(list, messages.MemberSnapshot{Name: p.label(), Address: p.Host, ID: p.ID, Leaving: p.leaving, Answered: time.Since(p.heardAt) < 2*n.cfg.LeaseTime})
		}
	}
	slices.SortFunc(list, func(a, b messages.MemberSnapshot) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// onLeave leaves the cluster: the shards are handed over, and the calls that are here finish.
func (n *node) onLeave(c actor.Context) {
	if n.left {
		c.Respond(&Left{})
		return
	}
	n.leaving = c.Sender()
	n.leftAt = time.Now().Add(n.closeTime())
	if n.net == nil {
		n.finishLeaving(c)
		return
	}
	n.setOwners()
	for _, p := range n.peers {
		n.post(c, p, 0, &leaves{})
	}
	n.routeWaiting(c)
	n.announceBy = time.Now().Add(announceTime)
	after(c, announceTime, &leaveDue{})
	after(c, time.Until(n.leftAt), &leaveDue{})
	n.finishLeaving(c)
}

// announceTime is how long the others have to take the announcement that a member leaves. One
// that misses it believes that the member has died.
const announceTime = 500 * time.Millisecond

// linksIdle reports whether the others have got all messages.
func (n *node) linksIdle() bool {
	for _, p := range n.peers {
		if p.alive() && !p.link.Idle() {
			return false
		}
	}
	return true
}

// leaveDue says that announceTime is over, or the time to leave.
type leaveDue struct{}

// finishLeaving ends the node when nothing is left to do.
func (n *node) finishLeaving(c actor.Context) {
	if n.leaving == nil || n.left {
		return
	}
	if n.net != nil && !n.deregistered {
		if !n.linksIdle() && time.Now().Before(n.announceBy) {
			return
		}
		n.deregistered = true
		n.net.Leave()
		n.releaseMoved(c)
	}
	if time.Now().Before(n.leftAt) {
		busy := len(n.exchanges) > 0 || len(n.served) > 0
		for _, s := range n.shards {
			busy = busy || s.state == releasing
		}
		if n.net != nil && (busy || !n.linksIdle()) {
			return
		}
	}
	n.left = true
	n.finishAll(c)
	if n.net == nil {
		n.onFlushDue(c)
		return
	}
	for _, p := range n.peers {
		if p.alive() {
			n.post(c, p, 0, &leaves{Done: true, Clean: len(n.served) == 0 && p.link.Idle()}) // a large reply may still be on its way
		}
	}
	after(c, flushTime, &flushDue{})
}

// flushTime is how long the last messages of a member have to be sent.
const flushTime = 200 * time.Millisecond

// flushDue says that flushTime is over.
type flushDue struct{}

// finishAll answers all exchanges of a node that has left.
func (n *node) finishAll(c actor.Context) {
	for _, x := range n.exchanges {
		n.finish(c, x, n.failure(x.cmd, messages.CodeClosed, "this member has left the cluster"))
	}
}

// onFlushDue ends the incarnation.
func (n *node) onFlushDue(c actor.Context) {
	n.left = true
	n.finishAll(c)
	for _, p := range n.peers {
		n.losePeer(c, p)
	}
	clear(n.peers)
	for _, s := range n.shards {
		if s.state == activating {
			s.timer.Stop()
		}
	}
	clear(n.shards)
	if n.net != nil {
		n.net.Stop()
		n.net = nil
	}
	n.cfg.Lease.End()
	if n.ticker != nil {
		n.ticker.Stop()
	}
	if n.linkTimer != nil {
		n.linkTimer.Stop()
	}
	if n.leaving != nil {
		c.Send(n.leaving, &Left{})
		n.leaving = nil
	}
	n.cfg.Rejoin, n.cfg.Joined, n.cfg.Observe = nil, nil, nil // the node outlives the member
	n.quit(c)
}

// quit gives up the name of the node, if it has left and its supervisor, which gives calls back to it, has
// stopped. The actor is not stopped but forgotten: it still gets what is in its mailbox, and what timers and
// others that have its PID send.
func (n *node) quit(c actor.Context) {
	if n.left && n.net == nil && n.supervisorStopped {
		n.stopped()
		c.ActorSystem().ProcessRegistry.LocalPIDs.GetBucket(c.Self().Id).Remove(c.Self().Id)
	}
}

package node

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mcpactor/mcpactor/cluster/internal/view"
	"github.com/mcpactor/mcpactor/messages"
)

// membership is the place of this member in the view. It knows the other members, and those who want to be members.
type membership struct {
	*base
	node   follower
	net    Network          // nil before Joined, and once ended
	id     string           // of the incarnation; "" between two
	keeper *view.Keeper     // its place in the view
	peers  map[string]*peer // the other members, and those who want to be members, by incarnation

	held     bool          // the lease, at the last tick
	rivalAt  time.Duration // since when another one has the own address; 0 is none, and -1 once that is logged
	conflict string        // why the configurations of this member and one in the view do not fit, or empty

	beats   uint64
	hop     atomic.Int64  // of the last heartbeat that the slowest member has confirmed, in nanoseconds
	tickAt  time.Duration // of the last tick
	awakeAt time.Duration // of the first one after a pause
}

// follower does what follows from the membership. The node does.
type follower interface {
	// begins follows a new incarnation, and viewed a view that has it.
	begins(id string)
	viewed()
	// removed follows the end of the incarnation in the view, and expelled one that must end.
	removed(why string)
	expelled(why string)
	// welcome follows when messages reach another member, reached when they do so again, or the lease is back, and lost when they
	// never will.
	welcome(p *peer)
	reached()
	lost(p *peer)
	// onMessage handles a message of a member.
	onMessage(from *peer, msg *Received)
	// onHolding notes what a member of the same cluster holds, and holding says what this one does.
	onHolding(p *peer, h view.Holding)
	holding() view.Holding
	// leaves reports whether this member leaves the cluster.
	leaves() bool
}

func newMembership(b *base, node follower) *membership {
	return &membership{base: b, node: node, keeper: view.NewKeeper(b.cfg.LeaseTime), peers: map[string]*peer{}}
}

// Placement says which keys belong to a member by its last view, also if their shards are not served yet. The zero value is that of a
// member that is outside. It may be used from any goroutine.
type Placement struct{ at atomic.Pointer[placed] }

type placed struct {
	owners *view.Owners
	shards int
	id     string // of the member
	view   uint64 // its number
}

// Has reports whether a key belongs to the member. All keys belong to the last one, also while it leaves.
func (p *Placement) Has(key messages.Key) bool {
	at := p.at.Load()
	if at == nil {
		return false
	}
	owner, found := at.owners.Of(ShardOf(key.Normal(), at.shards))
	return !found || owner.ID == at.id
}

// beginIncarnation begins an incarnation, which asks the witness to let it join.
func (m *membership) beginIncarnation() {
	m.id = m.outside.newID()
	m.node.begins(m.id)
	m.net.Begin(m.id)
	m.keeper.Begin(view.Member{ID: m.id, Host: m.cfg.Address, Name: m.cfg.Name, Shards: m.cfg.Shards})
	m.cfg.Logger.Info().Str("member", m.cfg.Name).Str("address", m.cfg.Address).Str("incarnation", m.id).Msg("member joins the cluster")
	m.ask()
}

// ask asks the witness what is due.
func (m *membership) ask() {
	m.reach()
	if q, number := m.keeper.Ask(m.cfg.Lease.Now()); q != nil {
		m.cfg.Ask(number, q)
	}
}

// onWitness takes an answer of the witness.
func (m *membership) onWitness(msg *Answered) {
	if m.net == nil {
		return
	}
	m.reach()
	v, fenced := m.keeper.Take(msg.Number, msg.Answer, m.cfg.Lease.Now()), !m.cfg.Lease.Held()
	if v.Renewed {
		m.cfg.Lease.Renew(v.From)
	}
	switch {
	case v.Removed:
		why := "the others have removed it"
		if v.Lost {
			why = "etcd has lost the last views of the cluster: it has an older one, or another one"
		}
		m.node.removed(why)
		return
	case v.Resigns && !m.node.leaves():
		m.node.expelled("others of its view cannot reach it")
		return
	}
	if m.id != "" {
		m.meet()
	}
	if v.Changed && m.id != "" {
		m.onView()
	}
	if v.Renewed && fenced {
		m.node.reached()
	}
	m.tellJoined()
	if v.AskAgain {
		m.ask()
	}
}

// onView takes the next view.
func (m *membership) onView() {
	v := m.keeper.View()
	if _, is := v.Member(m.id); !is {
		m.cfg.Placement.at.Store(nil)
		return
	}
	m.cfg.Placement.at.Store(&placed{v.Owners(), m.cfg.Shards, m.id, v.Number})
	m.node.viewed()
}

// meet gets to know who is a member, and who wants to be one, and forgets who is neither.
func (m *membership) meet() {
	v, there := m.keeper.View(), map[string]bool{}
	rival := false
	for _, one := range slices.Concat(v.Members, m.keeper.Candidates()) {
		if one.ID == m.id {
			continue
		}
		if one.Host == m.cfg.Address {
			rival = rival || m.keeper.Lives(one.ID, m.cfg.Lease.Now()) // otherwise it is an earlier incarnation
			continue
		}
		there[one.ID] = true
		if m.peers[one.ID] == nil {
			m.addPeer(one)
		}
	}
	m.logRival(rival)
	for id, p := range inOrder(m.peers) {
		one, member := v.Member(id)
		switch {
		case !there[id]:
			m.removePeer(p)
		case member && !p.member:
			p.member = true
			m.node.welcome(p)
		}
		if member && one.Leaving && !p.leaving {
			p.leaving = true
			m.cfg.Logger.Info().Str("member", p.label()).Msg("member leaves the cluster")
		}
	}
}

// rivalAfter is how many leases another member at the own address must be there until it is logged.
const rivalAfter = 5

// logRival logs once that another member has the own address.
func (m *membership) logRival(there bool) {
	now := m.cfg.Lease.Now()
	switch {
	case !there:
		m.rivalAt = 0
	case m.rivalAt == 0:
		m.rivalAt = now
	case m.rivalAt > 0 && now-m.rivalAt > rivalAfter*m.cfg.LeaseTime:
		m.rivalAt = -1
		m.cfg.Logger.Error().Str("member", m.cfg.Name).Str("address", m.cfg.Address).Msg("another member has the same address: Config.Advertise must be unique in the cluster")
	}
}

// conflictWith says why the configuration of a member that was heard does not fit that of this one, or returns "".
func (m *membership) conflictWith(p *peer) string {
	switch {
	case !p.heard: // it may be an earlier life of this one
		return ""
	case p.name == m.cfg.Name:
		return fmt.Sprintf("the member at %s has the same name: Config.Member must be unique in the cluster", p.Host)
	case p.shards != m.cfg.Shards:
		return fmt.Sprintf("the member %s has %d shards: Config.Shards must be the same on all members", p.label(), p.shards)
	}
	return ""
}

// tellJoined says that the node can take calls, or that it never will.
func (m *membership) tellJoined() {
	switch {
	case m.conflict != "":
		m.cfg.Joined(errors.New(m.conflict))
	case m.inside() && m.cfg.Lease.Held() && m.timeouts.Calls != nil:
		m.cfg.Joined(nil)
	}
}

// whyFenced says why this member may not act, or returns "" if it may. It may be called from any goroutine.
func (m *membership) whyFenced() string {
	switch {
	case !m.inside():
		return "this member is joining the cluster"
	case !m.cfg.Lease.Held():
		return "this member is cut off from the cluster"
	}
	return ""
}

// describe describes this member. It may be called from any goroutine.
func (m *membership) describe() messages.MemberSnapshot {
	one := messages.MemberSnapshot{
		Name: m.cfg.Name, Address: m.cfg.Address, Self: true, Answered: true, Fenced: m.whyFenced(), Refused: m.refused.Load(),
		Lease: min(m.cfg.Lease.Left(), m.cfg.LeaseTime), Hop: time.Duration(m.hop.Load()),
	}
	if at := m.cfg.Placement.at.Load(); at != nil {
		one.ID, one.View = at.id, at.view
	}
	return one
}

// snapshot returns the members.
func (m *membership) snapshot() []messages.MemberSnapshot {
	own := messages.MemberSnapshot{Name: m.cfg.Name, Address: m.cfg.Address, Self: true, Answered: m.whyFenced() == "", Leaving: m.node.leaves(), ID: m.id}
	list := []messages.MemberSnapshot{own}
	for _, p := range m.peers {
		if p.member {
			list = append(list, messages.MemberSnapshot{Name: p.label(), Address: p.Host, ID: p.ID, Leaving: p.leaving, Answered: m.cfg.Lease.Now()-p.heardAt < 2*m.cfg.LeaseTime})
		}
	}
	slices.SortFunc(list, func(a, b messages.MemberSnapshot) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// inside reports whether the last view that is known has the incarnation.
func (m *membership) inside() bool { return m.cfg.Placement.at.Load() != nil }

// ownerOf returns the other member that owns a shard, or whether it is this one. It is neither if the owner is not known, or if
// this member may not act.
func (m *membership) ownerOf(shard int) (other *peer, own bool) {
	at := m.cfg.Placement.at.Load()
	if at == nil || !m.cfg.Lease.Held() {
		return nil, false
	}
	one, found := at.owners.Of(shard)
	switch {
	case !found:
		return nil, false
	case one.ID == m.id:
		return nil, true
	}
	if p := m.peers[one.ID]; p != nil && p.alive() {
		return p, false
	}
	return nil, false
}

// is reports whether a message comes from the current incarnation.
func (m *membership) is(network string) bool { return m.id != "" && m.id == network }

// leave asks for a view in which this member owns nothing.
func (m *membership) leave() {
	m.keeper.Leave()
	m.ask()
}

// depart asks for a view without this member, or has it stay.
func (m *membership) depart(is bool) {
	if m.keeper.Depart(is); is {
		m.ask()
	}
}

// end ends the incarnation: this member owns nothing.
func (m *membership) end() {
	m.cfg.Lease.End()
	m.keeper.End()
	m.cfg.Placement.at.Store(nil)
}

// linksIdle reports whether the others have got all messages.
func (m *membership) linksIdle() bool {
	for _, p := range m.peers {
		if p.alive() && !p.link.Idle() {
			return false
		}
	}
	return true
}

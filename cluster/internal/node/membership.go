package node

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/mcpactor/mcpactor/cluster/internal/view"
	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/messages"
)

// onJoined begins: others can be reached.
func (n *node) onJoined(net Network) {
	if n.left || n.leaving != nil {
		net.Stop()
		return
	}
	n.net = net
	n.beginIncarnation()
}

// beginIncarnation begins an incarnation, which asks the witness to let it join.
func (n *node) beginIncarnation() {
	n.id = n.outside.newID()
	n.shards = view.NewShards(n.id, n.cfg.Shards)
	n.net.Begin(n.id)
	n.keeper.Begin(view.Member{ID: n.id, Host: n.net.Address(), Name: n.cfg.Name, Shards: n.cfg.Shards})
	n.cfg.Logger.Info().Str("member", n.cfg.Name).Str("address", n.net.Address()).Str("incarnation", n.id).Msg("member joins the cluster")
	n.ask()
}

// ask asks the witness what is due.
func (n *node) ask() {
	n.reach()
	if q, number := n.keeper.Ask(n.cfg.Lease.Now()); q != nil {
		n.cfg.Ask(number, q)
	}
}

// onWitness takes an answer of the witness.
func (n *node) onWitness(msg *Answered) {
	if n.net == nil {
		return
	}
	n.reach()
	v := n.keeper.Take(msg.Number, msg.Answer, n.cfg.Lease.Now())
	if v.Renewed {
		n.cfg.Lease.Renew(v.From)
	}
	switch {
	case v.Removed && n.left:
		n.endNode()
		return
	case v.Removed:
		n.expelled("the others have removed it")
		return
	case v.Resigns && n.leaving == nil:
		n.expelled("others of its view cannot reach it")
		return
	}
	if n.id != "" {
		n.meet()
	}
	if v.Changed && n.id != "" {
		n.onView()
	}
	n.tellJoined()
	if v.AskAgain {
		n.ask()
	}
}

// onView takes the next view.
func (n *node) onView() {
	v := n.keeper.View()
	_, inside := v.Member(n.id)
	if n.inside = inside; !inside {
		return
	}
	n.owners = v.Owners()
	n.placed.Store(&placement{n.owners, n.id})
	n.takeView()
	n.beat() // the others wait for what this member holds
	n.routing.routeAll()
	if n.departing {
		n.depart()
	}
}

// meet gets to know who is a member, and who wants to be one, and forgets who is neither.
func (n *node) meet() {
	v, there := n.keeper.View(), map[string]bool{}
	rival := false
	for _, m := range slices.Concat(v.Members, n.keeper.Candidates()) {
		if m.ID == n.id {
			continue
		}
		if m.Host == n.net.Address() {
			rival = rival || n.keeper.Lives(m.ID, n.cfg.Lease.Now()) // otherwise it is an earlier incarnation
			continue
		}
		there[m.ID] = true
		if n.peers[m.ID] == nil {
			n.addPeer(m)
		}
	}
	n.logRival(rival)
	for id, p := range inOrder(n.peers) {
		m, member := v.Member(id)
		switch {
		case !there[id]:
			n.removePeer(p)
		case member && !p.member:
			p.member = true
			n.welcome(p)
		}
		if member && m.Leaving && !p.leaving {
			p.leaving = true
			n.cfg.Logger.Info().Str("member", p.label()).Msg("member leaves the cluster")
		}
	}
}

// rivalAfter is how many leases another member at the own address must be there until it is logged.
const rivalAfter = 5

// logRival logs once that another member has the own address.
func (n *node) logRival(there bool) {
	now := n.cfg.Lease.Now()
	switch {
	case !there:
		n.rivalAt = 0
	case n.rivalAt == 0:
		n.rivalAt = now
	case n.rivalAt > 0 && now-n.rivalAt > rivalAfter*n.cfg.LeaseTime:
		n.rivalAt = -1
		n.cfg.Logger.Error().Str("member", n.cfg.Name).Str("address", n.net.Address()).Msg("another member has the same address: Config.Advertise must be unique in the cluster")
	}
}

// checkConflict logs that the configuration of a member that was heard does not fit, in which case this one does not join.
func (n *node) checkConflict(p *peer) {
	switch {
	case !p.member:
	case p.name == n.cfg.Name:
		n.conflict = fmt.Sprintf("the member at %s has the same name: Config.Member must be unique in the cluster", p.Host)
		n.cfg.Logger.Error().Str("member", p.label()).Str("address", p.Host).Msg("another member has the same name: Config.Member must be unique in the cluster")
	case p.shards != n.cfg.Shards:
		n.conflict = fmt.Sprintf("the member %s has %d shards: Config.Shards must be the same on all members", p.label(), p.shards)
		n.cfg.Logger.Error().Str("member", p.label()).Int("shards", p.shards).Int("own", n.cfg.Shards).Msg("member has another number of shards: Config.Shards must be the same on all members")
	}
}

// tellJoined says that the node can take calls, or that it never will.
func (n *node) tellJoined() {
	switch {
	case n.conflict != "":
		n.cfg.Joined(errors.New(n.conflict))
	case n.inside && n.cfg.Lease.Held() && n.timeouts.Calls != nil:
		n.cfg.Joined(nil)
	}
}

// whyFenced says why this member may not act, or returns "" if it may.
func (n *node) whyFenced() string {
	switch {
	case !n.inside:
		return "this member is joining the cluster"
	case !n.cfg.Lease.Held():
		return "this member is cut off from the cluster"
	}
	return ""
}

// expelled ends the incarnation, and begins another one when its sessions are dropped: they belong to other members, or will
// do so when these are told.
func (n *node) expelled(why string) {
	n.cfg.Logger.Warn().Str("member", n.cfg.Name).Str("cause", why).Msg("member was removed from the cluster, and joins it again")
	id := n.id
	ended := n.endIncarnation()
	if n.left {
		n.endNode()
		return
	}
	n.dropping = true
	all := func(messages.Key) bool { return true }
	n.askSupervisor(&clusterapi.Release{Match: all, Leave: n.cfg.KeepOpen, Now: true}, func() any { return &dropped{id, ended} })
}

// endIncarnation ends all that the incarnation had, and returns its proxies.
func (n *node) endIncarnation() (ended []*proxy) {
	n.cfg.Lease.End()
	n.keeper.End()
	n.placed.Store(nil)
	for i := range n.ownBits.words {
		n.ownBits.words[i].Store(0)
	}
	n.serving.drop(func(int) bool { return true })
	n.inside, n.toRelease = false, nil
	for _, p := range inOrder(n.peers) {
		ended = append(ended, n.proxies.endProxies(p)...)
		n.losePeer(p)
		n.forgetPeer(p)
	}
	n.id, n.owners = "", nil
	return ended
}

// dropped says that the supervisor has dropped all sessions of an incarnation that has ended. The
// proxies have ended with it.
type dropped struct {
	incarnation string
	proxies     []*proxy
}

// onDropped begins a new incarnation. It tells those who watch the proxies only now: told before,
// the supervisor would have closed the sessions of scopes that are bound to them.
func (n *node) onDropped(msg *dropped) {
	n.dropping = false
	for _, p := range msg.proxies {
		n.proxies.tellWatchers(p)
	}
	n.keeper.Cede(msg.incarnation)
	if n.net != nil && n.leaving == nil && !n.left {
		n.beginIncarnation()
	}
}

// snapshot returns the members.
func (n *node) snapshot() []messages.MemberSnapshot {
	own := messages.MemberSnapshot{Name: n.cfg.Name, Self: true, Answered: n.whyFenced() == "", Leaving: n.leaving != nil, ID: n.id}
	if n.net != nil {
		own.Address = n.net.Address()
	}
	list := []messages.MemberSnapshot{own}
	for _, p := range n.peers {
		if p.member {
			list = append(list, messages.MemberSnapshot{Name: p.label(), Address: p.Host, ID: p.ID, Leaving: p.leaving, Answered: n.cfg.Lease.Now()-p.heardAt < 2*n.cfg.LeaseTime})
		}
	}
	slices.SortFunc(list, func(a, b messages.MemberSnapshot) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return list
}

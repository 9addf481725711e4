package node

import (
	"cmp"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/cluster/internal/wire"
	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/messages"
)

// ShardOf returns the shard of a key: the same on all members, and evenly spread. It is called
// several times for each operation. The hash is FNV-1a of 64 bits, whose high bits depend little on the
// last bytes, followed by the finalizer of MurmurHash3, which spreads each bit over all others. It must not change:
// members with another hash would run a session of their own for most keys.
func ShardOf(key messages.Key, shards int) int {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for i := range len(key.Server) {
		h = (h ^ uint64(key.Server[i])) * prime
	}
	h *= prime // a zero byte between the two
	for i := range len(key.Scope) {
		h = (h ^ uint64(key.Scope[i])) * prime
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	h ^= h >> 33
	return int(h % uint64(shards))
}

// ownedShards says which shards are active here. It may be read from any goroutine.
type ownedShards struct {
	shards int
	words  []atomic.Uint64
}

func (o *ownedShards) init(shards int) {
	o.shards, o.words = shards, make([]atomic.Uint64, (shards+63)/64)
}

// owns reports whether the shard of a key is active here.
func (o *ownedShards) owns(key messages.Key) bool {
	shard := ShardOf(key.Normal(), o.shards)
	return o.words[shard/64].Load()&(1<<(shard%64)) != 0
}

// set notes that a shard is active, or is not.
func (o *ownedShards) set(shard int, is bool) {
	if is {
		o.words[shard/64].Or(1 << (shard % 64))
		return
	}
	o.words[shard/64].And(^(uint64(1) << (shard % 64)))
}

// shard is a shard that is active here, or on its way.
//
//	activating ──activated, and ceded by all──▶ active ──moved, or claimed──▶ releasing ──▶ gone
type shard struct {
	number  int
	state   shardState
	here    bool                  // Proto.Actor has activated its virtual actor here
	claimed map[*peer]bool        // members that were asked to cede it, and have not answered
	timer   timer                 // sends handoffDue, while activating
	waiting map[*peer]bool        // members that have claimed it, and wait until it is released
	until   time.Time             // while cededAway: it is not activated here before this time
	served  []*served             // commands that wait for it
	keys    map[messages.Key]bool // of exchanges that wait for it
}

type shardState uint8

const (
	activating shardState = iota
	active
	releasing
	cededAway // to a member that has learnt of a topology first
)

type (
	// claim asks the previous owner of a shard to release it. The answer is ceded.
	claim struct {
		Shard int `json:"shard"`
	}
	// ceded says that no session of a shard is open any longer.
	ceded struct {
		Shard int `json:"shard"`
	}
	// handoffDue says that the previous owners of a shard had enough time.
	handoffDue struct{ of *shard }
	// releaseDue says that the shards that have moved are to be released.
	releaseDue struct{}
	// shardsReleased says that the supervisor has closed the sessions of shards.
	shardsReleased struct{ of []*shard }
)

func init() {
	wire.Register[claim]("claim")
	wire.Register[ceded]("ceded")
}

// cededFor is how long a member that has ceded a shard does not activate it again, although its own
// topology, which may be the older one, still says that the member owns it.
const cededFor = 2 * time.Second

// previousOwners is how many members are asked to cede a shard: the next ones in the order of
// rendezvous hashing. If so many members join at once, the previous owner may not be among them.
const previousOwners = 3

// owner is the member that owns a shard.
type owner struct {
	self bool
	peer *peer
}

// ownerOf returns the owner of a shard, or nil if that is not known, or if this member may
// not act.
func (n *node) ownerOf(shard int) *owner {
	if n.net == nil || !n.cfg.Lease.Held() {
		return nil
	}
	address := n.cfg.Owner(shard, n.owners)
	if address == n.net.Address() {
		return &owner{self: true}
	}
	for _, m := range n.members {
		if p := n.peers[m.ID]; m.Host == address && p != nil && p.alive() {
			return &owner{peer: p}
		}
	}
	return nil
}

// setOwners notes who may own shards. A member that leaves hands nothing over to others
// that leave.
func (n *node) setOwners() {
	n.owners = n.members
	if n.leaving != nil {
		n.owners = slices.DeleteFunc(slices.Clone(n.members), func(m Address) bool {
			p := n.peers[m.ID]
			return m.ID == n.net.ID() || p != nil && (p.leaving || p.ended)
		})
	}
	n.view.Store(&view{n.owners, n.net.Address()})
}

// isLast reports whether the member leaves, and no other one is there that its calls could go to.
func (n *node) isLast() bool { return n.leaving != nil && len(n.owners) == 0 }

// view is what decides who owns a shard.
type view struct {
	members []Address
	address string // of this member
}

// places reports whether a key belongs to this member, also if its shard is not active. It may be called
// from any goroutine.
func (n *node) places(key messages.Key) bool {
	v := n.view.Load()
	return v != nil && n.cfg.Lease.Held() && n.cfg.Owner(ShardOf(key.Normal(), n.cfg.Shards), v.members) == v.address
}

// activate returns a shard that this member owns, and activates it if it is not active yet.
func (n *node) activate(c actor.Context, number int) *shard {
	s := n.shards[number]
	if s != nil && (s.state != cededAway || time.Now().Before(s.until)) {
		return s
	}
	s = &shard{number: number, claimed: map[*peer]bool{}, keys: map[messages.Key]bool{}}
	n.shards[number] = s
	n.claim(c, s)
	n.net.Activate(number)
	return s
}

// claim asks those who may have had a shard before to release it.
func (n *node) claim(c actor.Context, s *shard) {
	rest := slices.DeleteFunc(slices.Clone(n.members), func(m Address) bool { return m.ID == n.net.ID() })
	for range previousOwners {
		address := n.cfg.Previous(s.number, rest)
		i := slices.IndexFunc(rest, func(m Address) bool { return m.Host == address })
		if i < 0 {
			break
		}
		if p := n.peers[rest[i].ID]; p != nil && p.alive() {
			s.claimed[p] = true
		}
		rest = slices.Delete(rest, i, i+1)
	}
	for _, p := range n.peers {
		if p.leaving && p.alive() {
			s.claimed[p] = true
		}
	}
	for _, p := range membersOf(s.claimed) {
		n.post(p, 0, &claim{s.number})
	}
	s.timer = n.after(c, n.closeTime(), &handoffDue{s})
}

// membersOf returns the members of a set in the order of their ids.
func membersOf(set map[*peer]bool) []*peer {
	return slices.SortedFunc(maps.Keys(set), func(a, b *peer) int { return cmp.Compare(a.ID, b.ID) })
}

// onActivated notes that Proto.Actor has activated a shard here, or elsewhere.
func (n *node) onActivated(c actor.Context, msg *Activated) {
	s := n.shards[msg.Shard]
	switch {
	case s == nil || s.state != activating:
	case msg.Here:
		s.here = true
		n.makeActive(c, s)
	default:
		n.drop(c, s)
	}
}

// onCeded notes that a member has released a shard.
func (n *node) onCeded(c actor.Context, from *peer, number int) {
	if s := n.shards[number]; s != nil && s.state == activating {
		delete(s.claimed, from)
		n.makeActive(c, s)
	}
}

// onHandoffDue activates a shard whose previous owners did not answer in time.
func (n *node) onHandoffDue(c actor.Context, s *shard) {
	if n.shards[s.number] == s && s.state == activating {
		clear(s.claimed)
		n.makeActive(c, s)
	}
}

// onClaim releases a shard for its next owner.
func (n *node) onClaim(c actor.Context, from *peer, number int) {
	if s := n.shards[number]; s != nil && s.state != cededAway {
		if s.waiting == nil {
			s.waiting = map[*peer]bool{}
		}
		s.waiting[from] = true
		n.release(c, number)
		return
	}
	n.post(from, 0, &ceded{number})
}

// makeActive makes a shard active once it is activated here, and ceded by all.
func (n *node) makeActive(c actor.Context, s *shard) {
	if !s.here || len(s.claimed) > 0 {
		return
	}
	s.timer.Stop()
	s.state = active
	n.ownBits.set(s.number, true)
	keys, calls := s.keys, s.served
	s.keys, s.served = nil, nil
	for _, key := range slices.SortedFunc(maps.Keys(keys), messages.Key.Compare) {
		n.routeKey(c, key)
	}
	now := time.Now()
	for _, call := range calls {
		switch {
		case n.served[call.id] != call:
		case call.expired(now):
			n.forget(call)
		default:
			n.start(c, call)
		}
	}
}

// drop ends the activation of a shard. What waits for it looks for another owner.
func (n *node) drop(c actor.Context, s *shard) {
	if s.state == activating {
		s.timer.Stop()
	}
	delete(n.shards, s.number)
	for _, call := range s.served {
		if n.served[call.id] == call {
			n.answerMoved(c, call, call.history)
		}
	}
	n.answerClaims(c, s)
}

// answerClaims tells the members that have claimed a shard that no session of it is open here.
func (n *node) answerClaims(c actor.Context, s *shard) {
	for _, p := range membersOf(s.waiting) {
		n.post(p, 0, &ceded{s.number})
	}
}

// release ends a shard that has moved: its sessions are closed, or left to the next owner.
func (n *node) release(c actor.Context, number int) {
	s := n.shards[number]
	switch {
	case s == nil || s.state == releasing:
		return
	case s.state != active:
		n.drop(c, s)
		return
	}
	s.state = releasing
	n.ownBits.set(number, false)
	if n.toRelease = append(n.toRelease, s); len(n.toRelease) == 1 {
		c.Send(c.Self(), &releaseDue{})
	}
}

// maxReleases is how many commands release the shards that have moved. Each command makes the
// supervisor look at all its sessions. But the shards of a command wait for each other's calls.
const maxReleases = 64

// onReleaseDue has the supervisor release the shards that have moved.
func (n *node) onReleaseDue(c actor.Context) {
	leave := n.cfg.KeepOpen && (!n.isLast() || n.cfg.LeaveOpen) // otherwise the last member closes its sessions
	for some := range slices.Chunk(n.toRelease, 1+len(n.toRelease)/maxReleases) {
		n.askSupervisor(c, &clusterapi.Release{Match: n.inShards(some), Leave: leave}, func() any { return &shardsReleased{some} })
	}
	n.toRelease = nil
}

// inShards returns what selects the keys of some shards.
func (n *node) inShards(some []*shard) func(messages.Key) bool {
	shards, numbers := n.cfg.Shards, map[int]bool{}
	for _, s := range some {
		numbers[s.number] = true
	}
	return func(key messages.Key) bool { return numbers[ShardOf(key.Normal(), shards)] }
}

// onShardsReleased notes that shards have no session any longer.
func (n *node) onShardsReleased(c actor.Context, msg *shardsReleased) {
	for _, s := range msg.of {
		if n.shards[s.number] == s {
			n.onShardReleased(c, s)
		}
	}
	n.finishLeaving(c)
}

// onShardReleased tells those who have claimed a shard that it is theirs.
func (n *node) onShardReleased(c actor.Context, s *shard) {
	delete(n.shards, s.number)
	n.answerClaims(c, s)
	if len(s.waiting) > 0 && n.leaving == nil {
		n.shards[s.number] = &shard{number: s.number, state: cededAway, until: time.Now().Add(cededFor)}
	}
}

// releaseMoved releases the shards that other members own now.
func (n *node) releaseMoved(c actor.Context) {
	for number, s := range inOrder(n.shards) {
		address := n.cfg.Owner(number, n.owners)
		mine := n.leaving == nil && address == n.net.Address()
		switch {
		case s.state == cededAway:
			delete(n.shards, number)
		case !mine:
			n.release(c, number)
		}
	}
}

package node

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/mcpactor/mcpactor/cluster/internal/view"
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

// ownedShards says which shards are served here. It may be read from any goroutine.
type ownedShards struct {
	shards int
	words  []atomic.Uint64
}

func (o *ownedShards) init(shards int) {
	o.shards, o.words = shards, make([]atomic.Uint64, (shards+63)/64)
}

// owns reports whether the shard of a key is served here.
func (o *ownedShards) owns(key messages.Key) bool {
	shard := ShardOf(key.Normal(), o.shards)
	return o.words[shard/64].Load()&(1<<(shard%64)) != 0
}

// set notes that a shard is served, or is not.
func (o *ownedShards) set(shard int, is bool) {
	if is {
		o.words[shard/64].Or(1 << (shard % 64))
		return
	}
	o.words[shard/64].And(^(uint64(1) << (shard % 64)))
}

// placement says which keys belong to a member, also if their shards are not served yet.
type placement struct {
	owners *view.Owners
	id     string // of this member
}

// places reports whether a key belongs to this member. All keys belong to the last one, also while it leaves. It may be
// called from any goroutine.
func (n *node) places(key messages.Key) bool {
	p := n.placed.Load()
	if p == nil || !n.cfg.Lease.Held() {
		return false
	}
	owner, found := p.owners.Of(ShardOf(key.Normal(), n.cfg.Shards))
	return !found || owner.ID == p.id
}

type (
	// releaseDue says that the shards that have moved are to be released.
	releaseDue struct{}
	// shardsReleased says that the supervisor has closed the sessions of shards.
	shardsReleased struct {
		incarnation string
		of          []int
	}
)

// ownerOf returns the other member that owns a shard, or whether it is this one. It is neither if the owner is not known, or if
// this member may not act.
func (n *node) ownerOf(shard int) (other *peer, own bool) {
	if !n.inside || !n.cfg.Lease.Held() {
		return nil, false
	}
	m, found := n.owners.Of(shard)
	switch {
	case !found:
		return nil, false
	case m.ID == n.id:
		return nil, true
	}
	if p := n.peers[m.ID]; p != nil && p.alive() {
		return p, false
	}
	return nil, false
}

// isLast reports whether the member leaves, and no other one is there that its calls could go to.
func (n *node) isLast() bool { return n.leaving != nil && n.inside && n.owners.None() }

// takeView gives the view to the shards: those that have moved are released, and those that have come are served once all
// others have ceded them.
func (n *node) takeView() {
	release := n.shards.SetView(n.keeper.View())
	for _, shard := range release {
		n.ownBits.set(shard, false)
	}
	if len(release) > 0 && len(n.toRelease) == 0 {
		n.toSelf(&releaseDue{})
	}
	n.toRelease = append(n.toRelease, release...)
	n.serving.drop(func(shard int) bool { return !n.shards.Owns(shard) })
	n.beginShards()
}

// beginShards serves the shards that the others have ceded.
func (n *node) beginShards() {
	if !n.inside {
		return
	}
	began := n.shards.Begin()
	for _, shard := range began {
		n.ownBits.set(shard, true)
	}
	if len(began) == 0 {
		return
	}
	n.routing.routeShards(began)
	now := time.Now()
	for _, shard := range began {
		n.serving.begin(shard, now)
	}
}

// serves reports whether a shard is served here.
func (n *node) serves(shard int) bool { return n.shards.Serves(shard) }

// inShards returns what selects the keys of some shards.
func inShards(shards int, some []int) func(messages.Key) bool {
	numbers := view.NewSet(shards)
	for _, shard := range some {
		numbers.Put(shard, true)
	}
	return func(key messages.Key) bool { return numbers.Has(ShardOf(key.Normal(), shards)) }
}

// maxReleases is how many commands release the shards that have moved. Each command makes the
// supervisor look at all its sessions. But the shards of a command wait for each other's calls.
const maxReleases = 64

// onReleaseDue has the supervisor release the shards that have moved: their sessions are closed, or left to the next
// owners.
func (n *node) onReleaseDue() {
	leave := n.cfg.KeepOpen && (!n.isLast() || n.cfg.LeaveOpen) // otherwise the last member closes its sessions
	for some := range slices.Chunk(n.toRelease, 1+len(n.toRelease)/maxReleases) {
		id := n.id
		n.askSupervisor(&clusterapi.Release{Match: inShards(n.cfg.Shards, some), Leave: leave}, func() any { return &shardsReleased{id, some} })
	}
	n.toRelease = nil
}

// onShardsReleased notes that shards have no session any longer, and tells the others.
func (n *node) onShardsReleased(msg *shardsReleased) {
	if msg.incarnation != n.id || !n.shards.Released(msg.of) {
		return
	}
	if !n.telling {
		n.telling = true
		n.toSelf(&tellDue{})
	}
	n.beginShards()
}

package node

import (
	"slices"
	"sync/atomic"

	"github.com/mcpactor/mcpactor/cluster/internal/view"
	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/messages"
)

// ShardOf returns the shard of a key: the same on all members, and evenly spread. It is called several times for each operation.
// It must not change: members with another hash would run a session of their own for most keys.
func ShardOf(key messages.Key, shards int) int {
	return int(view.Hash(key.Server, key.Scope) % uint64(shards))
}

// ownShards are those that this member serves, and those that it releases.
type ownShards struct {
	*base
	*view.Shards // of the incarnation
	incarnation  string
	ownBits      shardBits // those that it serves
	telling      bool      // tellDue is on its way
}

func newShards(b *base) *ownShards {
	s := &ownShards{base: b}
	s.ownBits.init(b.cfg.Shards)
	return s
}

// beginIncarnation begins the shards of an incarnation: it holds none.
func (s *ownShards) beginIncarnation(id string) {
	s.incarnation, s.Shards = id, view.NewShards(id, s.cfg.Shards)
}

// end ends the incarnation: nothing is served, and nothing is to be released.
func (s *ownShards) end() {
	s.ownBits.setAll(false)
	s.incarnation = ""
}

// maxReleases is how many commands release the shards that have moved. Each command makes the
// supervisor look at all its sessions. But the shards of a command wait for each other's calls.
const maxReleases = 64

// takeView takes the next view, and has the supervisor release the shards that have moved: their sessions are closed, or left
// to the next owners.
func (s *ownShards) takeView(v view.View, leave bool) {
	moved := s.SetView(v)
	for _, shard := range moved {
		s.ownBits.set(shard, false)
	}
	for some := range slices.Chunk(moved, 1+len(moved)/maxReleases) {
		id := s.incarnation
		s.askSupervisor(&clusterapi.Release{Match: inShards(s.cfg.Shards, some), Leave: leave}, func(any) any { return &shardsReleased{id, some} })
	}
}

// begin begins to serve the shards that the others have ceded, and returns them.
func (s *ownShards) begin() []int {
	began := s.Begin()
	for _, shard := range began {
		s.ownBits.set(shard, true)
	}
	return began
}

// shardBits says which shards are served here. It may be read from any goroutine.
type shardBits struct {
	shards int
	words  []atomic.Uint64
}

func (o *shardBits) init(shards int) {
	o.shards, o.words = shards, make([]atomic.Uint64, (shards+63)/64)
}

// owns reports whether the shard of a key is served here.
func (o *shardBits) owns(key messages.Key) bool {
	shard := ShardOf(key.Normal(), o.shards)
	return o.words[shard/64].Load()&(1<<(shard%64)) != 0
}

// setAll notes that all shards are served, or that none is.
func (o *shardBits) setAll(are bool) {
	var word uint64
	if are {
		word = ^word
	}
	for i := range o.words {
		o.words[i].Store(word)
	}
}

// set notes that a shard is served, or is not.
func (o *shardBits) set(shard int, is bool) {
	if is {
		o.words[shard/64].Or(1 << (shard % 64))
		return
	}
	o.words[shard/64].And(^(uint64(1) << (shard % 64)))
}

// shardsReleased says that the supervisor has closed the sessions of shards.
type shardsReleased struct {
	incarnation string
	of          []int
}

// inShards returns what selects the keys of some shards.
func inShards(shards int, some []int) func(messages.Key) bool {
	numbers := view.NewSet(shards)
	for _, shard := range some {
		numbers.Put(shard, true)
	}
	return func(key messages.Key) bool { return numbers.Has(ShardOf(key.Normal(), shards)) }
}

// onReleased notes that shards have no session any longer. It reports whether that is news, which the others are told soon.
func (s *ownShards) onReleased(msg *shardsReleased) bool {
	if msg.incarnation != s.incarnation || !s.Released(msg.of) {
		return false
	}
	if !s.telling {
		s.telling = true
		s.toSelf(&tellDue{})
	}
	return true
}

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
	released     func() // follows when shards have no session any longer

	// What any goroutine may ask for.
	served atomic.Pointer[view.Shards] // those of the incarnation, or nil if none is served
	all    atomic.Bool                 // all are served: there is no other member
}

// beginIncarnation begins the shards of an incarnation: it holds none.
func (s *ownShards) beginIncarnation(id string) {
	s.incarnation, s.Shards = id, view.NewShards(id, s.cfg.Shards)
	s.served.Store(s.Shards)
}

// end ends the incarnation: nothing is served, and nothing is to be released.
func (s *ownShards) end() {
	s.serveAll(false)
	s.incarnation = ""
}

// serveAll has all shards count as served, or none until the next incarnation.
func (s *ownShards) serveAll(are bool) {
	if s.all.Store(are); !are {
		s.served.Store(nil)
	}
}

// Serves reports whether a shard is served here. It may be called from any goroutine.
func (s *ownShards) Serves(shard int) bool {
	served := s.served.Load()
	return s.all.Load() || served != nil && served.Serves(shard)
}

// owns reports whether the shard of a key is served here. It may be called from any goroutine.
func (s *ownShards) owns(key messages.Key) bool { return s.Serves(ShardOf(key.Normal(), s.cfg.Shards)) }

// maxReleases is how many commands release the shards that have moved. Each command makes the
// supervisor look at all its sessions. But the shards of a command wait for each other's calls.
const maxReleases = 64

// takeView takes the next view, and has the supervisor release the shards that have moved: their sessions are closed, or left
// to the next owners.
func (s *ownShards) takeView(v view.View, leave bool) {
	moved := s.SetView(v)
	for some := range slices.Chunk(moved, 1+len(moved)/maxReleases) {
		id := s.incarnation
		s.askSupervisor(&clusterapi.Release{Match: inShards(s.cfg.Shards, some), Leave: leave}, func(any) {
			if id == s.incarnation && s.Released(some) {
				s.released()
			}
		})
	}
}

// inShards returns what selects the keys of some shards.
func inShards(shards int, some []int) func(messages.Key) bool {
	numbers := view.NewSet(shards)
	for _, shard := range some {
		numbers.Put(shard, true)
	}
	return func(key messages.Key) bool { return numbers.Has(ShardOf(key.Normal(), shards)) }
}

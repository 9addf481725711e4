package view

import (
	"slices"
	"sync/atomic"
)

// Set is a set of shards. One goroutine at a time may change it, while others ask what it has.
type Set []uint64

// NewSet returns an empty set of shards with numbers below n.
func NewSet(n int) Set { return make(Set, (n+63)/64) }

// Has reports whether a shard is in the set.
func (s Set) Has(shard int) bool {
	return shard/64 < len(s) && atomic.LoadUint64(&s[shard/64])&(1<<(shard%64)) != 0
}

// Put adds a shard, or removes it.
func (s Set) Put(shard int, is bool) {
	if is {
		atomic.OrUint64(&s[shard/64], 1<<(shard%64))
	} else {
		atomic.AndUint64(&s[shard/64], ^uint64(1<<(shard%64)))
	}
}

// Empty reports whether the set has no shard.
func (s Set) Empty() bool {
	return !slices.ContainsFunc(s, func(word uint64) bool { return word != 0 })
}

// Holding is what a member tells each other member of its view: which shards it holds although it does not own
// them by that view. It is told when the view is new, and each time that a shard was released.
type Holding struct {
	View uint64 `json:"view"`
	Hash uint64 `json:"hash"` // of the view: etcd that was restored from a backup may have another one with the same number
	Held Set    `json:"held,omitempty"`
}

// Shards knows which shards a member serves, and which it has to release.
//
//	owned by others ──view──▶ owned, held by others ──ceded by all──▶ served ──view──▶ releasing ──▶ owned by others
//
// A shard is served by one member at most. A member begins to serve one that it owns by a view once every other
// member of this very view has said that it does not hold it. A member says so only when it serves the shard no longer, and
// cannot begin again before the next view in which it owns it.
type Shards struct {
	self      string
	count     int
	view      View
	hash      uint64 // of the view
	owners    *Owners
	said      map[string]Holding // by member: the last one
	serving   Set
	releasing Set
}

// NewShards returns the shards of an incarnation: it holds none.
func NewShards(self string, count int) *Shards {
	return &Shards{self: self, count: count, said: map[string]Holding{}, serving: NewSet(count), releasing: NewSet(count)}
}

// Serves reports whether the member serves a shard, as far as its view says. It may be called from any goroutine.
func (s *Shards) Serves(shard int) bool { return s.serving.Has(shard) }

// Owns reports whether the member owns a shard by its view.
func (s *Shards) Owns(shard int) bool {
	owner, found := s.owners.Of(shard)
	return found && owner.ID == s.self
}

// SetView takes the next view. It returns the shards that are served no longer, and are to be released.
func (s *Shards) SetView(v View) (release []int) {
	s.view, s.hash, s.owners = v, v.hash(), v.Owners()
	for shard := range s.count {
		if s.serving.Has(shard) && !s.Owns(shard) {
			s.serving.Put(shard, false)
			s.releasing.Put(shard, true)
			release = append(release, shard)
		}
	}
	for id := range s.said {
		if _, is := v.Member(id); !is {
			delete(s.said, id)
		}
	}
	return release
}

// Released notes that nothing is left of shards here. It reports whether the others are to be told.
func (s *Shards) Released(shards []int) (tell bool) {
	for _, shard := range shards {
		if s.releasing.Has(shard) {
			s.releasing.Put(shard, false)
			tell = true
		}
	}
	return tell
}

// Releasing reports whether there are shards that are not released yet.
func (s *Shards) Releasing() bool { return !s.releasing.Empty() }

// Holding returns what the others are to know.
func (s *Shards) Holding() Holding {
	h := Holding{View: s.view.Number, Hash: s.hash}
	if s.Releasing() {
		h.Held = slices.Clone(s.releasing)
	}
	return h
}

// Heard takes what another member says. An older word than the last one does not count.
func (s *Shards) Heard(from string, h Holding) {
	if h.View >= s.said[from].View {
		s.said[from] = h
	}
}

// Begin begins to serve all shards that are owned, and that the others have ceded, and returns them.
func (s *Shards) Begin() (began []int) {
	held := NewSet(s.count)
	copy(held, s.releasing) // the own releases as well: what is owned again must have drained
	for _, m := range s.view.Members {
		if m.ID == s.self {
			continue
		}
		said, is := s.said[m.ID]
		if !is || said.View != s.view.Number || said.Hash != s.hash {
			return nil
		}
		for i := range min(len(held), len(said.Held)) {
			held[i] |= said.Held[i]
		}
	}
	for shard := range s.count {
		if !s.serving.Has(shard) && !held.Has(shard) && s.Owns(shard) {
			s.serving.Put(shard, true)
			began = append(began, shard)
		}
	}
	return began
}

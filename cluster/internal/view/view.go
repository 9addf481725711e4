// Package view decides who is a member of a cluster, who owns a shard, and until when: pure types, which get facts and times.
package view

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"
)

// Member is one incarnation of a member. A process that was removed from the view joins again as another one.
type Member struct {
	ID      string        `json:"id"`
	Host    string        `json:"host"` // the host and port at which others reach it
	Name    string        `json:"name"`
	Shards  int           `json:"shards"`
	Lease   time.Duration `json:"lease"`             // how long it may act without an answer of the witness
	Leaving bool          `json:"leaving,omitempty"` // it owns nothing, and hands over what it holds
}

// View says who is a member. A view is never changed: the next one has the next number.
type View struct {
	Number  uint64   `json:"number"`
	Members []Member `json:"members"` // in the order of their ids
}

// Member returns the member with an id.
func (v View) Member(id string) (Member, bool) {
	if i := v.index(id); i >= 0 {
		return v.Members[i], true
	}
	return Member{}, false
}

func (v View) index(id string) int {
	return slices.IndexFunc(v.Members, func(m Member) bool { return m.ID == id })
}

// is reports whether two views are the same.
func (v View) is(other View) bool {
	return v.Number == other.Number && slices.Equal(v.Members, other.Members)
}

// follows reports whether a view is the earlier one, or can come after it.
func (v View) follows(earlier View) bool { return v.Number > earlier.Number || v.is(earlier) }

// hash is the same for views that are the same.
func (v View) hash() uint64 {
	data, _ := json.Marshal(v) // it has only texts and numbers, and no error
	return Hash(string(data))
}

// with returns the next view, in which a member has been added or replaced.
func (v View) with(m Member) *View {
	members := append(slices.Clone(v.without(m.ID).Members), m)
	slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return &View{v.Number + 1, members}
}

// without returns the next view, in which a member has been removed.
func (v View) without(id string) *View {
	members := slices.DeleteFunc(slices.Clone(v.Members), func(m Member) bool { return m.ID == id })
	return &View{v.Number + 1, members}
}

// Owners says which member of a view owns a shard, by rendezvous hashing: a member that is added or removed
// moves only its own shards. It is read-only, and may be used from any goroutine.
type Owners struct {
	members []Member // that do not leave
	seeds   []uint64 // of their hosts
}

// Owners returns the owners of the shards of a view.
func (v View) Owners() *Owners {
	o := &Owners{}
	for _, m := range v.Members {
		if !m.Leaving {
			o.members, o.seeds = append(o.members, m), append(o.seeds, Hash(m.Host))
		}
	}
	return o
}

// Of returns the owner of a shard. There is none if all members leave.
func (o *Owners) Of(shard int) (owner Member, found bool) {
	if o == nil || len(o.members) == 0 {
		return Member{}, false
	}
	best, most, salt := 0, uint64(0), mix(uint64(shard)+1)
	for i, seed := range o.seeds {
		if score := mix(seed ^ salt); score > most {
			best, most = i, score
		}
	}
	return o.members[best], true
}

// None reports whether no member can own a shard.
func (o *Owners) None() bool { return len(o.members) == 0 }

// Hash is FNV-1a of 64 bits over texts with a zero byte between them, whose high bits depend little on the last bytes, followed by
// mix, which spreads each bit over all others.
func Hash(texts ...string) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for i, text := range texts {
		if i > 0 {
			h *= prime
		}
		for at := range len(text) {
			h = (h ^ uint64(text[at])) * prime
		}
	}
	return mix(h)
}

// mix is the finalizer of MurmurHash3: each bit of the result depends on all bits of x.
func mix(x uint64) uint64 {
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

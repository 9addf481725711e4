package view

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

const count = 256

func viewOf(number uint64, ids ...string) View {
	v := View{}
	for _, id := range ids {
		v = *v.with(member(id))
	}
	v.Number = number
	return v
}

func TestMemberThatGoesMovesItsOwnShardsOnly(t *testing.T) {
	before, after := viewOf(1, "a", "b", "c", "d"), viewOf(2, "a", "b", "c")
	moved := 0
	for shard := range 4096 {
		from, _ := before.Owners().Of(shard)
		to, _ := after.Owners().Of(shard)
		if from.ID != to.ID {
			require.Equal(t, "d", from.ID)
			moved++
		}
	}
	require.InDelta(t, 1024, moved, 100)
	_, found := View{}.Owners().Of(1)
	require.False(t, found)
}

// docs/cluster.md says how many shards suit how many members.
func TestNoMemberOwnsMuchMoreThanTheMean(t *testing.T) {
	for members, shards := range map[int]int{36: 4096, 100: 4096, 400: 16384, 1000: 65536} {
		var v View
		for i := range members {
			host := fmt.Sprintf("10.0.%d.%d:8090", i/250, i%250)
			v.Members = append(v.Members, Member{ID: host, Host: host})
		}
		owners, owned, most := v.Owners(), map[string]int{}, 0
		for shard := range shards {
			owner, _ := owners.Of(shard)
			owned[owner.ID]++
			most = max(most, owned[owner.ID])
		}
		limit := 1.7
		if members == 36 {
			limit = 1.25
		}
		require.Less(t, float64(most*members)/float64(shards), limit, "%d members", members)
	}
}

// Members get view after view, one after the other in any order. No shard is served by one of them while another one serves it or
// has not released it, and in the end each is served by its owner.
func TestShardIsServedOnceAllOthersHaveCededIt(t *testing.T) {
	ids := []string{"a", "b", "c", "d"}
	views := []View{viewOf(1, "a", "b"), viewOf(2, "a", "b", "c"), viewOf(3, "a", "c"), viewOf(4, "a", "c", "d"), viewOf(5, "c", "d")}
	for order := range len(ids) {
		members := map[string]*Shards{}
		for _, id := range ids {
			members[id] = NewShards(id, count)
		}
		begin := func() {
			for _, from := range ids {
				for _, to := range ids {
					if from != to {
						members[to].Heard(from, members[from].Holding())
					}
				}
			}
			for _, s := range members {
				s.Begin()
			}
			for shard := range count {
				holding := 0
				for _, s := range members {
					if s.Serves(shard) || s.releasing.Has(shard) {
						holding++
					}
				}
				require.LessOrEqual(t, holding, 1, "shard %d", shard)
			}
		}
		for _, v := range views {
			moved := map[string][]int{}
			for _, id := range ids {
				if _, is := v.Member(id); !is {
					members[id] = NewShards(id, count) // its lease has run out
				}
			}
			for i := range ids {
				id := ids[(i+order)%len(ids)]
				moved[id] = members[id].SetView(v)
				begin()
			}
			for i := range ids { // what has moved drains
				id := ids[(i+order)%len(ids)]
				require.Equal(t, len(moved[id]) > 0, members[id].Released(moved[id]))
				begin()
			}
			for shard := range count {
				owner, _ := v.Owners().Of(shard)
				require.True(t, members[owner.ID].Serves(shard), "shard %d", shard)
			}
		}
	}
}

func TestNothingIsServedBeforeAllOthersHaveSpokenOfTheView(t *testing.T) {
	a, v := NewShards("a", count), viewOf(5, "a", "b", "c")
	require.Empty(t, a.SetView(v))
	hash := v.hash()
	a.Heard("b", Holding{View: 5, Hash: hash})
	a.Heard("c", Holding{View: 4})
	require.Empty(t, a.Begin(), "c has not seen the view")
	a.Heard("c", Holding{View: 5, Hash: viewOf(5, "a", "b", "c", "d").hash()})
	require.Empty(t, a.Begin(), "c has another view with the same number")
	held := NewSet(count)
	for shard := range count / 2 {
		held.Put(shard, true)
	}
	a.Heard("c", Holding{View: 5, Hash: hash, Held: held})
	for _, shard := range a.Begin() {
		require.GreaterOrEqual(t, shard, count/2)
	}
	a.Heard("c", Holding{View: 4})
	require.Empty(t, a.Begin(), "an older word does not count")
	a.Heard("c", Holding{View: 5, Hash: hash})
	require.NotEmpty(t, a.Begin())
	require.Len(t, a.SetView(viewOf(6, "b")), int(countOf(t, v, "a")))
	require.True(t, a.Releasing())
}

// countOf returns how many shards a member owns.
func countOf(t *testing.T, v View, id string) (n int) {
	t.Helper()
	for shard := range count {
		if owner, _ := v.Owners().Of(shard); owner.ID == id {
			n++
		}
	}
	require.NotZero(t, n, fmt.Sprint(id))
	return n
}

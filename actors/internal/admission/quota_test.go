package admission

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzSlots plays the same moves on quotas and on a model that counts. Each byte is one move of one of eight
// sessions, of which half share the quota of one server.
func FuzzSlots(f *testing.F) {
	f.Add([]byte{0, 8, 16, 24, 32, 40, 1, 9, 17, 25})
	f.Add([]byte("take, pin, drain, give back"))
	f.Fuzz(func(t *testing.T, moves []byte) {
		type session struct {
			slots Slots[int]
			left  bool // it takes no slot any more
		}
		all, servers := NewQuota[int](4), [2]*Quota[int]{NewQuota[int](2), NewQuota[int](0)}
		sessions := make([]session, 8)
		for i := range sessions {
			sessions[i].slots.Join(all, servers[i%2], nil)
		}
		for _, move := range moves {
			i := int(move % 8)
			s := &sessions[i]
			switch move / 8 % 5 {
			case 0:
				if !s.left {
					s.slots.Take()
				}
			case 1:
				if s.slots.Held {
					s.left = s.slots.Draining
					s.slots.GiveBack()
				}
			case 2:
				if !s.slots.Draining {
					s.slots.Drain()
					s.left = !s.slots.Held
				}
			case 3:
				if !s.slots.Draining {
					s.slots.Pin(!s.slots.Pinned)
				}
			case 4:
				if !s.slots.Draining && !s.slots.Pinned && s.slots.Held {
					s.slots.Use(i, UnusedSlot)
				}
			}
			if s.slots.Pinned || !s.slots.Held {
				s.slots.Leave()
			}
			check := func(q *Quota[int], has func(i int) bool) {
				open, draining, pins, pinnedSlots := 0, 0, 0, 0
				count := func(n *int, is bool) {
					if is {
						*n++
					}
				}
				for i := range sessions {
					if at := &sessions[i].slots; has(i) {
						count(&open, at.Held)
						count(&draining, at.Held && at.Draining)
						count(&pins, at.Pinned)
						count(&pinnedSlots, at.Held && at.Pinned)
					}
				}
				require.Equal(t, []int{open, draining, pins, pinnedSlots}, []int{q.Open, q.draining, q.Pins, q.PinnedSlots})
				require.Equal(t, max(0, q.Limit-open), q.Room())
				if oldest, found := q.Oldest(); found {
					at := &sessions[oldest].slots
					require.True(t, has(oldest) && at.Held && !at.Draining && !at.Pinned, "it may be evicted")
				}
			}
			check(all, func(int) bool { return true })
			check(servers[0], func(i int) bool { return i%2 == 0 })
			check(servers[1], func(i int) bool { return i%2 == 1 })
		}
	})
}

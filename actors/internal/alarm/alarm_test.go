package alarm

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Whatever is set, moved and removed, what is due comes in the order of the times, once.
func TestWhatIsDueComesInOrder(t *testing.T) {
	began := time.Unix(1, 0)
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 0))
		var a Alarm[int]
		all := make([]Entry[int], 20)
		want := map[int]time.Time{}
		for range 200 {
			i, at := r.IntN(len(all)), began.Add(time.Duration(r.IntN(50)))
			all[i].What = i
			switch r.IntN(3) {
			case 0:
				a.Set(&all[i], at)
				want[i] = at
			case 1:
				a.Hasten(&all[i], at)
				if before, set := want[i]; !set || at.Before(before) {
					want[i] = at
				}
			case 2:
				a.Remove(&all[i])
				delete(want, i)
			}
			require.Equal(t, want[i], all[i].At())
		}
		now := began.Add(25)
		var times []time.Time
		for e := a.Due(now); e != nil; e = a.Due(now) {
			times = append(times, want[e.What])
			delete(want, e.What)
			require.Zero(t, e.At())
		}
		require.True(t, slices.IsSortedFunc(times, time.Time.Compare))
		next := time.Time{}
		for _, at := range want {
			require.True(t, at.After(now))
			if next.IsZero() || at.Before(next) {
				next = at
			}
		}
		require.Equal(t, next, a.Next())
	}
}

package hold

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHoldEndsAtItsTime(t *testing.T) {
	var b Book
	begun := time.Now()
	require.True(t, b.IsEmpty())
	b.Note("a", begun, 0)
	b.Note("a", begun, -time.Second)
	require.True(t, b.IsEmpty(), "no time is asked for")

	b.Note("a", begun, time.Minute)
	b.Note("a", begun, time.Second) // the longer one stays
	b.Note("b", begun, 24*time.Hour)
	require.False(t, b.IsEmpty())
	require.Equal(t, begun.Add(time.Minute), b.Until("a", begun))
	require.Equal(t, begun.Add(10*time.Minute), b.Until("b", begun), "the server is not believed that")
	require.Zero(t, b.Until("c", begun))
	require.Equal(t, begun.Add(time.Minute), b.Until("a", begun.Add(time.Minute-1)))
	require.Zero(t, b.Until("a", begun.Add(time.Minute)))
	require.Len(t, b.until, 1, "what is over is dropped")
	b.Note("b", begun.Add(5*time.Minute), 10*time.Minute)
	require.Equal(t, begun.Add(15*time.Minute), b.Until("b", begun.Add(14*time.Minute)), "the server has said it again")
	require.Zero(t, b.Until("b", begun.Add(15*time.Minute)))
	require.True(t, b.IsEmpty())
}

func TestHoldsAtAPlaceAreForgotten(t *testing.T) {
	var b Book
	begun := time.Now()
	b.Forget("here")
	for _, key := range []string{"here, ann", "here, bob", "there, ann"} {
		b.Note(key, begun, time.Minute)
	}
	b.Forget("here")
	require.Zero(t, b.Until("here, ann", begun))
	require.Zero(t, b.Until("here, bob", begun))
	require.NotZero(t, b.Until("there, ann", begun))
	b.Forget("there")
	require.True(t, b.IsEmpty())
	b.Note("here, ann", begun, time.Minute)
	require.NotZero(t, b.Until("here, ann", begun))
}

func TestBookIsBounded(t *testing.T) {
	var b Book
	begun := time.Now()
	for i := range 3 * maxKeys {
		b.Note(fmt.Sprint(i), begun, time.Minute)
	}
	require.Len(t, b.until, maxKeys)
	require.Zero(t, b.Until(fmt.Sprint(maxKeys), begun))
	b.Note("0", begun, 2*time.Minute)
	require.Equal(t, begun.Add(2*time.Minute), b.Until("0", begun), "one that it has is still noted")
	b.Note("new", begun.Add(time.Minute), time.Second)
	require.Len(t, b.until, 2, "there is room again")
}

func TestBookSaysTheSameAsAMap(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		var b Book
		ends := map[string]time.Time{}
		now := time.Now()
		for range 200 {
			key := fmt.Sprint(random.IntN(8))
			now = now.Add(time.Duration(random.Int64N(int64(2 * time.Minute))))
			if random.IntN(2) == 0 {
				wanted := time.Duration(random.Int64N(int64(20 * time.Minute)))
				b.Note(key, now, wanted)
				if until := now.Add(min(wanted, most)); until.After(ends[key]) {
					ends[key] = until
				}
			}
			var want time.Time
			if ends[key].After(now) {
				want = ends[key]
			}
			require.Equal(t, want, b.Until(key, now), "seed %d", seed)
			require.True(t, want.IsZero() || !b.IsEmpty())
		}
	}
}

func TestEmptyBookCostsNoAllocation(t *testing.T) {
	var b Book
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if !b.IsEmpty() {
			t.Error("it is empty")
		}
	}))
}

package storetest

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// RunSwap checks that a store implements [mcpbridge.Swapper]. Open returns two stores on an empty
// backend, as two processes have them, and closes them when the test ends. A store for one process
// is returned twice.
func RunSwap(t *testing.T, open func(*testing.T) (one, other mcpbridge.Swapper)) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, one, other mcpbridge.Swapper)
	}{
		{"a record is swapped if it has the version", swapped},
		{"a swap that fails changes nothing", notSwapped},
		{"a key without a record has version 0", swappedFirst},
		{"a deleted record has version 0", swappedDeleted},
		{"a nil record deletes the one of the version", swappedNil},
		{"a saved record has the version that it was saved with", swappedSaved},
		{"a swap is of its key only", swappedKey},
		{"a swapped record is nobody else's", swappedCopy},
		{"a context that has ended ends a swap", swapEnded},
		{"a record that cannot be kept is not swapped", swapRefused},
		{"one of many swaps from a version succeeds", swappedOnce},
		{"every increment counts once", incremented},
	} {
		t.Run("swap: "+test.name, func(t *testing.T) {
			one, other := open(t)
			test.run(t, one, other)
		})
	}
}

// version returns a record of a version.
func version(version uint64) *mcpbridge.Record {
	r := Record(100 + version)
	r.Version = version
	return r
}

// swaps checks what a swap on the key a/b reports.
func swaps(t *testing.T, s mcpbridge.Swapper, from uint64, record *mcpbridge.Record, want bool) {
	t.Helper()
	got, err := s.Swap(t.Context(), key("a", "b"), from, record)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func swappedNil(t *testing.T, one, other mcpbridge.Swapper) {
	swaps(t, one, 0, version(1), true)
	swaps(t, other, 2, nil, false)
	has(t, one, key("a", "b"), version(1))
	swaps(t, other, 1, nil, true)
	has(t, one, key("a", "b"), nil)
	lists(t, one)
	swaps(t, one, 1, nil, false)
	swaps(t, one, 0, version(1), true)
	has(t, other, key("a", "b"), version(1))
}

func swapped(t *testing.T, one, other mcpbridge.Swapper) {
	for from := range uint64(3) {
		swaps(t, one, 2*from, version(2*from+1), true)
		has(t, other, key("a", "b"), version(2*from+1))
		swaps(t, other, 2*from+1, version(2*from+2), true)
		has(t, one, key("a", "b"), version(2*from+2))
	}
	lists(t, other, key("a", "b"))
	for _, high := range []uint64{1 << 53, math.MaxUint64 - 1} { // a float64 does not hold what follows
		require.NoError(t, one.Save(t.Context(), key("a", "b"), version(high)))
		swaps(t, one, high, version(high+1), true)
		swaps(t, one, high, version(high+1), false)
		has(t, other, key("a", "b"), version(high+1))
	}
}

func notSwapped(t *testing.T, one, other mcpbridge.Swapper) {
	swaps(t, one, 0, version(1), true)
	swaps(t, one, 1, version(2), true)
	for _, from := range []uint64{0, 1, 3, 1 << 40} {
		again := version(from + 1)
		again.Generation = 99
		swaps(t, one, from, again, false)
		swaps(t, other, from, again, false)
		has(t, one, key("a", "b"), version(2))
	}
	swaps(t, other, 2, version(3), true)
}

func swappedFirst(t *testing.T, one, other mcpbridge.Swapper) {
	swaps(t, one, 1, version(2), false)
	has(t, other, key("a", "b"), nil)
	lists(t, other)
	swaps(t, other, 0, version(1), true)
	swaps(t, one, 0, version(1), false)
	has(t, one, key("a", "b"), version(1))
}

func swappedDeleted(t *testing.T, one, other mcpbridge.Swapper) {
	swaps(t, one, 0, version(1), true)
	require.NoError(t, other.Delete(t.Context(), key("a", "b")))
	swaps(t, one, 1, version(2), false)
	has(t, one, key("a", "b"), nil)
	swaps(t, one, 0, version(1), true)
	require.NoError(t, one.Delete(t.Context(), key("a", "b")))
	has(t, other, key("a", "b"), nil)
}

func swappedSaved(t *testing.T, one, other mcpbridge.Swapper) {
	require.NoError(t, one.Save(t.Context(), key("a", "b"), Record(1)))
	swaps(t, other, 1, version(2), false)
	swaps(t, other, 0, version(1), true)
	swaps(t, other, 1, version(2), true)
	require.NoError(t, one.Save(t.Context(), key("a", "b"), Record(2)))
	swaps(t, other, 2, version(3), false)
	has(t, other, key("a", "b"), Record(2))
	swaps(t, other, 0, version(1), true)
	require.NoError(t, one.Save(t.Context(), key("a", "b"), version(7)))
	swaps(t, other, 1, version(2), false)
	swaps(t, other, 7, version(8), true)
	has(t, one, key("a", "b"), version(8))
}

func swappedKey(t *testing.T, one, other mcpbridge.Swapper) {
	require.NoError(t, one.Save(t.Context(), key("a", "other"), version(3)))
	swaps(t, one, 3, version(4), false)
	swaps(t, one, 0, version(1), true)
	has(t, other, key("a", "other"), version(3))
	for from := range uint64(2) {
		got, err := one.Swap(t.Context(), key("a", ""), from, version(from+1))
		require.NoError(t, err)
		require.True(t, got)
	}
	has(t, other, key("a", "default"), version(2))
}

func swappedCopy(t *testing.T, one, other mcpbridge.Swapper) {
	given := version(1)
	swaps(t, one, 0, given, true)
	given.Generation, given.Version, given.Server.Meta["build"] = 99, 99, "other"
	has(t, other, key("a", "b"), version(1))
}

func swapEnded(t *testing.T, one, other mcpbridge.Swapper) {
	swaps(t, one, 0, version(1), true)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	for _, over := range []context.Context{cancelled, late} {
		got, err := one.Swap(over, key("a", "b"), 1, version(2))
		require.ErrorIs(t, err, over.Err())
		require.False(t, got)
		Hidden(t, err)
		has(t, other, key("a", "b"), version(1))
	}
}

func swapRefused(t *testing.T, one, other mcpbridge.Swapper) {
	swaps(t, one, 0, version(1), true)
	binary := version(2)
	binary.SessionID += "\xff"
	odd := version(2)
	odd.Server.Capabilities.Experimental["f"] = func() {}
	for _, r := range []*mcpbridge.Record{binary, odd, version(0), version(1), version(3)} {
		got, err := one.Swap(t.Context(), key("a", "b"), 1, r)
		require.Error(t, err)
		require.False(t, got)
		Hidden(t, err)
	}
	has(t, other, key("a", "b"), version(1))
}

func swappedOnce(t *testing.T, one, other mcpbridge.Swapper) {
	for from := range uint64(4) {
		var all sync.WaitGroup
		errs := make(chan error, 16)
		var winners, generation atomic.Uint64
		for i := range uint64(16) {
			s, r := []mcpbridge.Swapper{one, other}[i%2], version(from+1)
			r.Generation = i
			all.Go(func() {
				got, err := s.Swap(t.Context(), key("a", "b"), from, r)
				if errs <- err; got {
					winners.Add(1)
					generation.Store(i)
				}
			})
		}
		all.Wait()
		close(errs)
		for err := range errs {
			require.NoError(t, err)
		}
		require.EqualValues(t, 1, winners.Load())
		want := version(from + 1)
		want.Generation = generation.Load()
		has(t, one, key("a", "b"), want)
		has(t, other, key("a", "b"), want)
	}
}

func incremented(t *testing.T, one, other mcpbridge.Swapper) {
	const each, goroutines = 8, 8
	var all sync.WaitGroup
	errs := make(chan error, goroutines)
	for i := range goroutines {
		all.Go(func() { errs <- increment(t.Context(), []mcpbridge.Swapper{one, other}[i%2], each) })
	}
	all.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	want := Record(each * goroutines)
	want.Version = each * goroutines
	has(t, one, key("a", "b"), want)
	has(t, other, key("a", "b"), want)
}

// increment increments the generation of the record of a/b some times.
func increment(ctx context.Context, s mcpbridge.Swapper, times int) error {
	for times > 0 {
		r, err := s.Load(ctx, key("a", "b"))
		if err != nil {
			return err
		}
		if r == nil {
			r = Record(0)
		}
		from := r.Version
		r.Version++
		r.Generation++
		done, err := s.Swap(ctx, key("a", "b"), from, r)
		if err != nil {
			return fmt.Errorf("from %d: %w", from, err)
		}
		if done {
			times--
		}
	}
	return nil
}

package storetest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// RunShared checks two stores on one backend, as two processes have them. Open returns two
// stores on an empty backend, and closes them when the test ends.
func RunShared(t *testing.T, open func(*testing.T) (one, other mcpbridge.Store)) {
	t.Run("one store has what the other one saved", func(t *testing.T) {
		one, other := open(t)
		require.NoError(t, one.Save(t.Context(), key("a", "b"), Record(1)))
		has(t, other, key("a", "b"), Record(1))
		lists(t, other, key("a", "b"))
		require.NoError(t, other.Save(t.Context(), key("a", "b"), Record(2)))
		has(t, one, key("a", "b"), Record(2))
		require.NoError(t, other.Delete(t.Context(), key("a", "b")))
		has(t, one, key("a", "b"), nil)
		lists(t, one)
	})
	t.Run("the last record saved counts, whatever its generation", func(t *testing.T) {
		one, other := open(t)
		for i, s := range []mcpbridge.Store{one, other, one, one, other, one} {
			require.NoError(t, s.Save(t.Context(), key("a", "b"), Record(uint64(10-i))))
			has(t, one, key("a", "b"), Record(uint64(10-i)))
			has(t, other, key("a", "b"), Record(uint64(10-i)))
		}
	})
	t.Run("both agree after concurrent saves", func(t *testing.T) {
		one, other := open(t)
		var all sync.WaitGroup
		errs := make(chan error, 40)
		for i, s := range []mcpbridge.Store{one, other} {
			for n := range 20 {
				all.Go(func() { errs <- s.Save(t.Context(), key("a", "b"), Record(uint64(20*i+n))) })
			}
		}
		all.Wait()
		close(errs)
		for err := range errs {
			require.NoError(t, err)
		}
		r, err := one.Load(t.Context(), key("a", "b"))
		require.NoError(t, err)
		require.NotNil(t, r)
		require.Equal(t, Record(r.Generation), r, "a record is not mixed from two")
		has(t, other, key("a", "b"), r)
	})
}

// RunGarbage checks that a store survives values that it cannot read, and does not show them.
// Open returns an empty store, and a function that puts a value into its backend.
func RunGarbage(t *testing.T, open func(*testing.T) (s mcpbridge.Store, put func(messages.Key, []byte))) {
	for _, garbage := range []string{
		Secret, "", "null", "{}", "[]", `{"record":null}`, `{"record":{"sessionId":"` + Secret, `{"record":"` + Secret + `"}`,
		`{"record":{"generation":"` + Secret + `"}}`, `{"saved":"` + Secret + `","record":{}}`, "\xff\x00",
	} {
		t.Run(fmt.Sprintf("%q", garbage), func(t *testing.T) {
			s, put := open(t)
			require.NoError(t, s.Save(t.Context(), key("a", "other"), Record(2)))
			put(key("a", "b"), []byte(garbage))

			r, err := s.Load(t.Context(), key("a", "b"))
			require.Error(t, err)
			require.Nil(t, r)
			Hidden(t, err)
			has(t, s, key("a", "other"), Record(2))
			lists(t, s, key("a", "b"), key("a", "other"))

			notSwappedGarbage(t, s)

			require.NoError(t, s.Save(t.Context(), key("a", "b"), Record(1)))
			has(t, s, key("a", "b"), Record(1))
			put(key("a", "b"), []byte(garbage))
			require.NoError(t, s.Delete(t.Context(), key("a", "b")))
			has(t, s, key("a", "b"), nil)
		})
	}
}

// notSwappedGarbage checks that a store, if it can swap, does not replace a value that it cannot read.
func notSwappedGarbage(t *testing.T, s mcpbridge.Store) {
	swapper, ok := s.(mcpbridge.Swapper)
	for from := uint64(0); ok && from < 2; from++ {
		swapped, err := swapper.Swap(t.Context(), key("a", "b"), from, version(from+1))
		require.Error(t, err)
		require.False(t, swapped)
		Hidden(t, err)
		_, err = s.Load(t.Context(), key("a", "b"))
		require.Error(t, err, "the value is as it was")
	}
}

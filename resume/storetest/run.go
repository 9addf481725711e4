package storetest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// many is the number of records of the test of a long list. It is more than a page of
// most backends.
const many = 1100

// Run checks that a store implements [mcpbridge.Store], hides what it keeps, and can be
// used from many goroutines. Open returns an empty store, and closes it when the test ends.
func Run(t *testing.T, open func(*testing.T) mcpbridge.Store) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, mcpbridge.Store)
	}{
		{"an unknown key has no record", unknown},
		{"a saved record is loaded", saved},
		{"the last record saved counts", replaced},
		{"a deleted record is gone", deleted},
		{"similar keys are different", similar},
		{"an empty scope is the default one", defaultScope},
		{"all keys are listed", listed},
		{"many keys are listed", listedMany},
		{"a stored record is nobody else's", copied},
		{"a context that has ended ends an operation", ended},
		{"a record that cannot be kept is refused", refused},
		{"many goroutines use it at once", concurrent},
		{"a record is not printed", printed},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

func unknown(t *testing.T, s mcpbridge.Store) {
	has(t, s, key("a", "b"), nil)
	lists(t, s)
}

func saved(t *testing.T, s mcpbridge.Store) {
	require.NoError(t, s.Save(t.Context(), key("a", "b"), Record(1)))
	has(t, s, key("a", "b"), Record(1))
	for _, bare := range []*mcpbridge.Record{{}, {Resume: mcpbridge.Resume{SessionID: "only an id"}}, {Generation: 1<<64 - 1}} {
		require.NoError(t, s.Save(t.Context(), key("a", "b"), bare))
		has(t, s, key("a", "b"), bare)
	}
}

func replaced(t *testing.T, s mcpbridge.Store) {
	for i := range uint64(3) {
		require.NoError(t, s.Save(t.Context(), key("a", "b"), Record(i)))
	}
	has(t, s, key("a", "b"), Record(2))
}

func deleted(t *testing.T, s mcpbridge.Store) {
	require.NoError(t, s.Delete(t.Context(), key("a", "b")), "there was none")
	require.NoError(t, s.Save(t.Context(), key("a", "b"), Record(1)))
	for range 2 {
		require.NoError(t, s.Delete(t.Context(), key("a", "b")))
		has(t, s, key("a", "b"), nil)
	}
	require.NoError(t, s.Save(t.Context(), key("a", "b"), Record(2)))
	has(t, s, key("a", "b"), Record(2))
}

// maxScope is the length of the longest scope, in bytes.
const maxScope = 1024

func similar(t *testing.T, s mcpbridge.Store) {
	keys := []messages.Key{
		key("a", "b/c"), key("a/b", "c"), key("ab", "c"), key("a", "bc"), key("a", "B/c"), key("", "a"), key("a", "a"),
		key("\x01a", "b"), key("", "\x01ab"), key("a", "b\x00"), key("a", "b"), key(`a","b`, "c"), key("a", `b","c`),
		key("a", "é"), key("a", "e\u0301"), key("a", "\U0001f600"), key("a", "\xff"), key("a", "\xfe"), key("a", "\ufffd"),
		key("a", strings.Repeat("ä", maxScope/2)), key("a", strings.Repeat("ä", maxScope/2-1)),
		key(strings.Repeat("n", 127), "b"), key(strings.Repeat("n", 128), "b"),
		key("a", "b%2Fc"), key("a", ".."), key("a", "*"), key("a", "[a-z]"), key("a", "b c"), key("a", "b+c"), key("a", "{b}"), key("a", "b\r\n"),
	}
	for i, k := range keys {
		require.NoError(t, s.Save(t.Context(), k, Record(uint64(i))), "%q", k)
	}
	lists(t, s, keys...)
	for i, k := range keys {
		has(t, s, k, Record(uint64(i)))
	}
	for i, k := range keys {
		require.NoError(t, s.Delete(t.Context(), k))
		has(t, s, k, nil)
		for j, other := range keys[i+1:] {
			has(t, s, other, Record(uint64(i+1+j)))
		}
	}
}

func defaultScope(t *testing.T, s mcpbridge.Store) {
	require.NoError(t, s.Save(t.Context(), key("a", ""), Record(1)))
	has(t, s, key("a", messages.DefaultScope), Record(1))
	lists(t, s, key("a", messages.DefaultScope))
	require.NoError(t, s.Delete(t.Context(), key("a", messages.DefaultScope)))
	has(t, s, key("a", ""), nil)
}

func listed(t *testing.T, s mcpbridge.Store) {
	require.NoError(t, s.Save(t.Context(), key("a", "b"), Record(1)))
	require.NoError(t, s.Save(t.Context(), key("a", "c"), Record(1)))
	require.NoError(t, s.Save(t.Context(), key("b", "b"), Record(1)))
	require.NoError(t, s.Save(t.Context(), key("b", "b"), Record(2)))
	lists(t, s, key("a", "b"), key("a", "c"), key("b", "b"))
	require.NoError(t, s.Delete(t.Context(), key("a", "b")))
	lists(t, s, key("a", "c"), key("b", "b"))
}

func listedMany(t *testing.T, s mcpbridge.Store) {
	keys := make([]messages.Key, many)
	errs := make(chan error, many)
	var all sync.WaitGroup
	for i := range keys {
		keys[i] = key("a", fmt.Sprint(i))
		all.Go(func() { errs <- s.Save(t.Context(), keys[i], &mcpbridge.Record{Generation: 1}) })
	}
	all.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	got, err := s.Keys(t.Context())
	require.NoError(t, err)
	require.Len(t, got, many)
	seen := map[messages.Key]bool{}
	for _, k := range got {
		seen[k] = true
	}
	for _, k := range keys {
		require.True(t, seen[k], "%v", k)
	}
}

func copied(t *testing.T, s mcpbridge.Store) {
	change := func(r *mcpbridge.Record) {
		r.SessionID, r.Generation = "other", 99
		r.Server.Meta["build"] = "other"
		r.Server.ServerInfo.Name = "other"
		r.Server.Capabilities.Experimental["x"].(map[string]any)["deep"].([]any)[0] = "other"
		r.Server.Capabilities.Resources.Subscribe = false
	}
	given := Record(1)
	require.NoError(t, s.Save(t.Context(), key("a", "b"), given))
	change(given)
	has(t, s, key("a", "b"), Record(1))
	taken, err := s.Load(t.Context(), key("a", "b"))
	require.NoError(t, err)
	change(taken)
	has(t, s, key("a", "b"), Record(1))
}

func ended(t *testing.T, s mcpbridge.Store) {
	require.NoError(t, s.Save(t.Context(), key("a", "b"), Record(1)))
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	for _, over := range []context.Context{cancelled, late} {
		_, err := s.Load(over, key("a", "b"))
		require.ErrorIs(t, err, over.Err())
		_, err = s.Keys(over)
		require.ErrorIs(t, err, over.Err())
		for _, err := range []error{s.Save(over, key("a", "b"), Record(2)), s.Delete(over, key("a", "b"))} {
			require.ErrorIs(t, err, over.Err())
			Hidden(t, err)
		}
		has(t, s, key("a", "b"), Record(1))
	}
}

func refused(t *testing.T, s mcpbridge.Store) {
	require.NoError(t, s.Save(t.Context(), key("a", "b"), Record(1)))
	require.Error(t, s.Save(t.Context(), key("a", "b"), nil))
	binary := Record(2)
	binary.SessionID += "\xff"
	odd := Record(2)
	odd.Server.Capabilities.Experimental["f"] = func() {}
	for _, r := range []*mcpbridge.Record{binary, odd} {
		err := s.Save(t.Context(), key("a", "b"), r)
		require.Error(t, err)
		Hidden(t, err)
	}
	has(t, s, key("a", "b"), Record(1))
}

func concurrent(t *testing.T, s mcpbridge.Store) {
	ctx := t.Context()
	var all sync.WaitGroup
	errs := make(chan error, 1000)
	for i := range 16 {
		own := key("a", fmt.Sprint("own ", i))
		all.Go(func() {
			for n := range uint64(4) {
				errs <- s.Save(ctx, own, Record(n))
				r, err := s.Load(ctx, own)
				if err == nil && (r == nil || r.Generation != n) {
					err = fmt.Errorf("loaded %v, saved %d", r, n)
				}
				errs <- err
				errs <- s.Save(ctx, key("a", "shared"), Record(n))
				_, err = s.Load(ctx, key("a", "shared"))
				errs <- err
				_, err = s.Keys(ctx)
				errs <- err
				errs <- s.Delete(ctx, key("a", "shared"))
			}
			if i%2 == 0 {
				errs <- s.Delete(ctx, own)
			}
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	for i := range 16 {
		want := Record(3)
		if i%2 == 0 {
			want = nil
		}
		has(t, s, key("a", fmt.Sprint("own ", i)), want)
	}
	has(t, s, key("a", "shared"), nil)
}

func printed(t *testing.T, s mcpbridge.Store) {
	require.NoError(t, s.Save(t.Context(), key("a", "b"), Record(1)))
	r, err := s.Load(t.Context(), key("a", "b"))
	require.NoError(t, err)
	Hidden(t, s, r, *r, r.Resume, &r.Resume)
}

package storelimit

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// scripted is a store whose methods all do the same.
type scripted func(ctx context.Context) error

func (s scripted) Load(ctx context.Context, _ messages.Key) (*mcpbridge.Record, error) {
	return &mcpbridge.Record{Generation: 7}, s(ctx)
}

func (s scripted) Save(ctx context.Context, _ messages.Key, _ *mcpbridge.Record) error { return s(ctx) }

func (s scripted) Delete(ctx context.Context, _ messages.Key) error { return s(ctx) }

func (s scripted) Keys(ctx context.Context) ([]messages.Key, error) {
	return []messages.Key{{Server: "s"}}, s(ctx)
}

// swapping is a scripted store that swaps records, all with success.
type swapping struct{ scripted }

func (s swapping) Swap(ctx context.Context, _ messages.Key, _ uint64, _ *mcpbridge.Record) (bool, error) {
	err := s.scripted(ctx)
	return err == nil, err
}

func key(n int) messages.Key { return messages.Key{Server: "s", Scope: fmt.Sprint(n)} }

func TestStoreThatAnswersIsUsedAsItIs(t *testing.T) {
	full := errors.New("disk full")
	s := New(scripted(func(context.Context) error { return full }))
	for range 3 {
		_, err := s.Load(t.Context(), key(1))
		require.Equal(t, full, err)
		require.Equal(t, full, s.Save(t.Context(), key(1), nil))
		require.Equal(t, full, s.Delete(t.Context(), key(1)))
	}
	s = New(scripted(func(context.Context) error { return nil }))
	record, err := s.Load(t.Context(), key(1))
	require.NoError(t, err)
	require.EqualValues(t, 7, record.Generation)
	keys, err := s.Keys(t.Context())
	require.NoError(t, err)
	require.Len(t, keys, 1)
}

func TestStoreThatIgnoresItsContextCostsOneRequestInAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs, called := make(chan struct{}), new(atomic.Int64)
		s := New(scripted(func(context.Context) error { called.Add(1); <-hangs; return nil }))
		began, slow := time.Now(), 0
		for n := range 10_000 {
			at := time.Now()
			_, err := s.Load(t.Context(), key(n))
			require.ErrorContains(t, err, "the store ")
			require.LessOrEqual(t, time.Since(at), timeout+grace)
			if time.Since(at) > 0 {
				slow++
			}
			time.Sleep(100 * time.Millisecond)
		}
		require.LessOrEqual(t, slow, int(time.Since(began)/pause)+1)
		require.EqualValues(t, slow, called.Load())
		require.LessOrEqual(t, slow, maxRequests)

		close(hangs)
		time.Sleep(pause)
		for n := range 100 {
			require.NoError(t, s.Save(t.Context(), key(n), nil), "it answers again")
		}
	})
}

// H-D9: a store that never returns holds a bounded number of goroutines.
func TestGoroutinesOfAStoreThatHangsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := make(chan struct{})
		var running atomic.Int32 // NumGoroutine is not exact
		s := New(scripted(func(context.Context) error { running.Add(1); <-hangs; return nil }))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		answers := make(chan error)
		for n := range 2 * maxRequests {
			go func() { answers <- s.Save(ctx, key(n), nil) }()
		}
		for range 2 * maxRequests {
			require.Error(t, <-answers)
		}
		for n := range 100 { // in the course of hours
			require.Error(t, s.Save(t.Context(), key(n), nil))
			time.Sleep(time.Minute)
		}
		require.EqualValues(t, maxRequests, running.Load())
		close(hangs)
	})
}

func TestRequestsOfAKeyNeverOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := make(chan struct{})
		s := New(scripted(func(context.Context) error { <-hangs; return nil }))
		require.ErrorContains(t, s.Save(t.Context(), key(1), nil), "does not return")
		time.Sleep(pause)
		require.ErrorContains(t, s.Save(t.Context(), key(1), nil), "the last request for the key")
		close(hangs)
		synctest.Wait()
		require.NoError(t, s.Save(t.Context(), key(1), nil))
	})
}

func TestStoreThatHeedsItsContextIsNotAskedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down, called := true, 0
		s := New(scripted(func(ctx context.Context) error {
			if called++; down {
				<-ctx.Done()
			}
			return ctx.Err()
		}))
		require.ErrorIs(t, s.Save(t.Context(), key(1), nil), context.DeadlineExceeded)
		require.ErrorContains(t, s.Save(t.Context(), key(1), nil), "not answered lately")
		require.Equal(t, 1, called)
		time.Sleep(pause)
		down = false
		require.NoError(t, s.Save(t.Context(), key(1), nil))
		require.NoError(t, s.Save(t.Context(), key(1), nil))
	})
}

func TestRequestThatNobodyWantsAnyLongerSaysNothingOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(scripted(func(ctx context.Context) error {
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			return ctx.Err()
		}))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		require.ErrorIs(t, s.Save(ctx, key(1), nil), context.Canceled)
		require.NoError(t, s.Save(t.Context(), key(1), nil))
	})
}

func TestPanicOfAStoreIsItsError(t *testing.T) {
	s := New(scripted(func(context.Context) error { panic("a bug") }))
	for range 2 * maxRequests {
		_, err := s.Keys(t.Context())
		var panicked *guard.Panic
		require.ErrorAs(t, err, &panicked)
	}
	s = New(scripted(func(context.Context) error { runtime.Goexit(); return nil }))
	require.ErrorContains(t, s.Delete(t.Context(), key(1)), "did not return")
}

// All keys of a member that has left come at once, and one of their requests finds out.
func TestRequestsThatComeWhileOneFindsOutWaitForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := time.Hour
		s := New(scripted(func(ctx context.Context) error {
			select {
			case <-time.After(answers):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}))
		ask := func() (failed int64, took time.Duration) {
			var failures, slowest atomic.Int64
			began := time.Now()
			var all sync.WaitGroup
			for n := range 100 {
				all.Go(func() {
					if _, err := s.Load(t.Context(), key(n)); err != nil {
						failures.Add(1)
					}
					if n > 0 {
						slowest.Store(max(slowest.Load(), int64(time.Since(began))))
					}
				})
				synctest.Wait()
			}
			all.Wait()
			return failures.Load(), time.Duration(slowest.Load())
		}
		_, err := s.Load(t.Context(), key(0))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		time.Sleep(pause)
		failed, took := ask()
		require.EqualValues(t, 100, failed)
		require.LessOrEqual(t, took, moment, "for those that do not find out")

		answers = 10 * time.Millisecond
		time.Sleep(pause)
		failed, _ = ask()
		require.Zero(t, failed)
	})
}

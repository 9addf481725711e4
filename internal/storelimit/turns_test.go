package storelimit

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/resume/storetest"
)

func TestLimitedStoreIsAStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) mcpbridge.Store { return hidden{New(new(resume.Memory))} })
	storetest.RunSwap(t, func(*testing.T) (one, other mcpbridge.Swapper) {
		m := new(resume.Memory)
		return New(m).(mcpbridge.Swapper), New(m).(mcpbridge.Swapper)
	})
}

// hidden prints nothing of a store.
type hidden struct{ mcpbridge.Store }

// String returns nothing.
func (hidden) String() string { return "" }

func TestLimitSwapsOnlyWhatItsStoreSwaps(t *testing.T) {
	full := errors.New("disk full")
	inner := scripted(func(context.Context) error { return full })
	_, ok := New(inner).(mcpbridge.Swapper)
	require.False(t, ok)
	s, ok := New(swapping{inner}).(mcpbridge.Swapper)
	require.True(t, ok)
	_, err := s.Swap(t.Context(), key(1), 0, nil)
	require.Equal(t, full, err)
}

func TestSwapThatHangsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(swapping{scripted(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })}).(mcpbridge.Swapper)
		began := time.Now()
		_, err := s.Swap(t.Context(), key(1), 0, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, timeout, time.Since(began))
	})
}

// noted is a store in which each request takes a time, and which notes the generations that are saved.
type noted struct {
	scripted
	mu    sync.Mutex
	saved []uint64
}

func (s *noted) Save(ctx context.Context, _ messages.Key, record *mcpbridge.Record) error {
	s.mu.Lock()
	s.saved = append(s.saved, record.Generation)
	s.mu.Unlock()
	return s.scripted(ctx)
}

func TestRequestsOfAKeyWaitForEachOtherInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &noted{scripted: func(context.Context) error { time.Sleep(50 * time.Millisecond); return nil }}
		s, began := New(inner), time.Now()
		var all sync.WaitGroup
		var want []uint64
		for n := range uint64(30) {
			k := messages.Key{Server: "s", Scope: []string{"", messages.DefaultScope}[n%2]} // one key
			all.Go(func() {
				if err := s.Save(t.Context(), k, &mcpbridge.Record{Generation: n}); err != nil {
					t.Error(err)
				}
			})
			want = append(want, n)
			synctest.Wait()
		}
		require.NoError(t, s.Save(t.Context(), key(1), new(mcpbridge.Record)))
		require.Equal(t, 50*time.Millisecond, time.Since(began), "another key does not wait")
		all.Wait()
		require.Equal(t, 1500*time.Millisecond, time.Since(began))
		require.Equal(t, append(want[:1], append([]uint64{0}, want[1:]...)...), inner.saved)
	})
}

func TestRequestWaitsForItsKeyAsLongAsItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := 1800 * time.Millisecond
		s := New(scripted(func(context.Context) error { time.Sleep(took); return nil }))
		began, answers := time.Now(), make(chan time.Duration, 3)
		save := func(ctx context.Context, want error) {
			go func() {
				if err := s.Save(ctx, key(1), nil); !errors.Is(err, want) {
					t.Errorf("the error is %v, want %v", err, want)
				}
				answers <- time.Since(began)
			}()
			synctest.Wait()
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		save(t.Context(), nil)
		save(short, context.DeadlineExceeded)
		save(t.Context(), nil)
		save(t.Context(), context.DeadlineExceeded)
		require.Equal(t, time.Second, <-answers, "its context has ended")
		require.Equal(t, took, <-answers)
		require.Equal(t, timeout, <-answers, "two requests before it would take too long")
		require.Equal(t, 2*took, <-answers, "it does not wait for one that was given up")

		took = 0
		require.NoError(t, s.Save(t.Context(), key(1), nil))
		require.Empty(t, s.(*store).turns.queues)
	})
}

// What waits behind a request that the store does not answer is not sent to it.
func TestRequestIsNotSentAfterOneThatIsNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		s := New(scripted(func(ctx context.Context) error { asked.Add(1); <-ctx.Done(); return ctx.Err() }))
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if s.Save(t.Context(), key(1), nil) == nil {
					t.Error("the store has not answered")
				}
			})
			time.Sleep(time.Millisecond)
		}
		began := time.Now()
		all.Wait()
		require.LessOrEqual(t, time.Since(began), timeout)
		require.EqualValues(t, 1, asked.Load())
		require.ErrorIs(t, s.Save(t.Context(), key(1), nil), errSilent)
	})
}

func TestTurnsNeverOverlap(t *testing.T) {
	var running [3]atomic.Int64
	var all sync.WaitGroup
	s := &turns{queues: map[messages.Key][]*turn{}}
	for i := range 8 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			for range 500 {
				n := random.IntN(len(running))
				k := key(n)
				turn := s.queue(&k)
				ctx, cancel := context.WithCancel(t.Context())
				if random.IntN(3) == 0 {
					cancel() // it may end just when its turn begins
				}
				if turn.await(ctx) == nil {
					if running[n].Add(1) != 1 {
						t.Error("two at once")
					}
					running[n].Add(-1)
				}
				turn.end()
				cancel()
			}
		})
	}
	all.Wait()
	require.Empty(t, s.queues)
}

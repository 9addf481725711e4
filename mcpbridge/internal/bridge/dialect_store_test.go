package bridge

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/internal/storelimit"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// oddStore is a store whose requests fail before they reach the real one, as long as fault says.
type oddStore struct {
	*mapStore
	mu    sync.Mutex
	fault func(context.Context) error // or nil
}

func (s *oddStore) becomes(fault func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fault
}

func (s *oddStore) fails(ctx context.Context) error {
	s.mu.Lock()
	fault := s.fault
	s.mu.Unlock()
	if fault == nil {
		return nil
	}
	return fault(ctx)
}

func (s *oddStore) Load(ctx context.Context, key messages.Key) (*mcpbridge.Record, error) {
	if err := s.fails(ctx); err != nil {
		return nil, err
	}
	return s.mapStore.Load(ctx, key)
}

func (s *oddStore) Save(ctx context.Context, key messages.Key, record *mcpbridge.Record) error {
	if err := s.fails(ctx); err != nil {
		return err
	}
	return s.mapStore.Save(ctx, key, record)
}

// kept returns what the store has.
func (s *oddStore) kept() (all []string) {
	s.mapStore.mu.Lock()
	defer s.mapStore.mu.Unlock()
	for _, record := range s.records {
		all = append(all, string(record.List))
	}
	return all
}

// faults are what may be wrong with a store.
var faults = map[string]func(context.Context) error{
	"an error": func(context.Context) error { return errors.New("no disk") },
	"a panic":  func(context.Context) error { panic("oops") },
	"a hang":   func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	"a hang that ignores its context": func(context.Context) error {
		time.Sleep(time.Minute)
		return errors.New("too late")
	},
}

func TestStoreThatFailsHoldsNoDialUpAndIsAskedAgain(t *testing.T) {
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &oddStore{mapStore: newMapStore()}
				in := &record{storelimit.New(s), messages.Key{Server: "s"}}
				costly := new(dialect)
				costly.setLegacy(true)
				bounded := func(most time.Duration, f func()) {
					began := time.Now()
					f()
					require.LessOrEqual(t, time.Since(began), most)
				}

				s.becomes(fault)
				bounded(3*time.Second, func() { costly.remember(t.Context(), in) })
				bounded(0, func() { new(dialect).recall(t.Context(), in) })
				time.Sleep(time.Hour)
				require.Empty(t, s.kept())
				s.becomes(nil)
				costly.remember(t.Context(), in)
				require.Len(t, s.kept(), 1)

				s.becomes(fault)
				later := new(dialect)
				bounded(3*time.Second, func() { later.recall(t.Context(), in) })
				require.False(t, later.isOld())
				time.Sleep(time.Hour)
				s.becomes(nil)
				bounded(0, func() { later.recall(t.Context(), in) })
				require.True(t, later.isOld())
			})
		})
	}
}

func TestWhatIsFoundOutDuringASaveIsSavedAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &oddStore{mapStore: newMapStore()}
		s.becomes(func(context.Context) error { time.Sleep(time.Second); return nil })
		in, d := &record{storelimit.New(s), messages.Key{Server: "s"}}, new(dialect)
		d.setLegacy(true)
		go d.remember(t.Context(), in)
		synctest.Wait()
		d.setLate()
		d.remember(t.Context(), in)
		require.Contains(t, s.kept()[0], `"late":true`)
	})
}

// A dial works as fast as with a good store, but for the time that it waits.
func TestDialWithAStoreThatHangsStartsTheServer(t *testing.T) {
	t.Parallel()
	d := newDiscoverer(t, "an error", "0s", false)
	s := &oddStore{mapStore: newMapStore()}
	hung := make(chan struct{})
	s.becomes(func(context.Context) error { <-hung; return errors.New("it hung") })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c, err := d.bridge.Dial(ctx, dial.Request{Key: messages.Key{Server: "test"}, Store: storelimit.New(s), Down: func(*mcpbridge.Error) {}})
	close(hung)
	require.NoError(t, err)
	require.NoError(t, c.Close(ctx))
}

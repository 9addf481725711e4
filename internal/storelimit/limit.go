// Package storelimit bounds what a store of the user can hold up: a store may hang, ignore its
// context or panic.
package storelimit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

const (
	// timeout is how long a request may take.
	timeout = 2 * time.Second
	// grace is how much longer a request may ignore the end of its context before it is given up.
	grace = 500 * time.Millisecond
	// pause is how long a store is not asked after a request that took too long. One request then
	// finds out whether the store answers again.
	pause = 5 * time.Second
	// moment is how long others wait for what that request finds out: a store that works answers within it.
	moment = 100 * time.Millisecond
	// maxRequests bounds the requests that run, those that were given up included.
	maxRequests = 256
)

// store is a store whose methods always return.
type store struct {
	inner mcpbridge.Store
	slots chan struct{} // has one value for each request that runs
	turns turns

	mu      sync.Mutex
	retryAt time.Time     // zero while the store answers
	finding chan struct{} // closed when it is known what the request that finds out has found; nil if there is none
}

// swapper is the store of an inner one that swaps records.
type swapper struct {
	*store
	inner mcpbridge.Swapper
}

// New returns a store that asks inner. A request waits for the earlier ones about its key, for 2 seconds at most. From then on, its
// method returns 2.6 seconds after ctx lets it begin, at the latest. While inner hangs, methods return at once with an error. A panic
// of inner is returned as a [*guard.Panic]. The result is an [mcpbridge.Swapper] if inner is one.
func New(inner mcpbridge.Store) mcpbridge.Store {
	s := &store{inner: inner, slots: make(chan struct{}, maxRequests), turns: turns{queues: map[messages.Key][]*turn{}}}
	if inner, ok := inner.(mcpbridge.Swapper); ok {
		return &swapper{s, inner}
	}
	return s
}

// Load implements [mcpbridge.Store], as the other methods do.
func (s *store) Load(ctx context.Context, key messages.Key) (*mcpbridge.Record, error) {
	return run(ctx, s, &key, func(ctx context.Context) (*mcpbridge.Record, error) { return s.inner.Load(ctx, key) })
}

func (s *store) Save(ctx context.Context, key messages.Key, record *mcpbridge.Record) error {
	_, err := run(ctx, s, &key, func(ctx context.Context) (none struct{}, err error) { return none, s.inner.Save(ctx, key, record) })
	return err
}

func (s *store) Delete(ctx context.Context, key messages.Key) error {
	_, err := run(ctx, s, &key, func(ctx context.Context) (none struct{}, err error) { return none, s.inner.Delete(ctx, key) })
	return err
}

func (s *store) Keys(ctx context.Context) ([]messages.Key, error) {
	return run(ctx, s, nil, s.inner.Keys)
}

// Swap implements [mcpbridge.Swapper].
func (s *swapper) Swap(ctx context.Context, key messages.Key, from uint64, record *mcpbridge.Record) (swapped bool, err error) {
	return run(ctx, s.store, &key, func(ctx context.Context) (bool, error) { return s.inner.Swap(ctx, key, from, record) })
}

// run runs a request in a goroutine, and gives it up when it takes too long. A request that
// was given up keeps its slot and its turn until it returns.
func run[T any](ctx context.Context, s *store, key *messages.Key, f func(context.Context) (T, error)) (value T, err error) {
	turn := s.turns.queue(key)
	if err := s.begin(ctx, turn); err != nil {
		turn.end()
		return value, err
	}
	wanted := ctx
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	type outcome struct {
		value T
		err   error
	}
	done, givenUp := make(chan outcome), make(chan struct{})
	go func() {
		o := outcome{err: errors.New("the store did not return")} // if it calls runtime.Goexit
		defer func() {
			<-s.slots
			select {
			case done <- o:
			case <-givenUp:
				turn.end()
			}
		}()
		o.value, o.err = guard.Call(func() (T, error) { return f(ctx) })
	}()
	var o outcome
	end := turn.end // after judge: the next request of the key is not sent to a store that does not answer
	select {
	case o = <-done:
	case <-ctx.Done():
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case o = <-done:
		case <-timer.C:
			o.err = errors.New("the store does not return")
			end = func() { close(givenUp) }
		}
	}
	tells := o.err == nil || !errors.Is(wanted.Err(), context.Canceled) // one that nobody wants any longer tells nothing
	s.judge(tells, o.err == nil || ctx.Err() == nil)
	end()
	return o.value, o.err
}

// errSilent is the error of a request that is not sent to the store.
var errSilent = errors.New("the store has not answered lately")

// begin waits until a request may run: not while an earlier one of its key runs, nor while the
// store does not answer.
func (s *store) begin(ctx context.Context, turn *turn) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.awaitFinding(ctx)
	if s.isSilent() {
		return errSilent
	}
	if err := turn.await(ctx); err != nil {
		return err
	}
	if err := s.admit(); err != nil {
		return err
	}
	select {
	case s.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: the store has %d requests that it has not answered", ctx.Err(), maxRequests)
	}
}

// awaitFinding waits for a moment for the request that finds out whether the store answers, if there is one.
func (s *store) awaitFinding(ctx context.Context) {
	s.mu.Lock()
	finding := s.finding
	s.mu.Unlock()
	if finding == nil {
		return
	}
	timer := time.NewTimer(moment)
	defer timer.Stop()
	select {
	case <-finding:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// isSilent reports whether the store has not answered lately.
func (s *store) isSilent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.retryAt)
}

// admit lets a request run whose turn has begun, or one that finds out whether the store answers again.
func (s *store) admit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	switch {
	case now.Before(s.retryAt), !s.retryAt.IsZero() && len(s.slots) == maxRequests:
		return errSilent
	case !s.retryAt.IsZero():
		s.retryAt, s.finding = now.Add(pause), make(chan struct{}) // this request finds out
	}
	return nil
}

// judge notes whether a request was answered in time, if it tells that.
func (s *store) judge(tells, inTime bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.finding != nil {
		close(s.finding)
		s.finding = nil
	}
	switch {
	case !tells:
	case inTime:
		s.retryAt = time.Time{}
	default:
		s.retryAt = time.Now().Add(pause)
	}
}

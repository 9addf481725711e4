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

	mu      sync.Mutex
	retryAt time.Time             // zero while the store answers
	finding chan struct{}         // closed when it is known what the request that finds out has found; nil if there is none
	running map[messages.Key]bool // keys with a request that runs
}

// New returns a store that asks inner, and whose methods return 2.6 seconds after ctx lets
// them begin, at the latest. While inner hangs, they return at once with an error. A panic of
// inner is returned as a [*guard.Panic].
func New(inner mcpbridge.Store) mcpbridge.Store {
	return &store{inner: inner, slots: make(chan struct{}, maxRequests), running: map[messages.Key]bool{}}
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

// run runs a request in a goroutine, and gives it up when it takes too long. A request that
// was given up keeps its slot and its key until it returns.
func run[T any](ctx context.Context, s *store, key *messages.Key, f func(context.Context) (T, error)) (value T, err error) {
	if err := s.begin(ctx, key); err != nil {
		return value, err
	}
	wanted := ctx
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		o := outcome{err: errors.New("the store did not return")} // if it calls runtime.Goexit
		defer func() {
			s.end(key)
			done <- o
		}()
		o.value, o.err = guard.Call(func() (T, error) { return f(ctx) })
	}()
	var o outcome
	select {
	case o = <-done:
	case <-ctx.Done():
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case o = <-done:
		case <-timer.C:
			o.err = errors.New("the store does not return")
		}
	}
	tells := o.err == nil || !errors.Is(wanted.Err(), context.Canceled) // one that nobody wants any longer tells nothing
	s.judge(tells, o.err == nil || ctx.Err() == nil)
	return o.value, o.err
}

// begin waits until a request may run: not while an earlier one of its key runs, nor while the
// store does not answer.
func (s *store) begin(ctx context.Context, key *messages.Key) error {
	s.awaitFinding(ctx)
	if err := s.admit(key); err != nil {
		return err
	}
	select {
	case s.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		s.free(key)
		return fmt.Errorf("the store has %d requests that it has not answered", maxRequests)
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

// admit takes the key of a request.
func (s *store) admit(key *messages.Key) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	switch {
	case now.Before(s.retryAt), !s.retryAt.IsZero() && len(s.slots) == maxRequests:
		return errors.New("the store has not answered lately")
	case key != nil && s.running[*key]:
		return errors.New("the store has not answered the last request for the key")
	case !s.retryAt.IsZero():
		s.retryAt, s.finding = now.Add(pause), make(chan struct{}) // this request finds out
	}
	if key != nil {
		s.running[*key] = true
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

// end releases what a request has taken.
func (s *store) end(key *messages.Key) {
	<-s.slots
	s.free(key)
}

// free releases the key of a request.
func (s *store) free(key *messages.Key) {
	if key == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, *key)
}

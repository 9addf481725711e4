package benchmarks

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/singleflight"
)

// mutexMap is the design that everybody writes first, written with care: sessions in a
// map behind a mutex, each opened once by singleflight, the least recently used one
// closed when there are too many, and a session that expired replaced. It has no
// deadlines, no bound on calls and no backoff. It holds the cap only roughly, and it
// repeats calls that may have run.
type mutexMap struct {
	limit    int
	patience time.Duration // see openTimeout, or 0
	open     func(ctx context.Context) (session, error)

	opening singleflight.Group
	closing sync.WaitGroup
	opened  atomic.Int64 // attempts

	mu      sync.Mutex
	entries map[string]*list.Element
	order   list.List // of *entry, the least recently used first
}

// entry is a session in the map.
type entry struct {
	key     string
	s       session
	users   int  // running calls
	dropped bool // no longer in the map: the last user closes it
}

// openTimeout bounds the opening of a session, whoever waits for it.
const openTimeout = 30 * time.Second

// unlimited is a limit that is not reached.
const unlimited = 1 << 20

func openMutexMap(limit int) opener {
	return func(r route) (client, error) {
		return &mutexMap{limit: limit, open: r.open, entries: map[string]*list.Element{}}, nil
	}
}

// call calls on the session of a key. A session that is gone is replaced once.
func (m *mutexMap) call(ctx context.Context, key string) error {
	for again := true; ; again = false {
		e, err := m.acquire(ctx, key)
		if err != nil {
			return err
		}
		err = e.s.call(ctx)
		gone := errors.Is(err, mcp.ErrSessionMissing) || errors.Is(err, mcp.ErrConnectionClosed)
		m.release(e, gone)
		if !gone || !again {
			return err
		}
	}
}

// acquire returns the session of a key, in use.
func (m *mutexMap) acquire(ctx context.Context, key string) (*entry, error) {
	for {
		m.mu.Lock()
		if element := m.entries[key]; element != nil {
			e := element.Value.(*entry)
			e.users++
			m.order.MoveToBack(element)
			m.mu.Unlock()
			return e, nil
		}
		m.mu.Unlock()
		// A caller that gives up does not end the opening for the others.
		done := m.opening.DoChan(key, func() (any, error) { return nil, m.add(key) })
		select {
		case r := <-done:
			if r.Err != nil {
				return nil, r.Err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// add opens a session, makes room for it, and puts it into the map.
func (m *mutexMap) add(key string) error {
	m.mu.Lock()
	added := m.entries[key] != nil // by a flight that ended just before this one
	m.mu.Unlock()
	if added {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(m.patience, openTimeout))
	defer cancel()
	m.opened.Add(1)
	s, err := m.open(ctx)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.order.Len() >= m.limit {
		m.remove(m.order.Front().Value.(*entry))
	}
	m.entries[key] = m.order.PushBack(&entry{key: key, s: s})
	return nil
}

// release returns a session, and removes it from the map if it is gone.
func (m *mutexMap) release(e *entry, gone bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.users--
	switch {
	case gone && !e.dropped:
		m.remove(e)
	case e.dropped && e.users == 0:
		m.finish(e)
	}
}

// remove removes a session from the map, and closes it when nobody uses it. The mutex
// is held.
func (m *mutexMap) remove(e *entry) {
	m.order.Remove(m.entries[e.key])
	delete(m.entries, e.key)
	e.dropped = true
	if e.users == 0 {
		m.finish(e)
	}
}

// finish closes a session in the background. The mutex is held.
func (m *mutexMap) finish(e *entry) {
	m.closing.Go(e.s.close)
}

func (m *mutexMap) drop(_ context.Context, key string) error {
	m.mu.Lock()
	if element := m.entries[key]; element != nil {
		m.remove(element.Value.(*entry))
	}
	m.mu.Unlock()
	m.closing.Wait()
	return nil
}

func (m *mutexMap) close() {
	m.mu.Lock()
	for m.order.Len() > 0 {
		m.remove(m.order.Front().Value.(*entry))
	}
	m.mu.Unlock()
	m.closing.Wait()
}

// dials returns how often the map tried to open a session.
func (m *mutexMap) dials() int64 { return m.opened.Load() }

package bench

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/singleflight"
)

// mutexMap is the design that everybody writes first, written with care: sessions
// in a map behind a mutex, each opened once by singleflight, the least recently used
// one closed when there are too many, and one that expired replaced. It has no
// deadlines of its own, no bound on calls, and no backoff; it holds the cap only
// roughly, and it repeats calls of which it does not know whether they have run.
type mutexMap struct {
	limit int
	open  func(ctx context.Context) (session, error)

	opening singleflight.Group
	closing sync.WaitGroup

	mu      sync.Mutex
	entries map[string]*list.Element
	order   list.List // of *kept, the least recently used first
}

// kept is a session in the map.
type kept struct {
	key   string
	s     session
	users int  // calls that run
	gone  bool // out of the map: the last user closes it
}

// openLimit bounds the opening of a session, whoever waits for it.
const openLimit = 30 * time.Second

func newMutexMap(limit int, open func(context.Context) (session, error)) *mutexMap {
	return &mutexMap{limit: limit, open: open, entries: map[string]*list.Element{}}
}

// call calls on the session of a key. A session that turns out to be gone is
// replaced, once.
func (m *mutexMap) call(ctx context.Context, key string) error {
	for again := true; ; again = false {
		k, err := m.acquire(ctx, key)
		if err != nil {
			return err
		}
		err = k.s.call(ctx)
		gone := errors.Is(err, mcp.ErrSessionMissing) || errors.Is(err, mcp.ErrConnectionClosed)
		m.release(k, gone)
		if !gone || !again {
			return err
		}
	}
}

// acquire returns the session of a key, in use.
func (m *mutexMap) acquire(ctx context.Context, key string) (*kept, error) {
	for {
		m.mu.Lock()
		if e := m.entries[key]; e != nil {
			k := e.Value.(*kept)
			k.users++
			m.order.MoveToBack(e)
			m.mu.Unlock()
			return k, nil
		}
		m.mu.Unlock()
		// Who gives up leaves the opening to the others.
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

// add opens a session and puts it into the map, and makes room for it.
func (m *mutexMap) add(key string) error {
	m.mu.Lock()
	there := m.entries[key] != nil // a flight that ended just before this one
	m.mu.Unlock()
	if there {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), openLimit)
	defer cancel()
	s, err := m.open(ctx)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.order.Len() >= m.limit {
		m.drop(m.order.Front().Value.(*kept))
	}
	m.entries[key] = m.order.PushBack(&kept{key: key, s: s})
	return nil
}

// release gives a session back, and takes it out of the map if it is gone.
func (m *mutexMap) release(k *kept, gone bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k.users--
	switch {
	case gone && !k.gone:
		m.drop(k)
	case k.gone && k.users == 0:
		m.finish(k)
	}
}

// drop takes a session out of the map, which closes it when nobody uses it. The
// mutex is held.
func (m *mutexMap) drop(k *kept) {
	m.order.Remove(m.entries[k.key])
	delete(m.entries, k.key)
	k.gone = true
	if k.users == 0 {
		m.finish(k)
	}
}

// finish closes a session in the background. The mutex is held.
func (m *mutexMap) finish(k *kept) {
	m.closing.Go(func() { k.s.close() }) //nolint:errcheck // nobody could do anything about it
}

// remove closes the session of a key.
func (m *mutexMap) remove(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.entries[key]; e != nil {
		m.drop(e.Value.(*kept))
	}
}

// close closes all sessions, and waits.
func (m *mutexMap) close() error {
	m.mu.Lock()
	for m.order.Len() > 0 {
		m.drop(m.order.Front().Value.(*kept))
	}
	m.mu.Unlock()
	m.closing.Wait()
	return nil
}

package login

import (
	"bytes"
	"context"
	"sync"
)

// Memory keeps logins in memory, for one process. The zero value has none.
type Memory struct {
	mu     sync.Mutex
	logins map[string]*remembered // never deleted
}

// remembered is what is kept under an id.
type remembered struct {
	turn chan struct{} // has a value while the login is claimed

	mu   sync.Mutex
	data []byte // read-only
}

var _ Store = (*Memory)(nil)

// of returns what is kept under an id.
func (m *Memory) of(id string) *remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.logins == nil {
		m.logins = map[string]*remembered{}
	}
	if m.logins[id] == nil {
		m.logins[id] = &remembered{turn: make(chan struct{}, 1)}
	}
	return m.logins[id]
}

// Load returns a copy of what is kept under an id, or nil.
func (m *Memory) Load(ctx context.Context, id string) ([]byte, error) { return m.of(id).Load(ctx) }

// Claim claims the login of an id. It waits for its turn until ctx ends.
func (m *Memory) Claim(ctx context.Context, id string) (Claim, error) {
	r := m.of(id)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case r.turn <- struct{}{}:
		return r, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (r *remembered) Load(ctx context.Context) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Clone(r.data), ctx.Err()
}

func (r *remembered) Save(ctx context.Context, data []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.data = bytes.Clone(data)
	return nil
}

func (r *remembered) Release() { <-r.turn }

package callbook

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// memory is the store of a book without one. Package resume has another, which this package does not need with all its files.
type memory struct {
	mu      sync.Mutex
	records map[messages.Key]*mcpbridge.Record // each is replaced, and never changed
}

// Load implements [mcpbridge.Swapper], as the other methods do.
func (m *memory) Load(_ context.Context, key messages.Key) (*mcpbridge.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.records[key], nil
}

func (m *memory) Save(_ context.Context, key messages.Key, record *mcpbridge.Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records[key] = record
	return nil
}

func (m *memory) Delete(_ context.Context, key messages.Key) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.records, key)
	return nil
}

func (m *memory) Keys(context.Context) ([]messages.Key, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.records)), nil
}

func (m *memory) Swap(_ context.Context, key messages.Key, from uint64, record *mcpbridge.Record) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var version uint64
	if known := m.records[key]; known != nil {
		version = known.Version
	}
	switch {
	case version != from:
		return false, nil
	case record == nil:
		delete(m.records, key)
	default:
		m.records[key] = record
	}
	return true, nil
}

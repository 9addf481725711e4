package resume

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mcpactor/mcpactor/internal/entry"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Memory is a store in memory. It keeps every record until it is deleted. The zero value is
// an empty store.
type Memory struct {
	mu      sync.Mutex
	entries map[messages.Key][]byte // by normal key
}

var _ mcpbridge.Store = (*Memory)(nil)

// Load returns a copy of the record of a key, or nil if there is none.
func (m *Memory) Load(ctx context.Context, key messages.Key) (*mcpbridge.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, entry.Failed(ctx, "load", key, err)
	}
	m.mu.Lock()
	value := m.entries[key.Normal()]
	m.mu.Unlock()
	if value == nil {
		return nil, nil
	}
	record, err := entry.Decode(value) // the bytes never change: Save replaces them
	return record, entry.Failed(ctx, "load", key, err)
}

// Save replaces the record of a key with a copy.
func (m *Memory) Save(ctx context.Context, key messages.Key, record *mcpbridge.Record) error {
	if err := ctx.Err(); err != nil {
		return entry.Failed(ctx, "save", key, err)
	}
	value, err := entry.Encode(record, time.Now())
	if err != nil {
		return entry.Failed(ctx, "save", key, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entries == nil {
		m.entries = map[messages.Key][]byte{}
	}
	m.entries[key.Normal()] = value
	return nil
}

// Delete deletes the record of a key, if there is one.
func (m *Memory) Delete(ctx context.Context, key messages.Key) error {
	if err := ctx.Err(); err != nil {
		return entry.Failed(ctx, "delete", key, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.entries, key.Normal())
	return nil
}

// Keys returns the keys that have records.
func (m *Memory) Keys(ctx context.Context) ([]messages.Key, error) {
	if err := ctx.Err(); err != nil {
		return nil, entry.FailedAll(ctx, "keys", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.entries)), nil
}

// String returns how many records there are, and nothing of them.
func (m *Memory) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprintf("%d records in memory", len(m.entries))
}

// Format writes String for every verb: the records are secret.
func (m *Memory) Format(s fmt.State, _ rune) { io.WriteString(s, m.String()) } //nolint:errcheck // fmt has nowhere to report it

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

var _ mcpbridge.Swapper = (*Memory)(nil)

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
	m.set(key, value)
	return nil
}

// Swap replaces the record of a key with a copy, if it is of the version from, and reports whether it was. It fails with
// [ErrGarbage] if the record in place cannot be read.
func (m *Memory) Swap(ctx context.Context, key messages.Key, from uint64, record *mcpbridge.Record) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, entry.Failed(ctx, "swap", key, err)
	}
	value, err := entry.EncodeSwap(record, from, time.Now())
	if err != nil {
		return false, entry.Failed(ctx, "swap", key, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	current, exists := m.entries[key.Normal()]
	is, err := entry.HasVersion(current, exists, from)
	switch {
	case is && value == nil:
		delete(m.entries, key.Normal())
	case is:
		m.set(key, value)
	}
	return is, entry.Failed(ctx, "swap", key, err)
}

// set keeps the entry of a key. The caller holds the lock.
func (m *Memory) set(key messages.Key, value []byte) {
	if m.entries == nil {
		m.entries = map[messages.Key][]byte{}
	}
	m.entries[key.Normal()] = value
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

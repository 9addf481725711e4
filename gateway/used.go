package gateway

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
	"time"

	"github.com/mcpactor/mcpactor/internal/recordkey"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// used remembers which tools of a server clients have called. It is kept with the lists, for later processes.
type used struct {
	store mcpbridge.Store
	key   messages.Key // of the record

	mu   sync.Mutex
	last map[string]time.Time // by the name of the tool for its server
}

const (
	// maxUsed bounds the tools of a server that are remembered.
	maxUsed = 100
	// usedFor is the time after which another call of a tool is written: what counts is which tools are in use.
	usedFor = time.Hour
)

func newUsed(store mcpbridge.Store, server, class string) *used {
	return &used{store: store, key: recordkey.List(server, "used "+class)}
}

// times returns when tools were last used. The map is a copy.
func (u *used) times() map[string]time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.recall()
	return maps.Clone(u.last)
}

// recall reads what earlier processes have kept, once. The caller holds the mutex.
func (u *used) recall() {
	if u.last == nil {
		u.last = map[string]time.Time{}
		u.load()
	}
}

// load adds what other processes have kept. The caller holds the mutex.
func (u *used) load() {
	ctx, cancel := context.WithTimeout(context.Background(), storePatience)
	defer cancel()
	if record, err := u.store.Load(ctx, u.key); err == nil && record != nil {
		var kept map[string]time.Time
		json.Unmarshal(record.List, &kept) //nolint:errcheck // then none are known
		for name, at := range kept {
			if at.After(u.last[name]) {
				u.last[name] = at
			}
		}
	}
}

// note notes that a tool was called.
func (u *used) note(tool string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.recall()
	now := time.Now()
	if now.Sub(u.last[tool]) < usedFor {
		return
	}
	u.load() // other processes may have written it
	u.last[tool] = now
	for len(u.last) > maxUsed {
		oldest := tool
		for name, at := range u.last {
			if at.Before(u.last[oldest]) {
				oldest = name
			}
		}
		delete(u.last, oldest)
	}
	data, err := json.Marshal(u.last)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), storePatience)
	defer cancel()
	u.store.Save(ctx, u.key, &mcpbridge.Record{List: data}) //nolint:errcheck // later clients find it then
}

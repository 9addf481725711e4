package bridge

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

const (
	// storePatience is how long a dial waits for what the store knows, and Close for what is being saved.
	storePatience = time.Second
	// storeTimeout bounds a request to the store.
	storeTimeout = 2 * time.Second
)

// record is where a store keeps what is known of a dialect. A nil record keeps nothing.
type record struct {
	store mcpbridge.Store
	key   messages.Key
	saves *saves
}

// saves counts what is being saved.
type saves struct {
	mu    sync.Mutex
	count int
	none  chan struct{} // closed when the count is 0; nil before the first
}

func (s *saves) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count++; s.count == 1 {
		s.none = make(chan struct{})
	}
}

func (s *saves) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count--; s.count == 0 {
		close(s.none)
	}
}

// await waits until nothing is being saved, unless the store takes too long.
func (s *saves) await() {
	s.mu.Lock()
	none := s.none
	s.mu.Unlock()
	if none == nil {
		return
	}
	select {
	case <-none:
	case <-time.After(storePatience):
	}
}

// recall waits for what an earlier process has found out, until ctx ends or the store takes too long.
func (d *dialect) recall(ctx context.Context, in *record) {
	if in == nil {
		return
	}
	patience := time.NewTimer(storePatience)
	defer patience.Stop()
	select {
	case <-d.recalling(ctx, in):
	case <-patience.C:
	case <-ctx.Done():
	}
}

// recalling asks the store, unless that was done, and returns a channel that is closed when the store has answered or failed.
func (d *dialect) recalling(ctx context.Context, in *record) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.recalled == nil {
		d.recalled = make(chan struct{})
		go d.load(context.WithoutCancel(ctx), in, d.recalled)
	}
	return d.recalled
}

// load asks the store. After an error, the next dial asks again.
func (d *dialect) load(ctx context.Context, in *record, recalled chan<- struct{}) {
	defer close(recalled)
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	found, err := guard.Call(func() (*mcpbridge.Record, error) { return in.store.Load(ctx, in.key) })
	d.mu.Lock()
	defer d.mu.Unlock()
	var known facts
	switch {
	case err != nil:
		d.recalled = nil
	case found == nil || json.Unmarshal(found.List, &known) != nil:
	default:
		d.saved = known
		if d.facts == (facts{}) { // a handshake may have found out more in the meantime
			d.facts = known
		}
	}
}

// remember saves what is known, in the background, if it spares a later process a start or a wait, or if that is no longer so.
func (d *dialect) remember(ctx context.Context, in *record) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if in != nil && !d.isSaving && d.hasNews() {
		d.isSaving = true
		in.saves.begin()
		go d.save(context.WithoutCancel(ctx), in, d.facts)
	}
}

// hasNews reports whether the store is to be told what is known.
func (d *dialect) hasNews() bool {
	now, before := d.facts, d.saved
	return now != before && (now.Costly || now.Late || before.Costly || before.Late)
}

// save saves facts, and then what was found out in the meantime. After an error, the next handshake tries again.
func (d *dialect) save(ctx context.Context, in *record, known facts) {
	_, err := guard.Call(func() (none struct{}, err error) {
		ctx, cancel := context.WithTimeout(ctx, storeTimeout)
		defer cancel()
		data, err := json.Marshal(known)
		if err != nil {
			return none, err
		}
		return none, in.store.Save(ctx, in.key, &mcpbridge.Record{List: data})
	})
	d.mu.Lock()
	d.isSaving = false
	if err == nil {
		d.saved = known
	}
	d.mu.Unlock()
	if err == nil {
		d.remember(ctx, in)
	}
	in.saves.end()
}

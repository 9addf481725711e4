package bridge

import (
	"context"
	"encoding/json"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// record is where a store keeps what is known of a dialect. A nil record keeps nothing.
type record struct {
	store mcpbridge.Store
	key   messages.Key
}

// recall waits for what an earlier process has found out, unless the store has said it before. After an error, the next dial
// asks again.
func (d *dialect) recall(ctx context.Context, in *record) {
	if in == nil || d.recalled.Load() {
		return
	}
	select {
	case <-d.requests.DoChan("load", func() (any, error) { return nil, d.load(context.WithoutCancel(ctx), in) }):
	case <-ctx.Done():
	}
}

func (d *dialect) load(ctx context.Context, in *record) error {
	found, err := in.store.Load(ctx, in.key)
	if err != nil {
		return err
	}
	d.recalled.Store(true)
	var known facts
	if found == nil || json.Unmarshal(found.List, &known) != nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.saved = known
	if d.facts == (facts{}) { // a handshake may have found out more in the meantime
		d.facts = known
	}
	return nil
}

// remember saves what is known, if it spares a later process a start or a wait, or if that is no longer so. After an error, the
// next handshake tries again.
func (d *dialect) remember(ctx context.Context, in *record) {
	for in != nil && d.hasNews() { // something may be found out during a save
		_, err, _ := d.requests.Do("save", func() (any, error) { return nil, d.save(ctx, in) })
		if err != nil {
			return
		}
	}
}

// hasNews reports whether the store is to be told what is known.
func (d *dialect) hasNews() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	now, before := d.facts, d.saved
	return now != before && (now.Costly || now.Late || before.Costly || before.Late)
}

func (d *dialect) save(ctx context.Context, in *record) error {
	d.mu.Lock()
	known := d.facts
	d.mu.Unlock()
	data, err := json.Marshal(known)
	if err == nil {
		err = in.store.Save(ctx, in.key, &mcpbridge.Record{List: data})
	}
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.saved = known
	return nil
}

package registry

import (
	"context"
	"errors"
	"slices"

	"github.com/mcpactor/mcpactor/internal/recordkey"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Each supervisor has a store of its own, which leads to the same records: it lists the keys of the supervisor, and
// writes nothing while that is fenced. Requests may take time, and fail.

// ask begins a request.
func (p *supervisor) ask(ctx context.Context, what string, key messages.Key) error {
	w := &p.s.world
	p.work(ctx, what, nil)
	if w.slowStore && !w.healed && w.s.Rarely(2, 4) == 1 {
		p.work(ctx, "slow "+what, func() bool { return ctx.Err() != nil || w.healed })
	}
	if w.fault(2, w.rate) == 1 || ctx.Err() != nil {
		w.failed[key] = true
		w.excuse("the store has failed", func(of *served) bool {
			return (of.by != p || w.isKept(of)) && (key == (messages.Key{}) || of.key == key)
		})
		return errors.New("the store has failed")
	}
	return nil
}

// Load returns a copy of the record of a key.
func (p *supervisor) Load(ctx context.Context, key messages.Key) (*mcpbridge.Record, error) {
	if err := p.ask(ctx, "load of "+key.String(), key); err != nil {
		return nil, err
	}
	if p.s.stored[key] == nil {
		return nil, nil
	}
	record := *p.s.stored[key]
	return &record, nil
}

// Save replaces the record of a key.
func (p *supervisor) Save(ctx context.Context, key messages.Key, record *mcpbridge.Record) error {
	err := p.ask(ctx, "save of "+key.String(), key)
	switch before := p.s.stored[key]; {
	case err != nil:
		return err
	case before != nil && before.Generation > record.Generation && !p.s.failed[key]:
		p.s.violate("a record is outdated", "%s: generation %d replaces %d", key, record.Generation, before.Generation)
	case !p.s.owns(p, key) && p.s.owners.moving[key.Scope] != p && record.SessionID != "" && !recordkey.IsList(key) && !p.s.meddledWith[key]:
		p.s.violate("a record of another process", "%s saves a session of %s", p.name, key)
	}
	p.s.stored[key] = record
	return nil
}

// Delete is not called.
func (p *supervisor) Delete(context.Context, messages.Key) error { return errors.New("is not called") }

// Keys returns the keys of the supervisor.
func (p *supervisor) Keys(ctx context.Context) (keys []messages.Key, err error) {
	if err := p.ask(ctx, "list of the store", messages.Key{}); err != nil {
		return nil, err
	}
	for key := range p.s.stored {
		if p.s.owns(p, key) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, messages.Key.Compare)
	return keys, nil
}

package registry

import (
	"context"
	"slices"
	"time"
	"github.com/mcpactor/mcpactor/actors/internal/catalogue"
	"github.com/mcpactor/mcpactor/actors/internal/closing"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// storeListed brings the keys that have a record in the store.
type storeListed struct {
	of   *closing.Command
	keys []messages.Key
}

// listStore asks the store for its keys that match a close command.
func (r *registry) listStore(closes *closing.Command) {
	cfg, match := r.cfg, closes.Match
	r.pending++
	cfg.Async(r.mailbox, func() any {
		var keys []messages.Key
		contract.KeyStore{Cfg: cfg}.Try("list", func(ctx context.Context) error {
			all, err := cfg.Store.Keys(ctx)
			if err == nil {
				keys = slices.DeleteFunc(all, func(key messages.Key) bool {
					return !match(key) || mcpbridge.IsListKey(key) || mcpbridge.IsCallKey(key)
				})
			}
			return err
		})
		return &storeListed{closes, keys}
	})
}

// onStoreListed continues the close command.
func (r *registry) onStoreListed(msg *storeListed) {
	r.pending--
	r.closings.Listed(msg.of, msg.keys)
	r.continueClose(msg.of)
	r.stopIfEmpty()
}

// sweepEvery is how often the store is asked for durable calls that nobody asks for any more, as long as there are durable
// calls.
const sweepEvery = time.Hour

// sweepCalls deletes from the store the durable calls that are outdated, also those of processes that have died.
func (r *registry) sweepCalls(now time.Time) {
	if r.cfg.Store == nil || r.table.Stopping || now.Before(r.nextSweep) {
		return
	}
	r.nextSweep = now.Add(sweepEvery)
	cfg := r.cfg
	r.pending++
	cfg.Async(r.mailbox, func() any {
		var keys []messages.Key
		contract.KeyStore{Cfg: cfg}.Try("list calls", func(ctx context.Context) (err error) {
			keys, err = cfg.Store.Keys(ctx)
			return err
		})
		for _, key := range keys {
			if store := (contract.KeyStore{Cfg: cfg, Key: key}); mcpbridge.IsCallKey(key) && contract.IsOutdated(store.Load(), now) {
				store.Try("delete a call", func(ctx context.Context) error { return cfg.Store.Delete(ctx, key) })
			}
		}
		return &callsSwept{}
	})
}

// callsSwept says that outdated calls are deleted.
type callsSwept struct{}

// listSaved says that a list is in the store.
type listSaved struct{}

// saveList saves a list that scopes share.
func (r *registry) saveList(of *catalogue.Listing, list *catalogue.List) {
	if r.cfg.Store == nil || r.table.Stopping {
		return
	}
	cfg, key := r.cfg, of.ListKey()
	r.pending++
	cfg.Async(r.mailbox, func() any {
		contract.KeyStore{Cfg: cfg, Key: key}.Try("save a list", func(ctx context.Context) error {
			data, err := list.Encode()
			if err != nil {
				return err
			}
			return cfg.Store.Save(ctx, key, &mcpbridge.Record{List: data})
		})
		return &listSaved{}
	})
}

// loadList returns a list that was saved, or nil. It may block.
func loadList(cfg *contract.Config, of *catalogue.Listing) *catalogue.List {
	record := contract.KeyStore{Cfg: cfg, Key: of.ListKey()}.Load()
	if record == nil || len(record.List) == 0 {
		return nil
	}
	return catalogue.Decode(of.Method(), record.List)
}

// onListSaved notes that a list is in the store.
func (r *registry) onListSaved() {
	r.pending--
	r.stopIfEmpty()
}

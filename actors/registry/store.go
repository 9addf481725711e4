package registry

import (
	"context"
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/internal/recordkey"
	"github.com/mcpactor/mcpactor/messages"
)

// returned brings what follows from work that was done in another goroutine.
type returned struct{ then func() }

// await runs work in another goroutine, and what that returns in the registry, which does not stop before.
func (r *registry) await(work func() (then func())) {
	r.pending++
	r.cfg.Async(r.mailbox, func() any { return &returned{work()} })
}

// onReturned does what follows from work that was done.
func (r *registry) onReturned(msg *returned) {
	r.pending--
	msg.then()
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
	r.await(func() (then func()) {
		var keys []messages.Key
		contract.KeyStore{Cfg: r.cfg}.Try("list calls", func(ctx context.Context) (err error) {
			keys, err = r.cfg.Store.Keys(ctx)
			return err
		})
		for _, key := range keys {
			if store := (contract.KeyStore{Cfg: r.cfg, Key: key}); recordkey.IsCall(key) && contract.IsOutdated(store.Load(), now) {
				store.Try("delete a call", func(ctx context.Context) error { return r.cfg.Store.Delete(ctx, key) })
			}
		}
		return func() {}
	})
}

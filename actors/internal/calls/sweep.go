package calls

import (
	"context"
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/jobs"
	"github.com/mcpactor/mcpactor/internal/recordkey"
	"github.com/mcpactor/mcpactor/messages"
)

// sweepEvery is how often the store is asked for durable calls that nobody asks for any more, as long as there are durable
// calls.
const sweepEvery = time.Hour

// sweeper deletes outdated durable calls from the store.
type sweeper struct {
	cfg  *contract.Config
	jobs *jobs.Jobs
	next time.Time
}

// sweep deletes from the store the durable calls that are outdated, also those of processes that have died.
func (s *sweeper) sweep(now time.Time) {
	if s.cfg.Store == nil || now.Before(s.next) {
		return
	}
	s.next = now.Add(sweepEvery)
	s.jobs.Await(func() (then func()) {
		var keys []messages.Key
		contract.KeyStore{Cfg: s.cfg}.Try("list calls", func(ctx context.Context) (err error) {
			keys, err = s.cfg.Store.Keys(ctx)
			return err
		})
		for _, key := range keys {
			if store := (contract.KeyStore{Cfg: s.cfg, Key: key}); recordkey.IsCall(key) && contract.IsOutdated(store.Load(), now) {
				store.Try("delete a call", func(ctx context.Context) error { return s.cfg.Store.Delete(ctx, key) })
			}
		}
		return func() {}
	})
}

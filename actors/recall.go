package actors

import (
	"context"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// recall is what a session remembers across restarts of our own process, in the
// store that the user gave; without one, nothing. Its methods may block. What goes
// wrong with the store is logged, and no reason not to serve.
type recall struct {
	cfg *Config
	key messages.Key
}

// load returns the record of the key, or nil. It may have a generation only.
func (r recall) load() (known *mcpbridge.Record) {
	r.try("load", func(ctx context.Context) (err error) {
		known, err = r.cfg.Store.Load(ctx, r.key)
		return err
	})
	return known
}

// save remembers a session, as far as it can be resumed, and its generation.
func (r recall) save(conn mcpbridge.Conn, generation uint64) {
	record := &mcpbridge.Record{Generation: generation}
	if resume := conn.Resume(); resume != nil {
		record.Resume = *resume
	}
	r.try("save", func(ctx context.Context) error { return r.cfg.Store.Save(ctx, r.key, record) })
}

// forget forgets a session that has ended, and not its generation: it must not be used
// for another session as long as the store is kept.
func (r recall) forget(generation uint64) {
	record := &mcpbridge.Record{Generation: generation}
	r.try("save", func(ctx context.Context) error { return r.cfg.Store.Save(ctx, r.key, record) })
}

func (r recall) try(what string, f func(context.Context) error) {
	if r.cfg.Store == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.cfg.CloseTimeout)
	defer cancel()
	began := time.Now()
	if err := attempt(ctx, "the store", f); err != nil {
		r.cfg.Logger.Warn().Str("server", r.key.Server).Str("scope", r.key.Scope).
			Stringer("elapsed", time.Since(began)).Err(err).Msg("store failed to " + what)
	}
}

// remembered are the keys that the store has records of.
type remembered struct {
	of   *tally
	keys []messages.Key
}

// list asks the store which of the keys that a close command is about it knows.
func (r *registry) list(c actor.Context, t *tally) {
	cfg, match := r.cfg, t.match
	r.pending++
	cfg.work(c, func() any {
		var keys []messages.Key
		recall{cfg: cfg}.try("list", func(ctx context.Context) error {
			all, err := cfg.Store.Keys(ctx)
			if err == nil {
				keys = slices.DeleteFunc(all, func(key messages.Key) bool { return !match(key) })
			}
			return err
		})
		return &remembered{t, keys}
	})
}

// onRemembered goes on with the close command.
func (r *registry) onRemembered(c actor.Context, msg *remembered) {
	r.pending--
	if !msg.of.over {
		msg.of.listing, msg.of.remembered = false, msg.keys
		r.close(c, msg.of)
	}
	r.stopIfEmpty(c)
}

package actors

import (
	"context"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// recall is what a session remembers across restarts of our own process, in the
// store that the user gave; without one, nothing. Its methods may block. What goes
// wrong with the store is logged, and no reason not to serve.
type keyStore struct {
	cfg *Config
	key messages.Key
}

// load returns the record of the key, or nil. It may have a generation only.
func (r keyStore) load() (known *mcpbridge.Record) {
	r.try("load", func(ctx context.Context) (err error) {
		known, err = r.cfg.Store.Load(ctx, r.key)
		return err
	})
	return known
}

// save remembers a session, as far as it can be resumed, and its generation.
func (r keyStore) saveSession(conn mcpbridge.Conn, generation uint64) {
	record := &mcpbridge.Record{Generation: generation}
	if resume := conn.Resume(); resume != nil {
		record.Resume = *resume
	}
	r.try("save", func(ctx context.Context) error { return r.cfg.Store.Save(ctx, r.key, record) })
}

// forget forgets a session that has ended, and not its generation: it must not be used
// for another session as long as the store is kept.
func (r keyStore) saveGeneration(generation uint64) {
	record := &mcpbridge.Record{Generation: generation}
	r.try("save", func(ctx context.Context) error { return r.cfg.Store.Save(ctx, r.key, record) })
}

func (r keyStore) try(what string, f func(context.Context) error) {
	if r.cfg.Store == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.cfg.CloseTimeout)
	defer cancel()
	began := time.Now()
	if err := runWithin(ctx, "the store", f); err != nil {
		r.cfg.Logger.Warn().Str("server", r.key.Server).Str("scope", r.key.Scope).
			Stringer("elapsed", time.Since(began)).Err(err).Msg("store failed to " + what)
	}
}

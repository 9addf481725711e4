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
type recall struct {
	cfg *Config
	key messages.Key
}

// load returns the record of the session, or nil.
func (r recall) load() (known *mcpbridge.Record) {
	r.try("load", func(ctx context.Context) (err error) {
		known, err = r.cfg.Store.Load(ctx, r.key)
		return err
	})
	if known == nil || !known.Valid() {
		return nil
	}
	return known
}

// save remembers a session, or that there is none that could be resumed.
func (r recall) save(conn mcpbridge.Conn, generation uint64) {
	resume := conn.Resume()
	if resume == nil {
		r.forget()
		return
	}
	record := &mcpbridge.Record{Resume: *resume, Generation: generation}
	r.try("save", func(ctx context.Context) error { return r.cfg.Store.Save(ctx, r.key, record) })
}

// forget forgets the session.
func (r recall) forget() {
	r.try("delete", func(ctx context.Context) error { return r.cfg.Store.Delete(ctx, r.key) })
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
			Dur("elapsed", time.Since(began)).Err(err).Msg("store failed to " + what)
	}
}

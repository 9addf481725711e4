package actors

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// keyStore reads and writes the records of one key in the store of the configuration, if
// there is one. Errors of the store are logged, and otherwise ignored. Its methods may
// block, as long as package storelimit lets them.
type keyStore struct {
	cfg *Config
	key messages.Key
}

// load returns the record of the key, or nil. The record may have a generation only.
func (s keyStore) load() (known *mcpbridge.Record) {
	s.try("load", func(ctx context.Context) (err error) {
		known, err = s.cfg.Store.Load(ctx, s.key)
		return err
	})
	return known
}

// saveSession saves what is needed to resume an MCP session, and its generation.
func (s keyStore) saveSession(conn mcpbridge.Conn, generation uint64) {
	record := &mcpbridge.Record{Generation: generation}
	if resume := conn.Resume(); resume != nil {
		record.Resume = *resume
	}
	s.try("save", func(ctx context.Context) error { return s.cfg.Store.Save(ctx, s.key, record) })
}

// saveGeneration saves the generation of an MCP session that was closed, so that no later
// MCP session gets the same generation. If another process has opened a later one meanwhile, its
// record stays.
func (s keyStore) saveGeneration(generation uint64) {
	if s.cfg.Store == nil {
		return
	}
	if known := s.load(); known != nil && known.Generation > generation {
		return
	}
	record := &mcpbridge.Record{Generation: generation}
	s.try("save", func(ctx context.Context) error { return s.cfg.Store.Save(ctx, s.key, record) })
}

// try runs a request to the store, and logs its error.
func (s keyStore) try(what string, f func(context.Context) error) {
	if s.cfg.Store == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.CloseTimeout)
	defer cancel()
	began := time.Now()
	err := f(ctx)
	if err == nil {
		return
	}
	line := span(about(s.cfg.Logger.Warn(), s.key, 0), "elapsed", time.Since(began))
	var panicked *guard.Panic
	if errors.As(err, &panicked) {
		line.Bytes("stack", panicked.Stack)
		err = fmt.Errorf("panic: %T", panicked.Value) // the value may be a record
	}
	line.Err(err).Msg("store failed to " + what)
}

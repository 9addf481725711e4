package contract

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// KeyStore reads and writes the records of one key in the store of the configuration, if
// there is one. Errors of the store are logged, at the level debug if it is Quiet, and otherwise ignored. Its methods may
// block, as long as package storelimit lets them.
type KeyStore struct {
	Cfg *Config
	Key messages.Key
	// Life ends when the session of the key is closed, or does not close in time. Nothing that was given up, such as a
	// call that the store has held up, uses the store after that: the key may belong to another member of the cluster.
	// It is nil outside of sessions.
	Life  context.Context
	Quiet bool
}

// ErrLifeOver is the cause with which [KeyStore].Life ends. A dial that ends with this cause does not close its connection,
// unlike one that is given up: a session that has moved may have left its MCP session open for another member.
var ErrLifeOver = errors.New("the session is closed")

// Load returns the record of the key, or nil. The record may have a generation only.
func (s KeyStore) Load() *mcpbridge.Record {
	known, _ := s.load()
	return known
}

// load loads the record of the key, and reports whether the store has answered.
func (s KeyStore) load() (known *mcpbridge.Record, answered bool) {
	answered = s.Try("load", func(ctx context.Context) (err error) {
		known, err = s.Cfg.Store.Load(ctx, s.Key)
		return err
	})
	return known, answered
}

// SaveSession saves what is needed to resume an MCP session, and its generation. It reports whether the store has them.
func (s KeyStore) SaveSession(conn dial.Conn, generation uint64) (saved bool) {
	record := &mcpbridge.Record{Generation: generation}
	if resume := conn.Resume(); resume != nil {
		record.Resume = *resume
	}
	return s.save(record)
}

// SaveLater does what SaveSession does for an MCP session that the store did not take when it was opened.
func (s KeyStore) SaveLater(conn dial.Conn, generation uint64) (saved bool) {
	s.Quiet = true // the error was logged
	known, answered := s.load()
	if known != nil { // it could not be loaded then
		generation = max(generation, known.Generation)
	}
	return answered && s.SaveSession(conn, generation)
}

// SaveGeneration saves the generation of an MCP session that was closed, so that no later
// MCP session gets the same generation. If another process has opened a later one meanwhile, its
// record stays.
func (s KeyStore) SaveGeneration(generation uint64) {
	if known := s.Load(); known == nil || known.Generation <= generation {
		s.save(&mcpbridge.Record{Generation: generation})
	}
}

// Forget does what SaveGeneration does, if the store still has this MCP session. It may have another one, also with a lower
// generation: a session that had not ended when the record was loaded may have been left open since.
func (s KeyStore) Forget(sessionID string, generation uint64) {
	if known := s.Load(); known != nil && known.SessionID == sessionID {
		s.save(&mcpbridge.Record{Generation: max(generation, known.Generation)})
	}
}

// save saves a record, and reports whether the store has it.
func (s KeyStore) save(record *mcpbridge.Record) (saved bool) {
	return s.Try("save", func(ctx context.Context) error { return s.Cfg.Store.Save(ctx, s.Key, record) })
}

// Try runs a request to the store, and logs its error. It reports whether the request has succeeded.
func (s KeyStore) Try(what string, f func(context.Context) error) (done bool) {
	if s.Cfg.Store == nil {
		return false
	}
	life := s.Life
	if life == nil {
		life = context.Background()
	}
	ctx, cancel := context.WithTimeout(life, s.Cfg.CloseTimeout)
	defer cancel()
	began := time.Now()
	err := ctx.Err()
	if err == nil {
		err = f(ctx)
	}
	if err == nil {
		return true
	}
	level := zerolog.WarnLevel
	if s.Quiet {
		level = zerolog.DebugLevel
	}
	line := Span(About(s.Cfg.Logger.WithLevel(level), s.Key, 0), "elapsed", time.Since(began))
	var panicked *guard.Panic
	if errors.As(err, &panicked) {
		line.Bytes("stack", panicked.Stack)
		err = fmt.Errorf("panic: %T", panicked.Value) // the value may be a record
	}
	line.Err(err).Msg("store failed to " + what)
	return false
}

package callbook

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/recordkey"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Book has the records of calls: in a store, or else in memory. Its methods may be called from any goroutine, and may block as
// long as package storelimit lets them.
type Book struct {
	cfg     Config
	store   mcpbridge.Swapper
	process string

	life     context.Context // until Close
	end      context.CancelFunc
	sweeping sync.WaitGroup

	mu        sync.Mutex
	entries   map[messages.Key]*Entry // that somebody works on
	sweeps    bool
	legacy    legacy
	proposed  proposed
	recountAt time.Time
	sent      []messages.Key // without a store, the oldest first
}

// Config is the configuration of a book.
type Config struct {
	// Store keeps the records, or is nil. It bounds how long it is waited for.
	Store mcpbridge.Store
	// Grace is how long after its deadline a call has to return.
	Grace time.Duration
	// KeepResults is how long results are kept, and MaxResult bounds their size in bytes. 0 keeps none.
	KeepResults time.Duration
	MaxResult   int
	// Resolve finds out what became of a call, or is nil.
	Resolve func(ctx context.Context, op *messages.CallTool) (messages.Resolution, *mcp.CallToolResult, error)
	// Warn logs what is wrong with the record of a call, or with the store if call is empty.
	Warn func(call string, err error)
}

// New returns a book.
func New(cfg Config) *Book {
	b := &Book{cfg: cfg, process: rand.Text(), entries: map[messages.Key]*Entry{}, legacy: legacy{turn: newTurn()}, proposed: proposed{map[messages.Key]bool{}, map[string]int{}}}
	b.life, b.end = context.WithCancel(context.Background())
	if cfg.Store == nil {
		b.store = &memory{records: map[messages.Key]*mcpbridge.Record{}}
		return b
	}
	b.store = swapperOf(cfg.Store, sync.OnceFunc(func() { cfg.Warn("", errAlone) }))
	return b
}

// IsKept reports whether the records outlive the process.
func (b *Book) IsKept() bool { return b.cfg.Store != nil }

var (
	// errMoved is the error of a call that somebody else has sent or cancelled meanwhile.
	errMoved = errors.New("another one has sent or cancelled the call meanwhile")
	// errContended is the error of a record that others change all the time.
	errContended = errors.New("the record of the call is changed by others all the time")
	// errAlone says that a store cannot compare.
	errAlone = errors.New("the store is no mcpbridge.Swapper: no other process may use it for calls")
	// errUnreadable is the error of a record that is none of this package.
	errUnreadable = errors.New("what the store has of the call cannot be read")
)

// KeyOf returns the key of the record of a call, which is found by its scope and its id.
func KeyOf(scope, id string) messages.Key {
	return recordkey.Call(messages.Key{Scope: scope}.Normal().Scope, id)
}

// load returns the record of a key, which is zero if there is none. That ctx ends says nothing of the store, so it does not end
// requests to it.
func (b *Book) load(ctx context.Context, key messages.Key) (Record, uint64, error) {
	kept, err := b.store.Load(context.WithoutCancel(ctx), key)
	if err != nil {
		return Record{}, 0, err
	}
	return decode(kept, time.Now())
}

// kept returns a result as it is kept, and until when. It is nil if it is not kept.
func (b *Book) kept(result *messages.ToolResult) (raw json.RawMessage, until time.Time) {
	if b.cfg.KeepResults == 0 || result == nil {
		return nil, time.Time{}
	}
	raw, err := json.Marshal(result.Result)
	if err != nil || len(raw) > b.cfg.MaxResult {
		return nil, time.Time{}
	}
	return raw, time.Now().Add(b.cfg.KeepResults)
}

// isOf reports whether the author of a record is of a process.
func isOf(by, process string) bool { return strings.HasPrefix(by, process+" ") }

// enter returns the entry of a call when nobody else in this process works on the call.
func (b *Book) enter(ctx context.Context, op *messages.CallTool, call string) (*Entry, error) {
	e := &Entry{
		book: b, key: KeyOf(op.Key.Scope, op.ID), call: call, op: op, token: rand.Text(), me: b.process + " " + rand.Text(),
		over: make(chan struct{}), users: 1, turn: newTurn(),
	}
	for {
		b.mu.Lock()
		other := b.entries[e.key]
		if other == nil {
			b.entries[e.key] = e
		}
		b.mu.Unlock()
		if other == nil {
			return e, nil
		}
		select {
		case <-other.over:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Find returns the record of a key, and nil if there is none.
func (b *Book) Find(ctx context.Context, key messages.Key) (*Record, error) {
	r, _, err := b.load(ctx, key)
	if err != nil || r.State == None {
		return nil, err
	}
	return &r, nil
}

// Change changes the record of a key, as next says about the one that there is: a zero one if there is none. It returns the record that there is then, and
// whether next wanted it.
func (b *Book) Change(ctx context.Context, key messages.Key, next func(Record) (Record, bool)) (now Record, changed bool, err error) {
	e := &Entry{book: b, key: key, turn: newTurn()}
	if err := e.load(ctx); err != nil {
		return Record{}, false, err
	}
	changed, err = e.change(ctx, next)
	return e.known, changed, err
}

// Waiting calls a function with the record of each call that waits for an answer.
func (b *Book) Waiting(ctx context.Context, each func(Record)) error {
	keys, err := b.store.Keys(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	for _, key := range keys {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !recordkey.IsCall(key) || recordkey.IsOldCall(key) {
			continue
		}
		switch r, err := b.Find(ctx, key); {
		case errors.Is(err, errUnreadable):
			b.cfg.Warn(key.Scope, err)
		case err != nil:
			return err
		case r != nil && r.State == Proposed:
			each(*r)
		}
	}
	return nil
}

// Close ends what the book does in the background. Its methods still work.
func (b *Book) Close() {
	b.mu.Lock()
	b.end()
	b.mu.Unlock()
	b.sweeping.Wait()
}

// sweepEvery is how often outdated records are looked for, once there were calls.
const sweepEvery = time.Hour

// sweepFromNowOn sweeps in the background, at once and then each hour, until Close.
func (b *Book) sweepFromNowOn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sweeps || b.life.Err() != nil {
		return
	}
	b.sweeps = true
	b.sweeping.Go(func() {
		for {
			if err := b.sweep(b.life); err != nil && b.life.Err() == nil {
				b.cfg.Warn("", fmt.Errorf("outdated calls were not deleted: %w", err))
			}
			timer := time.NewTimer(sweepEvery)
			select {
			case <-timer.C:
			case <-b.life.Done():
				timer.Stop()
				return
			}
		}
	})
}

// sweep deletes the records that nobody asks for any more, also those of processes that have died, and the results that are
// kept no longer.
func (b *Book) sweep(ctx context.Context) error {
	keys, err := b.store.Keys(ctx)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if !recordkey.IsCall(key) {
			continue
		}
		kept, err := b.store.Load(ctx, key)
		var r Record
		if err != nil || kept == nil || json.Unmarshal(kept.Call, &r) != nil {
			continue // it is gone, or is none that can be read
		}
		now := time.Now()
		if r.isOutdated(now) || r.Until.IsZero() && recordkey.IsOldCall(key) {
			_, err = b.store.Swap(ctx, key, kept.Version, nil) // not if somebody has used the id again
		} else if _, had := r.withoutSecrets(now); had {
			_, _, err = b.Change(ctx, key, func(r Record) (Record, bool) { return r.withoutSecrets(now) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// keptFailure returns a failure as it is kept: its words may quote arguments.
func (b *Book) keptFailure(f *messages.Failure) *messages.Failure {
	if b.cfg.KeepResults > 0 {
		return f
	}
	return &messages.Failure{Code: f.Code, Remedy: f.Remedy, MayHaveRun: f.MayHaveRun}
}

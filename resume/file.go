package resume

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/mcpactor/mcpactor/internal/entry"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// File is a store in a file, for one process at a time. Once Save has returned, the
// record survives a crash of the process and of the machine. Concurrent writes share a
// transaction: see [File.writer].
//
// After an operation has found damage, all further operations fail with [ErrDamaged].
type File struct {
	path    string
	cfg     Config
	db      *bbolt.DB
	file    *os.File // of db, to be closed if db cannot be
	damaged atomic.Bool

	commit  func([]*write) error // apply, except in tests
	writes  chan *write
	closing chan struct{}
	closed  func() error // runs once, for Close
}

var _ mcpbridge.Swapper = (*File)(nil)

// Open opens the store in a file, and creates the file if there is none; its directory must
// exist. It rejects a file that is not a store, or that others than its owner may use, and
// does not change it. It fails with [ErrLocked] if the file is in use for longer than about
// a second. Close the store after use.
func Open(path string, cfg Config) (*File, error) {
	f, err := open(path, cfg.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("resume: open %s: %w", path, err)
	}
	return f, nil
}

func open(path string, cfg Config) (*File, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if path == "" {
		return nil, errors.New("the path is empty")
	}
	if err := inspect(path, cfg.wait); err != nil {
		return nil, err
	}
	db, file, err := openDB(path, cfg.wait, false)
	if err != nil {
		return nil, err
	}
	f := &File{path: path, cfg: cfg, db: db, file: file, writes: make(chan *write), closing: make(chan struct{})}
	if err := f.guarded(f.prepare); err != nil {
		return nil, errors.Join(err, f.end())
	}
	f.commit = f.apply
	ended := make(chan error, 1)
	go func() {
		f.writer()
		ended <- f.end()
	}()
	f.closed = sync.OnceValue(func() error {
		close(f.closing)
		return <-ended
	})
	return f, nil
}

// prepare creates the bucket, and deletes records that are too old. It writes nothing
// if there is nothing to do.
func (f *File) prepare() error {
	var old [][]byte
	isNew := false
	limit := f.cfg.now().Add(-f.cfg.MaxAge)
	err := f.db.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucket)
		if isNew = b == nil; isNew || f.cfg.MaxAge == entry.Forever {
			return nil
		}
		return b.ForEach(func(key, value []byte) error {
			if entry.OlderThan(limit, value) {
				old = append(old, bytes.Clone(key))
			}
			return nil
		})
	})
	if err != nil || !isNew && len(old) == 0 {
		return err
	}
	return f.db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists(bucket)
		for i := 0; err == nil && i < len(old); i++ {
			err = b.Delete(old[i])
		}
		return err
	})
}

// Load returns the record of a key, or nil if there is none. It fails with [ErrGarbage]
// if the record cannot be read.
func (f *File) Load(ctx context.Context, key messages.Key) (*mcpbridge.Record, error) {
	if err := f.over(ctx); err != nil {
		return nil, entry.Failed(ctx, "load", key, err)
	}
	var value []byte
	err := f.guarded(func() error {
		return f.db.View(func(tx *bbolt.Tx) error {
			value = bytes.Clone(tx.Bucket(bucket).Get(keyBytes(key)))
			return nil
		})
	})
	switch {
	case errors.Is(err, berrors.ErrDatabaseNotOpen): // closed meanwhile
		return nil, entry.Failed(ctx, "load", key, ErrClosed)
	case err != nil:
		return nil, entry.Failed(ctx, "load", key, err)
	case value == nil:
		return nil, nil
	}
	record, err := entry.Decode(value)
	return record, entry.Failed(ctx, "load", key, err)
}

// Keys returns the keys that have records.
func (f *File) Keys(ctx context.Context) (keys []messages.Key, err error) {
	if err := f.over(ctx); err != nil {
		return nil, entry.FailedAll(ctx, "keys", err)
	}
	err = f.guarded(func() error {
		return f.db.View(func(tx *bbolt.Tx) error {
			return tx.Bucket(bucket).ForEach(func(k, _ []byte) error {
				if key, ok := keyOf(k); ok {
					keys = append(keys, key)
				}
				return nil
			})
		})
	})
	switch {
	case errors.Is(err, berrors.ErrDatabaseNotOpen): // closed meanwhile
		err = ErrClosed
		fallthrough
	case err != nil:
		return nil, entry.FailedAll(ctx, "keys", err)
	}
	return keys, nil
}

// Save replaces the record of a key. If ctx ends during the write, the record may be
// saved all the same; later operations on the key come after it.
func (f *File) Save(ctx context.Context, key messages.Key, record *mcpbridge.Record) error {
	value, err := entry.Encode(record, f.cfg.now())
	if err == nil {
		err = f.write(ctx, key, &write{value: value})
	}
	return entry.Failed(ctx, "save", key, err)
}

// Swap replaces the record of a key if it is of the version from, and reports whether it was. If ctx ends during the write,
// the record may be saved all the same. Swap fails with [ErrGarbage] if the record in place cannot be read.
func (f *File) Swap(ctx context.Context, key messages.Key, from uint64, record *mcpbridge.Record) (bool, error) {
	value, err := entry.EncodeSwap(record, from, f.cfg.now())
	if err == nil {
		err = f.write(ctx, key, &write{value: value, from: &from})
	}
	if errors.Is(err, errVersion) {
		return false, nil
	}
	return err == nil, entry.Failed(ctx, "swap", key, err)
}

// Delete deletes the record of a key, if there is one. If ctx ends during the write,
// the record may be deleted all the same.
func (f *File) Delete(ctx context.Context, key messages.Key) error {
	return entry.Failed(ctx, "delete", key, f.write(ctx, key, new(write)))
}

// Close closes the file. Writes that have begun are finished. Writes that wait, and all
// later operations, fail with [ErrClosed]. Further calls return what the first one
// returned.
func (f *File) Close() error { return f.closed() }

// String returns the path. It is safe after Close.
func (f *File) String() string { return "sessions in " + f.path }

// Format writes String for every verb: some verbs would print the records.
func (f *File) Format(s fmt.State, _ rune) { io.WriteString(s, f.String()) } //nolint:errcheck // fmt has nowhere to report it

// over returns the error of an operation that must not begin, or nil.
func (f *File) over(ctx context.Context) error {
	select {
	case <-f.closing:
		return ErrClosed
	default:
		return ctx.Err()
	}
}

// guarded is [guarded], but calls nothing after damage was found: after a panic bbolt may
// hold its own locks forever.
func (f *File) guarded(do func() error) error {
	if f.damaged.Load() {
		return ErrDamaged
	}
	err := guarded(do)
	if errors.Is(err, ErrDamaged) {
		f.damaged.Store(true)
	}
	return err
}

// end closes the file.
func (f *File) end() error { return release(f.db, f.file, f.damaged.Load()) }

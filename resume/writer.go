package resume

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/mcpactor/mcpactor/internal/entry"
	"github.com/mcpactor/mcpactor/messages"
)

// maxBatch bounds the writes that share a transaction.
const maxBatch = 256

// write is one change of one key.
type write struct {
	key   []byte
	value []byte     // nil: delete it
	from  *uint64    // the version that the record in place must have; nil: any
	done  chan error // buffered: the caller may no longer wait

	refused error // why the writer left it out of its batch
}

// errVersion is why a write is refused: the record in place has another version.
var errVersion = errors.New("the record has another version")

// write passes a change to the writer, and waits until it is written. The writer takes
// changes in the order in which they come.
func (f *File) write(ctx context.Context, key messages.Key, w *write) error {
	if err := f.over(ctx); err != nil {
		return err
	}
	w.key, w.done = keyBytes(key), make(chan error, 1)
	if len(w.key) > bbolt.MaxKeySize { // it would fail its whole transaction
		return fmt.Errorf("the key has %d bytes, at most %d are possible", len(w.key), bbolt.MaxKeySize)
	}
	select {
	case f.writes <- w:
	case <-f.closing:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// writer is the goroutine that writes, until the store is closed. All changes that
// wait when it is ready share the next transaction.
//
// The Batch method of bbolt cannot replace this. It runs the transaction in a goroutine of
// its own, where nothing recovers from a damaged page, so that damage would end the
// process. A single write also waits 10 ms there for others.
func (f *File) writer() {
	for {
		select {
		case <-f.closing:
			return
		case w := <-f.writes:
			batch := f.gather(w)
			err := f.commit(batch)
			for _, w := range batch {
				w.done <- cmp.Or(err, w.refused)
			}
		}
	}
}

// gather returns a write and the writes that wait after it.
func (f *File) gather(first *write) []*write {
	batch := []*write{first}
	for len(batch) < maxBatch {
		select {
		case w := <-f.writes:
			batch = append(batch, w)
		default:
			return batch
		}
	}
	return batch
}

// apply makes the changes of a batch, all or none, but for those that are refused.
func (f *File) apply(batch []*write) error {
	return f.guarded(func() error {
		return f.db.Update(func(tx *bbolt.Tx) error {
			b := tx.Bucket(bucket)
			for _, w := range batch {
				if err := w.apply(b); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// apply makes the change, unless it is refused. It sees the changes before it.
func (w *write) apply(b *bbolt.Bucket) error {
	if w.refused = w.check(b); w.refused != nil {
		return nil
	}
	if w.value == nil {
		return b.Delete(w.key)
	}
	return b.Put(w.key, w.value)
}

// check returns why the change is refused, or nil.
func (w *write) check(b *bbolt.Bucket) error {
	if w.from == nil {
		return nil
	}
	value := b.Get(w.key)
	is, err := entry.HasVersion(value, value != nil, *w.from)
	if err == nil && !is {
		err = errVersion
	}
	return err
}

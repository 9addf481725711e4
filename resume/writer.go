package resume

import (
	"context"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/mcpactor/mcpactor/messages"
)

// maxBatch bounds the writes that share a transaction.
const maxBatch = 256

// write is one change of one key.
type write struct {
	key   []byte
	value []byte     // nil: delete it
	done  chan error // buffered: the caller may no longer wait
}

// write passes a change to the writer, and waits until it is written. The writer takes
// changes in the order in which they come.
func (f *File) write(ctx context.Context, key messages.Key, value []byte) error {
	if err := f.over(ctx); err != nil {
		return err
	}
	w := &write{keyBytes(key), value, make(chan error, 1)}
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
				w.done <- err
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

// apply makes the changes of a batch, all or none.
func (f *File) apply(batch []*write) error {
	return f.guarded(func() error {
		return f.db.Update(func(tx *bbolt.Tx) error {
			b := tx.Bucket(bucket)
			for _, w := range batch {
				var err error
				if w.value == nil {
					err = b.Delete(w.key)
				} else {
					err = b.Put(w.key, w.value)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
}

package etcdstore

import (
	"cmp"
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// errUnclear is the error of a swap whose first attempt had no answer, and whose record was changed since.
var errUnclear = errors.New("etcd did not answer at first, and the record has changed since: load it")

// Swap replaces the record of a key if it is of the version from, and reports whether it was. If it returns an error, the record may
// be saved all the same. It fails with resume.ErrGarbage if the record in place cannot be read.
func (s *Store) Swap(ctx context.Context, key messages.Key, from uint64, record *mcpbridge.Record) (bool, error) {
	value, err := clusterapi.EncodeSwap(record, from, time.Now())
	if err != nil {
		return false, clusterapi.StoreFailed(ctx, "swap", key, err)
	}
	w := &swap{store: s, name: s.name(key), from: from, value: string(value)}
	err = s.do(ctx, w.attempt)
	return w.swapped, clusterapi.StoreFailed(ctx, "swap", key, cmp.Or(err, w.wrong))
}

// swap is one swap of a record, which may ask one server after the other.
type swap struct {
	store   *Store
	name    string
	from    uint64
	value   string
	unclear bool // a server may have saved the value, and has not said so

	swapped bool
	wrong   error // an error that is not of a server
}

// attempt reads the record until it has another version, or is replaced as it was read.
func (w *swap) attempt(ctx context.Context) error {
	for {
		got, err := w.store.client.Get(ctx, w.name)
		if err != nil {
			return err
		}
		var current []byte
		var revision int64 // zero: there is no record
		if len(got.Kvs) > 0 {
			current, revision = got.Kvs[0].Value, got.Kvs[0].ModRevision
		}
		if !w.goesOn(current, revision != 0) {
			return nil
		}
		if w.swapped, err = w.replace(ctx, revision); err != nil || w.swapped {
			return err
		}
	}
}

// goesOn reports whether the record may be replaced. If not, the swap is over.
func (w *swap) goesOn(current []byte, exists bool) (is bool) {
	if w.unclear && string(current) == w.value {
		w.swapped = true
		return false
	}
	if is, w.wrong = clusterapi.HasVersion(current, exists, w.from); w.unclear && !is {
		w.wrong = errUnclear
	}
	return is
}

// replace replaces the record if it is of a revision of etcd, and reports whether it was. An attempt that comes late, after one at
// another server, finds another revision.
func (w *swap) replace(ctx context.Context, revision int64) (done bool, err error) {
	is := clientv3.Compare(clientv3.ModRevision(w.name), "=", revision)
	do := func(op clientv3.Op) error {
		answer, err := w.store.client.Txn(ctx).If(is).Then(op).Commit()
		done = err == nil && answer.Succeeded
		return err
	}
	if w.value == "" {
		err = do(clientv3.OpDelete(w.name))
	} else {
		err = w.store.leases.put(ctx, w.name, w.value, do)
	}
	w.unclear = w.unclear || err != nil
	return done, err
}

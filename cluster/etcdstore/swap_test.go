package etcdstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mcpactor/mcpactor/cluster/internal/etcdclient"
	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// keyValues is an etcd with one name.
type keyValues struct {
	clientv3.KV
	value    string
	revision int64 // of the value; zero: there is none
	next     int64
	commit   func(transact func() bool) (succeeded bool, err error)
}

func (s *keyValues) set(value string) {
	s.next++
	s.value, s.revision = value, s.next
}

func (s *keyValues) Get(context.Context, string, ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if s.revision == 0 {
		return new(clientv3.GetResponse), nil
	}
	return &clientv3.GetResponse{Kvs: []*mvccpb.KeyValue{{Value: []byte(s.value), ModRevision: s.revision}}}, nil
}

func (s *keyValues) Txn(context.Context) clientv3.Txn { return &transaction{s: s} }

// transaction is a put if the value has a revision.
type transaction struct {
	s        *keyValues
	revision int64
	put      string
}

func (t *transaction) If(is ...clientv3.Cmp) clientv3.Txn {
	t.revision = is[0].GetCompare().GetModRevision()
	return t
}

func (t *transaction) Then(ops ...clientv3.Op) clientv3.Txn {
	t.put = string(ops[0].ValueBytes())
	return t
}

func (t *transaction) Else(...clientv3.Op) clientv3.Txn { return t }

func (t *transaction) Commit() (*clientv3.TxnResponse, error) {
	succeeded, err := t.s.commit(func() bool {
		if t.s.revision != t.revision {
			return false
		}
		t.s.set(t.put)
		return true
	})
	return &clientv3.TxnResponse{Succeeded: succeeded}, err
}

// An attempt at a server that does not answer may have saved the record, or save it while the next server is asked.
func TestSwapKnowsItsFirstAttempt(t *testing.T) {
	entryOf := func(version, generation uint64) string {
		value, err := clusterapi.EncodeRecord(&mcpbridge.Record{Version: version, Generation: generation}, time.Now())
		require.NoError(t, err)
		return string(value)
	}
	for name, c := range map[string]struct {
		applied   bool // the first attempt
		meanwhile func(etcd *keyValues)
		late      bool // the first attempt is applied after the second one has read
		swapped   bool
		wrong     error
	}{
		"saved":             {applied: true, swapped: true},
		"not saved":         {swapped: true},
		"saved late":        {late: true, swapped: true},
		"saved and changed": {applied: true, meanwhile: func(etcd *keyValues) { etcd.set(entryOf(9, 1)) }, wrong: errUnclear},
		"saved and deleted": {applied: true, meanwhile: func(etcd *keyValues) { etcd.revision = 0 }, wrong: errUnclear},
		"saved and damaged": {applied: true, meanwhile: func(etcd *keyValues) { etcd.set("garbage") }, wrong: errUnclear},
		"another one":       {meanwhile: func(etcd *keyValues) { etcd.set(entryOf(8, 1)) }, wrong: errUnclear},
		"saved anew":        {meanwhile: func(etcd *keyValues) { etcd.set(entryOf(7, 1)) }, swapped: true},
	} {
		t.Run(name, func(t *testing.T) {
			etcd := new(keyValues)
			etcd.set(entryOf(7, 0))
			client := clientv3.NewCtxClient(t.Context())
			client.KV = etcd
			s := &Store{client: etcdclient.Of(client), leases: newLeases(client, clusterapi.Forever)}
			w := &swap{store: s, name: "/a/b", from: 7, value: entryOf(8, 0)}
			silent := errors.New("no answer")
			var first func() bool
			etcd.commit = func(transact func() bool) (bool, error) {
				if first = transact; c.applied {
					transact()
				}
				return false, silent
			}
			require.Equal(t, silent, w.attempt(t.Context()))
			require.False(t, w.swapped)
			if c.meanwhile != nil {
				c.meanwhile(etcd)
			}
			etcd.commit = func(transact func() bool) (bool, error) {
				if c.late {
					first()
				}
				succeeded := transact()
				require.False(t, first(), "it comes too late")
				return succeeded, nil
			}
			require.NoError(t, w.attempt(t.Context()))
			require.Equal(t, c.swapped, w.swapped)
			require.Equal(t, c.wrong, w.wrong)
			if c.swapped {
				require.Equal(t, w.value, etcd.value)
			}
		})
	}
}

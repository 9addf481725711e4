package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/mcpactor/mcpactor/cluster/internal/etcdclient"
	"github.com/mcpactor/mcpactor/cluster/internal/view"
)

// memory is etcd with what a witness uses of it.
type memory struct {
	etcdserverpb.KVClient
	revision int64
	keys     map[string]*mvccpb.KeyValue
}

func (m *memory) Txn(_ context.Context, q *etcdserverpb.TxnRequest, _ ...grpc.CallOption) (*etcdserverpb.TxnResponse, error) {
	m.revision++
	return &etcdserverpb.TxnResponse{Header: &etcdserverpb.ResponseHeader{}, Succeeded: true, Responses: m.do(q)}, nil
}

func (m *memory) do(q *etcdserverpb.TxnRequest) (all []*etcdserverpb.ResponseOp) {
	for _, is := range q.Compare {
		kv, exists := m.keys[string(is.Key)]
		switch target := is.TargetUnion.(type) {
		case *etcdserverpb.Compare_Value:
			exists = exists && string(kv.Value) == string(target.Value)
		case *etcdserverpb.Compare_ModRevision:
			exists = exists && kv.ModRevision == target.ModRevision
		case *etcdserverpb.Compare_CreateRevision: // is it there, or is it not?
			exists = exists == (is.Result == etcdserverpb.Compare_GREATER)
		}
		if !exists {
			return nil
		}
	}
	for _, op := range q.Success {
		var answer etcdserverpb.ResponseOp
		switch op := op.Request.(type) {
		case *etcdserverpb.RequestOp_RequestTxn:
			m.do(op.RequestTxn)
		case *etcdserverpb.RequestOp_RequestPut:
			m.keys[string(op.RequestPut.Key)] = &mvccpb.KeyValue{Key: op.RequestPut.Key, Value: op.RequestPut.Value, ModRevision: m.revision}
		case *etcdserverpb.RequestOp_RequestDeleteRange:
			delete(m.keys, string(op.RequestDeleteRange.Key))
		case *etcdserverpb.RequestOp_RequestRange:
			found := &etcdserverpb.RangeResponse{}
			for _, kv := range m.keys {
				found.Kvs = append(found.Kvs, kv)
			}
			answer.Response = &etcdserverpb.ResponseOp_ResponseRange{ResponseRange: found}
		}
		all = append(all, &answer)
	}
	return all
}

// etcd that was restored from a backup counts its revisions from there once more.
func TestMemberIsNotRemovedForABeatThatARestoredEtcdHasForgotten(t *testing.T) {
	m := &memory{keys: map[string]*mvccpb.KeyValue{}}
	client := clientv3.NewCtxClient(t.Context())
	client.KV = clientv3.NewKVFromKVClient(m, nil)
	e := &etcd{client: etcdclient.Of(client), prefix: "p/"}
	a := view.Member{ID: "a", Host: "a:1", Lease: time.Second}
	do := func(number uint64, q *view.Request) view.Answer {
		answer, err := e.do(t.Context(), number, q)
		require.NoError(t, err)
		return answer
	}
	first := do(1, &view.Request{From: a, Beat: true, First: true}).Beats["a"]
	m.revision = 0
	again := do(2, &view.Request{From: a, Beat: true}).Beats["a"]
	require.Equal(t, first.Revision, again.Revision)
	require.Contains(t, do(1, &view.Request{Silent: &first}).Beats, "a")
	require.NotContains(t, do(2, &view.Request{Silent: &again}).Beats, "a")
}

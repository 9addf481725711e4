package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mcpactor/mcpactor/cluster/internal/etcdclient"
	"github.com/mcpactor/mcpactor/cluster/internal/node"
	"github.com/mcpactor/mcpactor/cluster/internal/view"
)

const (
	// etcdTime bounds the time in which etcd accepts a password.
	etcdTime = 5 * time.Second
	// etcdConnect bounds an attempt to connect to etcd.
	etcdConnect = 2 * time.Second
)

// etcd is the witness of a cluster whose view is in etcd. Each request is one transaction, so that all are done in one
// order. There are no leases of etcd: a member is silent if its beat has not changed.
type etcd struct {
	cfg    *Config
	client *etcdclient.Client
	tell   func(any)
	prefix string // of the keys of the cluster

	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
	trouble atomic.Pointer[string]
}

// newEtcd returns the witness.
func newEtcd(c *Config, tell func(any)) (*etcd, error) {
	client, err := etcdclient.New(clientv3.Config{
		Endpoints: c.Etcd.Endpoints, TLS: c.Etcd.TLS, Username: c.Etcd.Username, Password: c.Etcd.Password, DialTimeout: etcdTime,
	}, etcdConnect)
	if err != nil {
		return nil, fmt.Errorf("cluster: etcd at %s: %w", strings.Join(c.Etcd.Endpoints, ", "), err)
	}
	e := &etcd{cfg: c, client: client, tell: tell, prefix: c.Etcd.Prefix + "/" + c.Name + "/"}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.mustAnswer(nil)
	return e, nil
}

func (e *etcd) ask(number uint64, q *view.Request) {
	if e.ctx.Err() != nil {
		return
	}
	e.running.Go(func() {
		patience := view.Patience(e.cfg.Lease)
		ctx, cancel := context.WithTimeout(e.ctx, patience)
		defer cancel()
		var a view.Answer
		err := e.client.Do(ctx, patience, func(ctx context.Context) (err error) {
			a, err = e.do(ctx, number, q)
			return err
		})
		if err != nil {
			e.mustAnswer(err)
			return
		}
		e.trouble.Store(nil)
		e.tell(&node.Answered{Number: number, Answer: a})
	})
}

// mustAnswer stores what lacks returns.
func (e *etcd) mustAnswer(err error) {
	trouble := "etcd must answer at " + strings.Join(e.cfg.Etcd.Endpoints, ", ")
	if err != nil {
		trouble += ": " + err.Error()
	}
	e.trouble.Store(&trouble)
}

// stored is a beat as it is in etcd, with the number of the request: no two beats of a member are alike.
type stored struct {
	view.Beat
	Number uint64 `json:"number"`
}

// viewKey returns the key of the view.
func (e *etcd) viewKey() string { return e.prefix + "view" }

// beatKey returns the key of a beat.
func (e *etcd) beatKey(id string) string { return e.prefix + "beats/" + id }

// do does a request, as [view.Register.Do] does: the change if it fits, then the beat, and then it reads all.
func (e *etcd) do(ctx context.Context, number uint64, q *view.Request) (view.Answer, error) {
	read := clientv3.OpGet(e.prefix, clientv3.WithPrefix())
	answer, err := e.client.Txn(ctx).Then(append(append(e.change(q), e.beat(number, q)...), read)...).Commit()
	if err != nil {
		return view.Answer{}, err
	}
	return e.read((*clientv3.GetResponse)(answer.Responses[len(answer.Responses)-1].GetResponseRange()))
}

// text returns a view, or a beat, as it is in etcd.
func text(v any) string {
	data, _ := json.Marshal(v) // it has only texts, numbers and flags, and no error
	return string(data)
}

// change returns the change of a request as a transaction, if there is one.
func (e *etcd) change(q *view.Request) []clientv3.Op {
	var conditions []clientv3.Cmp
	var changes []clientv3.Op
	if q.Next != nil {
		is := clientv3.Compare(clientv3.Value(e.viewKey()), "=", q.Stored)
		if q.Stored == "" {
			is = clientv3.Compare(clientv3.CreateRevision(e.viewKey()), "=", 0)
		}
		conditions = append(conditions, is)
		changes = append(changes, clientv3.OpPut(e.viewKey(), text(q.Next)))
	}
	if q.Silent != nil {
		key := e.beatKey(q.Silent.From.ID)
		conditions = append(conditions, clientv3.Compare(clientv3.ModRevision(key), "=", int64(q.Silent.Revision)))
		if q.Silent.Stored != "" {
			conditions = append(conditions, clientv3.Compare(clientv3.Value(key), "=", q.Silent.Stored))
		}
		changes = append(changes, clientv3.OpDelete(key))
	}
	if len(changes) == 0 {
		return nil
	}
	return []clientv3.Op{clientv3.OpTxn(conditions, changes, nil)}
}

// beat returns the beat of a request as a transaction, if there is one.
func (e *etcd) beat(number uint64, q *view.Request) []clientv3.Op {
	if !q.Beat {
		return nil
	}
	put := clientv3.OpPut(e.beatKey(q.From.ID), text(stored{view.Beat{From: q.From, Unheard: q.Unheard}, number}))
	if q.First {
		return []clientv3.Op{put}
	}
	there := clientv3.Compare(clientv3.CreateRevision(e.beatKey(q.From.ID)), ">", 0)
	return []clientv3.Op{clientv3.OpTxn([]clientv3.Cmp{there}, []clientv3.Op{put}, nil)}
}

// read returns what the keys of the cluster have.
func (e *etcd) read(all *clientv3.GetResponse) (view.Answer, error) {
	a := view.Answer{Beats: map[string]view.Beat{}}
	for _, kv := range all.Kvs {
		key := string(kv.Key)
		id, isBeat := strings.CutPrefix(key, e.prefix+"beats/")
		switch {
		case isBeat:
			var b view.Beat
			if json.Unmarshal(kv.Value, &b) == nil && b.From.ID == id {
				b.Revision, b.Stored = uint64(kv.ModRevision), string(kv.Value)
				a.Beats[id] = b
			}
		case key == e.viewKey():
			if err := json.Unmarshal(kv.Value, &a.View); err != nil {
				return a, fmt.Errorf("the value of %s is no view: %w", key, err)
			}
			a.Stored = string(kv.Value)
		}
	}
	return a, nil
}

func (*etcd) packet(string, []byte) {}
func (*etcd) leave(context.Context) {}

func (e *etcd) lacks() string {
	if trouble := e.trouble.Load(); trouble != nil {
		return *trouble
	}
	return ""
}

func (e *etcd) close() {
	e.cancel()
	e.running.Wait()
	e.client.Close() //nolint:errcheck // nothing uses it any longer
}

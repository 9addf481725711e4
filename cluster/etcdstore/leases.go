package etcdstore

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mcpactor/mcpactor/internal/clusterapi"
)

// leases puts values that etcd deletes when they are too old. Values that are put within a tenth of the
// age share a lease, because a lease for each would cost a request, and stay in etcd for its
// whole time.
type leases struct {
	client *clientv3.Client
	maxAge time.Duration

	used    chan struct{}    // has a value while a caller uses what follows
	current clientv3.LeaseID // zero: none yet
	until   time.Time        // new values need another lease from then on
}

func newLeases(client *clientv3.Client, maxAge time.Duration) *leases {
	return &leases{client: client, maxAge: maxAge, used: make(chan struct{}, 1)}
}

// put calls a function that does a put of a value. If its lease is gone, because etcd lost it or an operator revoked it, a new
// one is asked for, and the function called again, once.
func (l *leases) put(ctx context.Context, key, value string, do func(put clientv3.Op) error) error {
	if l.maxAge == clusterapi.Forever {
		return do(clientv3.OpPut(key, value))
	}
	lease, err := l.get(ctx, 0)
	if err != nil {
		return err
	}
	if err = do(clientv3.OpPut(key, value, clientv3.WithLease(lease))); !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return err
	}
	if lease, err = l.get(ctx, lease); err != nil {
		return err
	}
	return do(clientv3.OpPut(key, value, clientv3.WithLease(lease)))
}

// get returns the lease for a value that is put now: not the one that is gone. One caller at a time asks for a new one, and the
// others wait for it.
func (l *leases) get(ctx context.Context, gone clientv3.LeaseID) (clientv3.LeaseID, error) {
	select {
	case l.used <- struct{}{}:
		defer func() { <-l.used }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	now, slot := time.Now(), l.maxAge/10
	if l.current != gone && now.Before(l.until) {
		return l.current, nil
	}
	lease, err := l.client.Grant(ctx, int64((l.maxAge+slot+time.Second-1)/time.Second))
	if err != nil {
		return 0, err
	}
	l.current, l.until = lease.ID, now.Add(slot)
	return lease.ID, nil
}

package etcdstore

import (
	"context"
	"errors"
	"sync"
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

	mu      sync.Mutex
	current clientv3.LeaseID // zero: none yet
	until   time.Time        // new values need another lease from then on
	granted chan struct{}    // not nil while a lease is asked for, closed after it
}

func newLeases(client *clientv3.Client, maxAge time.Duration) *leases {
	return &leases{client: client, maxAge: maxAge}
}

// slot is how long a lease is shared.
func (l *leases) slot() time.Duration { return l.maxAge / 10 }

// put puts a value. If its lease is gone, because etcd lost it or an operator revoked it, a new
// one is asked for, once.
func (l *leases) put(ctx context.Context, key, value string) error {
	if l.maxAge == clusterapi.Forever {
		_, err := l.client.Put(ctx, key, value)
		return err
	}
	for first := true; ; first = false {
		lease, err := l.get(ctx)
		if err != nil {
			return err
		}
		_, err = l.client.Put(ctx, key, value, clientv3.WithLease(lease))
		if !first || !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return err
		}
		l.drop(lease)
	}
}

// get returns the lease for a value that is put now. One caller at a time asks for a new
// one, and the others wait for it.
func (l *leases) get(ctx context.Context) (clientv3.LeaseID, error) {
	for {
		l.mu.Lock()
		if l.current != 0 && time.Now().Before(l.until) {
			defer l.mu.Unlock()
			return l.current, nil
		}
		granted := l.granted
		if granted == nil {
			l.granted = make(chan struct{})
			l.mu.Unlock()
			return l.grant(ctx)
		}
		l.mu.Unlock()
		select {
		case <-granted:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// grant asks for a lease, and wakes those that wait, also after a failure: the next one tries.
func (l *leases) grant(ctx context.Context) (clientv3.LeaseID, error) {
	now := time.Now()
	seconds := (l.maxAge + l.slot() + time.Second - 1) / time.Second
	lease, err := l.client.Grant(ctx, int64(seconds))
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.granted)
	l.granted = nil
	if err != nil {
		return 0, err
	}
	l.current, l.until = lease.ID, now.Add(l.slot())
	return lease.ID, nil
}

// drop forgets a lease that is gone.
func (l *leases) drop(lease clientv3.LeaseID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == lease {
		l.current = 0
	}
}

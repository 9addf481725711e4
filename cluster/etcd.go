package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/mcpactor/mcpactor/cluster/internal/node"
)

const (
	// etcdTime bounds a request to etcd when a member joins or leaves.
	etcdTime = 5 * time.Second
	// etcdPause is how long the watch waits before it begins anew.
	etcdPause = 250 * time.Millisecond
	// etcdReconnect bounds the time between two attempts to connect. The default of gRPC
	// is two minutes: members would lose their registration after an outage.
	etcdReconnect = 500 * time.Millisecond
)

// etcdProvider registers the member in etcd, with a lease of etcd that the member renews, and
// watches the registrations of others.
//
// Proto.Actor's own provider does not see a member that registers after it has listed the
// members and before its watch has begun. It waits for etcd without end, and does not close its
// client.
type etcdProvider struct {
	cfg    *Config
	client *clientv3.Client
	tell   func(any) // to the node
	prefix string    // of the keys of the cluster

	ctx      context.Context // of the incarnation, until Shutdown
	cancel   context.CancelFunc
	running  sync.WaitGroup
	shutdown sync.Once

	lease clientv3.LeaseID // set before the goroutines start, as is self
	self  *cluster.Member

	members map[string]*cluster.Member // by key; once watch runs, only its goroutine uses them
}

// registration is the value of a member in etcd.
type registration struct {
	ID    string   `json:"id"`
	Host  string   `json:"host"`
	Port  int32    `json:"port"`
	Kinds []string `json:"kinds"`
}

// newEtcd returns the provider that registers the member in etcd. ctx ends its start.
func newEtcd(ctx context.Context, c *Config, tell func(any)) (*etcdProvider, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: c.Etcd.Endpoints, TLS: c.Etcd.TLS, Username: c.Etcd.Username, Password: c.Etcd.Password,
		DialTimeout: etcdTime, DialKeepAliveTime: 2 * time.Second, DialKeepAliveTimeout: 2 * time.Second, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: etcdReconnect / 5, Multiplier: 1.5, Jitter: 0.2, MaxDelay: etcdReconnect},
			MinConnectTimeout: 2 * time.Second,
		})},
	})
	if err != nil {
		return nil, fmt.Errorf("cluster: etcd: %w", err)
	}
	p := &etcdProvider{cfg: c, client: client, tell: tell, prefix: c.Etcd.Prefix + "/" + c.Name + "/", members: map[string]*cluster.Member{}}
	p.ctx, p.cancel = context.WithCancel(ctx)
	return p, nil
}

// StartMember registers the member.
func (p *etcdProvider) StartMember(c *cluster.Cluster) error {
	var err error
	if p.self, err = selfOf(c); err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	value, err := json.Marshal(registration{p.self.Id, p.self.Host, p.self.Port, p.self.Kinds})
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	ctx, cancel := context.WithTimeout(p.ctx, etcdTime)
	defer cancel()
	granted, err := p.client.Grant(ctx, int64(p.ttl()/time.Second))
	if err != nil {
		return fmt.Errorf("etcd: lease: %w", err)
	}
	p.lease = granted.ID
	if _, err := p.client.Put(ctx, p.prefix+p.self.Id, string(value), clientv3.WithLease(p.lease)); err != nil {
		return fmt.Errorf("etcd: registration: %w", err)
	}
	revision, err := p.list(ctx, c)
	if err != nil {
		return fmt.Errorf("etcd: members: %w", err)
	}
	p.running.Go(p.renew)
	p.running.Go(func() { p.watch(c, revision) })
	return nil
}

// StartClient is for programs that are no member. There are none.
func (p *etcdProvider) StartClient(*cluster.Cluster) error {
	return errors.New("etcd: clients are not supported")
}

// Shutdown ends the registration. If etcd cannot be reached, it ends with the lease.
func (p *etcdProvider) Shutdown(bool) (err error) {
	p.shutdown.Do(func() {
		p.cancel()
		p.running.Wait()
		if p.lease != 0 {
			ctx, cancel := context.WithTimeout(context.Background(), p.cfg.Lease)
			defer cancel()
			_, err = p.client.Revoke(ctx, p.lease)
		}
		err = errors.Join(err, p.client.Close())
	})
	return err
}

// ttl is how long etcd keeps a registration that is not renewed: longer than a member acts
// without an answer, in whole seconds.
func (p *etcdProvider) ttl() time.Duration {
	return p.cfg.Lease.Truncate(time.Second) + time.Second
}

// renew renews the registration, and tells the node each time that etcd has confirmed it. A
// registration that etcd does not have any longer belongs to a member that others have removed.
func (p *etcdProvider) renew() {
	ticker := time.NewTicker(p.cfg.Lease / 4)
	defer ticker.Stop()
	var err error
	for {
		asked := time.Now()
		ctx, cancel := context.WithTimeout(p.ctx, p.cfg.Lease/2)
		if err != nil { // if requests arrive and answers do not, the registration must end: ask for an answer first
			_, err = p.client.Get(ctx, p.prefix+p.self.Id)
		}
		if err == nil {
			_, err = p.client.KeepAliveOnce(ctx, p.lease)
		}
		cancel()
		switch {
		case err == nil:
			p.tell(&node.Confirmed{Network: p.self.Id, At: asked})
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			p.tell(&node.Expelled{Network: p.self.Id})
			return
		}
		select {
		case <-p.ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// list asks for the members, and publishes them. It returns the revision that they are of.
func (p *etcdProvider) list(ctx context.Context, c *cluster.Cluster) (revision int64, err error) {
	found, err := p.client.Get(ctx, p.prefix, clientv3.WithPrefix())
	if err != nil {
		return 0, err
	}
	clear(p.members)
	for _, kv := range found.Kvs {
		p.set(string(kv.Key), kv.Value)
	}
	p.publish(c)
	return found.Header.GetRevision(), nil
}

// watch publishes the members after each change since a revision. When the watch ends,
// because etcd has no leader or has compacted its history, it begins anew with a list.
func (p *etcdProvider) watch(c *cluster.Cluster, revision int64) {
	for {
		ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(p.ctx))
		for changes := range p.client.Watch(ctx, p.prefix, clientv3.WithPrefix(), clientv3.WithRev(revision+1)) {
			for _, change := range changes.Events {
				if change.Type == clientv3.EventTypeDelete {
					delete(p.members, string(change.Kv.Key))
				} else {
					p.set(string(change.Kv.Key), change.Kv.Value)
				}
			}
			if len(changes.Events) > 0 {
				p.publish(c)
			}
		}
		cancel()
		for listed := false; !listed; {
			select {
			case <-p.ctx.Done():
				return
			case <-time.After(etcdPause):
			}
			ctx, cancel := context.WithTimeout(p.ctx, etcdTime)
			next, err := p.list(ctx, c)
			cancel()
			if listed = err == nil; listed {
				revision = next
			}
		}
	}
}

// set adds the member of a key. What is no registration is ignored.
func (p *etcdProvider) set(key string, value []byte) {
	var r registration
	if json.Unmarshal(value, &r) == nil && key == p.prefix+r.ID && r.Host != "" {
		p.members[key] = &cluster.Member{Id: r.ID, Host: r.Host, Port: r.Port, Kinds: r.Kinds}
	}
}

// publish tells the engine who is a member. The member itself always is, until etcd or
// the others tell it that it was removed.
func (p *etcdProvider) publish(c *cluster.Cluster) {
	if p.ctx.Err() != nil {
		return
	}
	p.members[p.prefix+p.self.Id] = p.self
	publish(c, p.members)
}

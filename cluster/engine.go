package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/identitylookup/disthash"
	"github.com/asynkron/protoactor-go/remote"
	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/mcpactor/mcpactor/cluster/internal/link"
	"github.com/mcpactor/mcpactor/cluster/internal/mesh"
	"github.com/mcpactor/mcpactor/cluster/internal/node"
	"github.com/mcpactor/mcpactor/cluster/internal/wire"
	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/supervisor"
)

const (
	// shardKind is the kind of the virtual actors, before the name of the cluster: members of other
	// clusters at the same provider own none of them.
	shardKind = "mcpactor-shard."
	// gossipInterval and gossipExpiration keep the engine's gossip cheap, and keep it from
	// removing members: the lease is what decides. See docs/cluster.md.
	gossipInterval, gossipExpiration = 3 * time.Second, 10 * time.Minute
	// activations bounds the virtual actors that are activated at once.
	activations = 32
)

// engine is one incarnation of a member: Proto.Actor's cluster in an actor system of its own,
// so that the system of the user keeps its address, and is never shut down.
type engine struct {
	system   *actor.ActorSystem
	cluster  *cluster.Cluster
	provider cluster.ClusterProvider
	tell     func(any) // to the node
	kind     string    // of the shards of this cluster

	mesh    *mesh.Mesh
	permits chan struct{} // one for each activation that runs
	ctx     context.Context
	cancel  context.CancelFunc
	stop    sync.Once
	left    sync.Once
	stopped chan struct{}
}

var _ node.Network = (*engine)(nil)

// startEngine joins the cluster. It blocks for a second and more. ctx ends what waits.
func startEngine(ctx context.Context, cfg *Config, logger zerolog.Logger, tell func(any)) (e *engine, err error) {
	creds, err := cfg.credentials(logger)
	if err != nil {
		return nil, err
	}
	provider, err := cfg.provider(ctx, tell)
	if err != nil {
		return nil, err
	}
	e = &engine{provider: provider, tell: tell, kind: shardKind + cfg.Name, permits: make(chan struct{}, activations), stopped: make(chan struct{})}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	links := logger
	if logger.GetLevel() > zerolog.DebugLevel { // it logs errors for each attempt to reach a member that is gone
		logger = zerolog.Nop()
	}
	e.system = actor.NewActorSystem(supervisor.WithSystemLogger(logger))
	e.mesh = mesh.New(mesh.Config{
		Cluster: cfg.Name, Version: wire.Version, Self: node.Address{ID: e.system.ID, Host: cfg.Advertise}, Logger: links, Credentials: creds,
		Dial: func(ctx context.Context, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		},
		Received: func(from *mesh.Link, m link.Message) {
			tell(&node.Received{Network: e.ID(), From: from.To().ID, Message: m})
		},
		Changed: func(of *mesh.Link, to link.State) {
			tell(&node.Changed{Network: e.ID(), Peer: of.To().ID, State: to})
		},
	})
	shards := cluster.NewKind(e.kind, actor.PropsFromFunc(e.shard))
	configured := cluster.Configure(cfg.Name, provider, disthash.New(), remoteConfig(cfg, creds, e.mesh), cluster.WithKinds(shards))
	configured.GossipInterval, configured.HeartbeatExpiration = gossipInterval, gossipExpiration
	e.cluster = cluster.New(e.system, configured)
	e.system.EventStream.Subscribe(e.onEvent)
	_, err = clusterapi.Guard(func() (struct{}, error) { // it panics, for example if the port is taken
		e.cluster.StartMember()
		return struct{}{}, nil
	})
	if err != nil {
		e.end(context.Background())
		var panicked *clusterapi.Panic
		if errors.As(err, &panicked) {
			if _, bug := panicked.Value.(runtime.Error); !bug { // the stack is of no use
				err = errors.New(strings.Replace(fmt.Sprint(panicked.Value), "failed to listen: ", "listen: ", 1))
			}
		}
		return nil, fmt.Errorf("cluster: the member cannot join: %w", err)
	}
	return e, nil
}

// remoteConfig returns the configuration of the engine's connections. Its server also serves the mesh.
func remoteConfig(cfg *Config, creds credentials.TransportCredentials, links *mesh.Mesh) *remote.Config {
	host, port, _ := net.SplitHostPort(cfg.Listen)
	number, _ := strconv.Atoi(port)
	client := creds
	if client == nil {
		client = insecure.NewCredentials()
	}
	c := remote.Configure(host, number)
	c.AdvertisedHost = cfg.Advertise
	c.ServerOptions = append(append(links.ServerOptions(), grpc.Creds(client)), guards(cfg)...)
	c.DialOptions = []grpc.DialOption{grpc.WithTransportCredentials(client)}
	c.MaxRetryCount = 1
	return c
}

// shard is the virtual actor of a shard. It tells the node when it ends.
func (e *engine) shard(c actor.Context) {
	if _, ends := c.Message().(*actor.Stopping); ends {
		if number, err := strconv.Atoi(cluster.GetClusterIdentity(c).GetIdentity()); err == nil {
			e.tell(&node.Deactivated{Network: e.ID(), Shard: number})
		}
	}
}

// onEvent tells the node who is a member.
func (e *engine) onEvent(event any) {
	if e.ctx.Err() != nil {
		return
	}
	if event, ok := event.(*cluster.ClusterTopology); ok {
		members := make([]node.Address, 0, len(event.GetMembers()))
		for _, m := range event.GetMembers() {
			here := incarnation(m.GetId()) == e.ID()
			if m.HasKind(e.kind) && (!here || m.Address() == e.Address()) { // shards belong to addresses
				members = append(members, node.Address{ID: incarnation(m.GetId()), Host: m.Address()})
			}
		}
		e.tell(&node.Topology{Network: e.ID(), Members: members})
	}
}

// incarnation returns the id of the actor system of a member. Some providers add the name of
// the cluster in front of it.
func incarnation(member string) string { return member[strings.LastIndexByte(member, '@')+1:] }

// ID returns the id of the incarnation.
func (e *engine) ID() string { return e.system.ID }

// Address returns the host and port at which others reach it.
func (e *engine) Address() string { return e.system.Address() }

// Link begins the link to another member.
func (e *engine) Link(to node.Address) node.Link { return e.mesh.Link(to) }

// Activate asks the engine for the virtual actor of a shard. Some of the ways to fail take
// 5 s.
func (e *engine) Activate(shard int) {
	go func() {
		select {
		case e.permits <- struct{}{}:
		case <-e.ctx.Done():
			return
		}
		defer func() { <-e.permits }()
		var pid *actor.PID
		e.quietly(func() { pid = e.cluster.Get(strconv.Itoa(shard), e.kind) })
		e.tell(&node.Activated{Network: e.ID(), Shard: shard, Here: pid != nil && pid.Address == e.Address()})
	}()
}

// Leave tells the provider that the member leaves.
func (e *engine) Leave() { go e.leave() }

// leave tells the provider that the member leaves, once.
func (e *engine) leave() {
	e.left.Do(func() {
		e.quietly(func() { _ = e.provider.Shutdown(true) }) // if it fails, the others notice without it
	})
}

// quietly runs a call of the engine, which may panic if the engine has not started, or while it ends.
func (e *engine) quietly(f func()) {
	clusterapi.Guard(func() (struct{}, error) { //nolint:errcheck // the incarnation ends anyway
		f()
		return struct{}{}, nil
	})
}

// lingerTime is how long the connections of others may stay open when an incarnation ends.
const lingerTime = 500 * time.Millisecond

// leaveTime is how long the end of an incarnation waits for its provider.
const leaveTime = 3 * time.Second

// shutdownTime bounds how long a caller waits for the end of an incarnation.
const shutdownTime = 5 * time.Second

// Stop ends the incarnation in the background.
func (e *engine) Stop() {
	e.stop.Do(func() {
		e.cancel()
		go func() {
			defer close(e.stopped)
			e.mesh.Close()
			left := make(chan struct{})
			go func() {
				defer close(left)
				e.leave()
			}()
			select {
			case <-left:
			case <-time.After(leaveTime): // a provider may wait for its server
			}
			e.quietly(e.cluster.Gossip.Shutdown)
			// The graceful end closes our connections, and then waits for those of others.
			timer := time.AfterFunc(lingerTime, func() { e.quietly(func() { e.cluster.Remote.Shutdown(false) }) })
			e.quietly(func() { e.cluster.Remote.Shutdown(true) })
			timer.Stop()
			e.quietly(func() { e.cluster.Remote.Shutdown(false) }) // the graceful end panics if a connection ends meanwhile
			e.system.Shutdown()
		}()
	})
}

// end ends the incarnation, and waits for it, for a time, or until ctx ends.
func (e *engine) end(ctx context.Context) {
	e.Stop()
	select {
	case <-e.stopped:
	case <-ctx.Done():
	case <-time.After(shutdownTime):
	}
}

// ranking returns the owners of shards, for the node. It remembers the answers for the list of
// members that it was asked about last.
type ranking struct {
	mu      sync.Mutex
	members []node.Address
	table   *cluster.Rendezvous
	owners  map[int]string
}

// owner returns the address of the member that Proto.Actor's rendezvous hashing selects. It may be
// called from any goroutine.
func (r *ranking) owner(shard int, members []node.Address) string {
	if len(members) == 0 {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	same := len(members) == len(r.members) && &members[0] == &r.members[0]
	if same {
		if address, known := r.owners[shard]; known {
			return address
		}
	} else {
		r.members, r.table, r.owners = members, rendezvous(members), map[int]string{}
	}
	address := r.table.GetByClusterIdentity(&cluster.ClusterIdentity{Kind: shardKind, Identity: strconv.Itoa(shard)})
	r.owners[shard] = address
	return address
}

// rendezvous returns the engine's table for members.
func rendezvous(members []node.Address) *cluster.Rendezvous {
	list := make(cluster.Members, 0, len(members))
	for _, m := range members {
		host, port, _ := net.SplitHostPort(m.Host)
		number, _ := strconv.Atoi(port)
		list = append(list, &cluster.Member{Id: m.ID, Host: host, Port: int32(number), Kinds: []string{shardKind}})
	}
	table := cluster.NewRendezvous()
	table.UpdateMembers(list)
	return table
}

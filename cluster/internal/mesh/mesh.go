package mesh

import (
	"context"
	"net"
	"sync"

	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/mcpactor/mcpactor/cluster/internal/link"
)

// Config is the configuration of a mesh. There are no defaults: package cluster sets every field.
type Config struct {
	Cluster string       // the name of the cluster
	Version uint32       // of the protocol between members
	Self    link.Address // this incarnation, until Begin
	Logger  zerolog.Logger

	// Credentials secure the connections, in both directions. If nil, the mesh accepts and makes
	// connections on this machine only.
	Credentials credentials.TransportCredentials
	// Dial connects to an address.
	Dial func(ctx context.Context, address string) (net.Conn, error)

	// Decode makes of each message of a link what Received takes. It may be called twice with one, and take long.
	Decode func(from *Link, m link.Message) any
	// Received is called with each message of a link, in the order of its lane. It must not block.
	Received func(from *Link, decoded any)
	// Changed is called when the state of a link changes. It must not block.
	Changed func(of *Link, to link.State)
}

// Mesh is the connections of one member to others. Its methods may be called from any goroutine, and do not
// block, but for Serve and Close.
type Mesh struct {
	cfg     Config
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup // the goroutines of the links

	mu    sync.Mutex
	self  link.Address // this incarnation
	links map[link.Address]*Link
}

// New returns a mesh without links.
func New(cfg Config) *Mesh {
	m := &Mesh{cfg: cfg, self: cfg.Self, links: map[link.Address]*Link{}}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// Begin begins another incarnation of this member. The links of the previous one have been closed, but for those to
// whoever listens at a host.
func (m *Mesh) Begin(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.self.ID = id
}

// incarnation returns the id of the current incarnation.
func (m *Mesh) incarnation() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.self.ID
}

// Link begins a link to an incarnation of a member: the member is dialed, and its connections are accepted.
// Messages are received from then on. With an empty id, it is a link to whoever listens at the host, for casts
// only. There must not be a link to the same address, and there must not have been one with the same id.
func (m *Mesh) Link(to link.Address) *Link {
	l := newLink(m, to)
	m.mu.Lock()
	m.links[to] = l
	m.mu.Unlock()
	l.start()
	return l
}

// find returns a link, or nil.
func (m *Mesh) find(to link.Address) *Link {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.links[to]
}

// Serve accepts connections until the mesh is closed, or the listener.
func (m *Mesh) Serve(listener net.Listener) error {
	server := grpc.NewServer(append(serverLimits(), grpc.UnknownServiceHandler(m.handle), grpc.Creds(m.cfg.credentials()))...)
	context.AfterFunc(m.ctx, server.Stop) // which ends all streams
	return server.Serve(listener)
}

// credentials returns what secures the connections.
func (c *Config) credentials() credentials.TransportCredentials {
	if c.Credentials == nil {
		return insecure.NewCredentials()
	}
	return c.Credentials
}

// run runs a function in a goroutine that Close waits for. It reports false if the mesh is closed.
func (m *Mesh) run(f func()) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ctx.Err() != nil {
		return false
	}
	m.running.Go(f)
	return true
}

// Close ends all links and connections, and waits for their goroutines.
func (m *Mesh) Close() {
	m.mu.Lock()
	m.cancel()
	m.mu.Unlock()
	m.running.Wait()
}

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"

	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/clusterproviders/automanaged"
	"github.com/labstack/echo"

	"github.com/mcpactor/mcpactor/internal/clusterapi"
)

// provider returns the provider for a new incarnation. ctx ends its start, and tell tells the
// node what it learns.
func (c *Config) provider(ctx context.Context, tell func(any)) (cluster.ClusterProvider, error) {
	switch c.Provider {
	case "automanaged":
		return newAutomanaged(c)
	case "etcd":
		return newEtcd(ctx, c, tell)
	case "in-process":
		return &inProcess{hub: c.InProcess}, nil
	}
	p, err := clusterapi.Guard(c.NewProvider)
	if err != nil {
		return nil, fmt.Errorf("cluster: newProvider: %w", err)
	}
	if p == nil {
		return nil, errors.New("cluster: newProvider: returned nil")
	}
	return p, nil
}

// selfOf returns the own member, as a provider lists it.
func selfOf(c *cluster.Cluster) (*cluster.Member, error) {
	host, port, err := c.ActorSystem.GetHostPort()
	if err != nil {
		return nil, err
	}
	return &cluster.Member{Id: c.ActorSystem.ID, Host: host, Port: int32(port), Kinds: c.GetClusterKinds()}, nil
}

// publish tells an engine who is a member.
func publish[K comparable](c *cluster.Cluster, members map[K]*cluster.Member) {
	c.MemberList.UpdateClusterTopology(slices.SortedFunc(maps.Values(members), func(a, b *cluster.Member) int { return cmp.Compare(a.Id, b.Id) }))
}

// InProcess connects the members of one process, for tests. They still talk to each other over
// loopback.
type InProcess struct {
	mu     sync.Mutex
	joined map[*inProcess]*cluster.Member
}

// NewInProcess returns a provider without members.
func NewInProcess() *InProcess { return &InProcess{joined: map[*inProcess]*cluster.Member{}} }

// change changes who has joined, and tells all of them.
func (h *InProcess) change(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
	for p := range h.joined {
		publish(p.cluster, h.joined)
	}
}

// inProcess is the provider of one incarnation of a member.
type inProcess struct {
	hub     *InProcess
	cluster *cluster.Cluster
}

// StartMember joins.
func (p *inProcess) StartMember(c *cluster.Cluster) error {
	self, err := selfOf(c)
	if err != nil {
		return err
	}
	p.cluster = c
	p.hub.change(func() { p.hub.joined[p] = self })
	return nil
}

// StartClient is for programs that are no member. There are none.
func (p *inProcess) StartClient(*cluster.Cluster) error {
	return errors.New("in-process: clients are not supported")
}

// Shutdown leaves.
func (p *inProcess) Shutdown(bool) error {
	p.hub.change(func() { delete(p.hub.joined, p) })
	return nil
}

// automanagedProvider is Proto.Actor's, with a server that listens where it is told to: the
// original listens on all interfaces.
type automanagedProvider struct {
	*automanaged.AutoManagedProvider
	listener net.Listener
	server   *echo.Echo
	port     int // that it listens on
	config   *Config
}

// newAutomanaged returns the provider that polls hosts.
func newAutomanaged(c *Config) (cluster.ClusterProvider, error) {
	listener, err := net.Listen("tcp", c.Automanaged.Listen)
	if err != nil {
		return nil, fmt.Errorf("cluster: automanaged.listen: %w", err)
	}
	server := echo.New()
	server.HideBanner, server.HidePort, server.Listener = true, true, listener
	server.Logger.SetOutput(io.Discard)
	server.StdLogger = log.New(io.Discard, "", 0)
	port := listener.Addr().(*net.TCPAddr).Port
	polls := automanaged.NewWithTesting(c.Automanaged.Refresh, port, server, c.Automanaged.Hosts...)
	return &automanagedProvider{polls, listener, server, port, c}, nil
}

// StartMember answers the polls of other members, and begins to poll them.
func (p *automanagedProvider) StartMember(c *cluster.Cluster) error {
	host, port, err := c.ActorSystem.GetHostPort()
	if err != nil {
		return err
	}
	answer := automanaged.NewNode(p.config.Name, c.ActorSystem.ID, host, port, p.port, c.GetClusterKinds())
	p.server.GET("/_health", func(ctx echo.Context) error { return ctx.JSON(http.StatusOK, answer) })
	return p.AutoManagedProvider.StartMember(c)
}

// Shutdown ends the answers and the polls.
func (p *automanagedProvider) Shutdown(graceful bool) error {
	err := p.AutoManagedProvider.Shutdown(graceful)
	p.listener.Close() //nolint:errcheck // it may be closed already
	return err
}

package cluster

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/clusterproviders/automanaged"
	"github.com/asynkron/protoactor-go/cluster/clusterproviders/etcd"
	"github.com/asynkron/protoactor-go/cluster/clusterproviders/test"
	"github.com/labstack/echo"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/mcpactor/mcpactor/supervisor/cluster/internal/node"
)

// provider returns the provider for a new incarnation.
func (c *Config) provider(address string) (cluster.ClusterProvider, error) {
	switch c.Provider {
	case "automanaged":
		return newAutomanaged(c, address)
	case "etcd":
		return newEtcd(c)
	case "in-process":
		return test.NewTestProvider(c.InProcess.agent), nil
	}
	p, err := c.NewProvider()
	if err != nil {
		return nil, fmt.Errorf("cluster: newProvider: %w", err)
	}
	return p, nil
}

// automanagedProvider is Proto.Actor's, with a server that listens where it is told to: the
// original listens on all interfaces.
type automanagedProvider struct {
	*automanaged.AutoManagedProvider
	listener net.Listener
	server   *echo.Echo
	answer   *automanaged.NodeModel
	config   *Config
	address  string
}

// newAutomanaged returns the provider that polls hosts.
func newAutomanaged(c *Config, address string) (cluster.ClusterProvider, error) {
	listener, err := net.Listen("tcp", c.Automanaged.Listen)
	if err != nil {
		return nil, fmt.Errorf("cluster: automanaged.listen: %w", err)
	}
	server := echo.New()
	server.HideBanner, server.HidePort, server.Listener = true, true, listener
	server.Logger.SetOutput(io.Discard)
	server.StdLogger = log.New(io.Discard, "", 0)
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	number, _ := strconv.Atoi(port)
	p := &automanagedProvider{listener: listener, server: server, config: c, address: address}
	p.AutoManagedProvider = automanaged.NewWithTesting(c.Automanaged.Refresh, number, server, c.Automanaged.Hosts...)
	return p, nil
}

// StartMember answers the polls of other members, and begins to poll them.
func (p *automanagedProvider) StartMember(c *cluster.Cluster) error {
	host, port, err := net.SplitHostPort(p.address)
	if err != nil {
		return err
	}
	number, _ := strconv.Atoi(port)
	_, own, _ := net.SplitHostPort(p.listener.Addr().String())
	ownPort, _ := strconv.Atoi(own)
	p.answer = automanaged.NewNode(p.config.Name, c.ActorSystem.ID, host, number, ownPort, c.GetClusterKinds())
	p.server.GET("/_health", func(ctx echo.Context) error { return ctx.JSON(http.StatusOK, p.answer) })
	return p.AutoManagedProvider.StartMember(c)
}

// Shutdown ends the answers and the polls.
func (p *automanagedProvider) Shutdown(graceful bool) error {
	err := p.AutoManagedProvider.Shutdown(graceful)
	p.listener.Close() //nolint:errcheck // it may be closed already
	return err
}

// etcdProvider is Proto.Actor's, with a client of our own that confirms the membership.
type etcdProvider struct {
	*etcd.Provider
	client *clientv3.Client
}

// newEtcd returns the provider that registers members in etcd.
func newEtcd(c *Config) (cluster.ClusterProvider, error) {
	cfg := clientv3.Config{
		Endpoints: c.Etcd.Endpoints, TLS: c.Etcd.TLS, Username: c.Etcd.Username, Password: c.Etcd.Password,
		DialTimeout: 5 * time.Second, DialKeepAliveTime: 2 * time.Second, DialKeepAliveTimeout: 2 * time.Second, Logger: zap.NewNop(),
	}
	inner, err := etcd.NewWithConfig(c.Etcd.Prefix, cfg)
	if err != nil {
		return nil, fmt.Errorf("cluster: etcd: %w", err)
	}
	client, err := clientv3.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("cluster: etcd: %w", err)
	}
	return &etcdProvider{inner, client}, nil
}

// confirm tells the node, again and again, whether etcd knows the incarnation, until ctx
// ends. A key that was created anew belongs to a member that others have removed.
func (p *etcdProvider) confirm(ctx context.Context, c *Config, id string, tell func(any)) {
	defer p.client.Close() //nolint:errcheck // nothing is left to do
	key := c.Etcd.Prefix + "/" + c.Name + "/" + c.Name + "@" + id
	ticker := time.NewTicker(c.Lease / 4)
	defer ticker.Stop()
	created := int64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		asked := time.Now()
		limited, cancel := context.WithTimeout(ctx, c.Lease/2)
		found, err := p.client.Get(limited, key)
		cancel()
		switch {
		case err != nil:
		case len(found.Kvs) > 0 && (created == 0 || found.Kvs[0].CreateRevision == created):
			created = found.Kvs[0].CreateRevision
			tell(&node.Confirmed{Network: id, At: asked})
		case created != 0 && ctx.Err() == nil:
			tell(&node.Expelled{Network: id})
			return
		}
	}
}

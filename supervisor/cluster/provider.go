package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"

	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/clusterproviders/automanaged"
	"github.com/asynkron/protoactor-go/cluster/clusterproviders/test"
	"github.com/labstack/echo"
)

// provider returns the provider for a new incarnation. ctx ends its start, and tell tells the
// node what it learns.
func (c *Config) provider(ctx context.Context, address string, tell func(any)) (cluster.ClusterProvider, error) {
	switch c.Provider {
	case "automanaged":
		return newAutomanaged(c, address)
	case "etcd":
		return newEtcd(ctx, c, tell)
	case "in-process":
		return test.NewTestProvider(c.InProcess.agent), nil
	}
	p, err := c.NewProvider()
	if err != nil {
		return nil, fmt.Errorf("cluster: newProvider: %w", err)
	}
	if p == nil {
		return nil, errors.New("cluster: newProvider: returned nil")
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

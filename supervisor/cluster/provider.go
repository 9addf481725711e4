package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"

	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/clusterproviders/automanaged"
	"github.com/asynkron/protoactor-go/cluster/clusterproviders/test"
	"github.com/labstack/echo"

	"github.com/mcpactor/mcpactor/internal/guard"
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
		return test.NewTestProvider(c.InProcess.agent), nil
	}
	p, err := guard.Call(c.NewProvider)
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

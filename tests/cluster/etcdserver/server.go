// Package etcdserver runs a server of etcd for tests, inside the process or, with the
// program in cmd/etcd, as a process that can be paused and killed.
package etcdserver

import (
	"errors"
	"fmt"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/mcpactor/mcpactor/internal/freeport"
)

// startTimeout bounds the start of a server.
const startTimeout = 30 * time.Second

// Config is the configuration of a [Server]. Only Dir is required.
type Config struct {
	// Dir is the data directory. A server that starts with the directory of an earlier one
	// has its data.
	Dir string
	// Client is the host:port for clients. Defaults to a free port of the loopback
	// interface.
	Client string
	// Peer is the host:port for other servers, which this one does not have, but etcd
	// needs it. Defaults to a free port of the loopback interface.
	Peer string
}

// Server is a server of etcd, a cluster with this one member. It keeps its addresses and
// its data when it is stopped and started again. Its methods may be called from any goroutine.
type Server struct {
	cfg Config

	mu   sync.Mutex
	etcd *embed.Etcd // nil while stopped
}

// New returns a server that is not started. It selects the free ports.
func New(cfg Config) (*Server, error) {
	if cfg.Dir == "" {
		return nil, errors.New("etcdserver: the data directory is empty")
	}
	for _, addr := range []*string{&cfg.Client, &cfg.Peer} {
		if *addr != "" {
			continue
		}
		l, err := freeport.Listen("127.0.0.1")
		if err != nil {
			return nil, fmt.Errorf("etcdserver: %w", err)
		}
		defer func() { _ = l.Close() }() // after both were selected, so that they differ
		*addr = l.Addr().String()
	}
	return &Server{cfg: cfg}, nil
}

// Start starts a server in a temporary directory, and stops it when the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	s, err := New(Config{Dir: t.TempDir()})
	require.NoError(t, err)
	require.NoError(t, s.Start())
	t.Cleanup(s.Stop)
	return s
}

// Start starts the server, and returns when it serves clients. It does nothing if the
// server is running.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.etcd != nil {
		return nil
	}
	etcd, err := embed.StartEtcd(s.settings())
	if err != nil {
		return fmt.Errorf("etcdserver: start: %w", err)
	}
	timeout := time.NewTimer(startTimeout)
	defer timeout.Stop()
	select {
	case <-etcd.Server.ReadyNotify():
		s.etcd = etcd
		return nil
	case err = <-etcd.Err():
	case <-timeout.C:
		err = errors.New("it is not ready in time")
	}
	etcd.Close()
	return fmt.Errorf("etcdserver: start: %w", err)
}

// Stop stops the server, and closes the connections of its clients. It does nothing if the
// server is not running.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.etcd == nil {
		return
	}
	s.etcd.Close()
	s.etcd = nil
}

// Endpoint returns the address for clients, as host:port.
func (s *Server) Endpoint() string { return s.cfg.Client }

// Config returns the configuration, with the addresses that were selected.
func (s *Server) Config() Config { return s.cfg }

// settings are those of a cluster of one member that starts fast and logs nothing.
func (s *Server) settings() *embed.Config {
	at := func(addr string) url.URL { return url.URL{Scheme: "http", Host: addr} }
	c := embed.NewConfig()
	c.Name = "test"
	c.Dir = s.cfg.Dir
	c.ListenClientUrls = []url.URL{at(s.cfg.Client)}
	c.AdvertiseClientUrls = c.ListenClientUrls
	c.ListenPeerUrls = []url.URL{at(s.cfg.Peer)}
	c.AdvertisePeerUrls = c.ListenPeerUrls
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	c.TickMs, c.ElectionMs = 20, 200
	c.BcryptCost = 4 // the least: a check of a password takes long with the race detector
	// Data that is written, but not synced, survives the end of the process.
	c.UnsafeNoFsync = true
	return c
}

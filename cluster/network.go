package cluster

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"

	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/cluster/internal/link"
	"github.com/mcpactor/mcpactor/cluster/internal/mesh"
	"github.com/mcpactor/mcpactor/cluster/internal/node"
	"github.com/mcpactor/mcpactor/cluster/internal/wire"
)

// network connects a member with others, for its node and its witness. The witness needs it for longer than the node.
type network struct {
	*mesh.Mesh
	logger  zerolog.Logger
	packet  func(from string, data []byte) // takes what comes from a host of raft
	running sync.WaitGroup                 // accepts connections
}

var _ node.Network = (*network)(nil)

// newNetwork returns a network that accepts no connections yet. tell tells the node.
func newNetwork(cfg *Config, logger zerolog.Logger, tell func(any)) (*network, error) {
	creds, err := cfg.credentials(logger)
	if err != nil {
		return nil, err
	}
	n := &network{logger: logger}
	n.Mesh = mesh.New(mesh.Config{
		Cluster: cfg.Name, Version: wire.Version, Self: link.Address{Host: cfg.Advertise}, Logger: logger, Credentials: creds,
		Dial: cfg.dial,
		Decode: func(from *mesh.Link, m link.Message) any {
			if from.To().ID == "" {
				return m
			}
			return node.Decode(from.From().ID, from.To().ID, m)
		},
		Received: func(from *mesh.Link, decoded any) {
			if m, is := decoded.(link.Message); is {
				n.packet(from.To().Host, m.Body)
				return
			}
			tell(decoded)
		},
		Changed: func(of *mesh.Link, to link.State) {
			if of.To().ID != "" {
				tell(&node.Changed{Network: of.From().ID, Peer: of.To().ID, State: to})
			}
		},
	})
	return n, nil
}

// accept begins to accept connections. packet takes what comes from a host of raft.
func (n *network) accept(listener net.Listener, packet func(from string, data []byte)) {
	n.packet = packet
	n.running.Go(func() {
		if err := n.Serve(listener); err != nil {
			n.logger.Error().Err(err).Msg("member accepts no connections any longer")
		}
	})
}

// dial connects to a member. Whatever the others say, no address is dialed that is not one of Hosts, if these are set.
func (c *Config) dial(ctx context.Context, address string) (net.Conn, error) {
	if len(c.Hosts) > 0 && !slices.Contains(c.Hosts, address) {
		return nil, fmt.Errorf("cluster: %q is not one of hosts", address)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

// Link begins the link to another member.
func (n *network) Link(to node.Address) node.Link { return n.Mesh.Link(to) }

// close ends all connections.
func (n *network) close() {
	n.Close()
	n.running.Wait()
}

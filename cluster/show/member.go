package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/cluster"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/supervisor"
)

// memberVar is the environment variable with the configuration of a member, as JSON. A process
// that has it is a member.
const memberVar = "MCPACTOR_DEMO_MEMBER"

// memberConfig is the configuration of a member.
type memberConfig struct {
	Name   string
	Listen string   // for other members
	Hosts  []string // where the members listen
	URL    string   // of the MCP server and of the store, without their paths
}

const (
	// joinLimit bounds the time that a member takes to join, and lease is how long it may act
	// after others have confirmed that it is a member.
	joinLimit, lease = 20 * time.Second, 2 * time.Second
)

// join joins the cluster.
func (cfg *memberConfig) join(ctx context.Context, store mcpbridge.Store) (*cluster.Member, error) {
	ctx, cancel := context.WithTimeout(ctx, joinLimit)
	defer cancel()
	return cluster.Start(ctx, actor.NewActorSystem(supervisor.WithSystemLogger(zerolog.Nop())), cluster.Config{
		Name: "demo", Member: cfg.Name, Listen: cfg.Listen, Lease: lease, Hosts: cfg.Hosts, RestartedHostsJoinAnew: true,
		Supervisor: supervisor.Config{
			Servers: []mcpbridge.Server{{Name: "web", URL: cfg.URL + mcpPath}}, Store: store,
			Budget: 50, BackoffBase: 50 * time.Millisecond, BackoffMax: 500 * time.Millisecond,
			CallTimeout: callLimit, DrainTimeout: time.Second, CloseTimeout: time.Second,
		},
	})
}

// runMember runs the member that a configuration describes. It leaves when in ends, also because the show has ended.
func runMember(config string, in io.Reader) error {
	var cfg memberConfig
	if err := json.Unmarshal([]byte(config), &cfg); err != nil {
		return err
	}
	signal.Ignore(os.Interrupt) // Ctrl-C is for the show, which ends its members
	m, err := cfg.join(context.Background(), remoteStore(cfg.URL+storePath))
	if err != nil {
		return err
	}
	io.Copy(io.Discard, in) //nolint:errcheck // however it ends
	return stopMember(m)
}

// stopMember leaves the cluster.
func stopMember(m *cluster.Member) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	return m.Stop(ctx)
}

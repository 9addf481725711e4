package cluster_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/cluster"
	"github.com/mcpactor/mcpactor/cluster/etcdstore"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// Three members on three machines, with etcd, mutual TLS and a store that they share.
func ExampleStart() {
	ctx := context.Background()
	endpoints := []string{"https://etcd.example.com:2379"}
	store, err := etcdstore.Open(etcdstore.Config{Endpoints: endpoints})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	member, err := cluster.Start(ctx, actor.NewActorSystem(), cluster.Config{
		Supervisor: supervisor.Config{
			Servers: []supervisor.Server{{Name: "search", URL: "https://search.example.com/mcp"}},
			Store:   store,
		},
		Listen: "10.0.0.1:8090",
		Etcd:   cluster.Etcd{Endpoints: endpoints},
		TLS:    &cluster.TLS{CertFile: "member.pem", KeyFile: "member.key", CAFile: "rootCA.pem"},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer member.Stop(ctx)

	// The session may live on any of the members.
	reply, err := member.Client().CallTool(ctx, "search", "conversation-1", &mcp.CallToolParams{Name: "search"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.Supervisor)
}

// Three members on one machine. Each is this program with another port: run it three times, with 8091, 8092 and 8093.
func ExampleStart_hosts() {
	ctx, port := context.Background(), os.Args[1]
	member, err := cluster.Start(ctx, actor.NewActorSystem(), cluster.Config{
		Supervisor: supervisor.Config{
			Servers: []supervisor.Server{{Name: "search", URL: "https://search.example.com/mcp"}},
			Logger:  zerolog.New(os.Stderr),
		},
		Listen:    "127.0.0.1:" + port,
		Hosts:     []string{"127.0.0.1:8091", "127.0.0.1:8092", "127.0.0.1:8093"},
		Directory: "members",
	})
	if err != nil {
		log.Fatal(err)
	}
	defer member.Stop(ctx)
}

// The members of one process, for tests.
func ExampleNewInProcess() {
	ctx, system, hub := context.Background(), actor.NewActorSystem(), cluster.NewInProcess()
	var members []*cluster.Member
	for _, name := range []string{"a", "b"} {
		m, err := cluster.Start(ctx, system, cluster.Config{
			Supervisor: supervisor.Config{Servers: []supervisor.Server{{Name: "greeter", InMemory: mcp.NewServer(&mcp.Implementation{Name: "greeter"}, nil)}}},
			Member:     name, InProcess: hub,
		})
		if err != nil {
			log.Fatal(err)
		}
		defer m.Stop(ctx)
		members = append(members, m)
	}
	for len(members[0].Members()) < 2 {
		time.Sleep(10 * time.Millisecond)
	}

	cancel := members[0].Subscribe(func(e messages.Event) { _ = e.GetStamp().Supervisor }) // events of both
	defer cancel()
	for i := range 10 {
		if _, err := members[i%2].Client().Open(ctx, "greeter", fmt.Sprint(i)); err != nil {
			log.Fatal(err)
		}
	}
	snapshot, err := members[1].Client().Inspect(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(snapshot.Total, "sessions on", len(snapshot.Members), "members")
	_ = members[0].PID()        // takes the commands of package messages
	_ = members[0].Supervisor() // the member's own, for Reload, health and toolset
	_ = members[0].System()
	// Output: 10 sessions on 2 members
}

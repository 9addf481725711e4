package etcdstore_test

import (
	"context"
	"crypto/tls"
	"log"
	"os"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/cluster/etcdstore"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/supervisor"
)

// Several processes share their sessions. The user of etcd has a role for the prefix only.
func Example() {
	ctx := context.Background()
	system := actor.NewActorSystem()
	defer system.Shutdown()

	store, err := etcdstore.Open(etcdstore.Config{
		Endpoints: []string{"https://etcd-1:2379", "https://etcd-2:2379", "https://etcd-3:2379"},
		TLS:       &tls.Config{MinVersion: tls.VersionTLS13},
		Username:  "mcpactor",
		Password:  os.Getenv("ETCD_PASSWORD"),
		Prefix:    "/shop/sessions/",
	})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	sup, err := supervisor.Start(system, supervisor.Config{
		Servers:   []mcpbridge.Server{{Name: "shop", URL: "https://shop.example/mcp"}},
		Store:     store,
		LeaveOpen: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(ctx) // before the store is closed
}

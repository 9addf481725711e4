package redis_test

import (
	"context"
	"crypto/tls"
	"log"
	"os"

	"github.com/asynkron/protoactor-go/actor"
	goredis "github.com/redis/go-redis/v9"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/resume/redis"
	"github.com/mcpactor/mcpactor/supervisor"
)

// Several processes share their sessions.
func Example() {
	ctx := context.Background()
	system := actor.NewActorSystem()
	defer system.Shutdown()

	client := goredis.NewClient(&goredis.Options{
		Addr:      "redis:6379",
		Username:  "mcpactor",
		Password:  os.Getenv("REDIS_PASSWORD"),
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS13, ServerName: "redis"},
	})
	defer client.Close()
	store, err := redis.New(client, redis.Config{Prefix: "shop:sessions:"})
	if err != nil {
		log.Fatal(err)
	}
	sup, err := supervisor.Start(system, supervisor.Config{
		Servers:   []mcpbridge.Server{{Name: "shop", URL: "https://shop.example/mcp"}},
		Store:     store,
		LeaveOpen: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(ctx) // before the client is closed
}

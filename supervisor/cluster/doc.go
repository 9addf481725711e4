// Package cluster runs one supervisor on each member of a cluster, and one session per key
// across all of them, on Proto.Actor's cluster.
package cluster

import (
	_ "github.com/asynkron/protoactor-go/cluster"
	_ "github.com/asynkron/protoactor-go/cluster/clusterproviders/automanaged"
	_ "github.com/asynkron/protoactor-go/cluster/clusterproviders/etcd"
	_ "github.com/asynkron/protoactor-go/cluster/clusterproviders/test"
	_ "github.com/asynkron/protoactor-go/cluster/identitylookup/disthash"
	_ "github.com/asynkron/protoactor-go/remote"
	_ "go.etcd.io/etcd/client/v3"
	_ "google.golang.org/grpc"
	_ "google.golang.org/protobuf/proto"
)

//go:build linux

package cluster_test

import (
	"net"
	"sync/atomic"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	mcpcluster "github.com/mcpactor/mcpactor/cluster"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/cluster/etcdserver"
)

// A server of etcd that has lost the others, or whose disk hangs, accepts requests and does not answer. Members renew their leases
// with another one from then on.
func TestServerOfEtcdThatDoesNotAnswerIsLeft(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var requests atomic.Int64
	silent := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		requests.Add(1)
		<-stream.Context().Done()
		return stream.Context().Err()
	}))
	t.Cleanup(silent.Stop)
	go silent.Serve(listener) //nolint:errcheck // it ends with Stop
	etcd := etcdserver.Start(t)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{etcd.Endpoint()}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	beats := client.Watch(t.Context(), "/mcpactor/clusters/mcpactor/beats/", clientv3.WithPrefix())
	for range 4 { // the first server is a random one
		requests.Store(0)
		m, err := mcpcluster.Start(t.Context(), actor.NewActorSystem(), mcpcluster.Config{
			Supervisor: supervisor.Config{Servers: []supervisor.Server{{Name: "s", URL: "http://127.0.0.1:1"}}},
			Etcd:       mcpcluster.Etcd{Endpoints: []string{"http://" + listener.Addr().String(), "http://" + etcd.Endpoint()}},
			Lease:      lease / 2,
		})
		require.NoError(t, err)
		for renewed := 0; renewed < 12; {
			renewed += len((<-beats).Events)
		}
		require.NoError(t, m.Stop(t.Context()))
		require.LessOrEqual(t, requests.Load(), int64(1))
	}
}

//go:build linux

package cluster_test

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	mcpcluster "github.com/mcpactor/mcpactor/cluster"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/cluster/etcdserver"
)

// When a server of etcd does not answer, a member renews its lease with another one from then on.
func TestServerOfEtcdThatDoesNotAnswerIsLeft(t *testing.T) {
	silent, requests := etcdserver.Silent(t)
	etcd := etcdserver.Start(t)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{etcd.Endpoint()}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	beats := client.Watch(t.Context(), "/mcpactor/clusters/mcpactor/beats/", clientv3.WithPrefix())
	for range 4 { // the first server is a random one
		requests.Store(0)
		m, err := mcpcluster.Start(t.Context(), actor.NewActorSystem(), mcpcluster.Config{
			Supervisor: supervisor.Config{Servers: []supervisor.Server{{Name: "s", URL: "http://127.0.0.1:1"}}},
			Etcd:       mcpcluster.Etcd{Endpoints: []string{"http://" + silent, "http://" + etcd.Endpoint()}},
			Lease:      lease / 2,
		})
		require.NoError(t, err)
		for renewed := 0; renewed < 8; {
			renewed += len((<-beats).Events)
		}
		require.NoError(t, m.Stop(t.Context()))
		require.LessOrEqual(t, requests.Load(), int64(1))
	}
}

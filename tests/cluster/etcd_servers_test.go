//go:build linux

package cluster_test

import (
	"net"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	mcpcluster "github.com/mcpactor/mcpactor/cluster"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/cluster/etcdserver"
	"github.com/mcpactor/mcpactor/tests/cluster/mcpserver"
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

// A member that etcd does not answer cannot know whether it is the last one, and closes no session that only the store knows.
func TestStopWithoutAnAnswerOfEtcdSaysWhatMayBeLeft(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := mcpserver.Start(listener)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	etcd, records := etcdserver.Start(t), new(resume.Memory)
	start := func(leaveOpen bool) *mcpcluster.Member {
		m, err := mcpcluster.Start(t.Context(), actor.NewActorSystem(), mcpcluster.Config{
			Supervisor: supervisor.Config{Servers: []supervisor.Server{{Name: "s", URL: server.URL()}}, Store: records, LeaveOpen: leaveOpen},
			Etcd:       mcpcluster.Etcd{Endpoints: []string{"http://" + etcd.Endpoint()}},
			Lease:      lease / 4,
		})
		require.NoError(t, err)
		return m
	}
	first := start(true)
	_, err = first.Client().Open(t.Context(), "s", "")
	require.NoError(t, err)
	require.NoError(t, first.Stop(t.Context()))
	last := start(false)
	etcd.Stop()
	for range 2 {
		require.ErrorContains(t, last.Stop(t.Context()), "sessions that only the store knows")
	}
	require.Equal(t, 1, server.Live())

	require.NoError(t, etcd.Start())
	require.NoError(t, start(false).Stop(t.Context()))
	require.Zero(t, server.Live())
}

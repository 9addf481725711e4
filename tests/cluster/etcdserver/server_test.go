package etcdserver_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mcpactor/mcpactor/tests/cluster/etcdserver"
)

func TestServerKeepsItsDataAndItsAddress(t *testing.T) {
	server := etcdserver.Start(t)
	require.NoError(t, server.Start(), "it is running already")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Endpoint()}})
	require.NoError(t, err)
	defer client.Close()
	_, err = client.Put(ctx, "a", "1")
	require.NoError(t, err)

	server.Stop()
	server.Stop()
	short, cancelShort := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancelShort()
	_, err = client.Get(short, "a")
	require.Error(t, err)

	require.NoError(t, server.Start())
	got, err := client.Get(ctx, "a")
	require.NoError(t, err)
	require.Len(t, got.Kvs, 1)
	require.Equal(t, "1", string(got.Kvs[0].Value))
}

func TestServerNeedsADirectory(t *testing.T) {
	_, err := etcdserver.New(etcdserver.Config{})
	require.ErrorContains(t, err, "data directory")
}

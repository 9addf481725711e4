package etcdserver

import (
	"net"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
)

// Silent starts a server that accepts requests and answers none, as one of etcd does that has lost the others, or whose disk hangs.
// It returns its address, and counts the requests. It stops when the test ends.
func Silent(t testing.TB) (endpoint string, requests *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	requests = new(atomic.Int64)
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		requests.Add(1)
		<-stream.Context().Done()
		return stream.Context().Err()
	}))
	t.Cleanup(server.Stop)
	go server.Serve(listener) //nolint:errcheck // it ends with Stop
	return listener.Addr().String(), requests
}

package cluster_test

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// The simulation of the node would not tell what connections and etcd do.
func TestNodeIsTestedWithoutTheNetwork(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "./internal/node").Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "github.com/asynkron/protoactor-go/actor\n")
	for _, part := range []string{"protoactor-go/cluster", "protoactor-go/remote", "google.golang.org/grpc", "go.etcd.io/etcd"} {
		require.NotContains(t, string(out), part)
	}
}

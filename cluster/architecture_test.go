package cluster_test

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// dependencies returns the packages that packages of this module link, one in each line.
func dependencies(t *testing.T, packages string) string {
	out, err := exec.Command("go", "list", "-deps", packages).Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "github.com/asynkron/protoactor-go/actor\n")
	return string(out)
}

// The simulation of the node would not tell what connections and etcd do.
func TestNodeIsTestedWithoutTheNetwork(t *testing.T) {
	for _, part := range []string{"google.golang.org/grpc", "go.etcd.io/etcd"} {
		require.NotContains(t, dependencies(t, "./internal/node"), part)
	}
}

func TestNothingOfTheEnginesClusterIsLinked(t *testing.T) {
	for _, part := range []string{"protoactor-go/cluster", "protoactor-go/remote"} {
		require.NotContains(t, dependencies(t, "./..."), part)
	}
}

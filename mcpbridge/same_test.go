package mcpbridge

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A configuration that inherits is another one.
func TestInheritingIsAnotherConfiguration(t *testing.T) {
	one, other := Server{Name: "a", Command: "x"}, Server{Name: "a", Command: "x", InheritEnv: true}
	require.False(t, one.Same(&other))
	require.NoError(t, other.Validate())
}

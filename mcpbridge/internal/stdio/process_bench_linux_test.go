package stdio

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// BenchmarkStartAndStop starts a process that does nothing, and stops it.
func BenchmarkStartAndStop(b *testing.B) {
	cat := &mcpbridge.Server{Command: "cat"}
	var starting float64
	for b.Loop() {
		p, err := startProcess(cat, nil, nil)
		require.NoError(b, err)
		require.NoError(b, p.stop(context.Background()))
	}
	_ = starting
}

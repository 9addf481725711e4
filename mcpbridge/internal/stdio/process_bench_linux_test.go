package stdio

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// BenchmarkStartAndStop starts a process that does nothing beside another one, and stops it.
func BenchmarkStartAndStop(b *testing.B) {
	cat := &mcpbridge.Server{Command: "cat"}
	beside, err := startProcess(cat, nil, nil)
	require.NoError(b, err)
	defer beside.stop(context.Background())
	b.ReportAllocs()
	for b.Loop() {
		p, err := startProcess(cat, nil, nil)
		require.NoError(b, err)
		require.NoError(b, p.stop(context.Background()))
	}
}

// BenchmarkStart is the time until the process runs.
func BenchmarkStart(b *testing.B) {
	cat := &mcpbridge.Server{Command: "cat"}
	beside, err := startProcess(cat, nil, nil)
	require.NoError(b, err)
	defer beside.stop(context.Background())
	for b.Loop() {
		p, err := startProcess(cat, nil, nil)
		require.NoError(b, err)
		b.StopTimer()
		require.NoError(b, p.stop(context.Background()))
		b.StartTimer()
	}
}

package stdio

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
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

// BenchmarkMemory is the memory that a process takes which does nothing: here, and in the processes beside it. What several
// processes share is divided between them.
func BenchmarkMemory(b *testing.B) {
	const sessions = 100
	cat := &mcpbridge.Server{Command: "cat"}
	own := func() float64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return float64(stats.HeapAlloc + stats.StackInuse)
	}
	var here, beside float64
	round := func() {
		before := own()
		var all []*process
		for range sessions {
			p, err := startProcess(cat, nil, nil)
			require.NoError(b, err)
			all = append(all, p)
		}
		here += own() - before
		beside += besideThem(b, all)
		for _, p := range all {
			require.NoError(b, p.stop(context.Background()))
		}
	}
	round() // what this process keeps after its first sessions does not count
	here, beside = 0, 0
	for b.Loop() {
		round()
	}
	b.ReportMetric(here/1024/sessions/float64(b.N), "KiB-here/session")
	b.ReportMetric(beside/sessions/float64(b.N), "KiB-beside/session")
	b.ReportMetric(0, "ns/op")
}

// besideThem returns the memory of our children that are not servers, in KiB.
func besideThem(b *testing.B, servers []*process) (kib float64) {
	b.Helper()
	isServer := map[string]bool{}
	for _, p := range servers {
		isServer[strconv.Itoa(p.cmd.Process.Pid)] = true
	}
	lists, err := filepath.Glob("/proc/self/task/*/children")
	require.NoError(b, err)
	for _, list := range lists {
		children, _ := os.ReadFile(list) // the thread may be gone
		for child := range strings.FieldsSeq(string(children)) {
			if isServer[child] {
				continue
			}
			memory, err := os.ReadFile("/proc/" + child + "/smaps_rollup")
			require.NoError(b, err)
			_, pss, _ := strings.Cut(string(memory), "\nPss:")
			n, err := strconv.ParseFloat(strings.Fields(pss)[0], 64)
			require.NoError(b, err)
			kib += n
		}
	}
	return kib
}

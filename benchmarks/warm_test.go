package benchmarks

import (
	"fmt"
	"testing"

	"github.com/mcpactor/mcpactor/supervisor"
)

// BenchmarkWarm measures a call of a trivial tool on an open session.
func BenchmarkWarm(b *testing.B) {
	for _, r := range routes() {
		for _, callers := range []int{1, 8, 64} {
			all := []contender{
				{"bare", openBare},
				{"mutex-map", openMutexMap(unlimited)},
				{"message", openMessage(supervisor.Config{})},
				{"mcpactor", openClient(supervisor.Config{})},
			}
			if r.name != "stdio" || callers == 1 { // otherwise the start of processes is measured
				all = append(all, contender{"per-call", openPerCall})
			}
			if r.server.URL != "" {
				all = append(all, contender{"floor", openFloor}, contender{"untuned", openUntuned}, contender{"mcp-go", openMCPGo})
				if nodeInstalled() {
					all = append(all, contender{"node", openNode})
				}
			}
			b.Run(fmt.Sprintf("transport=%s/callers=%d", r.name, callers), func(b *testing.B) {
				compare(b, r, all, func(b *testing.B, c client) { measureCalls(b, callers, c) })
			})
		}
	}
}

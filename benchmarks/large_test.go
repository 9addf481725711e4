package benchmarks

import (
	"testing"

	"github.com/mcpactor/mcpactor/supervisor"
)

// BenchmarkLarge measures a call whose result is a text of 1 MB or an image of 5 MB. In memory client
// and server share a process, so that what the client allocates could not be told from what the server
// does.
func BenchmarkLarge(b *testing.B) {
	for _, content := range largeContents {
		for _, r := range overLarge(content) {
			all := []contender{
				{"bare", openBare},
				{"message", openMessage(supervisor.Config{})},
				{"mcpactor", openClient(supervisor.Config{})},
			}
			if r.server.URL != "" {
				all = append(all, contender{"floor", openFloor})
			}
			b.Run("content="+content+"/transport="+r.name, func(b *testing.B) {
				compare(b, r, all, func(b *testing.B, c client) { measureCalls(b, 1, c) })
			})
		}
	}
}

// overLarge returns the ways to servers that return a large content.
func overLarge(content string) []route {
	return []route{overStdio(content, ""), overJSON(content), overSSE(content)}
}

package toolset_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// BenchmarkEvents measures what an event of one key costs when each scope has a toolset.
func BenchmarkEvents(b *testing.B) {
	cfg := toolset.Config{Servers: []toolset.Filter{{Name: "one"}}}
	for _, how := range []string{"new", "pool"} {
		for _, scopes := range []int{1, 1000} {
			system := newSystem()
			sup, err := supervisor.Start(system, supervisor.Config{Servers: []mcpbridge.Server{
				{Name: "one", InMemory: newServer("one").mcp}, {Name: "two", InMemory: newServer("two").mcp},
			}})
			require.NoError(b, err)
			pool, err := toolset.NewPool(nil, sup, toolset.PoolConfig{Config: func(string) toolset.Config { return cfg }})
			require.NoError(b, err)
			for i := range scopes {
				if how == "pool" {
					_, err = pool.Get(fmt.Sprint(i))
				} else {
					own := cfg
					own.Scope = fmt.Sprint(i)
					_, err = toolset.New(nil, sup, own)
				}
				require.NoError(b, err)
			}
			stamp := messages.Stamp{Key: messages.Key{Server: "one", Scope: "0"}, Supervisor: sup.PID().Id}
			other := stamp
			other.Key.Server = "two"
			for name, event := range map[string]messages.Event{
				"opened":       &messages.SessionOpened{Stamp: stamp},
				"closed":       &messages.SessionClosed{Stamp: stamp},
				"other_server": &messages.SessionOpened{Stamp: other},
				"task":         &messages.TaskChanged{Stamp: stamp},
			} {
				b.Run(fmt.Sprintf("how=%s/toolsets=%d/event=%s", how, scopes, name), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						system.EventStream.Publish(event)
					}
				})
			}
			pool.Close()
			require.NoError(b, sup.Stop(context.Background()))
		}
	}
}

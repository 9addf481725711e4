package callbook

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
)

// Some in each of some processes, which share a store.
func TestManyWhoAskForACallAtOnceGetTheResultOfItsOneRun(t *testing.T) {
	for processes, timeout := range map[int]time.Duration{1: 0, 4: time.Minute} {
		t.Run(fmt.Sprintf("processes=%d", processes), func(t *testing.T) {
			store, runs, books := new(resume.Memory), atomic.Int64{}, make([]*Book, processes)
			for i := range books {
				books[i] = New(Config{Store: store, KeepResults: time.Hour, MaxResult: 1 << 10, Warn: func(call string, err error) { t.Error(call, err) }})
				defer books[i].Close()
			}
			send := func(ctx context.Context, e *Entry) (messages.Result, error) {
				if err := e.Begin(ctx); err != nil {
					return nil, &messages.Failure{Code: messages.CodeUnavailable, Detail: err.Error()}
				}
				result := &messages.ToolResult{Result: &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint("run ", runs.Add(1))}}}}
				e.Ran(ctx, result)
				return result, nil
			}
			ctx := t.Context()
			if timeout > 0 {
				limited, cancel := context.WithTimeout(ctx, timeout)
				defer cancel()
				ctx = limited
			}
			texts := make([]string, 64)
			var all sync.WaitGroup
			for i := range texts {
				all.Go(func() {
					result, err := books[i%processes].Do(ctx, called("t", nil), send)
					if err != nil {
						texts[i] = err.Error()
						return
					}
					texts[i] = result.(*messages.ToolResult).Result.Content[0].(*mcp.TextContent).Text
				})
			}
			all.Wait()
			for _, text := range texts {
				require.Equal(t, "run 1", text)
			}
			for _, b := range books {
				require.Empty(t, b.entries)
			}
		})
	}
}

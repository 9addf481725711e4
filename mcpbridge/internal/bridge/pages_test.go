package bridge

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/results"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

func toolPages(r *mcp.ListToolsResult) page[*mcp.Tool] {
	return page[*mcp.Tool]{&r.Meta, &r.Cacheable, &r.Tools, &r.NextCursor}
}

func TestListOnOnePageIsNotMeasured(t *testing.T) {
	got := 0
	all, one := &mcp.ListToolsResult{}, &mcp.ListToolsResult{Tools: []*mcp.Tool{{Name: "x"}}}
	incomplete, err := pages(wire.NewExchange(t.Context(), nil, false), caller{maxBytes: 1}, all, func(context.Context, string) (*mcp.ListToolsResult, error) {
		got++
		return one, nil
	}, toolPages)
	require.NoError(t, err)
	require.Empty(t, incomplete)
	require.Equal(t, one, all)
	require.Equal(t, 1, got)
}

// A server that ends its lists with an empty cursor may not answer it. One whose pages come slowly may.
func TestPagesBeforeAnEmptyCursorAreKeptThoughItIsNotAnswered(t *testing.T) {
	for name, c := range map[string]struct {
		first, second time.Duration // until each page comes
		names         int           // that are listed
		took          time.Duration
	}{
		"never":                        {0, time.Hour, 1, emptyCursorTimeout},
		"soon":                         {0, time.Second, 2, time.Second},
		"never, by a slow server":      {10 * time.Second, time.Hour, 1, 20 * time.Second},
		"as slowly as the page before": {10 * time.Second, 9 * time.Second, 2, 19 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				all := new(mcp.ListToolsResult)
				began := time.Now()
				incomplete, err := pages(wire.NewExchange(ctx, nil, false), caller{maxBytes: 1 << 10}, all, func(ctx context.Context, cursor string) (*mcp.ListToolsResult, error) {
					wait, result := c.first, &mcp.ListToolsResult{Tools: []*mcp.Tool{{Name: "a"}}, NextCursor: results.EmptyCursor}
					if cursor != "" {
						wait, result = c.second, &mcp.ListToolsResult{Tools: []*mcp.Tool{{Name: "b"}}}
					}
					if !wire.Sleep(ctx, wait) {
						return nil, ctx.Err()
					}
					return result, nil
				}, toolPages)
				require.NoError(t, err)
				require.Len(t, all.Tools, c.names)
				require.Equal(t, c.took, time.Since(began))
				require.Equal(t, c.names == 1, incomplete == "page 2, which has an empty cursor: it was not answered in time", incomplete)
			})
		})
	}
}

func TestEmptyCursorThatIsNotAnsweredCostsTheSessionNothing(t *testing.T) {
	for name, hangs := range map[string]answering{
		"before the headers": func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		},
		"in a body":    then(nil, says(200, outbound.TypeJSON, `{"jsonrpc":"2.0"`)),
		"in a stream":  stays(": beat\n\n"),
		"after events": stays("id: 1\n" + ping("a")),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript()
				c := s.attach(t)
				s.answer("tools/list", says(200, outbound.TypeJSON, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"a","inputSchema":{"type":"object"}}],"nextCursor":""}}`), hangs)
				began := time.Now()
				list, err := c.Do(t.Context(), new(messages.ListTools))
				require.NoError(t, err)
				require.Len(t, list.(*messages.ToolList).Result.Tools, 1)
				require.Equal(t, "page 2, which has an empty cursor: it was not answered in time", list.GetReceipt().Incomplete)
				require.Equal(t, emptyCursorTimeout, time.Since(began))
				e, _ := do(c)
				require.Nil(t, e)
				require.Empty(t, s.downs)
				synctest.Wait()
				posts, _ := s.seen(http.MethodPost)
				cancelled := 0
				for _, req := range posts {
					if rpc.Parse(rpc.BodyOf(req)).Method == rpc.MethodCancelled {
						cancelled++
					}
				}
				require.Equal(t, 1, cancelled)
				require.NoError(t, c.Close(context.Background()))
			})
		})
	}
}

package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/supervisor"
)

// The large contents of results.
const (
	contentText  = "text"  // 1 MB: lines with quotes
	contentImage = "image" // 5 MB, which are a third more in JSON
)

var largeContents = []string{contentText, contentImage}

// contentVar is the environment variable that names the content of a stdio server's
// results.
const contentVar = "BENCH_CONTENT"

// bodiesPerOp is the unit of the bytes that are allocated for a call, divided by the size
// of the result in JSON.
const bodiesPerOp = "bodies/op"

// largeResult returns a result with a large content.
func largeResult(content string) *mcp.CallToolResult {
	if content == contentText {
		const line = "A line of \"text\", as a file has them, with quotes and an end.\n"
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Repeat(line, 1_000_000/len(line))}}}
	}
	image := make([]byte, 5_000_000)
	for i := range image {
		image[i] = byte(i * i >> 3)
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.ImageContent{Data: image, MIMEType: "image/png"}}}
}

// toolOf returns a tool that returns a large content, or echo if there is none.
func toolOf(content string) mcp.ToolHandlerFor[echoArgs, any] {
	if content == "" {
		return echo
	}
	result := sync.OnceValue(func() *mcp.CallToolResult { return largeResult(content) })
	return func(context.Context, *mcp.CallToolRequest, echoArgs) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: result().Content}, nil, nil
	}
}

// large is calls with large results. In memory client and server share a process, so
// that what the client allocates could not be told from what the server does.
func (p *setup) large() (all []*benchCase) {
	for _, content := range largeContents {
		for _, r := range p.overLarge(content) {
			all = append(all, &benchCase{name: fmt.Sprintf("large/content=%s/transport=%s", content, r.transport), rounds: 5, contenders: []contender{
				{bareName, inBodies(content, r, openBare)},
				{messageName, inBodies(content, r, openMessage(supervisor.Config{}))},
				{clientName, inBodies(content, r, openClient(supervisor.Config{}))},
			}})
		}
	}
	return all
}

// overLarge returns the ways to servers that return a large content.
func (p *setup) overLarge(content string) []route {
	return []route{
		p.overStdio(map[string]string{contentVar: content}),
		p.overHTTP(nameJSON, p.origin+pathJSON+"/"+content, p.tuned),
		p.overHTTP(nameSSE, p.origin+pathSSE+"/"+content, p.tuned),
	}
}

// inBodies starts a contender that makes one call again and again, and relates what it
// allocates to the size of the result.
func inBodies(content string, r route, open opener) starter {
	return func(ctx context.Context) (*running, error) {
		body, err := json.Marshal(largeResult(content))
		if err != nil {
			return nil, err
		}
		c, err := repeated(1, r, open)(ctx)
		if err != nil {
			return nil, err
		}
		call := c.round
		c.round = func(ctx context.Context, n int) (sample, error) {
			s, err := call(ctx, n)
			if err == nil {
				s[bodiesPerOp] = s[bytesPerOp] / float64(len(body))
			}
			return s, err
		}
		return c, nil
	}
}

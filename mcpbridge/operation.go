package mcpbridge

import (
	"context"
	"fmt"
	"maps"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
)

// maxPages bounds a list, against a server whose cursor runs in circles.
const maxPages = 1000

// run runs one operation. It copies the parameters: the SDK writes into them,
// and an operation may be run twice.
func run(ctx context.Context, cs *mcp.ClientSession, op messages.Operation) (messages.Result, error) {
	switch op := op.(type) {
	case *messages.CallTool:
		params := *op.Params
		params.Meta = maps.Clone(params.Meta)
		result, err := cs.CallTool(ctx, &params)
		return &messages.ToolResult{Result: result}, err
	case *messages.ListTools:
		all := &mcp.ListToolsResult{Tools: []*mcp.Tool{}}
		err := pages(func(cursor string) (string, error) {
			page, err := cs.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
			if err != nil {
				return "", err
			}
			all.Meta = page.Meta
			all.Tools = append(all.Tools, page.Tools...)
			return page.NextCursor, nil
		})
		return &messages.ToolList{Result: all}, err
	case *messages.Ping:
		return &messages.Pong{}, cs.Ping(ctx, nil)
	}
	return nil, &Error{Class: Invalid, Detail: fmt.Sprintf("operation %T is not known here", op)}
}

// pages calls next with one cursor after the other until there are no more.
func pages(next func(cursor string) (string, error)) error {
	cursor := ""
	for range maxPages {
		following, err := next(cursor)
		switch {
		case err != nil:
			return err
		case following == "":
			return nil
		case following == cursor:
			return &Error{Class: Protocol, Sent: true, Detail: "the server's list does not end: a page names itself as the next"}
		}
		cursor = following
	}
	return &Error{Class: Protocol, Sent: true, Detail: fmt.Sprintf("the server's list has more than %d pages", maxPages)}
}

// ReadOnly reports whether an operation is read-only by protocol, so that
// running it twice does no harm.
func ReadOnly(op messages.Operation) bool {
	_, isCall := op.(*messages.CallTool)
	return !isCall
}

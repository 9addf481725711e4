package supervisor

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/callbook"
	"github.com/mcpactor/mcpactor/internal/limits"
	"github.com/mcpactor/mcpactor/internal/relay"
	"github.com/mcpactor/mcpactor/internal/storelimit"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// newBook returns the book of calls of a supervisor. store is that of its sessions, or nil.
func newBook(cfg Config, store mcpbridge.Store, logger *relay.Logger, client *Client) *callbook.Book {
	if cfg.CallStore != nil {
		store = storelimit.New(cfg.CallStore)
	}
	book := callbook.Config{
		Store: store, Grace: min(limits.Of(cfg.CloseTimeout), time.Minute), KeepResults: limits.Of(cfg.KeepResults), MaxResult: limits.Of(cfg.MaxKeptResult),
		Warn: func(call string, err error) {
			line := logger.Warn().Err(err)
			if call != "" {
				line.Str("call", call)
			}
			line.Msg("records of calls")
		},
	}
	if cfg.DropResults {
		book.KeepResults = 0
	}
	if resolve := cfg.Resolve; resolve != nil {
		book.Resolve = func(ctx context.Context, call *messages.CallTool) (messages.Resolution, *mcp.CallToolResult, error) {
			return resolve(ctx, client, call)
		}
	}
	return callbook.New(book)
}

package bridge

import (
	"context"
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/errgroup"

	"github.com/mcpactor/mcpactor/internal/results"
	"github.com/mcpactor/mcpactor/internal/rounds"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
)

// Servers of protocol 2026-07-28 send no requests. Instead, the result of a call asks for input, and the call is sent again with the
// input (SEP-2322): see package rounds. The SDK's own middleware would answer roots/list alike for all sessions.

// maxAsked bounds how many questions of one server wait for an answer.
const maxAsked = 64

// asksForInput is what a request returns, as an error of the SDK, whose result asks for input.
type asksForInput struct{ *rounds.Asked }

// Error says so.
func (*asksForInput) Error() string { return "the server asks for input" }

// inputIn returns what the result of a request with this method asks for, or nil. It is an error if it asks for what cannot be
// asked.
func inputIn(raw []byte, method string, isModern bool) error {
	if !isModern || !results.IsUnfinished(method, raw) || !results.IsOfType(raw, rounds.ResultType) {
		return nil
	}
	asked, err := rounds.Decode(raw)
	if err != nil {
		return &mcpbridge.Error{
			Class: mcpbridge.Protocol, Sent: true, Detail: "the server asks for input that cannot be asked for: " + redact.Clean(err.Error()), Err: err,
		}
	}
	return &asksForInput{asked}
}

// fulfil gets the input that a server wants, with one call of ask for each question.
func fulfil(ctx context.Context, wanted mcp.InputRequestMap, ask func(ctx context.Context, key string) (mcp.Result, error)) (map[string]mcp.Result, error) {
	var mu sync.Mutex
	answers := make(map[string]mcp.Result, len(wanted))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxAsked)
	for key, one := range wanted {
		group.Go(func() error {
			result, err := ask(ctx, key)
			if err != nil {
				method, _ := requestOf(nil, one)
				return fmt.Errorf("the server asked for %s: %w", method, err)
			}
			mu.Lock()
			defer mu.Unlock()
			answers[key] = result
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, &mcpbridge.Error{Class: mcpbridge.Refused, Sent: true, Detail: redact.Clean(err.Error()), Err: err}
	}
	return answers, nil
}

// requestOf returns the request of a server that corresponds to an input request.
func requestOf(cs *mcp.ClientSession, wanted mcp.InputRequest) (method string, req mcp.Request) {
	switch params := wanted.(type) {
	case *mcp.ElicitParams:
		return rpc.MethodElicit, &mcp.ElicitRequest{Session: cs, Params: params}
	case *mcp.CreateMessageWithToolsParams: // what the SDK decodes all sampling to
		return rpc.MethodSample, &mcp.CreateMessageWithToolsRequest{Session: cs, Params: params}
	default:
		return rpc.MethodListRoots, &mcp.ListRootsRequest{Session: cs}
	}
}

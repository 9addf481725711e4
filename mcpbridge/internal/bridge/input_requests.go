package bridge

import (
	"context"
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/errgroup"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
)

const (
	// maxInputRounds bounds how often a server may ask for input before it answers.
	maxInputRounds = 10
	// maxEmptyRounds bounds how often a server may only ask to repeat the request.
	maxEmptyRounds = 3
	// maxAsked bounds how many questions of one server wait for an answer.
	maxAsked = 64
)

// answerInputRequests is middleware for servers of protocol 2026-07-28, which send no
// requests. Instead, the result of a call asks for input, and the middleware sends the call
// again with the input (SEP-2322). The SDK's own middleware would answer roots/list
// alike for all sessions.
func answerInputRequests(send, receive mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		for round, empty := 1, 0; ; round++ {
			result, err := send(ctx, method, req)
			wanted, state, more := wantedBy(result)
			switch {
			case err != nil || !more:
				return result, err
			case len(wanted) == 0:
				empty++
			}
			if round == maxInputRounds || empty == maxEmptyRounds {
				return nil, &mcpbridge.Error{Class: mcpbridge.ServerError, Sent: true, Detail: "the server asks for more again and again"}
			}
			cs := req.GetSession().(*mcp.ClientSession)
			answers, err := fulfil(ctx, cs, receive, wanted)
			if err != nil {
				return nil, err
			}
			req = nextRound(cs, req.GetParams(), answers, state)
		}
	}
}

// wantedBy returns the input that a result asks for. more is false for a final result.
func wantedBy(result mcp.Result) (wanted mcp.InputRequestMap, state string, more bool) {
	switch r := result.(type) {
	case *mcp.CallToolResult:
		return r.InputRequests, r.RequestState, r.NeedsInput()
	case *mcp.GetPromptResult:
		return r.InputRequests, r.RequestState, r.NeedsInput()
	case *mcp.ReadResourceResult:
		return r.InputRequests, r.RequestState, r.NeedsInput()
	}
	return nil, "", false
}

// fulfil gets the input, as if the server had sent requests.
func fulfil(ctx context.Context, cs *mcp.ClientSession, receive mcp.MethodHandler, wanted mcp.InputRequestMap) (mcp.InputResponseMap, error) {
	var mu sync.Mutex
	answers := make(mcp.InputResponseMap, len(wanted))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxAsked)
	for name, one := range wanted {
		group.Go(func() error {
			method, req := requestOf(cs, one)
			result, err := receive(ctx, method, req)
			if err != nil {
				return fmt.Errorf("the server asked for %s: %w", method, err)
			}
			mu.Lock()
			defer mu.Unlock()
			answers[name] = result.(mcp.InputResponse)
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

// nextRound returns the request with the input.
func nextRound(cs *mcp.ClientSession, params mcp.Params, answers mcp.InputResponseMap, state string) mcp.Request {
	switch p := params.(type) {
	case *mcp.CallToolParams:
		next := *p
		next.InputResponses, next.RequestState = answers, state
		return &mcp.ClientRequest[*mcp.CallToolParams]{Session: cs, Params: &next}
	case *mcp.GetPromptParams:
		next := *p
		next.InputResponses, next.RequestState = answers, state
		return &mcp.ClientRequest[*mcp.GetPromptParams]{Session: cs, Params: &next}
	case *mcp.ReadResourceParams:
		next := *p
		next.InputResponses, next.RequestState = answers, state
		return &mcp.ClientRequest[*mcp.ReadResourceParams]{Session: cs, Params: &next}
	}
	return nil // wantedBy knows no other
}

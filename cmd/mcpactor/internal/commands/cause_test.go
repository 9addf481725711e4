package commands

import (
	"context"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/servertest"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

func TestEachFailureOfAServerHasANextStep(t *testing.T) {
	const (
		byHand = "run its command by hand to see what it says"
		log    = "read the log of the server, or tell its author"
	)
	command, hosted := mcpbridge.Server{Command: "server"}, mcpbridge.Server{URL: "http://a.example"}
	for name, test := range map[string]struct {
		srv         mcpbridge.Server
		failure     messages.Failure
		cause, next string
	}{
		"down":                {hosted, messages.Failure{Op: "Open", Code: messages.CodeUnavailable, Detail: "refused"}, "unavailable: refused", "check that it runs, and its URL"},
		"silent":              {command, messages.Failure{Op: "Open", Code: messages.CodeDeadline}, "deadline: there was no answer to Open in 3s", byHand},
		"slow list":           {command, messages.Failure{Op: "tools/list", Code: messages.CodeDeadline, MayHaveRun: true}, "deadline: there was no answer to tools/list in 3s", ""},
		"ended in the list":   {command, messages.Failure{Op: "tools/list", Code: messages.CodeLost, Detail: "ended", MayHaveRun: true}, "lost: ended", byHand},
		"cut in the list":     {hosted, messages.Failure{Op: "tools/list", Code: messages.CodeLost, Detail: "cut", MayHaveRun: true}, "lost: cut", log},
		"error":               {command, messages.Failure{Op: "tools/list", Code: messages.CodeServerError, Detail: "boom"}, "server_error: boom", log},
		"not to be read":      {command, messages.Failure{Op: "tools/list", Code: messages.CodeProtocol, Detail: "bad"}, "protocol: bad", log},
		"too many requests":   {hosted, messages.Failure{Op: "tools/list", Code: messages.CodeRateLimited, Detail: "429"}, "rate_limited: 429", "wait, and try again"},
		"remedy":              {hosted, messages.Failure{Op: "tools/list", Code: messages.CodeProtocol, Detail: "x", Remedy: "y"}, "protocol: x", "y"},
		"call that may run":   {hosted, messages.Failure{Op: "tools/call", Code: messages.CodeLost, Detail: "cut", MayHaveRun: true}, "lost: cut; the call may have run", ""},
		"call of a bad value": {hosted, messages.Failure{Op: "tools/call", Code: messages.CodeInvalid, Detail: "a is wrong"}, "invalid: a is wrong", ""},
	} {
		cause, next := explain(test.srv, &test.failure, 3*time.Second)
		require.Equal(t, test.cause, cause, name)
		require.Equal(t, test.next, next, name)
	}
}

func TestDoctorSaysThatAListHasNoAnswer(t *testing.T) {
	server := servertest.NewTools("a")
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "tools/list" {
				<-ctx.Done()
			}
			return next(ctx, method, req)
		}
	})
	got := outcomeOf("doctor", servertest.Serve(t, server), "--timeout", "1s")
	require.Contains(t, got.out, "deadline: there was no answer to tools/list in 1s; give it more --timeout\n")
}

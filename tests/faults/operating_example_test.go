package faults_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// varying are the parts of a line that differ in each run, because the backoff has a jitter.
var varying = regexp.MustCompile(`(?m)^[\d:.]+|(delay|elapsed)=\S+`)

// The worked example of docs/operating.md has the output of this test.
func TestCallThatWasLostIsExplainedInTheDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/operating.md")
	require.NoError(t, err)
	_, page, found := strings.Cut(string(text), "## Why was this call lost?")
	require.True(t, found)
	page = varying.ReplaceAllString(page, "$1")
	var failure *messages.Failure

	log := buyBook(t, "alice", nil, func(err error) { require.ErrorAs(t, err, &failure) })
	require.Contains(t, page, "```text\n"+failure.Error()+"\n```")
	require.Contains(t, page, "```text\n"+log+"```", log)
	require.True(t, failure.MayHaveRun)
	require.Equal(t, 1, failure.Attempt)
	require.False(t, failure.Replayed)
	require.EqualValues(t, 1, failure.Generation)

	buyBook(t, "bob", &mcp.ToolAnnotations{IdempotentHint: true}, func(err error) { require.NoError(t, err) })
}

// buyBook searches and buys a book from a server that dies while it runs the second call. check
// gets the error of that call. It returns the log of the scope up to then.
func buyBook(t *testing.T, scope string, annotations *mcp.ToolAnnotations, check func(error)) (log string) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		handler := slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})
		logger := supervisor.SlogLogger(slog.New(handler))
		shop := faults.NewScript(t, "shop")
		shop.Tool("search").Returns("Dune, 9 euros")
		shop.Define(&mcp.Tool{Name: "buy", Annotations: annotations}).Fails(faults.ServerDied).Returns("order 17")
		sup := shop.Supervise(actor.NewActorSystem(supervisor.WithSystemLogger(logger)), supervisor.Config{Logger: logger})
		call := func(tool string) error {
			_, err := sup.Client().CallTool(context.Background(), "shop", scope, &mcp.CallToolParams{Name: tool})
			return err
		}
		require.NoError(t, call("search"))
		time.Sleep(90 * time.Second)
		check(call("buy"))
		require.NoError(t, sup.Stop(context.Background()))
		for line := range strings.Lines(out.String()) {
			if strings.Contains(line, "scope="+scope) && !strings.Contains(line, "session closed") {
				log += varying.ReplaceAllString(strings.TrimPrefix(line, "time="), "$1")
			}
		}
	})
	return regexp.MustCompile(`(?m)^\S+T\S+`).ReplaceAllString(log, "")
}

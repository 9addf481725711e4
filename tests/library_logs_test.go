package tests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// logLines is a writer that keeps the lines of a log.
type logLines struct {
	mu  sync.Mutex
	all []map[string]any
}

func (l *logLines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fields := map[string]any{}
	if err := json.Unmarshal(line, &fields); err != nil {
		return 0, err
	}
	l.all = append(l.all, fields)
	return len(line), nil
}

// of returns the lines of a library, or of mcpactor if lib is empty.
func (l *logLines) of(lib string) (lines []map[string]any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.all {
		if name, _ := line["lib"].(string); name == lib {
			lines = append(lines, line)
		}
	}
	return lines
}

// withSystemLog makes the actor systems of a test write their log to the returned lines.
func withSystemLog(t *testing.T, level zerolog.Level) (*logLines, zerolog.Logger) {
	lines := new(logLines)
	logger := zerolog.New(lines).Level(level)
	quietly := quietLog
	quietLog = supervisor.WithSystemLogger(logger)
	t.Cleanup(func() { quietLog = quietly })
	return lines, logger
}

// secretive is a message that must not be logged.
type secretive struct{ Password string }

func TestProtoActorsLinesHaveFittingLevelsAndNoMessages(t *testing.T) {
	lines, logger := withSystemLog(t, zerolog.DebugLevel)
	inFakeTime(t, supervisor.Config{Logger: logger}, func(h *harness) {
		h.send(call("a", "count")).ok()
		h.server.expire("a")
		h.send(call("a", "count")).ok()

		h.strict = false // the actor of the user panics
		mortal := h.system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
			if _, is := c.Message().(*secretive); is {
				panic(errors.New("a bug of the user"))
			}
		}))
		h.system.Root.Send(mortal, &secretive{"hunter2"})
		h.system.Root.Send(actor.NewPID("nonhost", "gone"), &secretive{"hunter2"})
		h.send(&messages.Bind{Scope: "b", Owner: actor.NewPID("nonhost", "gone")}).reply()
		time.Sleep(time.Second)
	})
	levels := map[string][]string{}
	for _, line := range lines.of("protoactor") {
		text := line["message"].(string)
		levels[text] = append(levels[text], line["level"].(string))
		require.NotContains(t, line, "time")
		for _, value := range line {
			require.NotNil(t, value)
			require.NotContains(t, fmt.Sprint(value), "hunter2")
		}
		if line["type"] == "*tests.secretive" {
			require.Equal(t, "nonhost/gone", line["pid"])
			require.Equal(t, "info", line["level"])
		}
	}
	require.Equal(t, []string{"debug"}, levels["actor system started"])
	require.Equal(t, []string{"warn"}, levels["[ACTOR] Recovering"], "the bug: the actors of mcpactor do not log in their goroutines")
	require.Equal(t, []string{"info"}, levels["[DeadLetter]"], "the message of the user: the watch of the owner is none")
	require.NotEmpty(t, levels["[SUPERVISION]"], "the fault of the session")
	for _, level := range levels["[SUPERVISION]"] {
		require.Equal(t, "debug", level)
	}
}

func TestSystemLogThatBlocksDelaysNothing(t *testing.T) {
	release := lazyChannel()
	writer := &blockedWriter{open: func() <-chan struct{} { return release() }}
	quietly := quietLog
	quietLog = supervisor.WithSystemLogger(zerolog.New(writer))
	defer func() { quietLog = quietly }()
	inFakeTime(t, supervisor.Config{BackoffBase: 1, Budget: -1}, func(h *harness) {
		began := time.Now()
		for range 20 {
			h.send(call("a", "count")).ok()
			h.server.expire("a")
		}
		require.Less(t, time.Since(began), time.Second)
		require.Empty(t, writer.log.String())
		close(release())
		synctest.Wait()
		require.Contains(t, writer.log.String(), "[SUPERVISION]")
	})
}

func TestProtoActorSaysNothingOfSessionsAboveDebug(t *testing.T) {
	lines, logger := withSystemLog(t, zerolog.InfoLevel)
	inFakeTime(t, supervisor.Config{Logger: logger}, func(h *harness) {
		for _, scope := range []string{"a", "b", "c"} {
			h.send(call(scope, "count")).ok()
			h.server.expire(scope)
			h.send(call(scope, "count")).ok()
		}
		// The replies to an actor that has stopped are dead letters.
		h.system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
			if _, ok := c.Message().(*actor.Started); ok {
				c.Request(h.sup.PID(), call("a", "count"))
				c.Request(h.sup.PID(), &messages.Inspect{})
				c.Stop(c.Self())
			}
		}))
	})
	require.Empty(t, lines.of("protoactor"))
	require.NotEmpty(t, lines.of(""))
}

// The SDK leaves out a tool whose declaration is malformed. It says so in the log of the
// supervisor, where the secrets of the server are blacked out.
func TestLinesOfTheSDKComeThroughTheLogger(t *testing.T) {
	const secret = "s3cr3t-s3cr3t"
	desk := mcp.NewServer(&mcp.Implementation{Name: "desk", Version: "1"}, nil)
	desk.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method != "tools/list" {
				return next(ctx, method, req)
			}
			region := map[string]any{secret: map[string]any{"type": "array", "x-mcp-header": "Region"}}
			return &mcp.ListToolsResult{Tools: []*mcp.Tool{{
				Name: secret + "-where", InputSchema: map[string]any{"type": "object", "properties": region},
			}}}, nil
		}
	})
	server, err := faults.Serve(func() http.Handler {
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return desk }, nil)
	})
	require.NoError(t, err)
	defer server.Close()
	lines := new(logLines)
	h := start(t, supervisor.Config{
		Servers: []mcpbridge.Server{{Name: "s", URL: server.URL(), Headers: map[string]string{"Authorization": "Bearer " + secret}}},
		Logger:  zerolog.New(lines),
	})
	require.Empty(t, h.send(&messages.ListTools{Header: messages.To("s", "a")}).reply().(*messages.ToolList).Result.Tools)
	h.stopAndVerify()
	said := lines.of("go-sdk")
	require.Len(t, said, 1)
	require.Equal(t, "excluding tool from tools/list", said[0]["message"])
	require.Equal(t, "warn", said[0]["level"])
	require.Equal(t, "…-where", said[0]["tool"])
	require.Contains(t, said[0]["error"], "x-mcp-header")
	for _, value := range said[0] {
		require.False(t, strings.Contains(value.(string), secret), value)
	}
	require.NotContains(t, said[0], "time")
}

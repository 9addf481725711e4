package tests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
	"github.com/mcpactor/mcpactor/tests/internal/stdioserver"
)

// Guarantee 12: neither the logs of mcpactor and Proto.Actor nor events, snapshots and
// failures repeat a secret, or a header that a server sends.
func TestNothingSecretIsLogged(t *testing.T) {
	const secret = "s3cr3t-s3cr3t"
	var log, protoactor bytes.Buffer
	out := zerolog.SyncWriter(&log)
	cfg := supervisor.Config{
		Servers:  []mcpbridge.Server{{Name: "s", Headers: map[string]string{"Authorization": "Bearer " + secret}}},
		Logger:   zerolog.New(out).Level(zerolog.TraceLevel),
		FailFast: true, // calls do not wait while the server is down
	}
	quietly := quietLog
	defer func() { quietLog = quietly }()
	quietLog = func(config *actor.Config) {
		config.LoggerFactory = func(*actor.ActorSystem) *slog.Logger {
			return slog.New(slog.NewTextHandler(zerolog.SyncWriter(&protoactor), &slog.HandlerOptions{Level: slog.LevelDebug}))
		}
	}
	var said []string
	overHTTP(t, cfg, func(h *harness, e *testServer) {
		h.strict = false
		actor.SubscribeSupervision(h.system)
		hidden := func(op *messages.CallTool) {
			op.Params.Arguments.(map[string]any)["other"] = secret
		}
		ask := func(p *sentCommand) {
			if f, ok := p.reply().(*messages.Failure); ok {
				said = append(said, f.Error(), fmt.Sprintf("%+v %v", f, f.LogValue()))
			}
		}
		ask(h.send(call("a", "count", hidden)))
		var ids []string
		remove := e.Inject("tools/call", func(w http.ResponseWriter, r *faults.Request, next http.Handler) {
			ids = append(ids, r.Session)
			next.ServeHTTP(w, r.Request)
		})
		ask(h.send(call("a", "count", hidden)))
		remove()
		require.Len(t, ids, 1)
		require.NotEmpty(t, ids[0])
		// The server repeats the headers and the body of a request in its refusals.
		for _, status := range []int{404, 400, 401, 403, 429, 500, 410} {
			heal := e.Inject("", onPOST(func(w http.ResponseWriter, r *faults.Request, _ http.Handler) {
				w.WriteHeader(status)
				fmt.Fprintf(w, "session %s %s\nlevel=error msg=forged\x1b[2J", r.Session, r.Header.Get("Authorization"))
			}))
			ask(h.send(call("a", "count", hidden)))
			heal()
		}
		// A reply to an actor that has stopped, and a command to a supervisor that has
		// stopped.
		h.system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
			if _, ok := c.Message().(*actor.Started); ok {
				c.Request(h.sup.PID(), call("b", "count", hidden))
				c.Stop(c.Self())
			}
		}))
		ask(h.send(call("b", "count", hidden)))
		snap, err := json.Marshal(h.inspect())
		require.NoError(t, err)
		said = append(said, string(snap))
		require.NoError(t, h.sup.Stop(h.t.Context()))
		h.system.Root.Send(h.sup.PID(), call("b", "count", hidden))
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, event := range h.events {
			said = append(said, fmt.Sprintf("%+v", event))
		}
		for _, f := range h.faults {
			said = append(said, fmt.Sprint(f.Reason))
		}
		for _, text := range append(said, log.String(), protoactor.String()) {
			require.NotContains(t, text, secret)
			require.NotContains(t, text, "\x1b")
			require.NotContains(t, text, "\nlevel=error msg=forged")
			for _, id := range ids {
				require.NotContains(t, text, id)
			}
		}
		require.True(t, strings.Contains(log.String(), "session opened"))
	})
}

// A8, C1, H-E3: the last output of a process may contain arguments of calls. It is passed to the
// callers whose calls ended with the process, and not to other callers, logs, events or
// snapshots.
func TestLastWordsOfAProcessAreForItsCallersOnly(t *testing.T) {
	const secret = "correct-horse-battery"
	var log bytes.Buffer
	cfg := supervisor.Config{Logger: zerolog.New(zerolog.SyncWriter(&log)).Level(zerolog.TraceLevel), MaxInFlight: 2}
	var said []string
	listen := func(h *harness) {
		snap, err := json.Marshal(h.inspect())
		require.NoError(t, err)
		h.stop()
		h.mu.Lock()
		defer h.mu.Unlock()
		said = append(said, string(snap), log.String())
		for _, event := range h.events {
			said = append(said, fmt.Sprintf("%+v", event))
		}
		for _, f := range h.faults {
			said = append(said, fmt.Sprint(f.Reason))
		}
	}
	overStdio(t, "", cfg, func(h *harness) {
		h.send(&messages.ListTools{Header: messages.To("s", "a")}).reply()
		beside := call("a", "wait")
		waiting := h.send(beside)
		h.awaitExecution(beside)
		f := h.send(call("a", "exit", with("scope", secret))).fails(messages.CodeLost)
		require.Contains(t, f.Detail, "exited with status 7: out of memory")
		require.Contains(t, f.Detail, secret)
		require.Contains(t, waiting.fails(messages.CodeLost).Detail, "exited with status 7: out of memory", "it was its call, too, as far as can be told")
		require.Contains(t, awaitEvent(h, func(*messages.SessionLost) bool { return true }).Cause, "exited with status 7")
		h.send(call("a", "pid")).ok()
		listen(h)
	})
	overStdio(t, stdioserver.Dies, cfg, func(h *harness) {
		f := h.send(call("a", "pid")).fails(messages.CodeUnavailable)
		require.Contains(t, f.Detail, "exited with status 3: reading configuration no license found")
		require.NotContains(t, f.Detail, "\n")
		require.Contains(t, h.session("a").Cause, "exited with status 3")
		listen(h)
	})
	require.Contains(t, log.String(), "exited with status 7")
	for _, text := range said {
		require.NotContains(t, text, secret)
		require.NotContains(t, text, "out of memory")
		require.NotContains(t, text, "no license found")
	}
}

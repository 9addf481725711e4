package tests

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// quiet bounds how long nothing may be heard of an operation.
func quiet(d time.Duration) func(*messages.CallTool) {
	return func(op *messages.CallTool) { op.Quiet = d }
}

// newReporter returns a server whose tool "report" reports its progress each second, as often as its argument "times"
// says. Then it returns, or with the argument "stuck" runs until it is cancelled, which it says.
func newReporter(cancelled chan<- string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "reporter", Version: "1"}, nil)
	type arguments struct {
		Call  string `json:"call"`
		Scope string `json:"scope"`
		Times int    `json:"times,omitempty"`
		Stuck bool   `json:"stuck,omitempty"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "report"}, func(ctx context.Context, req *mcp.CallToolRequest, in arguments) (*mcp.CallToolResult, any, error) {
		for i := range in.Times {
			<-time.After(time.Second)
			if token := req.Params.GetProgressToken(); token != nil {
				if err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(i)}); err != nil {
					return nil, nil, err
				}
			}
		}
		if in.Stuck {
			<-ctx.Done()
			cancelled <- in.Call
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "reported"}}}, nil, nil
	})
	return s
}

// A call whose server reports progress may take long, over every transport that has a fake time.
func TestCallEndsWhenNothingWasHeardOfIt(t *testing.T) {
	for _, transport := range []string{"in memory", "HTTP", "HTTP+SSE"} {
		t.Run(transport, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cancelled := make(chan string, 10)
				reporter := newReporter(cancelled)
				server := mcpbridge.Server{Name: "s", ProtocolVersion: "2025-11-25"}
				get := func(*http.Request) *mcp.Server { return reporter }
				var local *faults.Server
				switch transport {
				case "in memory":
					server.InMemory = reporter
				case "HTTP":
					local = faults.Local(func() http.Handler { return mcp.NewStreamableHTTPHandler(get, nil) })
				default:
					local = faults.Local(func() http.Handler { return mcp.NewSSEHandler(get, nil) })
					server.Transport = mcpbridge.TransportSSE
				}
				if local != nil {
					defer local.Close()
					server.URL, server.HTTPClient = local.URL()+"/mcp", &http.Client{Transport: local}
				}
				h := start(t, supervisor.Config{Servers: []mcpbridge.Server{server}})

				p := h.send(call("a", "report", with("times", 10), quiet(2*time.Second)))
				require.Equal(t, "reported", p.text(), "it is not quiet, and takes 10 s")

				p = h.send(call("a", "report", with("times", 3), with("stuck", true), quiet(2*time.Second)))
				f := p.fails(messages.CodeQuiet)
				require.True(t, f.MayHaveRun)
				require.Equal(t, "nothing was heard of it for 2s", f.Detail)
				require.Equal(t, 5*time.Second, p.answeredAt.Sub(p.sent), "the time runs from the last progress")
				require.Equal(t, p.cmd.RequestID(), <-cancelled, "it is cancelled on the server")

				p = h.send(call("a", "report", with("times", 10), within(4500*time.Millisecond), quiet(2*time.Second)))
				p.fails(messages.CodeDeadline)
				require.Equal(t, 4500*time.Millisecond, p.answeredAt.Sub(p.sent), "progress does not extend the deadline")

				p = h.send(call("a", "report", with("times", 3), with("stuck", true), within(10*time.Second)))
				p.fails(messages.CodeDeadline)
				<-cancelled

				ctx := supervisor.WithHeader(t.Context(), messages.Header{Quiet: 2 * time.Second, Deadline: time.Now().Add(time.Minute)})
				began, heard := time.Now(), 0
				_, err := h.sup.Client().CallTool(supervisor.WithProgress(ctx, func(*messages.Progress) { heard++ }), "s", "a",
					call("a", "report", with("times", 2), with("stuck", true)).Params)
				require.ErrorIs(t, err, messages.CodeQuiet)
				require.NotErrorIs(t, err, context.DeadlineExceeded)
				require.Equal(t, 4*time.Second, time.Since(began))
				require.Equal(t, 2, heard)
				<-cancelled
				h.stopAndVerify()
				time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
			})
		})
	}
}

// Over stdio the time is real. What is measured is only that the call outlives the time that it may be quiet.
func TestProgressOfAProcessKeepsItsCall(t *testing.T) {
	overStdio(t, "", supervisor.Config{}, func(h *harness) {
		h.send(call("a", "count")).ok()
		began := time.Now()
		require.Equal(t, "done", h.send(call("a", "report", with("size", 150), quiet(2*time.Second))).text())
		require.Greater(t, time.Since(began), 2*time.Second)
		h.send(call("a", "wait", quiet(100*time.Millisecond))).fails(messages.CodeQuiet)
	})
}

// While a person thinks about a question of the server, the call is not quiet.
func TestCallThatWaitsForAnAnswerIsNotQuiet(t *testing.T) {
	withDesk(t, supervisor.Config{CallTimeout: time.Hour}, func(h *harness, d *desk) {
		p := h.send(call("a", "late", quiet(2*time.Second)))
		q := d.question()
		time.Sleep(30 * time.Second)
		q.accept()
		require.Equal(t, "accept", p.text())

		p = h.send(call("a", "leave", quiet(2*time.Second)))
		d.takenBack(d.question())
		p.reply()
		p = h.send(call("a", "hang", quiet(2*time.Second)))
		p.fails(messages.CodeQuiet)
		require.Equal(t, 2*time.Second, p.answeredAt.Sub(p.sent))
	})
}

// The time runs while the call runs, and anew for each run.
func TestCallThatWaitsIsNotQuiet(t *testing.T) {
	inFakeTime(t, supervisor.Config{MaxInFlight: 1}, func(h *harness) {
		first := h.send(call("a", "hang", within(10*time.Second)))
		second := h.send(call("a", "hang", within(time.Minute), quiet(3*time.Second)))
		first.fails(messages.CodeDeadline)
		f := second.fails(messages.CodeQuiet)
		require.Equal(t, 13*time.Second, second.answeredAt.Sub(second.sent))
		require.True(t, f.MayHaveRun)

		third := h.send(call("a", "hang/ro", within(time.Minute), quiet(3*time.Second), replay(messages.ReplayAlways)))
		time.Sleep(2 * time.Second)
		h.server.breakConnection("a", true)
		third.fails(messages.CodeQuiet)
		require.Greater(t, third.answeredAt.Sub(third.sent), 5*time.Second-time.Millisecond)
		require.Equal(t, 2, h.executed()[fmt.Sprint(third.cmd.RequestID())])
	})
}

// A time that ends after the deadline, and one that is none, change nothing.
func TestQuietBoundsNothingBeyondTheDeadline(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		for _, d := range []time.Duration{-time.Second, 0, 10 * time.Second, math.MaxInt64} {
			p := h.send(call("a", "hang", within(5*time.Second), quiet(d)))
			p.fails(messages.CodeDeadline)
			require.Equal(t, 5*time.Second, p.answeredAt.Sub(p.sent))
		}
	})
}

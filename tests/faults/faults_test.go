package faults_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/internal/leaktest"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/dialer"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/tests/faults"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, leaktest.Throttle...)
}

// serve starts a server with tools.
func serve(t *testing.T, tools *faults.Tools) *faults.Server {
	t.Helper()
	s, err := faults.Serve(tools.Handler)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close(); tools.Close() })
	return s
}

// connect opens a session without any supervision.
func connect(t *testing.T, srv mcpbridge.Server, hooks faults.Hooks) dial.Conn {
	t.Helper()
	bridge := dialer.New(dial.BridgeConfig{Servers: []mcpbridge.Server{srv}})
	conn, err := hooks.Wrap(bridge).Dial(t.Context(), dial.Request{Key: messages.Key{Server: srv.Name}, Down: func(*mcpbridge.Error) {}})
	require.NoError(t, err)
	t.Cleanup(func() {
		conn.Close(context.Background())
		bridge.Close()
	})
	return conn
}

// call calls a tool, and returns the text of its result.
func call(conn dial.Conn, tool string, args map[string]any) (string, error) {
	op := &messages.CallTool{Params: &mcp.CallToolParams{Name: tool, Arguments: args}}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	result, err := conn.Do(ctx, op)
	if err != nil {
		return "", err
	}
	return result.(*messages.ToolResult).Result.Content[0].(*mcp.TextContent).Text, nil
}

func TestFaultsOfCalls(t *testing.T) {
	for name, c := range map[string]struct {
		fault faults.Fault
		class mcpbridge.Class
		runs  int
	}{
		"refuse":     {faults.Refuse(500, "oops"), mcpbridge.ServerError, 0},
		"refuse for": {faults.RefuseFor(3, 500, "slow down"), mcpbridge.ServerError, 0},
		"as JSON":    {faults.Refuse(200, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"no"}}`), mcpbridge.Invalid, 0},
		"cut":        {faults.Cut(), mcpbridge.Lost, 0},
		"cut answer": {faults.CutAnswer(10), mcpbridge.Lost, 1},
	} {
		for _, json := range []bool{true, false} {
			t.Run(fmt.Sprint(name, json), func(t *testing.T) {
				tools := faults.NewTools()
				tools.JSON = json
				s := serve(t, tools)
				conn := connect(t, mcpbridge.Server{Name: "s", URL: s.URL()}, faults.Hooks{})
				remove := s.Inject("tools/call", faults.Times(1, c.fault))
				_, err := call(conn, "count", map[string]any{"call": "one"})
				require.Equal(t, c.class, mcpbridge.AsError(err).Class, "%v", err)
				require.Equal(t, c.runs, tools.Executions()["one"])
				_, err = call(conn, "count", map[string]any{"call": "two"})
				require.NoError(t, err, "once only")
				remove()
				require.Equal(t, 2, s.Count("tools/call"))
			})
		}
	}
}

func TestFaultsOfTime(t *testing.T) {
	tools := faults.NewTools()
	s := serve(t, tools)
	conn := connect(t, mcpbridge.Server{Name: "s", URL: s.URL()}, faults.Hooks{})
	remove := s.Inject("tools/call", faults.Delay(50*time.Millisecond))
	began := time.Now()
	_, err := call(conn, "count", nil)
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(began), 50*time.Millisecond)
	remove()
	s.Inject("tools/call", faults.Hang())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = conn.Do(ctx, &messages.CallTool{Params: &mcp.CallToolParams{Name: "count"}})
	require.Equal(t, mcpbridge.Deadline, mcpbridge.AsError(err).Class)
}

// The seed decides which requests meet which fault.
func TestSometimesIsReproducible(t *testing.T) {
	run := func(seed uint64) (what string) {
		f := faults.Sometimes(seed, 0.5, note(&what, "a"), note(&what, "b"))
		for range 50 {
			f(nil, &faults.Request{}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { what += "." }))
		}
		return what
	}
	require.Equal(t, run(1), run(1))
	require.NotEqual(t, run(1), run(2))
	for _, part := range []string{"a", "b", "."} {
		require.Greater(t, strings.Count(run(1), part), 5)
	}
}

func note(what *string, text string) faults.Fault {
	return func(http.ResponseWriter, *faults.Request, http.Handler) { *what += text }
}

func TestServerForgetsStopsAndRestarts(t *testing.T) {
	tools := faults.NewTools()
	s := serve(t, tools)
	url := s.URL()
	srv := mcpbridge.Server{Name: "s", URL: url}
	one, two := connect(t, srv, faults.Hooks{}), connect(t, srv, faults.Hooks{})
	_, err := call(one, "count", map[string]any{"scope": "a"})
	require.NoError(t, err)
	require.Equal(t, 2, s.Sessions())
	require.Empty(t, s.Overlaps())
	_, err = call(two, "count", map[string]any{"scope": "a"})
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, s.Overlaps())

	require.Equal(t, 1, s.ExpireSome(1, faults.Expiries()[0]))
	require.Equal(t, 1, s.Sessions())
	require.Equal(t, 1, s.Expire(faults.Expiries()[0]))
	for _, conn := range []dial.Conn{one, two} {
		_, err = call(conn, "count", nil)
		require.Equal(t, mcpbridge.Gone, mcpbridge.AsError(err).Session, "%v", err)
	}
	three := connect(t, srv, faults.Hooks{})
	require.Equal(t, 1, s.Sessions())
	s.Stop()
	_, err = call(three, "count", nil)
	require.Equal(t, mcpbridge.Broken, mcpbridge.AsError(err).Session, "%v", err)
	require.NoError(t, s.Start())
	require.Eventually(t, func() bool { // the first may meet a connection that is just being closed
		_, err := call(three, "count", nil)
		return err == nil
	}, 5*time.Second, time.Millisecond)
	require.NoError(t, s.Restart())
	require.Equal(t, url, s.URL())
	require.Zero(t, s.Sessions())
	_, err = call(three, "count", nil)
	require.Error(t, err)
}

func TestProxyHasFaultsInFrontOfAnotherServer(t *testing.T) {
	tools := faults.NewTools()
	behind := serve(t, tools)
	proxy, err := faults.Proxy(behind.URL())
	require.NoError(t, err)
	t.Cleanup(proxy.Close)
	conn := connect(t, mcpbridge.Server{Name: "s", URL: proxy.URL()}, faults.Hooks{})
	text, err := call(conn, "count", map[string]any{"call": "one"})
	require.NoError(t, err)
	require.Equal(t, "1", text)
	proxy.Inject("tools/call", faults.Times(1, faults.CutAnswer(0)))
	_, err = call(conn, "count", map[string]any{"call": "two"})
	require.Equal(t, mcpbridge.Lost, mcpbridge.AsError(err).Class)
	require.Equal(t, map[string]int{"one": 1, "two": 1}, tools.Executions())
	proxy.Expire(faults.Expiries()[0])
	_, err = call(conn, "count", nil)
	require.Equal(t, mcpbridge.Expired, mcpbridge.AsError(err).Class)

	_, err = faults.Proxy("nonsense")
	require.ErrorContains(t, err, "not the origin")
}

func TestToolsWaitFailAndGrow(t *testing.T) {
	tools := faults.NewTools()
	conn := connect(t, mcpbridge.Server{Name: "s", InMemory: tools.Server()}, faults.Hooks{})
	text, err := call(conn, "big/ro", map[string]any{"size": 5})
	require.NoError(t, err)
	require.Equal(t, "xxxxx", text)
	text, err = call(conn, "fail", nil)
	require.NoError(t, err)
	require.Equal(t, "session not found", text)
	done := make(chan string)
	go func() {
		text, _ := call(conn, "wait", map[string]any{"call": "w"})
		done <- text
	}()
	require.Eventually(t, func() bool { return tools.Executions()["w"] == 1 }, 5*time.Second, time.Millisecond)
	tools.Release()
	require.Equal(t, "3", <-done)
}

func TestHooksSeeAndChangeEverything(t *testing.T) {
	tools := faults.NewTools()
	var dials, closes atomic.Int64
	var refuse, replace, keep atomic.Bool
	hooks := faults.Hooks{
		BeforeDial: func(context.Context, messages.Key) error { dials.Add(1); return nil },
		AfterDial:  func(_ context.Context, _ messages.Key, err error) error { return err },
		BeforeCall: func(context.Context, messages.Key, messages.Operation) error {
			if refuse.Load() {
				return &mcpbridge.Error{Class: mcpbridge.NotSent}
			}
			return nil
		},
		AfterCall: func(_ context.Context, _ messages.Key, _ messages.Operation, result messages.Result, err error) (messages.Result, error) {
			if replace.Load() {
				return nil, &mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Broken}
			}
			return result, err
		},
		BeforeClose: func(context.Context, messages.Key) error {
			if keep.Load() {
				return errors.New("not now")
			}
			return nil
		},
		AfterClose: func(messages.Key, error) { closes.Add(1) },
	}
	conn := connect(t, mcpbridge.Server{Name: "s", InMemory: tools.Server()}, hooks)
	require.EqualValues(t, 1, dials.Load())
	refuse.Store(true)
	_, err := call(conn, "count", map[string]any{"call": "one"})
	require.Equal(t, mcpbridge.NotSent, mcpbridge.AsError(err).Class)
	refuse.Store(false)
	replace.Store(true)
	_, err = call(conn, "count", map[string]any{"call": "two"})
	require.Equal(t, mcpbridge.Lost, mcpbridge.AsError(err).Class)
	require.Equal(t, map[string]int{"two": 1}, tools.Executions())
	keep.Store(true)
	require.ErrorContains(t, conn.Close(t.Context()), "not now")
	keep.Store(false)
	require.NoError(t, conn.Close(t.Context()))
	require.EqualValues(t, 1, closes.Load())

	failing := faults.Hooks{AfterDial: func(context.Context, messages.Key, error) error { return io.EOF }}
	_, err = failing.Wrap(dialer.New(dial.BridgeConfig{Servers: []mcpbridge.Server{{Name: "s", InMemory: tools.Server()}}})).
		Dial(t.Context(), dial.Request{Key: messages.Key{Server: "s"}})
	require.ErrorIs(t, err, io.EOF)
	refusing := faults.Hooks{BeforeDial: func(context.Context, messages.Key) error { return io.EOF }}
	_, err = refusing.Wrap(nil).Dial(t.Context(), dial.Request{})
	require.ErrorIs(t, err, io.EOF)
}

// After a restart a proxy knows no session, though the server behind it still does.
func TestRestartOfAProxyForgetsItsSessions(t *testing.T) {
	behind := serve(t, faults.NewTools())
	proxy, err := faults.Proxy(behind.URL())
	require.NoError(t, err)
	t.Cleanup(proxy.Close)
	conn := connect(t, mcpbridge.Server{Name: "s", URL: proxy.URL(), NoStream: true}, faults.Hooks{})
	_, err = call(conn, "count", nil)
	require.NoError(t, err)
	require.NoError(t, proxy.Restart())
	require.Zero(t, proxy.Sessions())
	require.Equal(t, 1, behind.Sessions())
	require.Eventually(t, func() bool { // the first call may use a connection that is being closed
		_, err := call(conn, "count", nil)
		return err != nil && mcpbridge.AsError(err).Session == mcpbridge.Gone
	}, 5*time.Second, time.Millisecond)
	proxy.Close()
	require.ErrorContains(t, proxy.Start(), "closed")
	require.ErrorContains(t, proxy.Restart(), "closed")
	_, err = faults.Proxy("http://127.0.0.1:1/mcp")
	require.ErrorContains(t, err, "not the origin")
}

// A short answer is passed on unchanged.
func TestCutAnswerLeavesShortOnesAlone(t *testing.T) {
	s, err := faults.Serve(func() http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			io.WriteString(w, strings.Repeat("x", 100_000))
		})
	})
	require.NoError(t, err)
	defer s.Close()
	for n, whole := range map[int]bool{0: false, 10: false, 50_000: false, 99_999: false, 100_000: true, 1 << 20: true} {
		remove := s.Inject("", faults.CutAnswer(n))
		resp, err := http.Get(s.URL())
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		require.Len(t, body, min(n, 100_000))
		require.Equal(t, whole, err == nil, "%d: %v", n, err)
		remove()
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestSometimesWithoutFaultsPassesAllOn(t *testing.T) {
	passed := 0
	f := faults.Sometimes(1, 1)
	for range 3 {
		f(nil, &faults.Request{}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { passed++ }))
	}
	require.Equal(t, 3, passed)
}

// A session whose DELETE the server refused still exists.
func TestSessionWhoseDeleteWasRefusedIsThereStill(t *testing.T) {
	s := serve(t, faults.NewTools())
	conn := connect(t, mcpbridge.Server{Name: "s", URL: s.URL()}, faults.Hooks{})
	remove := s.Inject("DELETE", faults.Refuse(500, ""))
	require.Error(t, conn.Close(t.Context()))
	require.Equal(t, 1, s.Sessions())
	remove()
	require.NoError(t, conn.Close(t.Context()))
	require.Zero(t, s.Sessions())
}

// A hook that returns nil changes nothing.
func TestHookThatLooksOnKeepsTheErrorOfADial(t *testing.T) {
	var seen error
	hooks := faults.Hooks{AfterDial: func(_ context.Context, _ messages.Key, err error) error { seen = err; return nil }}
	srv := mcpbridge.Server{Name: "s", Command: "no-such-command"}
	conn, err := hooks.Wrap(dialer.New(dial.BridgeConfig{Servers: []mcpbridge.Server{srv}})).Dial(t.Context(), dial.Request{Key: messages.Key{Server: "s"}})
	require.Error(t, err)
	require.Nil(t, conn)
	require.Equal(t, err, seen)
}

// seeds are how many seeds a test tries: all, or with -short some.
func seeds(all, some uint64) uint64 {
	if testing.Short() {
		return some
	}
	return all
}

package tests

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// requestLog records the requests that a server gets.
type requestLog struct {
	mu    sync.Mutex
	lines []string
}

// record is a fault that records the request and passes it on.
func (tr *requestLog) record(w http.ResponseWriter, r *faults.Request, next http.Handler) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	var msg struct {
		Params struct {
			Name, Level, URI string
			Arguments        struct{ Size int }
		}
	}
	if json.Unmarshal(body, &msg) == nil && !strings.HasPrefix(r.Kind, "notifications/") {
		p := msg.Params
		tr.mu.Lock()
		line := strings.TrimSpace(r.Kind + " " + p.Name + p.Level + p.URI)
		if p.Arguments.Size > 0 {
			line += " for set-up"
		}
		tr.lines = append(tr.lines, line)
		tr.mu.Unlock()
	}
	next.ServeHTTP(w, r.Request)
}

// take returns the requests since the last call of take.
func (tr *requestLog) take() []string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	lines := tr.lines
	tr.lines = nil
	return lines
}

// B10
func TestSettingsOfTheCallerAreSentAgainBeforeAnyReplay(t *testing.T) {
	setup := []*mcp.CallToolParams{{Name: "count", Arguments: map[string]any{"size": 7}}}
	cfg := supervisor.Config{Servers: []mcpbridge.Server{{Name: "s", Setup: setup, NoStream: true, ProtocolVersion: "2025-11-25"}}}
	overLocalHTTP(t, cfg, newHTTPTools, func(h *harness, e *testServer) {
		var tr requestLog
		e.Inject("", tr.record)
		to := messages.To("s", "a")
		h.send(&messages.SetLogLevel{Header: to, Level: "warning"}).reply()
		for _, cmd := range []messages.Command{
			&messages.SetLogLevel{Header: to, Level: "info"},
			&messages.Subscribe{Header: to, URI: "file:///one"},
			&messages.Subscribe{Header: to, URI: "file:///two"},
			&messages.Subscribe{Header: to, URI: "file:///three"},
			&messages.Unsubscribe{Header: to, URI: "file:///one"},
		} {
			r := h.send(cmd).reply()
			require.IsType(t, &messages.Ack{}, r, "%v", r)
		}
		require.Equal(t, "2", h.send(call("a", "count")).text(), "the set-up call came first")
		tr.take()

		e.Expire(faults.Expiries()[0])
		r := h.send(call("a", "count"))
		require.Equal(t, "2", r.text())
		require.True(t, r.ok().Replayed)
		require.Equal(t, []string{
			"tools/call count", // this one finds the expiry
			"initialize", "tools/call count for set-up",
			"logging/setLevel info", "resources/subscribe file:///two", "resources/subscribe file:///three",
			"tools/call count",
		}, tr.take())

		lost := h.send(call("a", "wait"))
		synctest.Wait()
		e.Stop() // the server keeps the session and its state
		lost.fails(messages.CodeLost)
		require.NoError(t, e.Start())
		e.Release()
		require.Equal(t, "4", h.send(call("a", "count")).text())
		awaitEvent(h, func(restarted *messages.SessionRestarted) bool { return restarted.Attached })
		for _, line := range tr.take() {
			require.Contains(t, []string{"ping", "tools/list", "tools/call wait", "tools/call count"}, line)
		}
	})
}

// When a set-up call fails, the session is closed, and the failure says why.
func TestSetUpThatFailsMakesTheSessionUnavailable(t *testing.T) {
	for name, c := range map[string]struct {
		tool   string
		fault  faults.Fault
		detail string
	}{
		"error of the tool": {"fail", nil, "the tool returned an error"},
		"unknown tool":      {"nonsense", nil, "unknown tool"},
		"refused":           {"count", faults.Refuse(500, "no"), "500"},
		"hangs":             {"count", faults.Hang(), ""},
		"expires":           {"count", faults.Refuse(404, "session not found"), "404"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := supervisor.Config{
				ConnectTimeout: time.Second, BackoffBase: time.Millisecond,
				Servers: []mcpbridge.Server{{Name: "s", Setup: []*mcp.CallToolParams{{Name: c.tool}}}},
			}
			overLocalHTTP(t, cfg, newHTTPTools, func(h *harness, e *testServer) {
				heal := func() {}
				if c.fault != nil {
					heal = e.Inject("tools/call", c.fault)
				}
				f := h.send(call("a", "count")).fails(messages.CodeUnavailable)
				require.Contains(t, f.Detail, "set-up call of \""+c.tool+"\"")
				require.Contains(t, f.Detail, c.detail)
				require.False(t, f.MayHaveRun)
				if name != "expires" {
					require.Zero(t, e.Sessions(), "it was ended")
				}
				heal()
				if c.fault != nil {
					require.Equal(t, "2", h.send(call("a", "count")).text())
				}
			})
		})
	}
	_, err := supervisor.Start(nil, supervisor.Config{Servers: []mcpbridge.Server{{Name: "s", Command: "x", Setup: []*mcp.CallToolParams{{}}}}})
	require.ErrorContains(t, err, "setup[0]: the tool name is empty")
}

// A subscription that the server refuses on the new session does not prevent its opening.
func TestSettingThatTheServerRefusesIsLeftOut(t *testing.T) {
	cfg := supervisor.Config{Servers: []mcpbridge.Server{{Name: "s", ProtocolVersion: "2025-11-25"}}}
	overLocalHTTP(t, cfg, newHTTPTools, func(h *harness, e *testServer) {
		require.IsType(t, &messages.Ack{}, h.send(&messages.Subscribe{Header: messages.To("s", "a"), URI: "file:///one"}).reply())
		e.Inject("resources/subscribe", faults.Refuse(200, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32002,"message":"no such resource"}}`))
		e.Expire(faults.Expiries()[0])
		require.Equal(t, "1", h.send(call("a", "count")).text())
	})
}

// A temporary refusal of a subscription is not final: the subscription is sent again.
func TestSettingsAreSentAgainWhenTheServerIsBusyForAMoment(t *testing.T) {
	for _, status := range []int{429, 500, 503} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			cfg := supervisor.Config{BackoffBase: time.Millisecond, Servers: []mcpbridge.Server{{Name: "s", ProtocolVersion: "2025-11-25"}}}
			overLocalHTTP(t, cfg, newHTTPTools, func(h *harness, e *testServer) {
				require.IsType(t, &messages.Ack{}, h.send(&messages.Subscribe{Header: messages.To("s", "a"), URI: "file:///one"}).reply())
				e.Inject("resources/subscribe", faults.Times(1, faults.Refuse(status, "")))
				e.Expire(faults.Expiries()[0])
				h.send(call("a", "count")).reply() // it fails with the first attempt, or waits for the next one
				require.Eventually(t, func() bool {
					_, ok := h.send(call("a", "count")).reply().(*messages.ToolResult)
					return ok
				}, 10*time.Second, time.Millisecond)
				require.Equal(t, 3, e.Count("resources/subscribe"))
			})
		})
	}
}

// H-F4: the last of several changes to one subscription decides, however long the first one
// takes. Other subscriptions do not wait for it.
func TestSubscriptionsOfOneResourceChangeInTheOrderOfTheirCommands(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		var told []string
		h.server.set(func() {
			h.server.onSubscription = func(op messages.Operation) {
				h.server.set(func() { told = append(told, fmt.Sprintf("%s %s", op.Method(), op.RequestID())) })
				if op.RequestID() == "B" {
					time.Sleep(time.Second) // synctest
				}
			}
		})
		subscribers := map[string]*actor.PID{}
		for _, who := range []string{"A", "B", "C"} {
			subscribers[who] = spawn(h, func(actor.Context) {})
		}
		subscribe := func(who, uri string) *sentCommand {
			op := &messages.Subscribe{Header: messages.To("s", "a"), URI: uri}
			op.ID, op.Subscriber = who, subscribers[who]
			return h.send(op)
		}
		unsubscribe := func(who, uri string) *sentCommand {
			op := &messages.Unsubscribe{Header: messages.To("s", "a"), URI: uri}
			op.ID, op.Subscriber = who, subscribers[who]
			return h.send(op)
		}
		subscribe("A", "file:///one").reply()
		all := []*sentCommand{subscribe("B", "file:///one"), unsubscribe("A", "file:///one")}
		synctest.Wait()
		began := time.Now()
		subscribe("C", "file:///two").reply()
		require.Zero(t, time.Since(began))
		for _, p := range all {
			require.IsType(t, &messages.Ack{}, p.reply())
		}
		require.Equal(t, []string{"resources/subscribe A", "resources/subscribe B", "resources/subscribe C"}, told, "B is subscribed still")
		unsubscribe("B", "file:///one").reply()
		require.Equal(t, "resources/unsubscribe B", told[3])
	})
}

// H-D7: a subscriber that has stopped is removed, with the subscriptions that would be sent
// again on the next session.
func TestSubscriberThatHasStoppedIsForgotten(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		var told []string
		h.server.set(func() {
			h.server.onSubscription = func(op messages.Operation) {
				h.server.set(func() { told = append(told, op.(*messages.Subscribe).URI) })
			}
		})
		var pids []*actor.PID
		for i := range 10 {
			pids = append(pids, h.system.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {})))
			op := &messages.Subscribe{Header: messages.To("s", "a"), URI: fmt.Sprint("file:///", i)}
			op.Subscriber = pids[i]
			require.IsType(t, &messages.Ack{}, h.send(op).reply())
		}
		for _, pid := range pids[1:] {
			h.system.Root.Stop(pid)
		}
		synctest.Wait()
		told = nil
		h.server.expire("a")
		h.send(call("a", "count")).ok()
		require.Equal(t, []string{"file:///0"}, told, "the subscription of the one that lives is put back")
		h.system.Root.Stop(pids[0])
	})
}

// updates returns the events of type ResourceUpdated so far, as "URI generation".
func updates(h *harness) (all []string) {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, event := range h.events {
		if e, ok := event.(*messages.ResourceUpdated); ok {
			all = append(all, fmt.Sprint(e.URI, " ", e.Generation))
		}
	}
	return all
}

// H7: after a restart, each resource that is subscribed may have changed.
func TestSubscribedResourcesCountAsUpdatedAfterARestart(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		got := make(chan *messages.ResourceUpdated, 100)
		for _, uri := range []string{"file:///one", "file:///one", "file:///two"} {
			op := &messages.Subscribe{Header: messages.To("s", "a"), URI: uri}
			op.Subscriber = spawn(h, func(c actor.Context) { got <- c.Message().(*messages.ResourceUpdated) })
			require.IsType(t, &messages.Ack{}, h.send(op).reply())
		}
		require.IsType(t, &messages.Ack{}, h.send(&messages.Subscribe{Header: messages.To("s", "a"), URI: "file:///three"}).reply())
		require.Empty(t, updates(h))

		h.server.expire("a")
		h.send(call("a", "count")).ok()
		want := []string{"file:///one 2", "file:///two 2", "file:///three 2"}
		require.Equal(t, want, updates(h))
		require.Len(t, got, 3, "two of one, and one of two")

		h.server.breakConnection("a", true) // it is attached
		synctest.Wait()
		awaitEvent(h, func(e *messages.SessionRestarted) bool { return e.Attached })
		want = append(want, "file:///one 2", "file:///two 2", "file:///three 2")
		require.Equal(t, want, updates(h))
		require.Len(t, got, 6)

		require.NoError(t, h.sup.Client().Restart(h.t.Context(), "s", "a"))
		want = append(want, "file:///one 3", "file:///two 3", "file:///three 3")
		require.Equal(t, want, updates(h))
		require.Len(t, got, 9)

		_, err := h.sup.Client().CloseSession(h.t.Context(), "s", "a")
		require.NoError(t, err)
		h.send(call("a", "count")).ok() // it has no subscriptions
		require.Equal(t, want, updates(h))
	})
}

// What the server does not let us subscribe to again is not updated, and neither is what an attempt to restart
// has subscribed to before it failed.
func TestResourceWhoseSubscriptionFailsDoesNotCountAsUpdated(t *testing.T) {
	cfg := supervisor.Config{BackoffBase: time.Millisecond, Servers: []mcpbridge.Server{{Name: "s", ProtocolVersion: "2025-11-25"}}}
	overLocalHTTP(t, cfg, newHTTPTools, func(h *harness, e *testServer) {
		for _, uri := range []string{"file:///one", "file:///two", "file:///three"} {
			require.IsType(t, &messages.Ack{}, h.send(&messages.Subscribe{Header: messages.To("s", "a"), URI: uri}).reply())
		}
		refuse := faults.Refuse(200, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32002,"message":"no such resource"}}`)
		busy := faults.Times(1, faults.Refuse(503, ""))
		e.Inject("resources/subscribe", func(w http.ResponseWriter, r *faults.Request, next http.Handler) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			switch {
			case strings.Contains(string(body), "two"):
				refuse(w, r, next)
			case strings.Contains(string(body), "three"):
				busy(w, r, next)
			default:
				next.ServeHTTP(w, r.Request)
			}
		})
		e.Expire(faults.Expiries()[0])
		require.Eventually(t, func() bool {
			_, ok := h.send(call("a", "count")).reply().(*messages.ToolResult)
			return ok
		}, 10*time.Second, time.Millisecond)
		requireEvents[*messages.ResourceUpdated](h, 2)
		require.Equal(t, 9, e.Count("resources/subscribe"))
		for _, uri := range []string{"file:///one", "file:///three"} {
			awaitEvent(h, func(e *messages.ResourceUpdated) bool { return e.URI == uri })
		}
	})
}

func TestSubscribedResourcesCountAsUpdatedOnceWithEachProtocol(t *testing.T) {
	overEachProtocol(t, defaultConfig, func(h *harness) {
		require.IsType(t, &messages.Ack{}, h.send(&messages.Subscribe{Header: messages.To("s", "a"), URI: "file:///watched"}).reply())
		require.NoError(t, h.sup.Client().Restart(h.t.Context(), "s", "a"))
		time.Sleep(time.Second) // synctest
		require.Equal(t, []string{"file:///watched 2"}, updates(h))
	})
}

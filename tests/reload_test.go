package tests

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

func serverAt(name, url string) mcpbridge.Server { return mcpbridge.Server{Name: name, URL: url} }

func TestReloadTouchesOnlyWhatChanged(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		const url = "http://fake.invalid"
		for _, server := range []string{"s", "other"} {
			for _, scope := range []string{"a", "b"} {
				h.send(call(scope, "count", on(server))).ok()
			}
		}
		running := h.send(call("a", "slow", on("other")))
		synctest.Wait()

		closed, err := h.sup.Reload(h.t.Context(), []mcpbridge.Server{serverAt("s", url), serverAt("new", url), {Name: "other", URL: url, NoStream: true}})
		require.NoError(t, err)
		require.Equal(t, 2, closed.Sessions)
		require.Empty(t, closed.Left)
		synctest.Wait()
		require.True(t, running.answered(), "it has drained")
		require.Equal(t, "done", running.text())

		require.Equal(t, "2", h.send(call("a", "count")).text(), "it goes on")
		require.Equal(t, "1", h.send(call("a", "count", on("new"))).text())
		p := h.send(call("a", "count", on("other")))
		require.Equal(t, "1", p.text(), "it begins anew")
		require.EqualValues(t, 2, p.ok().Generation)

		closed, err = h.sup.Reload(h.t.Context(), []mcpbridge.Server{serverAt("s", url)})
		require.NoError(t, err)
		require.Equal(t, 2, closed.Sessions)
		h.send(call("a", "count", on("other"))).fails(messages.CodeUnknownServer)
		require.Equal(t, "3", h.send(call("a", "count")).text())
		require.Len(t, h.inspect().Sessions, 2)

		closed, err = h.sup.Reload(h.t.Context(), []mcpbridge.Server{serverAt("s", url)})
		require.NoError(t, err)
		require.Zero(t, closed.Sessions, "nothing changed")
	})
}

func TestReloadWhileSessionsAreOpenedAndFail(t *testing.T) {
	cfg := supervisor.Config{MaxDials: 1, ConnectTimeout: time.Minute}
	inFakeTime(t, cfg, func(h *harness) {
		release := make(chan struct{})
		h.server.set(func() {
			h.server.dial = func(ctx context.Context, req dial.Request) error {
				select {
				case <-release:
					return nil
				case <-ctx.Done():
					return unavailableError("cancelled")
				}
			}
		})
		opening := append(h.calls(3, "a", "count"), h.calls(3, "b", "count")...) // one session dials, the other one waits for its permit
		synctest.Wait()
		_, err := h.sup.Reload(h.t.Context(), []mcpbridge.Server{{Name: "s", URL: "http://fake.invalid", NoStream: true}})
		require.NoError(t, err)
		for _, p := range opening {
			p.fails(messages.CodeClosed)
		}
		close(release)
		require.Equal(t, "1", h.send(call("a", "count")).text(), "no dial permit was lost")
		require.Equal(t, "1", h.send(call("b", "count")).text())
	})
}

func TestBadListOfServersChangesNothing(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.send(call("a", "count")).ok()
		_, err := h.sup.Reload(h.t.Context(), []mcpbridge.Server{{Name: "s"}, serverAt("x", "ftp://x")})
		require.ErrorContains(t, err, `servers[0] "s": command: is empty`)
		require.ErrorContains(t, err, `servers[1] "x": url: scheme "ftp"`)
		_, err = h.sup.Reload(h.t.Context(), nil)
		require.ErrorContains(t, err, "servers: is empty")
		require.Equal(t, "2", h.send(call("a", "count")).text())
		h.stop()
		_, err = h.sup.Reload(h.t.Context(), []mcpbridge.Server{serverAt("s", "http://fake.invalid")})
		require.ErrorIs(t, err, messages.CodeClosed)
	})
}

func TestReloadEndsTheStreamsOfARemovedServer(t *testing.T) {
	before := resourcesInUse()
	one, two := serve(t, faults.NewTools()), serve(t, faults.NewTools())
	defer one.close()
	defer two.close()
	inMemory := mcp.NewServer(&mcp.Implementation{Name: "kept", Version: "1"}, nil)
	servers := []mcpbridge.Server{serverAt("s", one.URL()), serverAt("two", two.URL()), {Name: "kept", InMemory: inMemory}}
	h := start(t, supervisor.Config{Servers: servers})
	h.send(call("a", "count")).ok()
	h.send(call("a", "count", on("two"))).ok()
	h.send(&messages.Open{Header: messages.To("kept", "a")}).reply()
	one.awaitRequests("GET", 1)
	two.awaitRequests("GET", 1)

	closed, err := h.sup.Reload(h.t.Context(), servers[1:])
	require.NoError(t, err)
	require.Equal(t, 1, closed.Sessions)
	require.Equal(t, 1, one.Count("DELETE"))
	require.Zero(t, one.Sessions())
	one.close() // close waits until no stream is open
	require.Equal(t, "2", h.send(call("a", "count", on("two"))).text())
	require.Len(t, h.inspect().Sessions, 2)
	h.stopAndVerify()
	two.close()
	before.verify(t)
}

// When the URL of a server changes, no session id of the old URL is sent to the new one.
func TestServerThatMovesIsShownNoSessionOfBefore(t *testing.T) {
	one, two := serve(t, faults.NewTools()), serve(t, faults.NewTools())
	defer one.close()
	defer two.close()
	h := start(t, supervisor.Config{Servers: []mcpbridge.Server{serverAt("s", one.URL())}})
	h.send(call("a", "count")).ok()
	_, err := h.sup.Reload(h.t.Context(), []mcpbridge.Server{serverAt("s", two.URL())})
	require.NoError(t, err)
	p := h.send(call("a", "count"))
	require.Equal(t, "1", p.text())
	require.EqualValues(t, 2, p.ok().Generation)
	require.Equal(t, 1, two.Count("initialize"))
	require.Zero(t, one.Sessions())
	h.stopAndVerify()
}

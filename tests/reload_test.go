package tests

import (
	"context"
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

func at(name, url string) mcpbridge.Server { return mcpbridge.Server{Name: name, URL: url} }

func TestReloadTouchesOnlyWhatChanged(t *testing.T) {
	imagine(t, supervisor.Config{}, func(w *world) {
		const url = "http://fake.invalid"
		for _, server := range []string{"s", "other"} {
			for _, scope := range []string{"a", "b"} {
				w.send(call(scope, "count", on(server))).ok()
			}
		}
		running := w.send(call("a", "slow", on("other")))
		synctest.Wait()

		closed, err := w.sup.Reload(w.t.Context(), []mcpbridge.Server{at("s", url), at("new", url), {Name: "other", URL: url, NoStream: true}})
		require.NoError(t, err)
		require.Equal(t, 2, closed.Sessions)
		require.Empty(t, closed.Left)
		require.True(t, running.answered(), "it has drained")
		require.Equal(t, "done", running.text())

		require.Equal(t, "2", w.send(call("a", "count")).text(), "it goes on")
		require.Equal(t, "1", w.send(call("a", "count", on("new"))).text())
		p := w.send(call("a", "count", on("other")))
		require.Equal(t, "1", p.text(), "it begins anew")
		require.EqualValues(t, 2, p.ok().Generation)

		closed, err = w.sup.Reload(w.t.Context(), []mcpbridge.Server{at("s", url)})
		require.NoError(t, err)
		require.Equal(t, 2, closed.Sessions)
		w.send(call("a", "count", on("other"))).fails(messages.CodeUnknownServer)
		require.Equal(t, "3", w.send(call("a", "count")).text())
		require.Len(t, w.inspect().Sessions, 2)

		closed, err = w.sup.Reload(w.t.Context(), []mcpbridge.Server{at("s", url)})
		require.NoError(t, err)
		require.Zero(t, closed.Sessions, "nothing changed")
	})
}

func TestReloadWhileSessionsAreOpenedAndFail(t *testing.T) {
	cfg := supervisor.Config{MaxDials: 1, ConnectTimeout: time.Minute}
	imagine(t, cfg, func(w *world) {
		release := make(chan struct{})
		w.fake.set(func() {
			w.fake.dial = func(ctx context.Context, req mcpbridge.DialRequest) error {
				select {
				case <-release:
					return nil
				case <-ctx.Done():
					return unavailable("cancelled")
				}
			}
		})
		opening := append(w.calls(3, "a", "count"), w.calls(3, "b", "count")...) // one dials, one waits for its permit
		synctest.Wait()
		_, err := w.sup.Reload(w.t.Context(), []mcpbridge.Server{{Name: "s", URL: "http://fake.invalid", NoStream: true}})
		require.NoError(t, err)
		for _, p := range opening {
			p.fails(messages.CodeClosed)
		}
		close(release)
		require.Equal(t, "1", w.send(call("a", "count")).text(), "no dial permit was lost")
		require.Equal(t, "1", w.send(call("b", "count")).text())
	})
}

func TestBadListOfServersChangesNothing(t *testing.T) {
	imagine(t, supervisor.Config{}, func(w *world) {
		w.send(call("a", "count")).ok()
		_, err := w.sup.Reload(w.t.Context(), []mcpbridge.Server{{Name: "s"}, at("x", "ftp://x")})
		require.ErrorContains(t, err, `servers[0] "s": command: is empty`)
		require.ErrorContains(t, err, `servers[1] "x": url: scheme "ftp"`)
		_, err = w.sup.Reload(w.t.Context(), nil)
		require.ErrorContains(t, err, "servers: is empty")
		require.Equal(t, "2", w.send(call("a", "count")).text())
		w.stop()
		_, err = w.sup.Reload(w.t.Context(), []mcpbridge.Server{at("s", "http://fake.invalid")})
		require.ErrorIs(t, err, messages.ErrClosed)
	})
}

func TestReloadEndsTheStreamsOfARemovedServer(t *testing.T) {
	before := lookAround()
	one, two := serve(t, faults.NewTools()), serve(t, faults.NewTools())
	defer one.end()
	defer two.end()
	inMemory := mcp.NewServer(&mcp.Implementation{Name: "kept", Version: "1"}, nil)
	servers := []mcpbridge.Server{at("s", one.URL()), at("two", two.URL()), {Name: "kept", InMemory: inMemory}}
	w := start(t, supervisor.Config{Servers: servers})
	w.send(call("a", "count")).ok()
	w.send(call("a", "count", on("two"))).ok()
	w.send(&messages.Open{Header: messages.To("kept", "a")}).reply()
	one.counted("GET", 1)
	two.counted("GET", 1)

	closed, err := w.sup.Reload(w.t.Context(), servers[1:])
	require.NoError(t, err)
	require.Equal(t, 1, closed.Sessions)
	require.Equal(t, 1, one.Count("DELETE"))
	require.Zero(t, one.Sessions())
	one.end() // which would wait for a stream that is still open
	require.Equal(t, "2", w.send(call("a", "count", on("two"))).text())
	require.Len(t, w.inspect().Sessions, 2)
	w.end()
	two.end()
	before.verify(t)
}

// The URL of a server changes: its new self never gets to see an id of the old one.
func TestServerThatMovesIsShownNoSessionOfBefore(t *testing.T) {
	one, two := serve(t, faults.NewTools()), serve(t, faults.NewTools())
	defer one.end()
	defer two.end()
	w := start(t, supervisor.Config{Servers: []mcpbridge.Server{at("s", one.URL())}})
	w.send(call("a", "count")).ok()
	_, err := w.sup.Reload(w.t.Context(), []mcpbridge.Server{at("s", two.URL())})
	require.NoError(t, err)
	p := w.send(call("a", "count"))
	require.Equal(t, "1", p.text())
	require.EqualValues(t, 2, p.ok().Generation)
	require.Equal(t, 1, two.Count("initialize"))
	require.Zero(t, one.Sessions())
	w.end()
}

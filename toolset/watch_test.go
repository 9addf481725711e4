package toolset_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// leaving is a dialer whose servers can go away.
type leaving struct {
	dial.Dialer
	away  atomic.Bool
	dials atomic.Int32
}

func (l *leaving) Dial(ctx context.Context, req dial.Request) (dial.Conn, error) {
	l.dials.Add(1)
	if l.away.Load() {
		return nil, &mcpbridge.Error{Class: mcpbridge.Unavailable, Server: mcpbridge.Absent, Detail: "connection refused"}
	}
	return l.Dialer.Dial(ctx, req)
}

// withLeaving runs a scenario with a server that can go away. news are the events that the catalogue has something else.
func withLeaving(t *testing.T, cfg supervisor.Config, scenario func(ctx context.Context, c *crowd, l *leaving, news chan string)) {
	l := new(leaving)
	cfg = dial.Wrap(cfg, func(d dial.Dialer) dial.Dialer {
		l.Dialer = d
		return l
	})
	gather(t, 1, cfg, nil, func(ctx context.Context, c *crowd) {
		news := make(chan string, 100)
		events := c.sup.System().EventStream.Subscribe(func(event any) {
			if e, ok := event.(*messages.CatalogueChanged); ok {
				news <- e.Key.Server + " " + e.Method
			}
		})
		defer c.sup.System().EventStream.Unsubscribe(events)
		scenario(ctx, c, l, news)
	})
}

func TestServerThatIsDownIsProbedWhileAToolsetListsIt(t *testing.T) {
	for _, failFast := range []bool{false, true} {
		withLeaving(t, supervisor.Config{FailFast: failFast}, func(_ context.Context, c *crowd, l *leaving, news chan string) {
			l.away.Store(true)
			scopes := 20
			for i := range scopes {
				require.Equal(c, "!s0:unavailable", c.tools(fmt.Sprint(i)))
			}
			time.Sleep(10 * time.Minute)
			before := l.dials.Load()
			time.Sleep(10 * time.Minute)
			probes := l.dials.Load() - before
			require.Greater(c, probes, int32(200), "it is probed although nobody calls")
			require.Less(c, probes, int32(900), "as often as for one who waits")
			require.Empty(c, news)

			l.away.Store(false)
			time.Sleep(3 * time.Second)
			require.Equal(c, "s0 tools/list", <-news)
			for i := range scopes {
				require.Equal(c, "s0__a", c.tools(fmt.Sprint(i)))
			}
			snapshot, err := c.sup.Client().Inspect(c.Context())
			require.NoError(c, err)
			require.Equal(c, 1, snapshot.Servers[0].States[messages.StateReady], "one lists for all")
			_, lists := c.counts()
			require.Equal(c, 1, lists)
			before = l.dials.Load()
			time.Sleep(time.Minute)
			require.Equal(c, before, l.dials.Load())
		})
	}
}

func TestNobodyProbesAServerThatNoToolsetLists(t *testing.T) {
	withLeaving(t, supervisor.Config{}, func(_ context.Context, c *crowd, l *leaving, _ chan string) {
		l.away.Store(true)
		for _, scope := range []string{"a", "b"} {
			require.Equal(c, "!s0:unavailable", c.tools(scope))
		}
		before := l.dials.Load()
		c.sets["a"].Close()
		time.Sleep(time.Minute)
		require.Greater(c, l.dials.Load(), before+20, "another one watches")
		c.sets["b"].Close()
		synctest.Wait()
		before = l.dials.Load()
		time.Sleep(time.Hour)
		require.Equal(c, before, l.dials.Load())
	})
}

// The tools that are known stay, and are marked until the server is back.
func TestToolsOfAServerThatIsDownAreMarkedUntilItIsBack(t *testing.T) {
	withLeaving(t, supervisor.Config{}, func(ctx context.Context, c *crowd, l *leaving, news chan string) {
		require.Equal(c, "s0__a", c.tools("a"))
		require.Equal(c, "s0__a", c.tools("b"))
		_, err := c.sup.Client().CloseAll(ctx)
		require.NoError(c, err)
		l.away.Store(true)
		limited, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err = c.sup.Client().Open(limited, "s0", "x") // which finds that it is down
		require.Error(c, err)
		for _, scope := range []string{"a", "b"} {
			require.Equal(c, "s0__a?", c.tools(scope))
		}
		c.servers[0].add("z")
		time.Sleep(time.Hour)
		require.Empty(c, news)
		require.Equal(c, "s0__a?", c.tools("b"))
		l.away.Store(false)
		time.Sleep(3 * time.Second)
		require.Equal(c, "s0 tools/list", <-news)
		require.Equal(c, "s0__a s0__z", c.tools("b"))
		require.Equal(c, "s0__a s0__z", c.tools("a"))
		sessions, _ := c.counts()
		require.LessOrEqual(c, sessions, 2, "that of the one who called, and that of the one who lists")
	})
}

// After a fetch has failed, the catalogue does not want to be asked for some seconds, and a probe may end at its deadline.
// Neither ends the probes.
func TestServerIsProbedUntilItIsBack(t *testing.T) {
	var probes atomic.Int32
	expires := func(next actors.Runner) actors.Runner {
		return func(ctx context.Context, op messages.Operation) (messages.Result, error) {
			list, is := op.(*messages.ListTools)
			if is && list.Fresh && list.Key.Scope == "a" && probes.Add(1) == 1 {
				return nil, messages.NewFailure(op, messages.CodeDeadline, "too late")
			}
			return next(ctx, op)
		}
	}
	withLeaving(t, supervisor.Config{Interceptors: []actors.Interceptor{expires}}, func(ctx context.Context, c *crowd, l *leaving, news chan string) {
		require.Equal(c, "s0__a", c.tools("a"))
		_, err := c.sup.Client().CloseAll(ctx)
		require.NoError(c, err)
		l.away.Store(true)
		time.Sleep(5 * time.Minute) // until the list is stale
		h := messages.To("s0", "x")
		h.Deadline = time.Now().Add(time.Second)
		_, err = c.sup.Client().Do(ctx, &messages.ListTools{Header: h, Shared: true, Fresh: true})
		require.ErrorIs(c, err, messages.CodeUnavailable)
		require.Equal(c, "s0__a?", c.tools("a"))
		time.Sleep(time.Minute)
		l.away.Store(false)
		time.Sleep(3 * time.Second)
		require.Len(c, news, 1)
		require.Equal(c, int32(2), probes.Load())
		require.Equal(c, "s0__a", c.tools("a"))
	})
}

// A list with Fresh and a late deadline is a watch of the catalogue, for whoever has no toolset.
func TestFreshListWaitsForTheServer(t *testing.T) {
	withLeaving(t, supervisor.Config{}, func(ctx context.Context, c *crowd, l *leaving, _ chan string) {
		l.away.Store(true)
		replies := make(chan string, 10)
		for _, scope := range []string{"a", "b", "c"} {
			h := messages.To("s0", scope)
			h.Deadline = time.Now().Add(24 * time.Hour)
			go func() {
				_, err := c.sup.Client().Do(ctx, &messages.ListPrompts{Header: h, Shared: true, Fresh: true})
				replies <- fmt.Sprint(err)
			}()
		}
		short, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		_, err := c.sup.Client().Do(short, &messages.ListPrompts{Header: messages.To("s0", "d"), Shared: true})
		require.ErrorIs(c, err, messages.CodeUnavailable, "it waits no longer than its own deadline, and learns why")
		require.True(c, strings.Contains(err.Error(), "connection refused"))
		time.Sleep(time.Hour)
		require.Empty(c, replies)
		l.away.Store(false)
		time.Sleep(3 * time.Second)
		for range 3 {
			require.Equal(c, "<nil>", <-replies)
		}
		sessions, _ := c.counts()
		require.Equal(c, 1, sessions)
	})
}

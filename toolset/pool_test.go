package toolset_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// pooled runs a scenario with a pool whose toolsets have the policy of [guarded].
func pooled(t *testing.T, cfg toolset.PoolConfig, scenario func(ctx context.Context, w *world, p *person, pool *toolset.Pool)) {
	guarded(t, func(ctx context.Context, w *world, p *person, _ func(string) int) {
		before := w.system.EventStream.Length()
		cfg.Config = func(string) toolset.Config {
			return toolset.Config{Servers: []toolset.Filter{{Name: "one"}}, Policy: &toolset.Policy{Ask: p.ask}}
		}
		pool, err := toolset.NewPool(nil, w.sup, cfg)
		require.NoError(w, err)
		scenario(ctx, w, p, pool)
		pool.Close()
		pool.Close()
		require.Equal(w, before, w.system.EventStream.Length())
		_, err = pool.Get("a")
		require.ErrorIs(w, err, messages.CodeClosed)
	})
}

func TestPoolHasOneToolsetForEachScopeInUse(t *testing.T) {
	pooled(t, toolset.PoolConfig{}, func(ctx context.Context, w *world, p *person, pool *toolset.Pool) {
		get := func(scope string) *toolset.Toolset {
			w.Helper()
			tools, err := pool.Get(scope)
			require.NoError(w, err)
			return tools
		}
		a, b := get("a"), get("b")
		require.NotSame(w, a, b)
		require.Same(w, a, get("a"))
		require.Same(w, get(""), get(messages.DefaultScope))
		set, err := a.Tools(ctx)
		require.NoError(w, err)
		require.Equal(w, "a", set.Tools[0].Scope)

		time.Sleep(50 * time.Minute)
		_, err = b.Tools(ctx)
		require.NoError(w, err)
		in := newInbox(w.system)
		w.system.Root.RequestWithCustomSender(get("c").PID(), &toolset.Use{ID: "1", Name: "one__a"}, in.pid) // asks a person
		require.Len(w, p.questions(), 1)
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		_, err = a.Tools(ctx)
		require.ErrorIs(w, err, messages.CodeClosed, "a was idle")
		require.NotSame(w, a, get("a"))
		require.Same(w, b, get("b"), "b was used")
		time.Sleep(3 * time.Hour)
		require.Empty(w, in.all(), "c is in use while a person thinks")
		p.answers <- allow
		require.NotNil(w, in.told(w).Result)

		get("d").Close()
		_, err = get("d").Tools(ctx)
		require.NoError(w, err)
		d := get("d")
		pool.Remove("d")
		pool.Remove("d")
		_, err = d.Tools(ctx)
		require.ErrorIs(w, err, messages.CodeClosed)
	})
}

// However many toolsets there are, the pool has one subscription, and an event of a key is told to the toolset of its scope.
func TestToolsetsOfAPoolHearOfEventsTogether(t *testing.T) {
	pooled(t, toolset.PoolConfig{IdleTimeout: -1}, func(ctx context.Context, w *world, _ *person, pool *toolset.Pool) {
		before := w.system.EventStream.Length()
		names := func(scope string) (names []string) {
			tools, err := pool.Get(scope)
			require.NoError(w, err)
			set, err := tools.Tools(ctx)
			require.NoError(w, err)
			for _, tool := range set.Tools {
				names = append(names, tool.Original)
			}
			return names
		}
		require.Equal(w, []string{"a", "b"}, names("a"))
		require.Equal(w, names("a"), names("b"))
		require.Equal(w, before, w.system.EventStream.Length())
		_, err := w.sup.Client().Open(ctx, "one", "b")
		require.NoError(w, err)
		w.one.add("d")
		w.changed("one")
		require.Equal(w, []string{"a", "b", "d"}, names("a"))
		require.Equal(w, names("a"), names("b"))
		pool.Remove("a")
		w.one.add("e")
		w.changed("one")
		require.Equal(w, []string{"a", "b", "d", "e"}, names("b"))
		require.Equal(w, names("b"), names("a"), "it is a new one")
	})
}

func TestModelOfAnIdleConversationIsToldThatItsStateIsGone(t *testing.T) {
	pooled(t, toolset.PoolConfig{}, func(ctx context.Context, w *world, p *person, pool *toolset.Pool) {
		call := func() string {
			tools, err := pool.Get("a")
			require.NoError(w, err)
			p.answers <- allow
			return tools.Outcome(tools.Call(ctx, "one__a", nil)).Text()
		}
		require.Equal(w, "a{}", call())
		time.Sleep(2 * time.Hour)
		require.Contains(w, call(), "is gone")
		require.Equal(w, "a{}", call())
		pool.Remove("a")
		time.Sleep(2 * time.Hour)
		require.Equal(w, "a{}", call(), "another conversation")
	})
}

func TestToolsetEndsWithItsOwner(t *testing.T) {
	pooled(t, toolset.PoolConfig{IdleTimeout: -1}, func(ctx context.Context, w *world, _ *person, pool *toolset.Pool) {
		first, owner := newInbox(w.system), newInbox(w.system)
		_, err := pool.Bind("a", first.pid)
		require.NoError(w, err)
		tools, err := pool.Bind("a", owner.pid)
		require.NoError(w, err)
		time.Sleep(24 * time.Hour)
		w.system.Root.Stop(first.pid)
		synctest.Wait()
		_, err = tools.Tools(ctx)
		require.NoError(w, err)
		w.system.Root.Stop(owner.pid)
		synctest.Wait()
		_, err = tools.Tools(ctx)
		require.ErrorIs(w, err, messages.CodeClosed)

		tools, err = pool.Bind("a", owner.pid)
		require.NoError(w, err)
		synctest.Wait()
		_, err = tools.Tools(ctx)
		require.ErrorIs(w, err, messages.CodeClosed, "the owner has terminated before")
		_, err = pool.Bind("b", newInbox(w.system).pid)
		require.NoError(w, err)
	})
}

func TestPoolThatCannotWorkIsRefused(t *testing.T) {
	_, err := toolset.NewPool(nil, (*supervisor.Supervisor)(nil), toolset.PoolConfig{IdleTimeout: -2})
	require.ErrorContains(t, err, "supervisor: is nil")
	require.ErrorContains(t, err, "config: is nil")
	require.ErrorContains(t, err, "idleTimeout: is negative")
	imagine(t, toolset.Config{}, func(_ context.Context, w *world) {
		pool, err := toolset.NewPool(w.system, w.sup, toolset.PoolConfig{Config: func(string) toolset.Config { return toolset.Config{MaxText: 1, MaxData: -2} }})
		require.NoError(w, err)
		defer pool.Close()
		_, err = pool.Get("a")
		require.ErrorContains(w, err, "maxText")
		require.ErrorContains(w, err, "maxData")
	})
}

package toolset_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/toolset"
)

func TestEachServerHasItsScope(t *testing.T) {
	imagine(t, toolset.Config{Servers: []toolset.Filter{{Name: "one", Scope: "shared"}, {Name: "two"}}}, func(ctx context.Context, w *world) {
		require.Equal(w, "one__a one__b two__c", w.tools(ctx))
		for name, key := range map[string]messages.Key{"one__a": {Server: "one", Scope: "shared"}, "two__c": {Server: "two", Scope: "s"}} {
			result, err := w.Call(ctx, name, nil)
			require.NoError(w, err)
			require.Equal(w, key, result.Key)
			set, err := w.Tools(ctx)
			require.NoError(w, err)
			require.Equal(w, key.Scope, set.Tool(name).Scope)
			call, err := w.Approve(ctx, name, nil)
			require.NoError(w, err)
			require.Equal(w, key, call.Key)
		}

		w.one.add("z")
		w.changed("one")
		require.Equal(w, "one__a one__b two__c one__z", w.tools(ctx))
	})
}

func TestPatternTakesAllServersAndThoseThatAReloadAdds(t *testing.T) {
	cfg := toolset.Config{Servers: []toolset.Filter{
		{Name: "*", Deny: []string{"b"}},
		{Name: "two", Scope: "shared", Slug: "second"},
		{Name: "t*", Scope: "tee"}, // all that it matches are taken
		{Name: "secret*", Disabled: true},
	}}
	imagine(t, cfg, func(ctx context.Context, w *world) {
		require.Equal(w, "one__a two__c", w.tools(ctx))
		servers := []mcpbridge.Server{{Name: "one", InMemory: w.one.mcp}, {Name: "two", InMemory: w.two.mcp}}
		reload := func(more ...mcpbridge.Server) {
			w.Helper()
			_, err := w.sup.Reload(ctx, append(servers, more...))
			require.NoError(w, err)
			synctest.Wait()
		}
		reload(mcpbridge.Server{Name: "three", InMemory: newServer("three", "b", "d").mcp})
		require.Equal(w, "one__a two__c three__d", w.tools(ctx))
		result, err := w.Call(ctx, "three__d", nil)
		require.NoError(w, err)
		require.Equal(w, "s", result.Key.Scope)
		result, err = w.Call(ctx, "two__c", nil)
		require.NoError(w, err)
		require.Equal(w, "shared", result.Key.Scope)

		servers = servers[:1]
		reload()
		require.Equal(w, "one__a !two", w.tools(ctx), "only what the configuration names is missing")
		_, err = w.Call(ctx, "three__d", nil)
		require.ErrorIs(w, err, messages.CodeInvalid)
		reload(mcpbridge.Server{Name: "three", InMemory: newServer("three", "e").mcp})
		_, err = w.Call(ctx, "three__e", nil)
		require.NoError(w, err, "Call notices a server that was added")
		require.Equal(w, 1, w.one.listed())
	})
}

func TestDisabledPatternExcludesServers(t *testing.T) {
	imagine(t, toolset.Config{Servers: []toolset.Filter{{Name: "t[v-x]o", Disabled: true}, {Name: "*"}, {Name: "n?ne"}}}, func(ctx context.Context, w *world) {
		require.Equal(w, "one__a one__b", w.tools(ctx))
		require.Equal(w, 0, w.two.listed())
	})
}

package table

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

func TestGenerationsNeverShrinkThoughKeysAreForgotten(t *testing.T) {
	g := newGenerations(2)
	key := func(scope string) messages.Key { return messages.Key{Server: "s", Scope: scope} }
	require.Zero(t, g.Of(key("a")))
	g.set(key("a"), 7)
	g.set(key("b"), 1)
	g.set(key("a"), 8)
	g.set(key("c"), 1) // forgets b
	require.EqualValues(t, 8, g.Of(key("a")))
	require.Zero(t, g.Of(key("b")))
	require.EqualValues(t, 1, g.Floor)
	g.set(key("b"), 2) // forgets a
	require.Zero(t, g.Of(key("a")))
	require.EqualValues(t, 8, g.Floor, "the next generation of a forgotten key is higher")
	require.Equal(t, 2, g.last.Len())
}

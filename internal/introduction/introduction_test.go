package introduction

import (
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

func TestContextHasTheIntroductionOfItsScopeOnly(t *testing.T) {
	require.Nil(t, Of(t.Context()))
	in := &messages.Introduction{ProtocolVersion: "2025-06-18"}
	ctx := With(t.Context(), in)
	require.Same(t, in, Of(ctx))
	require.Nil(t, Of(With(ctx, nil)), "a scope without one does not get that of another scope")
}

func TestEqualIntroductionsHaveTheSameIdentity(t *testing.T) {
	further := func(name, value string) map[string]json.RawMessage {
		return map[string]json.RawMessage{name: json.RawMessage(value)}
	}
	all := func() []*messages.Introduction {
		return []*messages.Introduction{
			nil,
			{},
			{ProtocolVersion: "a"},
			{ProtocolVersion: "b"},
			{ClientInfo: &mcp.Implementation{}},
			{ClientInfo: &mcp.Implementation{Name: "a"}},
			{ClientInfo: &mcp.Implementation{Version: "a"}},
			{ClientInfo: &mcp.Implementation{Name: "a", Icons: []mcp.Icon{{Source: "data:,"}}}},
			{Initialize: further("a", `{}`)},
			{Initialize: further("a", `{ }`)},
			{Initialize: further("b", `{}`)},
			{Initialize: further("a", "{\xff")},
			{ProtocolVersion: "a", ClientInfo: &mcp.Implementation{Name: "a"}, Initialize: further("a", `{}`)},
		}
	}
	one, two, seen := all(), all(), map[string]int{}
	for i := range one {
		id := Identity(one[i])
		require.Equal(t, id, Identity(two[i]))
		require.NotContains(t, seen, id, "%d", i)
		seen[id] = i
	}
	require.Equal(t, "", Identity(nil))
}

func TestDeclaredIsAsBeforeWithoutAnIntroduction(t *testing.T) {
	require.Equal(t, "", Declared("", nil))
	require.Equal(t, "capabilities", Declared("capabilities", nil), "as in the records of earlier versions")
	require.NotEqual(t, Declared("", &messages.Introduction{}), Declared("capabilities", &messages.Introduction{}))
}

package view

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/internal/shown"
)

// client is what a view needs, with the tools that its server has now.
type client struct {
	tools []Tool
	used  map[string]time.Time
	told  int
	kept  []Tool
}

func (c *client) view(cfg Config) *View {
	return New(cfg, Client{
		Tools: func() []Tool { return c.tools }, Keeps: func(t Tool) bool { return t.Server == "s" },
		Used: func(string) map[string]time.Time { return c.used }, Changed: func() { c.told++ }, Keep: func(kept []Tool) { c.kept = kept },
	})
}

// tool returns a tool of the server "s".
func tool(name string, version int) Tool {
	raw := json.RawMessage(fmt.Sprintf(`{"name":%q,"description":"%d"}`, name, version))
	return Tool{Server: "s", Name: name, ID: name, Raw: raw, Digest: mcpserver.Digest(raw)}
}

func names(list []json.RawMessage) (all []string) {
	for _, raw := range list {
		all = append(all, mcpserver.ObjectOf(raw).Text("name"))
	}
	return all
}

func TestClientIsToldOfEachChangeOnce(t *testing.T) {
	c := &client{tools: []Tool{tool("a", 1)}}
	v := c.view(Config{Mode: shown.Append})
	require.False(t, v.News(), "it has not asked")
	v.Show()
	require.False(t, v.News())
	c.tools = []Tool{tool("a", 2)}
	require.True(t, v.News())
	require.False(t, v.News(), "it was told")
	c.tools = []Tool{tool("a", 1)}
	require.True(t, v.News(), "it may have asked in between")
	c.tools = nil
	require.False(t, v.News(), "it stays")
}

func TestClientThatFindsToolsIsShownThoseInUse(t *testing.T) {
	now := time.Now()
	c := &client{tools: []Tool{tool("a", 1), tool("b", 1), tool("c", 1), tool("d", 1)}, used: map[string]time.Time{"d": now, "c": now.Add(time.Second), "b": now.Add(-time.Hour)}}
	for _, mode := range []shown.Mode{shown.Append, shown.Freeze, shown.Follow} {
		v := c.view(Config{Mode: mode, Find: 2})
		require.Equal(t, []string{"find_tools", "c", "d"}, names(v.Show()), "the two that were used last")
		c.told = 0
		for range 3 {
			v.Note("a")
		}
		require.Equal(t, 1, c.told)
		want := v.Show()
		restored, ok := decoded(t, c.kept)
		require.True(t, ok)
		again := c.view(Config{Mode: mode, Find: 2})
		again.Restore(restored)
		require.False(t, again.News())
		require.Equal(t, want, again.Show(), "%s: after a restart", mode)
		plain := c.view(Config{Mode: mode})
		plain.Restore(restored)
		require.NotContains(t, names(plain.Show()), "find_tools", "the user no longer wants it")
	}
}

func decoded(t *testing.T, tools []Tool) ([]Tool, bool) {
	data, err := Encode(tools)
	require.NoError(t, err)
	return Decode(data)
}

func TestWhatIsNoListIsNotDecoded(t *testing.T) {
	for _, data := range []string{``, `{}`, `[{}]`, `[{"server":"s","name":"a","id":"a"}]`, `[{"server":"s","name":"a","raw":{"name":"a"}}]`, `[{"id":"a","raw":[]}]`} {
		_, ok := Decode([]byte(data))
		require.False(t, ok, data)
	}
}

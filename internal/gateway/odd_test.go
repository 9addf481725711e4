package gateway

import (
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/mcpserver"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/tests/oddtest"
)

// What a server sends reaches a client as it came, whatever is odd about it.
func TestOddResultReachesAClientAsItCame(t *testing.T) {
	s := new(oddtest.Server)
	web := httptest.NewServer(s)
	defer func() { web.CloseClientConnections(); web.Close() }()
	w := newWorld(t, nil, mcpbridge.Server{Name: "s", URL: web.URL + "/mcp"})
	defer w.stop()
	c := w.raw()
	c.open()
	for i, odd := range oddtest.Some("tools/call", 100, 5) {
		s.Set(odd.Method, odd.Result)
		answer := c.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"first"}}`, i), fmt.Sprint(i))
		require.Nil(t, answer.Error, odd.Name)
		require.Equal(t, odd.Result, string(answer.Result), odd.Name)
	}
}

// A client gets the list with what is odd in it, and is told.
func TestOddListIsToldToAClient(t *testing.T) {
	s := new(oddtest.Server)
	s.Set("tools/list", `{"tools":[{"name":"bad","title":5,"inputSchema":{"type":"object","properties":{"n":{"maximum":1.0}}}},{"name":"good","inputSchema":{"type":"object"}}],"nextCursor":7}`)
	web := httptest.NewServer(s)
	defer func() { web.CloseClientConnections(); web.Close() }()
	w := newWorld(t, nil, mcpbridge.Server{Name: "s", URL: web.URL + "/mcp"})
	defer w.stop()
	c := w.raw()
	c.open()
	answer := c.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "1")
	require.Nil(t, answer.Error)
	require.Contains(t, string(answer.Result), `"title":5`)
	require.Contains(t, string(answer.Result), `{"maximum":1.0}`)
	require.Contains(t, string(answer.Result), `"name":"good"`)
	for _, told := range []string{`s: tools[0] (\"bad\").title is a number, and was left out`, `the cursor on page 1 is no text`} {
		note := c.await(func(m *mcpserver.Message) bool { return m.Method == "notifications/message" })
		require.Contains(t, string(note.Params), told)
	}
}

package gateway

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// listen serves a gateway over HTTP on a real socket.
func listen(t *testing.T, token string, servers ...mcpbridge.Server) (*world, string) {
	w := newWorld(t, nil, servers...)
	w.cfg.Lingers = true // as in mcpactor serve
	e := w.HTTP(token)
	server := httptest.NewServer(e)
	t.Cleanup(func() {
		e.Close()
		server.Close()
		w.stop()
	})
	return w, server.URL
}

// Ten clients call, are asked, and leave, each with a session of its own.
func TestClientsOverHTTPHaveTheirOwnSessions(t *testing.T) {
	w, url := listen(t, "", mcpbridge.Server{Name: "s", InMemory: newTalker()})
	t.Run("all", func(t *testing.T) {
		for range 10 {
			t.Run("client", func(t *testing.T) {
				t.Parallel()
				heard := make(chan string, 100)
				client := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, &mcp.ClientOptions{
					ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
						return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
					},
					ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { heard <- "progress" },
					ResourceUpdatedHandler:      func(context.Context, *mcp.ResourceUpdatedNotificationRequest) { heard <- "updated" },
				})
				session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url}, withInitialize)
				require.NoError(t, err)
				listed, err := session.ListTools(t.Context(), nil)
				require.NoError(t, err)
				require.Len(t, listed.Tools, 3)
				result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "elicit"})
				require.NoError(t, err)
				require.Equal(t, "Ada", result.Content[0].(*mcp.TextContent).Text)
				require.NoError(t, session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "file:///x"}))
				params := &mcp.CallToolParams{Name: "talk"}
				params.SetProgressToken("mine")
				_, err = session.CallTool(t.Context(), params)
				require.NoError(t, err)
				for got := map[string]bool{}; len(got) < 2; { // others cause updates as well
					got[<-heard] = true
				}
				require.NoError(t, session.Close())
			})
		}
	})
	require.Eventually(t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.scopes) == 0
	}, 10*time.Second, 10*time.Millisecond, "DELETE ends a client")
}

func TestEndpointServesOnlyThisMachine(t *testing.T) {
	_, url := listen(t, "hush", mcpbridge.Server{Name: "s", InMemory: newTalker()})
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	send := func(body string, change func(*http.Request)) (int, string, http.Header) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer hush")
		change(req)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(text), resp.Header
	}
	for name, c := range map[string]struct {
		status int
		change func(*http.Request)
	}{
		"another host":    {http.StatusForbidden, func(r *http.Request) { r.Host = "evil.example" }},
		"a page":          {http.StatusForbidden, func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }},
		"another port":    {http.StatusForbidden, func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") }},
		"no token":        {http.StatusUnauthorized, func(r *http.Request) { r.Header.Del("Authorization") }},
		"a wrong token":   {http.StatusUnauthorized, func(r *http.Request) { r.Header.Set("Authorization", "Bearer no") }},
		"another session": {http.StatusNotFound, func(r *http.Request) { r.Header.Set("Mcp-Session-Id", "guessed") }},
		"a later revision": {http.StatusBadRequest, func(r *http.Request) {
			r.Header.Set("Mcp-Session-Id", "x")
			r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		}},
		"its own page": {http.StatusOK, func(r *http.Request) { r.Header.Set("Origin", "http://"+r.Host) }},
	} {
		status, _, _ := send(hello, c.change)
		require.Equal(t, c.status, status, name)
	}
	status, body, header := send(hello, func(*http.Request) {})
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, `"name":"talker"`)
	mine := func(r *http.Request) { r.Header.Set("Mcp-Session-Id", header.Get("Mcp-Session-Id")) }
	status, _, _ = send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, mine)
	require.Equal(t, http.StatusAccepted, status)
	status, body, _ = send(`[{"jsonrpc":"2.0","id":"a","method":"ping"},{"jsonrpc":"2.0","id":"b","method":"nothing"}]`, mine)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, `"id":"a","result":{}`)
	require.Contains(t, body, `"id":"b","error":{"code":-32601`)
	status, _, _ = send(`{`, mine)
	require.Equal(t, http.StatusBadRequest, status)
	status, _, _ = send("", func(r *http.Request) { mine(r); r.Method = http.MethodDelete })
	require.Equal(t, http.StatusOK, status)
	status, _, _ = send(hello, mine)
	require.Equal(t, http.StatusNotFound, status)
}

// bearer sends a token with each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// Clients that ask for the same scope have the same session, which ends with the last of them. Without a token nobody may ask.
func TestClientsWithTheTokenMayShareAScope(t *testing.T) {
	w, url := listen(t, "secret", mcpbridge.Server{Name: "s", InMemory: newTalker()})
	connect := func(url string) (*mcp.ClientSession, error) {
		client := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, nil)
		return client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer("secret")}}, withInitialize)
	}
	call := func(url string) *mcp.ClientSession {
		session, err := connect(url)
		require.NoError(t, err)
		_, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "talk"})
		require.NoError(t, err)
		return session
	}
	sessions := func() int {
		snapshot, err := w.do.Inspect(t.Context())
		require.NoError(t, err)
		return len(snapshot.Sessions)
	}
	one, another, _ := call(url+"?scope=team"), call(url+"?scope=team"), call(url+"?scope=other")
	require.Len(t, w.everybody(), 3)
	require.Equal(t, 2, sessions())
	require.NoError(t, one.Close())
	time.Sleep(100 * time.Millisecond) // its end is not told
	require.Equal(t, 2, sessions())
	require.NoError(t, another.Close())
	require.Eventually(t, func() bool { return sessions() == 1 }, 10*time.Second, 10*time.Millisecond)
	_, err := connect(url + "?scope=a%00b")
	require.ErrorContains(t, err, "scope")

	_, open := listen(t, "", mcpbridge.Server{Name: "s", InMemory: newTalker()})
	resp, err := http.Post(open+"?scope=team", "application/json", strings.NewReader(initialize))
	require.NoError(t, err)
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusForbidden, resp.StatusCode)
	require.Contains(t, string(said), "scope: needs the token")
}

package refusals_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/tests/faults"
	"github.com/mcpactor/mcpactor/tests/internal/refusals"
)

// wantRefusals is the least number of refusals of servers in use.
const wantRefusals = 45

func TestRefusalsHaveASource(t *testing.T) {
	names, found := map[string]bool{}, 0
	for _, form := range refusals.All() {
		require.False(t, names[form.Name], form.Name)
		names[form.Name] = true
		require.Contains(t, []string{"http", "sse", "stdio"}, form.Transport, form.Name)
		require.Contains(t, []refusals.Verdict{refusals.Certain, refusals.Expired, refusals.Alive}, form.Verdict, form.Name)
		if form.Invented {
			continue
		}
		require.Regexp(t, `^(run: .*\d+\.\d+|https://github\.com/)`, form.Source, form.Name)
		if form.Transport == "http" {
			found++
		}
	}
	require.GreaterOrEqual(t, found, wantRefusals)
}

// Only the form of the specification is certain. An error with the id of the request is
// not.
func TestCertainRefusalsAreThoseOfTheSpecification(t *testing.T) {
	for _, form := range refusals.All() {
		certain := (form.Status == 404 || form.Status == 410) && !strings.Contains(form.Body, "{id}")
		require.Equal(t, form.Verdict == refusals.Certain, certain, form.Name)
	}
}

func TestServerAnswersInTheFormOfARefusal(t *testing.T) {
	tools := faults.NewTools()
	defer tools.Close()
	server := faults.Local(tools.Handler)
	defer server.Close()
	client := &http.Client{Transport: server, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	post := func(session, body string) *http.Response {
		req, err := http.NewRequest(http.MethodPost, server.URL(), strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Mcp-Session-Id", session)
		resp, err := client.Do(req)
		require.NoError(t, err)
		return resp
	}
	for _, form := range refusals.All() {
		if form.Transport != "http" {
			continue
		}
		resp := post("", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
		resp.Body.Close()
		session := resp.Header.Get("Mcp-Session-Id")
		require.NotEmpty(t, session)
		require.Equal(t, 1, server.Expire(form.Expiry()))
		resp = post(session, `{"jsonrpc":"2.0","id":4503599627370495,"method":"tools/call"}`)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, form.Status, resp.StatusCode, form.Name)
		require.Equal(t, form.Header["Content-Type"], resp.Header.Get("Content-Type"), form.Name)
		require.Equal(t, strings.NewReplacer("{id}", "4503599627370495", "{session}", session).Replace(form.Body), string(body))
		if form.Ping != nil {
			resp = post(session, `{"jsonrpc":"2.0","id":2,"method":"ping"}`)
			require.Equal(t, form.Ping.Status, resp.StatusCode)
		}
	}
}

package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// stateless returns a stateless request as JSON. more are members of its parameters.
func stateless(id, method, more string) string {
	if more != "" {
		more = "," + more
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
		`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}},"io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"}}%s}}`, id, method, more)
}

// resultOf is the result of a message as an object.
func resultOf(w *world, m *mcpserver.Message) mcpserver.Object {
	w.Helper()
	require.Nil(w, m.Error, "%v", m.Error)
	return mcpserver.ObjectOf(m.Result)
}

// answered returns the members of the next round after a result that asks.
func answered(w *world, asks mcpserver.Object, name string) string {
	w.Helper()
	require.Equal(w, "input_required", asks.Text("resultType"), "%s", asks)
	for key, question := range mcpserver.ObjectOf(asks["inputRequests"]) {
		require.Equal(w, "elicitation/create", mcpserver.ObjectOf(question).Text("method"))
		return fmt.Sprintf(`"requestState":%s,"inputResponses":{%q:{"action":"accept","content":{"name":%q}}}`, asks["requestState"], key, name)
	}
	require.Fail(w, "no question")
	return ""
}

// A server with sessions asks a stateless client in the results of rounds. Each round has one reply, however often it is sent, and one
// that was changed, or belongs to another request, ends nothing.
func TestStatelessClientIsAskedInRounds(t *testing.T) {
	w := newWorld(t, nil, mcpbridge.Server{Name: "s", InMemory: newTalker()})
	defer w.stop()
	r := w.raw()
	found := resultOf(w, r.ask(stateless("1", "server/discover", ""), "1"))
	require.JSONEq(t, `["2026-07-28"]`, string(found["supportedVersions"]))
	require.NotNil(t, mcpserver.ObjectOf(found["capabilities"])["tools"])
	require.Equal(t, "talker", mcpserver.ObjectOf(mcpserver.ObjectOf(found["_meta"])[mcp.MetaKeyServerInfo]).Text("name"))
	for _, result := range []mcpserver.Object{found, resultOf(w, r.ask(stateless("2", "tools/list", ""), "2"))} {
		require.Equal(t, "complete", result.Text("resultType"))
		require.Equal(t, "private", result.Text("cacheScope"))
		require.Equal(t, "0", string(result["ttlMs"]))
	}

	asks := resultOf(w, r.ask(stateless("3", "tools/call", `"name":"elicit","arguments":{}`), "3"))
	next := answered(w, asks, "Ada")
	at := strings.Index(next, `","`) / 2
	changed := next[:at] + string('A'+(next[at]+1)%20) + next[at+1:]
	for _, refused := range []string{`"name":"elicit","arguments":{},` + changed, `"name":"talk","arguments":{},` + next, `"name":"elicit","arguments":{"other":1},` + next} {
		require.EqualValues(t, -32602, r.ask(stateless("4", "tools/call", refused), "4").Error.Code, refused)
	}
	for range 3 { // the same round
		require.Contains(t, string(r.ask(stateless("5", "tools/call", `"name":"elicit","arguments":{},`+next), "5").Result), `"text":"Ada"`)
	}
	for method, code := range map[string]int64{"ping": -32601, "initialize": -32601, "resources/subscribe": -32601, "acme/x": -32601} {
		require.EqualValues(t, code, r.ask(stateless("6", method, ""), "6").Error.Code, method)
	}
	require.EqualValues(t, -32602, r.ask(`{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, "7").Error.Code)
}

// A question that nobody answers ends with its call, which is cancelled on the server. The client is told what is known of it.
func TestQuestionOfAStatelessClientExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		ended := make(chan error, 1)
		s := withSessions(mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil))
		mcp.AddTool(s, &mcp.Tool{Name: "ask"}, func(ctx context.Context, req *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, any, error) {
			_, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "?", RequestedSchema: map[string]any{"type": "object"}})
			ended <- err
			return nil, nil, err
		})
		w := newWorld(t, nil, mcpbridge.Server{Name: "s", InMemory: s, Limits: mcpbridge.Limits{CallTimeout: time.Hour}})
		defer w.stop()
		r := w.raw()
		next := answered(w, resultOf(w, r.ask(stateless("1", "tools/call", `"name":"ask","arguments":{}`), "1")), "Ada")
		time.Sleep(roundTime - time.Second)
		require.Empty(t, ended)
		time.Sleep(2 * time.Second)
		require.Error(t, <-ended)
		late := resultOf(w, r.ask(stateless("2", "tools/call", `"name":"ask","arguments":{},`+next), "2"))
		require.Equal(t, "true", string(late["isError"]))
		require.Contains(t, string(late["content"]), "may have run")
		w.waiting.Range(func(id, _ any) bool { require.Fail(t, "a call is kept", id); return true })
	})
}

// poster sends stateless requests over HTTP.
type poster struct {
	t   *testing.T
	url string
}

// post sends a request with the headers that repeat it, or others, and returns the status and the body.
func (p poster) post(ctx context.Context, body string, headers ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, strings.NewReader(body))
	require.NoError(p.t, err)
	var m mcpserver.Message
	require.NoError(p.t, json.Unmarshal([]byte(body), &m))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Mcp-Protocol-Version", "2026-07-28")
	req.Header.Set("Mcp-Method", m.Method)
	if name := m.Members().Text("name"); name != "" {
		req.Header.Set("Mcp-Name", name)
	}
	for i := 0; i < len(headers); i += 2 {
		if req.Header.Del(headers[i]); headers[i+1] != "" {
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	return http.DefaultClient.Do(req)
}

func (p poster) answer(body string, headers ...string) (status int, m *mcpserver.Message) {
	resp, err := p.post(p.t.Context(), body, headers...)
	require.NoError(p.t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(p.t, err)
	for line := range bytes.Lines(data) {
		if text, isData := bytes.CutPrefix(line, []byte("data:")); isData {
			data = text // of the last event
		}
	}
	m = new(mcpserver.Message)
	json.Unmarshal(data, m)
	return resp.StatusCode, m
}

func TestStatelessRequestsOverHTTPHaveTheStatusOfTheRevision(t *testing.T) {
	_, url := listen(t, "", mcpbridge.Server{Name: "s", InMemory: newTalker()})
	p := poster{t, url}
	call := stateless("1", "tools/call", `"name":"elicit","arguments":{}`)
	for _, one := range []struct {
		body   string
		status int
		code   int64
		header []string
	}{
		{stateless("1", "tools/list", ""), 200, 0, nil},
		{stateless("1", "acme/x", ""), 404, -32601, nil},
		{stateless("1", "ping", ""), 404, -32601, nil},
		{call, 400, -32020, []string{"Mcp-Method", ""}},
		{call, 400, -32020, []string{"Mcp-Name", ""}},
		{call, 400, -32020, []string{"Mcp-Name", "other"}},
		{call, 400, -32020, []string{"Mcp-Name", "=?base64?!?="}},
		{call, 200, 0, []string{"Mcp-Name", "=?base64?ZWxpY2l0?="}},
		{call, 400, -32020, []string{"Mcp-Protocol-Version", ""}},
		{call, 400, -32020, []string{"Mcp-Protocol-Version", "2025-11-25"}},
		{strings.Replace(call, "2026-07-28", "2027-01-01", 1), 400, -32022, []string{"Mcp-Protocol-Version", "2027-01-01"}},
		{strings.Replace(call, "clientCapabilities", "x", 1), 400, -32602, nil},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, 400, -32602, nil},
	} {
		status, m := p.answer(one.body, one.header...)
		require.Equal(t, one.status, status, "%s %v", one.body, one.header)
		require.Equal(t, "1", string(m.ID))
		if one.code == 0 {
			require.Nil(t, m.Error)
		} else {
			require.Equal(t, one.code, m.Error.Code, "%s %v", one.body, one.header)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
		require.NoError(t, err)
		req.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, http.StatusMethodNotAllowed, resp.StatusCode)
	}
}

// Clients without sessions may use the same ids at once. The end of a connection cancels its call, and no other one.
func TestStatelessClientsMayUseTheSameIDs(t *testing.T) {
	runs, cancelled := make(chan struct{}), make(chan string, 1)
	s := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *mcp.CallToolRequest, in struct{ Name string }) (*mcp.CallToolResult, any, error) {
		if in.Name == "first" {
			close(runs)
			<-ctx.Done()
			cancelled <- in.Name
			return nil, nil, ctx.Err()
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Name}}}, nil, nil
	})
	_, url := listen(t, "", mcpbridge.Server{Name: "s", InMemory: s})
	p := poster{t, url}
	call := func(name string) string {
		return stateless("1", "tools/call", fmt.Sprintf(`"name":"wait","arguments":{"Name":%q}`, name))
	}
	ctx, leave := context.WithCancel(t.Context())
	var first sync.WaitGroup
	first.Go(func() {
		_, err := p.post(ctx, call("first"))
		require.ErrorIs(t, err, context.Canceled)
	})
	<-runs
	for i := range 10 {
		_, m := p.answer(call(fmt.Sprint("other", i)))
		require.Contains(t, string(m.Result), fmt.Sprint(`"text":"other`, i))
	}
	require.Empty(t, cancelled)
	leave()
	require.Equal(t, "first", <-cancelled)
	first.Wait()
}

// A client that listens is told what it gets, before all else, and then what changes, with the id of its request.
func TestStatelessClientListens(t *testing.T) {
	w := newWorld(t, nil, mcpbridge.Server{Name: "s", InMemory: newTalker()})
	defer w.stop()
	r := w.raw()
	r.send(stateless(`"l"`, "subscriptions/listen", `"notifications":{"toolsListChanged":true,"resourceSubscriptions":["file:///x"],"unknown":true}`))
	told := r.await(func(m *mcpserver.Message) bool { return m.Method == "notifications/subscriptions/acknowledged" })
	require.JSONEq(t, `{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["file:///x"]},"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}`, string(told.Params))
	require.Nil(t, r.ask(stateless("1", "tools/call", `"name":"talk","arguments":{}`), "1").Error)
	updated := r.await(func(m *mcpserver.Message) bool { return m.Method == "notifications/resources/updated" })
	require.Equal(t, `"l"`, string(updated.Meta()[mcp.MetaKeySubscriptionID]))
	require.Equal(t, "file:///x", updated.Members().Text("uri"))
	r.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"l"}}`)
	for _, wrong := range []string{"", `"notifications":7`, `"notifications":{"resourceSubscriptions":"x"}`} {
		require.EqualValues(t, -32602, r.ask(stateless("2", "subscriptions/listen", wrong), "2").Error.Code, wrong)
	}
	require.Eventually(t, func() bool { return !w.isWatched("file:///x", w.everybody()[0].servers()[0].key()) }, 10*time.Second, time.Millisecond)
}

// A question that nothing attributes to a call ends with the call that it was given to: whoever waits for the answer is told.
func TestQuestionEndsWithTheCallThatAsksIt(t *testing.T) {
	release, running := make(chan struct{}), make(chan struct{})
	s := withSessions(mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil))
	mcp.AddTool(s, &mcp.Tool{Name: "slow"}, func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, any, error) {
		close(running)
		<-release
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "slow"}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "ask"}, func(ctx context.Context, req *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, any, error) {
		answer, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "?", RequestedSchema: map[string]any{"type": "object"}})
		if err != nil {
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(answer.Content["name"])}}}, nil, nil
	})
	w := newWorld(t, nil, mcpbridge.Server{Name: "s", InMemory: s})
	defer w.stop()
	r := w.raw()
	responseTo := func(id string) mcpserver.Object {
		return resultOf(w, r.await(func(m *mcpserver.Message) bool { return m.Method == "" && string(m.ID) == id }))
	}
	r.send(stateless("1", "tools/call", `"name":"slow","arguments":{}`))
	<-running
	r.send(stateless("2", "tools/call", `"name":"ask","arguments":{}`))
	next := answered(w, responseTo("1"), "Ada") // the first call that is not asking
	close(release)
	require.Equal(t, "true", string(responseTo("2")["isError"]))
	require.Contains(t, string(resultOf(w, r.ask(stateless("3", "tools/call", `"name":"slow","arguments":{},`+next), "3"))["content"]), "slow")

	asks := resultOf(w, r.ask(stateless("4", "tools/call", `"name":"ask","arguments":{}`), "4"))
	for _, none := range []string{"null", "5", "[]", `"x"`} { // no answer: it is asked again
		again := strings.Replace(answered(w, asks, "x"), `{"action":"accept","content":{"name":"x"}}`, none, 1)
		asks = resultOf(w, r.ask(stateless("5", "tools/call", `"name":"ask","arguments":{},`+again), "5"))
	}
	require.Contains(t, string(r.ask(stateless("6", "tools/call", `"name":"ask","arguments":{},`+answered(w, asks, "Ada")), "6").Result), `"text":"Ada"`)
}

// Calls that wait for their next round are bounded: each occupies its server.
func TestAbandonedQuestionsAreBounded(t *testing.T) {
	w := newWorld(t, nil, mcpbridge.Server{Name: "s", InMemory: newTalker()})
	defer w.stop()
	r := w.raw()
	first := ""
	for i := range maxWaiting + 1 {
		id := fmt.Sprint(i)
		next := answered(w, resultOf(w, r.ask(stateless(id, "tools/call", `"name":"elicit","arguments":{}`), id)), "Ada")
		if i == 0 {
			first = next
		}
	}
	gone := resultOf(w, r.ask(stateless("1000", "tools/call", `"name":"elicit","arguments":{},`+first), "1000"))
	require.Contains(t, string(gone["content"]), "may have run")
}

package gateway

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/gateway/internal/publicid"
	"github.com/mcpactor/mcpactor/tests/faults"
	"github.com/mcpactor/mcpactor/toolset"
)

// taskBook is a server with tasks, without an SDK. They outlive its processes. All such servers have the same ids: t1, t2, ...
type taskBook struct {
	isNew bool // it speaks protocol 2026-07-28, and has its extension for tasks

	mu       sync.Mutex
	states   []string // of the tasks
	received map[string]string
	answers  chan string // to the question of tasks/result
}

func newTaskBook(isNew bool) *taskBook {
	return &taskBook{isNew: isNew, received: map[string]string{}, answers: make(chan string, 1)}
}

// got returns the parameters that a method has had last, without its _meta.
func (b *taskBook) got(method string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	params, _ := mcpserver.Encode(mcpserver.ObjectOf(json.RawMessage(b.received[method])).Without("_meta"))
	return string(params)
}

// relatedTo is the _meta of what belongs to a task.
func relatedTo(id string) string {
	return `"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"` + id + `"},"later":1.0}`
}

// answer returns the result of a request, or an error. send sends before that.
func (b *taskBook) answer(m *mcpserver.Message, send func(string)) (result, failure string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.received[m.Method] = string(m.Params)
	id, complete := m.Members().Text("taskId"), ""
	if b.isNew {
		complete = `"resultType":"complete",`
	}
	at := 0
	fmt.Sscanf(id, "t%d", &at)
	if id != "" && (at < 1 || at > len(b.states)) {
		return "", `{"code":-32602,"message":"never heard of it"}`
	}
	task := func(at int) string {
		return fmt.Sprintf(`"taskId":"t%d","status":"%s","later":1.0`, at, b.states[at-1])
	}
	switch era := map[bool]string{false: "old ", true: "new "}[b.isNew]; era + m.Method {
	case "old initialize":
		return `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"tasks","version":"1"}}`, ""
	case "new server/discover":
		return `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{},"other":{"a":1}}},"ttlMs":0,"cacheScope":"private",
			"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"tasks","version":"1"}}}`, ""
	case "old tools/list":
		return `{"tools":[{"name":"work","inputSchema":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}},"execution":{"taskSupport":"optional"}}]}`, ""
	case "new tools/list":
		return `{"resultType":"complete","tools":[{"name":"work","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"private"}`, ""
	case "old tools/call", "new tools/call":
		b.states = append(b.states, "working")
		send(`{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{` + task(len(b.states)) + `}}`)
		return `{"task":{` + task(len(b.states)) + `}}`, ""
	case "old tasks/get":
		return `{` + task(at) + `}`, ""
	case "new tasks/get":
		return `{` + complete + task(at) + `,"inputRequests":{"q":{"method":"elicitation/create","params":{"message":"?","taskId":"t1","requestedSchema":{"type":"object","properties":{}}}}}}`, ""
	case "old tasks/cancel", "new tasks/cancel":
		b.states[at-1] = "cancelled"
		return `{` + complete + task(at) + `}`, ""
	case "new tasks/update":
		return `{"resultType":"complete"}`, ""
	case "old tasks/result":
		token, _ := mcpserver.Encode(m.Meta()["progressToken"])
		send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + string(token) + `,"progress":1,` + relatedTo(id) + `}}`)
		send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"at it",` + relatedTo(id) + `}}`)
		send(`{"jsonrpc":"2.0","id":"question","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}},` + relatedTo(id) + `}}`)
		b.mu.Unlock()
		answer := <-b.answers
		b.mu.Lock()
		return `{"content":[],"taskId":"mine","answer":` + answer + `,` + relatedTo(id) + `}`, ""
	case "old tasks/list": // one on each page
		next := 1
		fmt.Sscan(m.Members().Text("cursor"), &next)
		if next > len(b.states) {
			return `{"tasks":[]}`, ""
		}
		return fmt.Sprintf(`{"tasks":[{%s}],"nextCursor":"%d"}`, task(next), next+1), ""
	}
	return "", `{"code":-32601,"message":"method not found"}`
}

// ServeHTTP serves it over streamable HTTP.
func (b *taskBook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	m := new(mcpserver.Message)
	switch {
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case err != nil || json.Unmarshal(body, m) != nil:
		w.WriteHeader(http.StatusBadRequest)
	case m.Method == "":
		b.answers <- string(m.Result)
		w.WriteHeader(http.StatusAccepted)
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	default:
		w.Header().Set("Content-Type", "text/event-stream")
		send := func(line string) {
			fmt.Fprintf(w, "data: %s\n\n", strings.ReplaceAll(line, "\n", ""))
			w.(http.Flusher).Flush()
		}
		result, failure := b.answer(m, send)
		if failure != "" {
			send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":` + failure + `}`)
			return
		}
		send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + result + `}`)
	}
}

// taskWorld runs a scenario in a bubble of fake time, with servers "a" and "b", of which the second one may be nil. open starts a
// gateway in front of them.
func taskWorld(t *testing.T, a, b *taskBook, scenario func(open func(key string) *world, servers []*faults.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		var servers []*faults.Server
		with := setup{}
		for i, book := range []*taskBook{a, b} {
			if book == nil {
				continue
			}
			server := faults.Local(func() http.Handler { return book })
			defer server.Close()
			srv := remote([]string{"a", "b"}[i], server)
			if book.isNew {
				srv.ProtocolVersion = "2026-07-28"
			}
			servers = append(servers, server)
			with.Supervisor.Servers = append(with.Supervisor.Servers, srv)
			with.Tools = append(with.Tools, toolset.Filter{Name: srv.Name})
		}
		with.Prefixed = b != nil
		scenario(func(key string) *world {
			one := with
			one.Key = []byte(key)
			return worldOf(t, one)
		}, servers)
	})
}

// request sends a request with a method and parameters, and returns its response.
func (r *raw) request(method, params string) *mcpserver.Message {
	return r.ask(`{"jsonrpc":"2.0","id":"`+method+`","method":"`+method+`","params":`+params+`}`, `"`+method+`"`)
}

// makeTask calls a tool as a task, and returns the id of the task.
func (r *raw) makeTask(tool string) string {
	answer := r.request("tools/call", `{"name":"`+tool+`","arguments":{},"task":{"ttl":60000}}`)
	require.Nil(r.w, answer.Error)
	id := mcpserver.ObjectOf(mcpserver.ObjectOf(answer.Result)["task"]).Text("taskId")
	require.Equal(r.w, `{"task":{"taskId":"`+id+`","status":"working","later":1.0}}`, string(answer.Result))
	return id
}

// requireUnknown checks that a request fails because there is no such task.
func (r *raw) requireUnknown(method, params string) {
	r.w.Helper()
	answer := r.request(method, params)
	require.NotNil(r.w, answer.Error, "%s", answer.Result)
	require.EqualValues(r.w, -32602, answer.Error.Code)
	require.Equal(r.w, "unknown task", answer.Error.Message)
}

// Servers have the same ids of tasks, which a client can tell apart. Each id leads to its server, also after a restart of the gateway,
// and nobody can make one.
func TestTasksOfSeveralServersNeverCollide(t *testing.T) {
	a, b := newTaskBook(false), newTaskBook(false)
	taskWorld(t, a, b, func(open func(string) *world, servers []*faults.Server) {
		w := open("key")
		r := w.raw()
		require.Contains(w, r.open(), `"tasks":{"cancel":{},"list":{},"requests":{"tools":{"call":{}}}}`)
		require.Contains(w, string(r.list("tools/list").Result), `"taskSupport":"optional"`)
		ids := []string{r.makeTask("a__work"), r.makeTask("b__work"), r.makeTask("b__work")}
		require.NotEqual(w, ids[0], ids[1])
		require.NotContains(w, strings.Join(ids, " "), "t1")
		for _, id := range ids {
			require.Equal(w, `{"taskId":"`+id+`","status":"working","later":1.0}`, string(r.request("tasks/get", `{"taskId":"`+id+`","later":1}`).Result))
			status := r.await(func(m *mcpserver.Message) bool { return m.Method == "notifications/tasks/status" })
			require.Equal(w, `{"taskId":"`+id+`","status":"working","later":1.0}`, string(status.Params))
		}
		require.JSONEq(w, `{"taskId":"t1","later":1}`, a.got("tasks/get"))
		require.JSONEq(w, `{"taskId":"t2","later":1}`, b.got("tasks/get"))

		require.Equal(w, `{"taskId":"`+ids[1]+`","status":"cancelled","later":1.0}`, string(r.request("tasks/cancel", `{"taskId":"`+ids[1]+`"}`).Result))
		listed := fmt.Sprintf(`{"taskId":"%s","status":"cancelled","later":1.0},{"taskId":"%s","status":"working","later":1.0}]}`, ids[1], ids[2])
		require.Equal(w, `{"tasks":[{"taskId":"`+ids[0]+`","status":"working","later":1.0},`+listed, string(r.request("tasks/list", `{}`).Result))
		require.EqualValues(w, -32602, r.request("tasks/list", `{"cursor":"2"}`).Error.Code, "it has one page")
		servers[0].Inject("tasks/list", func(w http.ResponseWriter, req *faults.Request, _ http.Handler) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"the book is lost"}}`, req.ID)
		})
		require.Equal(w, `{"tasks":[`+listed, string(r.request("tasks/list", `{}`).Result))
		r.told("the book is lost")

		for _, forged := range []string{"t1", ids[0][1:], ids[0] + "A", ""} {
			r.requireUnknown("tasks/get", `{"taskId":"`+forged+`"}`)
		}
		r.requireUnknown("tasks/cancel", `{}`)
		require.EqualValues(w, -32601, r.request("tasks/update", `{"taskId":"`+ids[0]+`"}`).Error.Code)
		require.Equal(w, "never heard of it", r.request("tasks/get", `{"taskId":"`+mustPublic(w, "a", "t7")+`"}`).Error.Message)
		w.stop()

		again := open("key")
		r = again.raw()
		r.open()
		require.Equal(w, `{"taskId":"`+ids[2]+`","status":"working","later":1.0}`, string(r.request("tasks/get", `{"taskId":"`+ids[2]+`"}`).Result))
		again.stop()
		other := open("another key")
		defer other.stop()
		r = other.raw()
		r.open()
		r.requireUnknown("tasks/get", `{"taskId":"`+ids[2]+`"}`)
	})
}

// mustPublic returns the public id of a task.
func mustPublic(w *world, server, id string) string {
	public, ok := publicid.Of(w.key, server, id)
	require.True(w, ok)
	return public
}

// What belongs to a task names it: the question of a server, the answer of the client, and the result.
func TestWhatBelongsToATaskNamesIt(t *testing.T) {
	a := newTaskBook(false)
	taskWorld(t, a, nil, func(open func(string) *world, _ []*faults.Server) {
		w := open("key")
		defer w.stop()
		r := w.raw()
		said := r.ask(strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1), `"open"`)
		require.Contains(w, string(said.Result), `"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`)
		r.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		r.makeTask("work")
		id := r.makeTask("work")
		r.send(`{"jsonrpc":"2.0","id":1,"method":"tasks/result","params":{"taskId":"` + id + `","_meta":{"progressToken":"mine"}}}`)
		for _, method := range []string{"notifications/progress", "notifications/message"} {
			came := r.await(func(m *mcpserver.Message) bool { return m.Method == method })
			require.Equal(w, members(`{` + relatedTo(id) + `}`)["_meta"], members(string(came.Params))["_meta"], method)
		}
		question := r.await(func(m *mcpserver.Message) bool { return m.Method == "elicitation/create" })
		require.Equal(w, members(`{` + relatedTo(id) + `}`)["_meta"], members(string(question.Params))["_meta"])
		r.send(`{"jsonrpc":"2.0","id":` + string(question.ID) + `,"result":{"action":"decline",` + relatedTo(id) + `}}`)
		result := r.await(func(m *mcpserver.Message) bool { return string(m.ID) == "1" })
		require.Nil(w, result.Error)
		require.JSONEq(w, `{"content":[],"taskId":"mine","answer":{"action":"decline",`+relatedTo("t2")+`},`+relatedTo(id)+`}`, string(result.Result))
		require.Equal(w, 2, strings.Count(string(r.request("tasks/list", `{}`).Result), `"taskId"`))
	})
}

// Clients that share the session of a server do not see the tasks of each other: nothing says whose a task is.
func TestTasksInASharedSessionAreNotListed(t *testing.T) {
	a := newTaskBook(false)
	taskWorld(t, a, nil, func(open func(string) *world, servers []*faults.Server) {
		w := open("key")
		defer w.stop()
		require.NoError(w, w.Reload([]toolset.Filter{{Name: "a", Scope: "shared"}}, nil))
		r, other := w.raw(), w.raw()
		for _, said := range []string{r.open(), other.open()} {
			require.Contains(w, said, `"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}`)
		}
		id := r.makeTask("work")
		require.Contains(w, string(r.request("tasks/get", `{"taskId":"`+id+`"}`).Result), `"working"`)
		require.EqualValues(w, -32601, other.request("tasks/list", `{}`).Error.Code)
		require.Zero(w, servers[0].Count("tasks/list"))
		time.Sleep(time.Second)
		require.NotContains(w, other.came(), "notifications/tasks/status")
	})
}

// A request that only reads is sent again if the process of the server has died, and one that changes a task is not.
func TestTaskIsReadAgainWhenItsServerHasDied(t *testing.T) {
	a := newTaskBook(false)
	taskWorld(t, a, nil, func(open func(string) *world, servers []*faults.Server) {
		w := open("key")
		defer w.stop()
		r := w.raw()
		r.open()
		id := r.makeTask("work")
		for _, method := range []string{"tasks/get", "tasks/cancel"} {
			servers[0].Inject(method, faults.Times(1, faults.CutAnswer(0)))
		}
		require.Contains(w, string(r.request("tasks/get", `{"taskId":"`+id+`"}`).Result), `"working"`)
		require.Contains(w, r.request("tasks/cancel", `{"taskId":"`+id+`"}`).Error.Message, "lost")
	})
}

// asNew handles the requests of a client as if they were of protocol 2026-07-28, with the extensions that it declares.
type asNew struct {
	mcpserver.Handler
	extensions string
}

func (h *asNew) Handle(r *mcpserver.Request) (any, error) {
	r.Meta().With("io.modelcontextprotocol/protocolVersion", mcpserver.Stateless).With(mcp.MetaKeyClientCapabilities, map[string]any{"extensions": json.RawMessage(h.extensions)})
	return h.Handler.Handle(r)
}

// Each client has the tasks of servers of its own protocol, and is told of no others.
func TestTasksOfAnotherProtocolAreHidden(t *testing.T) {
	a, b := newTaskBook(true), newTaskBook(false)
	taskWorld(t, a, b, func(open func(string) *world, _ []*faults.Server) {
		w := open("key")
		defer w.stop()
		r := w.raw()
		said := r.open()
		require.Contains(w, said, `"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`)
		require.NotContains(w, said, "io.modelcontextprotocol/tasks")
		of := r.makeTask("b__work")
		a.states = []string{"working"}
		id := mustPublic(w, "a", "t1")
		r.requireUnknown("tasks/get", `{"taskId":"`+id+`"}`)

		handler := &asNew{extensions: `{"io.modelcontextprotocol/tasks":{}}`}
		modern := w.rawAt(w.pipeTo(func(c *mcpserver.Client) mcpserver.Handler {
			handler.Handler = w.accept(c)
			return handler
		}))
		modern.open()
		got := modern.request("tasks/get", `{"taskId":"`+id+`"}`)
		require.Nil(w, got.Error)
		require.Equal(w, members(`{"resultType":"complete","taskId":"`+id+`","status":"working","later":1.0,"inputRequests":{"q":{"method":"elicitation/create",`+
			`"params":{"message":"?","taskId":"t1","requestedSchema":{"type":"object","properties":{}}}}}}`), members(string(got.Result)), "all else as it came")
		require.Nil(w, modern.request("tasks/update", `{"taskId":"`+id+`","inputResponses":{"q":{"action":"decline"}}}`).Error)
		require.JSONEq(w, `{"taskId":"t1","inputResponses":{"q":{"action":"decline"}}}`, a.got("tasks/update"))
		require.Nil(w, modern.request("tasks/cancel", `{"taskId":"`+id+`"}`).Error)
		require.Equal(w, "cancelled", a.states[0])
		modern.requireUnknown("tasks/get", `{"taskId":"`+of+`"}`)
		modern.requireUnknown("tasks/get", `{"taskId":"t1"}`)
		for _, method := range []string{"tasks/list", "tasks/result"} {
			require.EqualValues(w, -32601, modern.request(method, `{"taskId":"`+id+`"}`).Error.Code)
		}
		handler.extensions = `{"another":{}}`
		missing := modern.request("tasks/get", `{"taskId":"`+id+`"}`).Error
		require.EqualValues(w, -32021, missing.Code)
		require.JSONEq(w, `{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`, string(missing.Data))
	})
}

// A client of a gateway in front of one server gets the capabilities of that server but those for tasks of another protocol.
func TestCapabilitiesForTasksAreThoseOfTheProtocol(t *testing.T) {
	old := mcpserver.ObjectOf(json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"list":{},"requests":{"tools":{"call":{}}}},"extensions":{"io.modelcontextprotocol/tasks":{},"x":{}}}}`))
	other := mcpserver.ObjectOf(json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"cancel":{},"list":{"a":1},"requests":{"sampling":{}}}}}`))
	discovered := mcpserver.ObjectOf(json.RawMessage(`{"supportedVersions":["2026-07-28"],"capabilities":{"tasks":{"list":{}},"extensions":{"io.modelcontextprotocol/tasks":{"a":1}}}}`))
	offered := func(isNew bool, said ...mcpserver.Object) string {
		can := mcpserver.ObjectOf(said[0]["capabilities"])
		offerTasks(can, said, isNew)
		text, err := mcpserver.Encode(can)
		require.NoError(t, err)
		return string(text)
	}
	require.JSONEq(t, `{"tasks":{"list":{},"requests":{"tools":{"call":{}}}},"extensions":{"x":{}}}`, offered(false, old))
	require.JSONEq(t, `{"tasks":{"list":{"a":1},"cancel":{},"requests":{"tools":{"call":{}},"sampling":{}}},"extensions":{"x":{}}}`, offered(false, old, other, discovered))
	require.JSONEq(t, `{"extensions":{"x":{}}}`, offered(true, old))
	require.JSONEq(t, `{"extensions":{"io.modelcontextprotocol/tasks":{"a":1}}}`, offered(true, discovered, old))
	require.JSONEq(t, `{}`, offered(false, discovered))
	require.JSONEq(t, `{}`, offered(true, other))
}

// A server that lists without end is asked for so many pages.
func TestListOfTasksIsBounded(t *testing.T) {
	a := newTaskBook(false)
	a.states = slices.Repeat([]string{"working"}, 2*maxTaskPages)
	taskWorld(t, a, nil, func(open func(string) *world, servers []*faults.Server) {
		w := open("key")
		defer w.stop()
		r := w.raw()
		r.open()
		listed := r.request("tasks/list", `{"later":1}`)
		require.Equal(w, maxTaskPages, strings.Count(string(listed.Result), `"taskId"`))
		require.NotContains(w, string(listed.Result), "nextCursor")
		require.Equal(w, maxTaskPages, servers[0].Count("tasks/list"))
		require.JSONEq(w, `{"cursor":"100","later":1}`, a.got("tasks/list"))
		r.told("a: only the first 100 pages of its tasks are listed")
	})
}

// A server without tasks has none of their methods.
func TestServerWithoutTasksHasNoMethodsForThem(t *testing.T) {
	overHTTP(t, nil, func(w *world, e *faults.Server, _ *faults.Tools) {
		r := w.raw()
		require.NotContains(w, r.open(), `"tasks"`)
		for _, method := range taskMethods {
			require.EqualValues(w, -32601, r.request(method, `{"taskId":"t1"}`).Error.Code)
			require.Zero(w, e.Count(method))
		}
	})
}

// The headers of a call are checked by the schema of the tool that the server lists.
func TestHeadersAreCheckedByTheSchemaOfTheTool(t *testing.T) {
	taskWorld(t, newTaskBook(false), newTaskBook(false), func(open func(string) *world, _ []*faults.Server) {
		w := open("key")
		defer w.stop()
		w.raw().open()
		s := w.everybody()[0].server("b")
		check := func(tool, arguments, header string) error {
			return s.checkHeaders(w.Context(), tool, json.RawMessage(arguments), http.Header{"Mcp-Param-N": {header}})
		}
		require.NoError(w, check("work", `{"n":7}`, "7"))
		require.ErrorContains(w, check("work", `{"n":7}`, "8"), "Mcp-Param-N, argument n: the header has another value")
		require.NoError(w, check("unknown", `{"n":7}`, "8"))
	})
}

package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/internal/listfile"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/tests/faults"
	"github.com/mcpactor/mcpactor/toolset"
)

// everyList are the methods of all lists.
var everyList = []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list"}

// list asks for a list, with its method as the id.
func (r *raw) list(method string) *mcpserver.Message {
	return r.ask(`{"jsonrpc":"2.0","id":"`+method+`","method":"`+method+`"}`, `"`+method+`"`)
}

// came returns how many notifications have come, by their methods, and forgets them.
func (r *raw) came() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := map[string]int{}
	for _, m := range r.messages {
		n[m.Method]++
	}
	r.messages = nil
	return n
}

// A server of which nothing is known, and which does not answer, is waited for once, whatever a client asks. The client is told once
// when it answers.
func TestSilentServerIsWaitedForOnce(t *testing.T) {
	inFront(t, setup{Wait: 5 * time.Second}, false, func(w *world, slow *faults.Server) {
		slow.Inject("initialize", faults.Delay(20*time.Second))
		r, began := w.raw(), time.Now()
		took, said := r.opens()
		require.Contains(t, said, `"name":"mcpactor"`)
		require.Equal(t, 5*time.Second, took)
		for _, method := range everyList {
			took, answer := r.lists(method)
			require.Contains(t, answer.Error.Message, "has not answered yet")
			require.Zero(t, took)
		}
		r.came()
		time.Sleep(21*time.Second - time.Since(began))
		require.Equal(t, map[string]int{
			"notifications/tools/list_changed": 1, "notifications/prompts/list_changed": 1, "notifications/resources/list_changed": 2, // its templates, too
		}, r.came())
		for _, method := range everyList {
			took, answer := r.lists(method)
			require.Nil(t, answer.Error)
			require.Zero(t, took)
		}
	})
}

// A client is told that a list has changed when it has, and only then: not because a server writes it in another way, or in
// another order, when it has restarted, nor because it comes from the store.
func TestClientIsToldOfAListThatDiffersAndOnlyThen(t *testing.T) {
	const one = `{"name":"one","description":"<a> & b","inputSchema":{"type":"object"},"later":{"b":1.0,"a":[2]}}`
	const same = `{ "later":{"a":[2], "b":1.0}, "inputSchema":{"type":"object"}, "name":"one", "description":"\u003ca> & b" }`
	const two, other = `{"name":"two","inputSchema":{"type":"object"}}`, `{"name":"two","inputSchema":{"type":"object"},"later":1}`
	store := &listfile.Store{Folder: t.TempDir()}
	for _, when := range []struct {
		name string
		mode toolset.Stability
	}{{"at first", toolset.Append}, {"from the store", toolset.Append}, {"as servers have it", toolset.Follow}} {
		t.Run(when.name, func(t *testing.T) {
			overHTTP(t, store, func(w *world, e *faults.Server, _ *faults.Tools) {
				w.cfg.Stability = when.mode
				var listed atomic.Value // of a string
				listed.Store(one + "," + two)
				e.Inject("tools/list", func(rw http.ResponseWriter, req *faults.Request, _ http.Handler) {
					rw.Header().Set("Content-Type", "application/json")
					fmt.Fprintf(rw, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[%s]}}`, req.ID, listed.Load())
				})
				r := w.raw()
				r.open()
				require.Contains(w, string(r.list("tools/list").Result), `"one"`)
				const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count"}}`
				restart := func(with ...string) map[string]int {
					listed.Store(strings.Join(with, ","))
					require.NoError(w, e.Restart())
					require.NotContains(w, string(r.ask(call, "1").Result), "isError")
					time.Sleep(time.Minute) // or else it would restart too often
					return r.came()
				}
				const changed = "notifications/tools/list_changed"
				require.NotContains(w, string(r.ask(call, "1").Result), "isError")
				time.Sleep(5 * time.Second)
				require.Empty(w, r.came(), "its own session lists the same")
				require.Empty(w, restart(two, one))
				require.Empty(w, restart(two, same))
				require.Equal(w, map[string]int{changed: 1}, restart(same, other))
				require.Empty(w, restart(other, one), "it was told of that")
				require.Contains(w, string(r.list("tools/list").Result), `"later":1`)
				if when.mode == toolset.Append {
					require.Empty(w, restart(one), "what it was shown stays")
					return
				}
				require.Equal(w, map[string]int{changed: 1}, restart(one))
				require.Equal(w, map[string]int{changed: 1}, restart(), "there are none any more")
				require.Equal(w, `{"tools":[]}`, string(r.list("tools/list").Result))
				require.Equal(w, map[string]int{changed: 1}, restart(one, two))
			})
		})
	}
}

// The server gives its list a time, and does not announce that it has changed.
func TestListWhoseTimeIsOverIsFetchedAgain(t *testing.T) {
	overHTTP(t, nil, func(w *world, e *faults.Server, _ *faults.Tools) {
		var lists atomic.Int32
		e.Inject("tools/list", func(rw http.ResponseWriter, req *faults.Request, _ http.Handler) {
			rw.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(rw, `{"jsonrpc":"2.0","id":%s,"result":{"ttlMs":60000,"tools":[{"name":"t%d","inputSchema":{"type":"object"}}]}}`, req.ID, lists.Add(1))
		})
		r := w.raw()
		r.open()
		for i := range 3 {
			require.Contains(w, string(r.list("tools/list").Result), fmt.Sprint("t", i+1))
			require.Empty(w, r.came())
			time.Sleep(time.Minute)
			r.list("tools/list") // with the tool of before, or already with the next one
			synctest.Wait()
			require.Equal(w, map[string]int{"notifications/tools/list_changed": 1}, r.came())
		}
	})
}

// A client that was answered before its server was offers everything. What the server then turns out not to have is answered as the
// server itself would.
func TestWhatAServerTurnsOutNotToHaveIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		e := faults.Local(func() http.Handler { return http.HandlerFunc(serveToolsOnly) })
		defer e.Close()
		e.Inject("initialize", faults.Delay(20*time.Second))
		cfg := setup{Wait: 5 * time.Second, Tools: []toolset.Filter{{Name: "s"}}}
		cfg.Supervisor.Servers = []mcpbridge.Server{remote("s", e)}
		w := worldOf(t, cfg)
		defer w.stop()
		r := w.raw()
		said := r.open()
		for name := range mcpserver.ObjectOf(everything) {
			require.Contains(t, said, `"`+name+`":{`)
		}
		require.NotNil(t, r.list("prompts/list").Error, "nobody knows yet that there are none")
		time.Sleep(time.Minute)
		require.Equal(t, `{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`, string(r.list("tools/list").Result))
		for method, empty := range map[string]string{"prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resourceTemplates"} {
			require.Equal(t, `{"`+empty+`":[]}`, string(r.list(method).Result))
		}
		for _, request := range []string{
			`"prompts/get","params":{"name":"p"}`, `"resources/read","params":{"uri":"file:///x"}`, `"resources/subscribe","params":{"uri":"file:///x"}`,
			`"completion/complete","params":{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"v"}}`,
		} {
			answer := r.ask(`{"jsonrpc":"2.0","id":1,"method":`+request+`}`, "1")
			require.NotNil(t, answer.Error, request)
			require.EqualValues(t, -32601, answer.Error.Code, request)
		}
		require.Equal(t, "{}", string(r.ask(`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"info"}}`, "1").Result), "there is nothing that it leaves out")
		answer := r.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`, "1")
		require.Equal(t, `{"content":[]}`, string(answer.Result))
	})
}

// serveToolsOnly is a server that has a tool, and knows no method beside those of tools.
func serveToolsOnly(w http.ResponseWriter, r *http.Request) {
	var m mcpserver.Message
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	outcome := `"error":{"code":-32601,"message":"no such method"}`
	switch m.Method {
	case "initialize":
		w.Header().Set("Mcp-Session-Id", "one")
		outcome = `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"tools only","version":"1"}}`
	case "ping":
		outcome = `"result":{}`
	case "tools/list":
		outcome = `"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`
	case "tools/call":
		outcome = `"result":{"content":[]}`
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, outcome)
}

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/internal/listfile"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
	"github.com/mcpactor/mcpactor/toolset"
)

// recorder notes what a gateway sends to its supervisor.
type recorder struct {
	*supervisor.Supervisor
	client *supervisor.Client

	mu   sync.Mutex
	sent []messages.Command
	held string                    // the tool whose calls wait
	let  map[string]func(run bool) // lets a call that waits run, or fails it, by its id
}

// before returns the recorder in front of a supervisor.
func (r *recorder) before(sup *supervisor.Supervisor) Backend {
	r.Supervisor = sup
	r.client = supervisor.NewClient(sup.System(), sup.System().Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		cmd, is := c.Message().(messages.Command)
		if call, isCall := c.Message().(*protocol.ClientCall); isCall {
			cmd, is = call.Op, true
		}
		if !is {
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.sent = append(r.sent, cmd)
		switch cmd := cmd.(type) {
		case *messages.CallTool:
			if cmd.Params.Name == r.held {
				r.wait(cmd, c.Message(), c.Sender())
				return
			}
		case *messages.Cancel:
			if let := r.let[cmd.ID]; let != nil {
				let(false)
			}
		}
		c.Forward(sup.PID())
	})))
	return r
}

// wait notes a call that waits.
func (r *recorder) wait(call *messages.CallTool, msg any, sender *actor.PID) {
	if r.let == nil {
		r.let = map[string]func(bool){}
	}
	r.let[call.ID] = func(run bool) {
		if delete(r.let, call.ID); run {
			r.System().Root.RequestWithCustomSender(r.PID(), msg, sender)
		} else {
			r.System().Root.Send(sender, messages.NewFailure(call, messages.CodeCancelled, "it waited"))
		}
	}
}

// lets has all calls run that wait, and no others wait.
func (r *recorder) lets() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = ""
	for _, let := range r.let {
		let(true)
	}
}

func (r *recorder) Client() *supervisor.Client { return r.client }

// take returns what was sent since the last take.
func (r *recorder) take() []messages.Command {
	r.mu.Lock()
	defer r.mu.Unlock()
	sent := r.sent
	r.sent = nil
	return sent
}

// calls returns the calls of a tool that were sent since the last take.
func (r *recorder) calls(tool string) (calls []*messages.CallTool) {
	for _, cmd := range r.take() {
		if call, is := cmd.(*messages.CallTool); is && call.Params.Name == tool {
			calls = append(calls, call)
		}
	}
	return calls
}

// ends returns the commands since the last take that end scopes, or holders in them.
func (r *recorder) ends() (ends []string) {
	for _, cmd := range r.take() {
		switch cmd := cmd.(type) {
		case *messages.CloseScope:
			ends = append(ends, fmt.Sprintf("close %s, now %t, keep %t", cmd.Scope, cmd.Now, cmd.KeepHandles))
		case *messages.ReleaseHandles:
			ends = append(ends, fmt.Sprintf("release %s of %s", cmd.Scope, cmd.Holder))
		}
	}
	return ends
}

// holder returns whom the calls of a tool name as the holder.
func holderIn(calls []*messages.CallTool) string {
	var holder string
	for i, call := range calls {
		name, named := call.Attributes.Get(messages.HolderAttribute)
		if !named {
			name = "nobody"
		}
		if i > 0 && name != holder {
			return "several"
		}
		holder = name
	}
	return holder
}

// minter is a server whose tools open, use, close and list handles.
type minter struct {
	mu     sync.Mutex
	opened int
	most   int // or 0
	held   map[string]bool
}

// browsers declares its handles.
var browsers = mcpbridge.Handle{
	Mint: "open", Path: "id", Release: "close", List: "list", Listed: `(handle-\d+)`, Gone: "no such handle", Full: "too many", Own: true, Idle: 6 * time.Hour,
}

type handleID struct {
	ID string `json:"id"`
}

func (m *minter) server() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "minter", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "open"}, func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, handleID, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.most > 0 && len(m.held) >= m.most {
			return nil, handleID{}, errors.New("too many")
		}
		m.opened++
		id := fmt.Sprintf("handle-%012d", m.opened)
		m.held[id] = true
		return nil, handleID{id}, nil
	})
	add := func(name string, run func(id string)) {
		mcp.AddTool(s, &mcp.Tool{Name: name}, func(_ context.Context, _ *mcp.CallToolRequest, in handleID) (*mcp.CallToolResult, any, error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			if !m.held[in.ID] {
				return nil, nil, errors.New("no such handle")
			}
			run(in.ID)
			return nil, nil, nil
		})
	}
	add("use", func(string) {})
	add("close", func(id string) { delete(m.held, id) })
	mcp.AddTool(s, &mcp.Tool{Name: "list"}, func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Join(m.all(), " ")}}}, nil, nil
	})
	return s
}

// all returns the handles.
func (m *minter) all() (ids []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range m.held {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// overHandles runs a scenario in front of a server "s" without sessions that mints handles. Clients share it if there is a scope for that.
func overHandles(t *testing.T, share string, scenario func(r *restarts, m *minter, rec *recorder)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := &minter{held: map[string]bool{}}
		server := faults.Local(func() http.Handler {
			s := m.server()
			return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true})
		})
		defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		defer server.Close()
		folder, rec, srv := t.TempDir(), &recorder{}, remote("s", server)
		srv.Handles = []mcpbridge.Handle{browsers}
		r := &restarts{T: t, cfg: setup{
			Lists: &listfile.Store{Folder: filepath.Join(folder, "lists")}, Sessions: &resume.Memory{}, Clients: &ClientStore{filepath.Join(folder, "clients")}, Key: make([]byte, 32),
			Supervisor: supervisor.Config{Servers: []mcpbridge.Server{srv}}, Tools: []toolset.Filter{{Name: "s", Scope: share}}, Record: rec,
		}}
		r.startAgain()
		defer r.front.Close()
		defer r.end()
		scenario(r, m, rec)
	})
}

const opens = `{"name":"open"}`

// calls calls a tool as a stateless client, and returns the body of the response.
func (r *restarts) calls(user, tool string) string {
	resp := r.comes(user, "tools/call", `"name":"`+tool+`","arguments":{}`)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(r, err)
	return string(data)
}

// What a client has minted ends with it: when it leaves, or is silent for long. One of protocol 2026-07-28 has no connection that could end: it
// keeps its handles, also if its sessions end.
func TestHandlesOfAClientEndWithIt(t *testing.T) {
	for _, share := range []string{"", "shared"} {
		t.Run("share="+share, func(t *testing.T) {
			overHandles(t, share, func(r *restarts, m *minter, rec *recorder) {
				scope := func(c *client, keeps bool) (ends []string) {
					ends = []string{fmt.Sprintf("close %s, now true, keep %t", c.scope, keeps)}
					if share != "" && !keeps {
						ends = append(ends, "release shared of "+c.scope)
					}
					return ends
				}
				one := r.visitor("one")
				require.Contains(r, one.says(2, "tools/call", opens), "handle-000000000001")
				c := r.w.everybody()[0]
				require.Empty(r, rec.ends())
				require.Equal(r, http.StatusOK, one.send(r.Context(), http.MethodDelete, "", ""))
				require.Equal(r, scope(c, false), rec.ends(), "it has left")
				require.Empty(r, m.all())

				two := r.visitor("two")
				require.Contains(r, two.says(2, "tools/call", opens), "handle-000000000002")
				c = r.w.everybody()[0]
				time.Sleep(11 * time.Minute)
				require.Equal(r, scope(c, false), rec.ends(), "it was silent")
				require.Empty(r, m.all())

				require.Contains(r, r.calls("ann", "open"), "handle-000000000003")
				c = r.w.everybody()[0]
				time.Sleep(11 * time.Minute)
				require.Equal(r, scope(c, true), rec.ends(), "it is away")
				require.Len(r, m.all(), 1)
				require.Contains(r, r.calls("ann", "open"), "handle-000000000004")
				require.Equal(r, c.scope, r.w.everybody()[0].scope, "it is back")
				time.Sleep(browsers.Idle - 10*time.Minute)
				require.Len(r, m.all(), 1, "it has used the other one since")
				time.Sleep(12 * time.Minute)
				require.Empty(r, m.all())
			})
		})
	}
}

// The scope of a client over stdio ends with its input, whatever protocol it speaks.
func TestHandlesOfAClientOverStdioEndWithItsInput(t *testing.T) {
	for _, isStateless := range []bool{false, true} {
		m, rec := &minter{held: map[string]bool{}}, &recorder{}
		srv := mcpbridge.Server{Name: "s", InMemory: m.server(), Handles: []mcpbridge.Handle{browsers}}
		w := worldOf(t, setup{Tools: []toolset.Filter{{Name: "s"}}, Record: rec}.with(srv))
		r := w.raw()
		call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + opens + `}`
		if isStateless {
			call = stateless("1", "tools/call", `"name":"open","arguments":{}`)
		} else {
			r.open()
		}
		require.Contains(t, string(r.ask(call, "1").Result), "handle-000000000001")
		c := w.everybody()[0]
		require.Equal(t, "nobody", holderIn(rec.calls("open")), "its scope is its own")
		w.ends[0]()
		w.ends = nil
		require.Equal(t, []string{"close " + c.scope + ", now true, keep false"}, rec.ends())
		require.Empty(t, m.all())
		w.stop()
	}
}

// In a session that clients share, each client is named as the holder: by the same name after a restart, and by none where nothing is minted.
func TestClientsThatShareASessionAreNamedAsHolders(t *testing.T) {
	overHandles(t, "shared", func(r *restarts, _ *minter, rec *recorder) {
		holders := map[string]string{}
		one, two := r.visitor("one"), r.visitor("two")
		for name, call := range map[string]func(){
			"one": func() { one.says(2, "tools/call", opens) }, "two": func() { two.says(2, "tools/call", opens) },
			"ann": func() { r.calls("ann", "open") }, "bob": func() { r.calls("bob", "open") },
		} {
			call()
			calls := rec.calls("open")
			require.Len(r, calls, 1)
			require.Equal(r, "shared", calls[0].Key.Scope)
			holders[name] = holderIn(calls)
			require.NotEqual(r, "nobody", holders[name])
		}
		names := []string{holders["one"], holders["two"], holders["ann"], holders["bob"]}
		slices.Sort(names)
		require.Len(r, slices.Compact(names), 4)

		r.startAgain()
		require.Empty(r, rec.ends(), "they return")
		one.says(3, "tools/call", opens)
		require.Equal(r, holders["one"], holderIn(rec.calls("open")))
		r.calls("ann", "open")
		require.Equal(r, holders["ann"], holderIn(rec.calls("open")))

		r.cfg.Supervisor.Servers[0].Handles = nil
		r.startAgain()
		one.says(4, "tools/call", opens)
		require.Equal(r, "nobody", holderIn(rec.calls("open")))
		require.Equal(r, http.StatusOK, one.send(r.Context(), http.MethodDelete, "", ""))
		for _, end := range rec.ends() {
			require.NotContains(r, end, "release")
		}
		r.cfg.Supervisor.Servers[0].Handles = []mcpbridge.Handle{browsers}
		r.w.reload(r.cfg.Tools, r.cfg.Supervisor.Servers...)
		two.says(4, "tools/call", opens)
		require.Equal(r, holders["two"], holderIn(rec.calls("open")), "the file has changed")
	})
}

// Clients that ask for a scope hold together what they mint, until the last of them has left.
func TestClientsOfAScopeHoldHandlesTogether(t *testing.T) {
	long := strings.Repeat("x", 300)
	require.Equal(t, "team", first(holderOf("team").Get(messages.HolderAttribute)))
	require.NoError(t, holderOf(long).Validate())
	require.NotEqual(t, holderOf(long), holderOf(long+"x"))
	m, rec := &minter{held: map[string]bool{}}, &recorder{}
	srv := mcpbridge.Server{Name: "s", InMemory: m.server(), Handles: []mcpbridge.Handle{browsers}}
	w := worldOf(t, setup{Tools: []toolset.Filter{{Name: "s", Scope: "shared"}}, Record: rec, Lingers: true}.with(srv))
	defer w.stop()
	o := *w.offers.Load()
	o.scope.Name = askedPrefix + "team"
	accept := func(c *mcpserver.Client) mcpserver.Handler { return newPeer(w.Gateway, c, o) }
	one, two := w.rawAt(w.pipeTo(accept)), w.rawAt(w.pipeTo(accept))
	for _, r := range []*raw{one, two} {
		r.open()
		r.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+opens+`}`, "1")
	}
	require.Equal(t, askedPrefix+"team", holderIn(rec.calls("open")))
	w.ends[0]()
	require.Empty(t, rec.ends())
	require.Len(t, m.all(), 2)
	w.ends[1]()
	w.ends = nil
	w.leaving.Wait()
	require.Empty(t, m.all())
	ends := rec.ends()
	require.Contains(t, ends, "release shared of "+askedPrefix+"team")
	require.Contains(t, ends, "close "+askedPrefix+"team, now true, keep false")
}

func first(name string, _ bool) string { return name }

// A mint may wait for its turn: longer than a call for a server that is down, but not for as long as SDKs wait. No later request of its client waits for it:
// that may be the one which releases a handle. A client that cancels it ends the wait.
func TestMintThatWaitsHoldsNoOtherRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		m, rec := &minter{held: map[string]bool{}}, &recorder{}
		srv := mcpbridge.Server{Name: "s", InMemory: m.server(), Handles: []mcpbridge.Handle{browsers}}
		w := worldOf(t, setup{Tools: []toolset.Filter{{Name: "s"}}, Record: rec}.with(srv))
		defer w.stop()
		r := w.raw()
		r.open()
		call := func(id int, tool string) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{"id":"handle-000000000001"}}}`, id, tool)
		}
		r.ask(call(1, "open"), "1")
		rec.held = "open"
		rec.take()
		began := time.Now()
		r.send(call(2, "open"))
		r.send(call(3, "open"))
		require.NotContains(t, string(r.ask(call(4, "close"), "4").Result), "isError")
		require.Empty(t, m.all())
		calls := rec.calls("open")
		require.Len(t, calls, 2)
		for _, call := range calls {
			require.WithinDuration(t, began.Add(startPatience), call.WaitUntil, time.Second)
		}
		r.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
		synctest.Wait()
		require.Len(t, rec.let, 1)
		rec.lets()
		require.Contains(t, string(r.await(func(m *mcpserver.Message) bool { return string(m.ID) == "3" }).Result), "handle-000000000002")
		require.Empty(t, r.came(), "the call that was cancelled is not answered")
		rec.take()
		r.ask(call(5, "use"), "5")
		require.WithinDuration(t, time.Now().Add(patience), rec.calls("use")[0].WaitUntil, time.Second)
	})
}

// A conversation in this process is the holder where its toolset calls in a scope of others. What it holds there ends with it: with its last client, or
// with the actor that it belongs to.
func TestConversationHoldsHandlesInScopesOfOthers(t *testing.T) {
	for name, isOwned := range map[string]bool{"last client": false, "owner": true} {
		t.Run(name, func(t *testing.T) {
			m, rec := &minter{held: map[string]bool{}}, &recorder{}
			servers := []mcpbridge.Server{
				{Name: "s", InMemory: m.server(), Handles: []mcpbridge.Handle{browsers}}, {Name: "plain", InMemory: faults.NewTools().Server()},
			}
			w := worldOf(t, setup{Prefixed: true, Tools: filtersOf(servers), Record: rec}.with(servers...))
			defer w.stop()
			scope := Scope{Ends: !isOwned}
			if isOwned {
				scope.Owner = w.system.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}))
			}
			filters := []toolset.Filter{{Name: "s", Scope: "pool"}, {Name: "plain", Scope: "pool"}}
			tools, err := toolset.New(nil, rec, toolset.Config{Scope: "chat", Servers: filters})
			require.NoError(t, err)
			defer tools.Close()
			session := w.dial(w.Tools(tools, scope), nil)
			text, isError := w.call(session, "s__open", nil)
			require.False(t, isError, text)
			calls := rec.calls("open")
			require.Equal(t, "pool", calls[0].Key.Scope)
			require.Equal(t, "chat", holderIn(calls))
			if isOwned {
				w.system.Root.Stop(scope.Owner)
				session.Wait()
			} else {
				require.NoError(t, session.Close())
			}
			var ends []string
			require.Eventually(t, func() bool { ends = append(ends, rec.ends()...); return slices.Contains(ends, "release pool of chat") }, 10*time.Second, time.Millisecond)
			require.Equal(t, !isOwned, slices.Contains(ends, "close chat, now true, keep false"))
			require.Eventually(t, func() bool { return len(m.all()) == 0 }, 10*time.Second, time.Millisecond)
		})
	}
}

// A mint fails in words when its turn does not come, and one that its client has cancelled is not sent when its turn would come.
func TestMintWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		m, kind := &minter{held: map[string]bool{}}, browsers
		kind.Max = 1
		w := worldOf(t, setup{Tools: []toolset.Filter{{Name: "s"}}}.with(mcpbridge.Server{Name: "s", InMemory: m.server(), Handles: []mcpbridge.Handle{kind}}))
		defer w.stop()
		var clients []*raw
		for range 3 {
			r := w.raw()
			r.open()
			clients = append(clients, r)
		}
		call := func(id int) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%s}`, id, opens)
		}
		require.Contains(t, string(clients[0].ask(call(1), "1").Result), "handle-000000000001")
		began := time.Now()
		failed := string(clients[1].ask(call(1), "1").Result)
		require.WithinDuration(t, began.Add(startPatience), time.Now(), 2*time.Second)
		require.Contains(t, failed, "did not run")
		clients[1].send(call(2))
		synctest.Wait()
		clients[2].send(call(2))
		clients[1].send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
		time.Sleep(10 * time.Second)
		require.Equal(t, 1, m.opened)
		w.ends[0]()
		require.Contains(t, string(clients[2].await(func(m *mcpserver.Message) bool { return string(m.ID) == "2" }).Result), "handle-000000000002")
		time.Sleep(time.Minute)
		require.Equal(t, 2, m.opened)
		require.Len(t, m.all(), 1)
	})
}

// unfinished is a server of protocol 2026-07-28 without an SDK whose mint asks first, or becomes a task.
type unfinished struct{ answer string }

func (u *unfinished) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m := new(mcpserver.Message)
	if json.NewDecoder(r.Body).Decode(m) != nil || m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	result := map[string]string{
		"server/discover": `"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"u","version":"1"}}`,
		"tools/list":      `"tools":[{"name":"open","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"private"`,
	}[m.Method]
	switch {
	case result != "":
	case string(m.Members()["name"]) == `"close"`:
		result = `"content":[]`
	case m.Members()["requestState"] != nil:
		result = `"content":[{"type":"text","text":"{\"id\":\"handle-000000000001\"}"}]`
	default:
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{%s}}`, m.ID, u.answer)
		return
	}
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete",%s}}`, m.ID, result)
}

// A stateless client follows the rounds of a mint, and its tasks. What is not finished has minted nothing, and takes no place of others.
func TestMintThatIsNotFinishedTakesNoPlace(t *testing.T) {
	for name, answer := range map[string]string{
		"round": `"resultType":"input_required","requestState":"one","inputRequests":{"q":{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}}`,
		"task":  `"resultType":"task","taskId":"t1","status":"working","ttlMs":60000,"createdAt":"2026-11-30T00:00:00Z","lastUpdatedAt":"2026-11-30T00:00:00Z"`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
				server := faults.Local(func() http.Handler { return &unfinished{answer} })
				defer server.Close()
				srv, kind := remote("s", server), browsers
				kind.Max, kind.List, kind.Listed, kind.Own = 1, "", "", false
				srv.Handles = []mcpbridge.Handle{kind}
				w := worldOf(t, setup{Tools: []toolset.Filter{{Name: "s"}}}.with(srv))
				defer w.stop()
				r := w.raw()
				call := func(more string) mcpserver.Object {
					return resultOf(w, r.ask(stateless("1", "tools/call", `"name":"open","arguments":{}`+more), "1"))
				}
				first, second := call(""), call("")
				snapshot, err := w.sup.Client().Inspect(t.Context())
				require.NoError(t, err)
				require.Zero(t, snapshot.Servers[0].Handles[0].Unanswered)
				if name == "task" {
					require.Equal(t, "task", first.Text("resultType"))
					return
				}
				require.Contains(t, string(call("," + answered(w, first, "Ada"))["content"]), "handle-000000000001")
				snapshot, err = w.sup.Client().Inspect(t.Context())
				require.NoError(t, err)
				require.Equal(t, 1, snapshot.Servers[0].Handles[0].Held)
				began := time.Now()
				require.Equal(t, "true", string(call("," + answered(w, second, "Bob"))["isError"]), "it waits for its turn")
				require.WithinDuration(t, began.Add(startPatience), time.Now(), 2*time.Second)
			})
		})
	}
}

// A mint waits no longer for a server that starts than for its turn, and its failure names the server.
func TestMintWaitsForAServerThatStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		slow, quick, end := twoServers()
		defer end()
		slow.Inject("initialize", faults.Delay(2*time.Minute))
		servers := []mcpbridge.Server{remote("slow", slow), remote("quick", quick)}
		servers[0].Handles = []mcpbridge.Handle{{Mint: "count", Path: "id", Release: "echo"}}
		cfg := lingering.with(servers...)
		cfg.Prefixed, cfg.Wait, cfg.Tools = true, time.Second, filtersOf(servers)
		w := worldOf(t, cfg)
		defer w.stop()
		w.silent = 1
		r := w.raw()
		r.opens()
		began := time.Now()
		answer := r.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow__count"}}`, "1")
		require.Equal(t, startPatience, time.Since(began))
		require.Contains(t, string(answer.Result), `Server \"slow\" cannot be reached`)
	})
}

// A restart takes no handle from a client that comes back. Those of the others end after the grace, each on its own also where they have shared a session.
func TestHandlesOfClientsThatReturnStay(t *testing.T) {
	for _, share := range []string{"", "shared"} {
		t.Run("share="+share, func(t *testing.T) {
			overHandles(t, share, func(r *restarts, m *minter, _ *recorder) {
				r.cfg.Supervisor.HandleGrace = 30 * time.Minute
				r.startAgain()
				back, gone := r.visitor("back"), r.visitor("gone")
				require.Contains(r, back.says(2, "tools/call", opens), "handle-000000000001")
				require.Contains(r, gone.says(2, "tools/call", opens), "handle-000000000002")
				require.Contains(r, r.calls("ann", "open"), "handle-000000000003")
				require.Contains(r, r.calls("bob", "open"), "handle-000000000004")
				r.startAgain()
				require.Len(r, m.all(), 4)
				use := func(n int) string {
					return fmt.Sprintf(`{"name":"use","arguments":{"id":"handle-%012d"}}`, n)
				}
				require.Equal(r, http.StatusOK, back.send(r.Context(), http.MethodGet, "", "")) // it is not silent
				require.NotContains(r, back.says(3, "tools/call", use(1)), "isError")
				require.Contains(r, r.calls("ann", "open"), "handle-000000000005")
				time.Sleep(31 * time.Minute)
				require.Equal(r, []string{"handle-000000000001", "handle-000000000003", "handle-000000000005"}, m.all())
				time.Sleep(browsers.Idle)
				require.Empty(r, m.all())
				require.NotContains(r, back.says(4, "tools/call", opens), "isError")
				require.Equal(r, http.StatusOK, back.send(r.Context(), http.MethodDelete, "", ""))
				require.Empty(r, m.all())
			})
		})
	}
}

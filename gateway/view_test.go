package gateway

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
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

const toolsChanged = "notifications/tools/list_changed"

// defined returns a tool with a version of its definition.
func defined(name string, version int) string {
	return fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"},"description":"version %d"}`, name, version)
}

// inOtherOrder is defined with another order of its members.
func inOtherOrder(name string, version int) string {
	return fmt.Sprintf(`{ "description":"version %d", "inputSchema":{"type":"object"}, "name":%q }`, version, name)
}

// listing makes a server list tools, which change.
type listing struct {
	tools atomic.Value // of a string
	takes atomic.Int64 // for how long, in nanoseconds
}

func listed(e *faults.Server, tools ...string) *listing {
	l := new(listing)
	l.set(tools...)
	e.Inject("tools/list", func(w http.ResponseWriter, r *faults.Request, _ http.Handler) {
		time.Sleep(time.Duration(l.takes.Load()))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[%s]}}`, r.ID, l.tools.Load())
	})
	return l
}

func (l *listing) set(tools ...string) { l.tools.Store(strings.Join(tools, ",")) }

// toolsIn returns the tools of a list, as they are written.
func toolsIn(t *testing.T, list json.RawMessage) (all []string) {
	t.Helper()
	var tools []json.RawMessage
	require.NoError(t, json.Unmarshal(mcpserver.ObjectOf(list)["tools"], &tools), "%s", list)
	for _, tool := range tools {
		all = append(all, string(tool))
	}
	return all
}

// tools returns the tools that the client is shown.
func (r *raw) tools() []string {
	r.w.Helper()
	answer := r.list("tools/list")
	require.Nil(r.w, answer.Error)
	return toolsIn(r.w.T, answer.Result)
}

const callCount = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count"}}`

// What servers do changes nothing at the front of a list, and the client is told only if its list is another one.
func TestListBeginsWithTheOneBefore(t *testing.T) {
	a1, a2, b1, d1, d2 := defined("a", 1), defined("a", 2), defined("b", 1), defined("d", 1), defined("d", 2)
	type change struct {
		now, shown []string
		told       int
	}
	steps := func(changes ...change) []change { return changes }
	for mode, changes := range map[toolset.Stability][]change{
		toolset.Append: steps(
			change{[]string{inOtherOrder("d", 1), b1}, []string{b1, d1}, 0},
			change{[]string{a1, b1, d1}, []string{b1, d1, a1}, 1},
			change{[]string{b1}, []string{b1, d1, a1}, 0},
			change{[]string{d2, a1, b1}, []string{b1, d2, a1}, 1},
			change{nil, []string{b1, d2, a1}, 0},
			change{[]string{d2, a2}, []string{b1, d2, a2}, 1},
		),
		toolset.Freeze: steps(
			change{[]string{inOtherOrder("d", 1), b1}, []string{b1, d1}, 0},
			change{[]string{d2, a1, b1}, []string{b1, d1, a1}, 1},
			change{[]string{a2, d2}, []string{b1, d1, a1}, 0},
			change{nil, []string{b1, d1, a1}, 0},
		),
		toolset.Follow: steps(
			change{[]string{d1, b1}, []string{d1, b1}, 0},
			change{[]string{a1, d2}, []string{a1, d2}, 1},
			change{nil, nil, 1},
		),
	} {
		t.Run(string(mode), func(t *testing.T) {
			overHTTP(t, nil, func(w *world, e *faults.Server, _ *faults.Tools) {
				w.cfg.Stability = mode
				l := listed(e, b1, d1)
				r, s := w.raw(), w.raw() // one that sends initialize, and one that is stateless and listens
				r.open()
				require.Equal(w, []string{b1, d1}, r.tools())
				s.send(stateless(`"l"`, "subscriptions/listen", `"notifications":{"toolsListChanged":true}`))
				ofStateless := func() []string { return toolsIn(w.T, s.ask(stateless("1", "tools/list", ""), "1").Result) }
				require.Equal(w, []string{b1, d1}, ofStateless())
				time.Sleep(time.Minute)
				s.came()
				for i, change := range changes {
					l.set(change.now...)
					require.NoError(w, e.Restart())
					require.Nil(w, r.ask(callCount, "1").Error)
					require.Nil(w, s.ask(stateless("2", "tools/call", `"name":"count"`), "2").Error)
					time.Sleep(time.Minute) // or else it would restart too often
					require.Equal(w, change.told, r.came()[toolsChanged], i)
					require.Equal(w, change.told, s.came()[toolsChanged], i)
					require.Equal(w, change.shown, r.tools(), i)
					require.Equal(w, change.shown, ofStateless(), i)
					e.Stop()
					require.Equal(w, change.shown, r.tools(), i)
					require.NoError(w, e.Start())
				}
			})
		})
	}
}

// A server that lists a name twice is shown as it is, unless its tools are among those of others: calls go to the first.
func TestNameThatAServerListsTwiceIsShownAsBefore(t *testing.T) {
	a1, a2, b1 := defined("a", 1), defined("a", 2), defined("b", 1)
	overHTTP(t, nil, func(w *world, e *faults.Server, _ *faults.Tools) {
		l := listed(e, a1, a2)
		r := w.raw()
		r.open()
		require.Equal(w, []string{a1, a2}, r.tools())
		l.set(b1, a1, a2)
		require.NoError(w, e.Restart())
		r.ask(callCount, "1")
		time.Sleep(time.Minute)
		require.Equal(w, []string{a1, a2, b1}, r.tools())
	})
	inFront(t, setup{}, true, func(w *world, slow *faults.Server) {
		listed(slow, a1, a2)
		r := w.raw()
		r.open()
		all := strings.Join(r.tools(), "\n")
		require.Equal(w, 1, strings.Count(all, `"slow__a"`))
		require.Contains(w, all, "version 1")
		require.NotContains(w, all, "version 2")
	})
}

// What the user takes away goes, whatever the mode: a server, and tools that a filter now denies.
func TestWhatTheUserRemovesGoes(t *testing.T) {
	for _, mode := range []toolset.Stability{toolset.Append, toolset.Freeze} {
		synctest.Test(t, func(t *testing.T) {
			one, two, end := twoServers()
			defer time.Sleep(3 * time.Second)
			defer end()
			first, second := remote("one", one), remote("two", two)
			both := []mcpbridge.Server{first, second}
			w := worldOf(t, setup{Prefixed: true, Stability: mode, Tools: filtersOf(both)}.with(both...))
			defer w.stop()
			r := w.raw()
			r.open()
			before := r.tools()
			filters := filtersOf(both)
			filters[0].Deny = []string{"echo"}
			w.reload(filters, both...)
			time.Sleep(time.Second)
			require.Equal(t, 1, r.came()[toolsChanged])
			var left []string
			for _, tool := range before {
				if !strings.Contains(tool, `"one__echo"`) {
					left = append(left, tool)
				}
			}
			require.Len(t, left, len(before)-1)
			require.Equal(t, left, r.tools())
			w.reload(filters[:1], first)
			time.Sleep(time.Second)
			require.Equal(t, 1, r.came()[toolsChanged])
			require.Equal(t, left[:9], r.tools())
		})
	}
}

// other ends the name of a user who uses another program, with other capabilities.
const other = " elsewhere"

// comes sends a stateless request of a user over HTTP.
func (r *restarts) comes(user, method, more string) *http.Response {
	r.Helper()
	body := stateless("1", method, more)
	user, isOther := strings.CutSuffix(user, other)
	if isOther {
		body = strings.Replace(body, `"elicitation":{"form":{}}`, "", 1)
	}
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, "http://127.0.0.1/mcp", strings.NewReader(body))
	require.NoError(r, err)
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method,
		"X-User": user,
	} {
		req.Header.Set(name, value)
	}
	m := new(mcpserver.Message)
	require.NoError(r, json.Unmarshal([]byte(body), m))
	if method == "tools/call" {
		req.Header.Set("Mcp-Name", m.Members().Text("name"))
	}
	r.http.ClientHeader = "X-User"
	resp, err := (&http.Client{Transport: r.front}).Do(req)
	require.NoError(r, err)
	return resp
}

// shows returns the tools that a stateless client is shown.
func (r *restarts) shows(user string) []string {
	r.Helper()
	resp := r.comes(user, "tools/list", "")
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(r, err)
	for line := range strings.Lines(string(data)) {
		if text, isData := strings.CutPrefix(line, "data: "); isData {
			data = []byte(text)
		}
	}
	m := new(mcpserver.Message)
	require.NoError(r, json.Unmarshal(data, m), "%s", data)
	require.Nil(r, m.Error)
	return toolsIn(r.T, m.Result)
}

// listens returns how many changes of the tools a stateless client was told of since it began to listen.
func (r *restarts) listens(user string) (told func() int) {
	resp := r.comes(user, "subscriptions/listen", `"notifications":{"toolsListChanged":true}`)
	var n atomic.Int32
	go func() {
		defer resp.Body.Close()
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if strings.Contains(lines.Text(), toolsChanged) {
				n.Add(1)
			}
		}
	}()
	return func() int { return int(n.Load()) }
}

// toolsOf returns the tools that a client with a session is shown.
func (v *visitor) tools(id int) []string {
	v.Helper()
	m := new(mcpserver.Message)
	require.NoError(v, json.Unmarshal([]byte(strings.TrimPrefix(v.says(id, "tools/list", "{}"), "data: ")), m))
	return toolsIn(v.T, m.Result)
}

// forgetsLists makes the next gateway know no lists of servers.
func (r *restarts) forgetsLists() { r.cfg.Lists = &listfile.Store{Folder: r.TempDir()} }

// A server that is removed goes also if its list is not known, since it is down since a restart. The client is told.
func TestServerThatIsRemovedWhileItIsDownGoes(t *testing.T) {
	overRestarts(t, "", false, func(r *restarts, _ *faults.Server, _ *ClientStore) {
		tools := faults.NewTools()
		down := faults.Local(tools.Handler)
		defer tools.Close()
		defer down.Close()
		defer func() {
			r.end()
			r.w = nil
		}()
		r.cfg.Prefixed, r.cfg.Wait = true, time.Second
		r.cfg.Tools = append(r.cfg.Tools, toolset.Filter{Name: "down"})
		r.cfg.Supervisor.Servers = append(r.cfg.Supervisor.Servers, remote("down", down))
		r.startAgain()
		v := r.visitor("one")
		before := v.tools(2)
		require.Len(r, before, 20)
		down.Stop()
		r.forgetsLists()
		r.startAgain()
		require.Equal(r, before, v.tools(3))
		require.Equal(r, http.StatusOK, v.send(r.Context(), http.MethodGet, "", ""))
		time.Sleep(10 * time.Second)
		require.Zero(r, v.count(toolsChanged))
		r.w.reload(r.cfg.Tools[:1], r.cfg.Supervisor.Servers[:1]...)
		time.Sleep(10 * time.Second)
		require.Equal(r, 1, v.count(toolsChanged))
		require.Equal(r, before[:10], v.tools(4))
	})
}

// Clients are shown the same after a restart, although the server is down, or has other tools in another order. They are told only of what
// differs.
func TestListOutlivesARestart(t *testing.T) {
	a1, b1, d1 := defined("a", 1), defined("b", 1), defined("d", 1)
	overRestarts(t, "", false, func(r *restarts, e *faults.Server, _ *ClientStore) {
		l := listed(e, d1, b1)
		before := []string{d1, b1}
		v := r.visitor("one")
		require.Equal(r, before, v.tools(2))
		require.Equal(r, before, r.shows("Ada"))
		e.Stop()
		r.forgetsLists()
		r.startAgain()
		require.Equal(r, before, v.tools(3))
		require.Equal(r, before, r.shows("Ada"))
		r.end()
		r.w = nil

		for _, change := range []struct {
			now, shown []string
			told       bool
		}{
			{[]string{b1, inOtherOrder("d", 1)}, before, false},
			{[]string{b1}, before, false},
			{[]string{a1, b1}, []string{d1, b1, a1}, true},
			{[]string{b1, a1, d1}, []string{d1, b1, a1}, false},
		} {
			l.set(change.now...)
			e.Start()
			r.forgetsLists()
			r.startAgain()
			v.mu.Lock()
			v.got = nil
			v.mu.Unlock()
			require.Equal(r, http.StatusOK, v.send(r.Context(), http.MethodGet, "", ""))
			told := r.listens("Ada")
			time.Sleep(5 * time.Second)
			require.Equal(r, change.told, v.count(toolsChanged) > 0)
			require.Equal(r, change.told, told() > 0)
			require.Equal(r, change.shown, v.tools(4))
			require.Equal(r, change.shown, r.shows("Ada"))
			r.end()
			r.w = nil
		}
	})
}

// Other users, and clients with other capabilities, have lists of their own.
func TestStatelessClientsDoNotShareAList(t *testing.T) {
	a1, b1 := defined("a", 1), defined("b", 1)
	overRestarts(t, "", false, func(r *restarts, e *faults.Server, _ *ClientStore) {
		l := listed(e, b1)
		require.Equal(r, []string{b1}, r.shows("Ada"))
		for range 2 {
			l.set(a1, b1)
			r.forgetsLists()
			r.startAgain()
			require.Equal(r, []string{b1, a1}, r.shows("Ada"))
			require.Equal(r, []string{a1, b1}, r.shows("Bob"))
			require.Equal(r, []string{a1, b1}, r.shows("Ada"+other))
		}
	})
}

// dateFiles gives the files of clients the time of the bubble, which the system does not know.
func dateFiles(t *testing.T, clients *ClientStore) {
	files, err := filepath.Glob(filepath.Join(clients.Folder, "*"))
	require.NoError(t, err)
	for _, file := range files {
		require.NoError(t, os.Chtimes(file, time.Now(), time.Now()))
	}
}

// A stateless client begins with a new list after 24 hours without a request, whatever others with its token do.
func TestStatelessClientBeginsAnewAfterADay(t *testing.T) {
	a1, b1 := defined("a", 1), defined("b", 1)
	for _, test := range []struct {
		name                          string
		isRestarted, calls, isCrowded bool
		away, every                   time.Duration
		shown                         []string
	}{
		{name: "23 h", away: 23 * time.Hour, shown: []string{b1, a1}},
		{name: "25 h", away: 25 * time.Hour, shown: []string{a1, b1}},
		{name: "23 h, restart", isRestarted: true, away: 23 * time.Hour, shown: []string{b1, a1}},
		{name: "25 h, restart", isRestarted: true, away: 25 * time.Hour, shown: []string{a1, b1}},
		{name: "requests in between", calls: true, every: 12 * time.Hour, away: 48 * time.Hour, shown: []string{b1, a1}},
		{name: "requests in between, restart", isRestarted: true, calls: true, every: 12 * time.Hour, away: 48 * time.Hour, shown: []string{b1, a1}},
		{name: "requests all the time, restart", isRestarted: true, calls: true, every: 5 * time.Minute, away: 25 * time.Hour, shown: []string{b1, a1}},
		{name: "others call", isCrowded: true, away: 25 * time.Hour, shown: []string{a1, b1}},
		{name: "others call, restart", isRestarted: true, isCrowded: true, away: 25 * time.Hour, shown: []string{a1, b1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			overRestarts(t, "", false, func(r *restarts, e *faults.Server, clients *ClientStore) {
				l := listed(e, b1)
				comes := func(user string) { r.comes(user, "tools/call", `"name":"count"`).Body.Close() }
				require.Equal(r, []string{b1}, r.shows("Ada"))
				dateFiles(r.T, clients)
				touch := func(user string, every time.Duration) {
					for began := time.Now(); time.Since(began) < test.away; {
						time.Sleep(every)
						comes(user)
					}
				}
				switch {
				case test.calls:
					touch("Ada", test.every)
				case test.isCrowded:
					touch("Ada"+other, 5*time.Minute)
				default:
					time.Sleep(test.away)
				}
				l.set(a1, b1)
				r.forgetsLists()
				if test.isRestarted {
					r.startAgain()
				} else {
					require.NoError(r, e.Restart())
				}
				comes("Ada") // a session that is opened lists anew
				time.Sleep(time.Minute)
				require.Equal(r, test.shown, r.shows("Ada"))
			})
		})
	}
}

// A file that is damaged or missing costs the order of the list, and nothing else.
func TestClientWhoseListCannotBeReadBeginsAnew(t *testing.T) {
	a1, b1 := defined("a", 1), defined("b", 1)
	for _, damage := range []func(file string) error{
		os.Remove,
		func(file string) error { return os.WriteFile(file, []byte(`[{"server":`), 0o600) },
		func(file string) error { return os.WriteFile(file, []byte(`{"raw":7}`), 0o600) },
	} {
		overRestarts(t, "", false, func(r *restarts, e *faults.Server, clients *ClientStore) {
			l := listed(e, b1)
			v := r.visitor("one")
			require.Equal(r, []string{b1}, v.tools(2))
			require.Equal(r, []string{b1}, r.shows("Ada"))
			files, err := filepath.Glob(filepath.Join(clients.Folder, "*"+viewSuffix))
			require.NoError(r, err)
			require.Len(r, files, 2)
			for _, file := range files {
				require.NoError(r, damage(file))
			}
			l.set(a1, b1)
			r.forgetsLists()
			r.startAgain()
			require.Equal(r, []string{a1, b1}, v.tools(3))
			require.Equal(r, []string{a1, b1}, r.shows("Ada"))
		})
	}
}

// The list of a client goes with the client, also if it is written late.
func TestListOfAClientGoesWithTheClient(t *testing.T) {
	overRestarts(t, "", false, func(r *restarts, e *faults.Server, clients *ClientStore) {
		listed(e, defined("b", 1))
		v := r.visitor("one")
		v.tools(2)
		late := r.w.everybody()[0]
		require.FileExists(r, clients.viewFile(v.session))
		require.Equal(r, http.StatusOK, v.send(r.Context(), http.MethodDelete, "", ""))
		late.keepView(late.tools())
		files, err := os.ReadDir(clients.Folder)
		require.NoError(r, err)
		require.Empty(r, files)
	})
	s := &ClientStore{t.TempDir()}
	now := time.Now()
	for id, age := range map[string]time.Duration{"here": 0, "old": 2 * maxAway} {
		require.NoError(t, s.save(id, fmt.Appendf(nil, `{"scope":%q}`, id)))
		require.NoError(t, os.WriteFile(s.viewFile(id), []byte(`{"scope":"view"}`), 0o600))
		require.NoError(t, os.Chtimes(s.file(id), now, now.Add(-age)))
	}
	require.NoError(t, os.WriteFile(s.viewFile("gone"), []byte("[]"), 0o600))
	known, err := s.sweep(map[string]bool{}, now)
	require.NoError(t, err)
	require.Equal(t, map[string]bool{"here": true}, known)
	require.FileExists(t, s.viewFile("here"))
	require.NoFileExists(t, s.viewFile("old"))
	require.NoFileExists(t, s.viewFile("gone"))
}

// A call by an old definition whose arguments do not fit the one that the server has now is refused unsent, and the model is told the new
// schema. It waits for a list that is being fetched.
func TestCallThatDoesNotFitAFrozenDefinitionIsRefused(t *testing.T) {
	const old = `{"name":"count","inputSchema":{"type":"object","properties":{"call":{"type":"string"}}}}`
	const now = `{"name":"count","inputSchema":{"type":"object","properties":{"call":{"type":"integer"}},"required":["call"]}}`
	for mode, isChecked := range map[toolset.Stability]bool{toolset.Freeze: true, toolset.Append: false} {
		overHTTP(t, nil, func(w *world, e *faults.Server, tools *faults.Tools) {
			w.cfg.Stability = mode
			l := listed(e, old)
			r := w.raw()
			r.open()
			require.Equal(w, []string{old}, r.tools())
			call := func(arguments string) string {
				answer := r.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count"`+arguments+`}}`, "1")
				require.Nil(w, answer.Error)
				return string(answer.Result)
			}
			require.Contains(w, call(`,"arguments":{"call":"x"}`), `"text":"1"`)
			l.set(now)
			require.NoError(w, e.Restart())
			call("")
			time.Sleep(time.Minute)
			sent := e.Count("tools/call")
			for _, misfit := range []string{"", `,"arguments":{"call":"x"}`} {
				result := call(misfit)
				require.Equal(w, isChecked, strings.Contains(result, "The tool did not run"), result)
				require.Equal(w, isChecked, strings.Contains(result, `{\"type\":\"integer\"}`), result)
			}
			if !isChecked {
				return
			}
			require.Equal(w, sent, e.Count("tools/call"))
			call(`,"arguments":{"call":7}`)
			require.Equal(w, sent+1, e.Count("tools/call"))

			// The list changes back, which only the session says that the call opens.
			l.set(old)
			l.takes.Store(int64(2 * time.Second))
			require.NoError(w, e.Restart())
			began := time.Now()
			require.NotContains(w, call(`,"arguments":{"call":7}`), "did not run")
			require.Greater(w, time.Since(began), time.Second, "it waits for the list of the session")
			require.NotContains(w, call(`,"arguments":{"call":"x"}`), "did not run")
		})
	}
}

package gateway

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/internal/listfile"
	"github.com/mcpactor/mcpactor/internal/recordkey"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
	"github.com/mcpactor/mcpactor/toolset"
)

// restarts is a gateway over HTTP that ends and starts again, with clients that do not notice.
type restarts struct {
	*testing.T
	cfg   setup
	w     *world
	front *faults.Server
	http  *mcpserver.HTTP
}

// startAgain ends the gateway, if there is one, and starts another.
func (r *restarts) startAgain() {
	r.end()
	r.w = worldOf(r.T, r.cfg)
	r.http = r.w.HTTP("")
	if r.front == nil {
		r.front = faults.Local(func() http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { r.http.ServeHTTP(w, q) })
		})
	}
}

func (r *restarts) end() {
	if r.w != nil {
		r.http.Close()
		r.w.stop()
	}
}

func (r *restarts) visitor(name string) *visitor {
	v := &visitor{T: r.T, name: name, http: &http.Client{Transport: r.front}}
	v.start(1, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"`+name+`","version":"1"}}`)
	v.eventually(`"serverInfo"`)
	v.notify("notifications/initialized", "{}")
	return v
}

// eventually waits until a line has a text.
func (v *visitor) eventually(text string) {
	for range 100 {
		if v.count(text) > 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	require.Fail(v, "it has not come", "%s in %s", text, strings.Join(v.got, "\n"))
}

// says sends a request, and returns the line of the response.
func (v *visitor) says(id int, method, params string) string {
	v.start(id, method, params)
	text := fmt.Sprintf(`"id":%d,`, id)
	v.eventually(text)
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, line := range v.got {
		if strings.Contains(line, text) {
			return line
		}
	}
	return ""
}

// overRestarts runs a scenario in front of a server "s" over HTTP, whose session clients may share, or which has no sessions.
func overRestarts(t *testing.T, share string, isStateless bool, scenario func(r *restarts, e *faults.Server, clients *ClientStore)) {
	synctest.Test(t, func(t *testing.T) {
		tools := faults.NewTools()
		tools.Stateless = isStateless
		server := faults.Local(tools.Handler)
		defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		defer tools.Close()
		defer server.Close()
		folder := t.TempDir()
		clients := &ClientStore{filepath.Join(folder, "clients")}
		r := &restarts{T: t, cfg: setup{
			Lists: &listfile.Store{Folder: filepath.Join(folder, "lists")}, Sessions: &resume.Memory{}, Clients: clients, Key: make([]byte, 32),
			Supervisor: supervisor.Config{Servers: []mcpbridge.Server{remote("s", server)}}, Tools: []toolset.Filter{{Name: "s", Scope: share}},
		}}
		r.startAgain()
		defer r.front.Close()
		defer r.end()
		scenario(r, server, clients)
	})
}

const counts = `{"name":"count"}`

// Clients go on after a restart with the sessions that they had, and with what they had set. A client that the server has
// forgotten meanwhile is told.
func TestClientsReturnAfterARestart(t *testing.T) {
	overRestarts(t, "", false, func(r *restarts, e *faults.Server, clients *ClientStore) {
		t := r.T
		one, two := r.visitor("one"), r.visitor("two")
		require.Contains(t, one.says(2, "tools/call", counts), `"text":"1"`)
		require.Contains(t, one.says(3, "tools/call", counts), `"text":"2"`)
		require.Contains(t, two.says(2, "tools/call", counts), `"text":"1"`)
		one.says(4, "logging/setLevel", `{"level":"warning"}`)
		one.says(5, "resources/subscribe", `{"uri":"file:///one"}`)
		opened, levels, subscribed := e.Count("initialize"), e.Count("logging/setLevel"), e.Count("resources/subscribe")
		r.startAgain()
		require.Equal(t, 2, e.Sessions(), "they stay open")
		require.Contains(t, one.says(6, "tools/call", counts), `"text":"3"`)
		require.Contains(t, two.says(6, "tools/call", counts), `"text":"2"`)
		require.Equal(t, opened, e.Count("initialize"))
		require.Equal(t, levels+1, e.Count("logging/setLevel"))
		require.Equal(t, http.StatusOK, one.send(t.Context(), http.MethodGet, "", ""))
		one.eventually("notifications/tools/list_changed")
		one.eventually("notifications/resources/updated")
		require.Equal(t, subscribed+1, e.Count("resources/subscribe"))
		require.Zero(t, two.count("notifications/resources/updated"))

		r.end()
		require.NoError(t, e.Restart())
		r.w = nil
		r.startAgain()
		require.Contains(t, one.says(7, "tools/call", counts), `"text":"1\n\nNote: server \"s\" has a new session.`)
		require.Contains(t, one.says(8, "tools/call", counts), `"text":"2"`)

		// A client that leaves is not known any more, and others never were.
		require.Equal(t, http.StatusOK, one.send(t.Context(), http.MethodDelete, "", ""))
		r.startAgain()
		require.Equal(t, http.StatusNotFound, one.send(t.Context(), http.MethodPost, `{"jsonrpc":"2.0","id":9,"method":"ping"}`, ""))
		stranger := &visitor{T: t, name: "stranger", http: one.http, session: two.session[1:]}
		require.Equal(t, http.StatusNotFound, stranger.send(t.Context(), http.MethodGet, "", ""))
		require.Contains(t, two.says(9, "tools/call", counts), `"text":"1\n\nNote`)
		files, err := os.ReadDir(clients.Folder)
		require.NoError(t, err)
		require.Len(t, files, 1)
		info, err := files[0].Info()
		require.NoError(t, err)
		require.True(t, runtime.GOOS == "windows" || info.Mode().Perm()&0o077 == 0)
		require.NotContains(t, files[0].Name(), two.session)

		// Nobody returns without a store.
		r.cfg.Clients = nil
		r.startAgain()
		require.Equal(t, http.StatusNotFound, two.send(t.Context(), http.MethodPost, `{"jsonrpc":"2.0","id":10,"method":"ping"}`, ""))
	})
}

// What cannot be put back is answered in words: a call that was under way, and the answer to a question.
func TestCallAndQuestionThatARestartHasEndedAreToldOf(t *testing.T) {
	overRestarts(t, "", false, func(r *restarts, e *faults.Server, _ *ClientStore) {
		t := r.T
		one := r.visitor("one")
		one.start(7, "tools/call", `{"name":"wait"}`)
		one.eventually("retry:")
		var event string
		for _, line := range one.got {
			if id, is := strings.CutPrefix(line, "id: "); is {
				event = id
			}
		}
		r.startAgain()
		require.Equal(t, http.StatusOK, one.send(t.Context(), http.MethodGet, "", event))
		one.eventually(`"id":7,"error":{"code":-32603,"message":"the response is lost: mcpactor was restarted, or`)
		const answer = `{"jsonrpc":"2.0","id":"mcpactor-ABCDEFGHIJ-1","result":{"action":"accept"}}`
		require.Equal(t, http.StatusBadRequest, one.send(t.Context(), http.MethodPost, answer, ""))
		one.eventually("the question is no longer open: mcpactor was restarted")
		require.Contains(t, one.says(8, "tools/call", counts), `"text":"2"`, "the session is the same")
	})
}

// A server that hangs after a restart does not keep clients from watching what others have. What a client has unsubscribed from
// meanwhile is not subscribed to.
func TestHungServerKeepsNoOtherFromBeingWatchedAgain(t *testing.T) {
	overRestarts(t, "", false, func(r *restarts, e *faults.Server, _ *ClientStore) {
		tools := faults.NewTools()
		hung := faults.Local(tools.Handler)
		defer tools.Close()
		defer hung.Close()
		r.cfg.Prefixed = true
		r.cfg.Tools = append(r.cfg.Tools, toolset.Filter{Name: "hung"})
		r.cfg.Supervisor.Servers = append(r.cfg.Supervisor.Servers, remote("hung", hung))
		r.startAgain()
		one := r.visitor("one")
		c := r.w.everybody()[0]
		for i := range 8 {
			for _, server := range []string{"s", "hung"} {
				c.watch(fmt.Sprintf("file:///%s/%d", server, i), server)
			}
		}
		heal := hung.Inject("resources/subscribe", faults.Hang())
		r.startAgain()
		one.says(2, "ping", "{}")
		time.Sleep(10 * time.Second)
		require.Equal(r, 8, e.Count("resources/subscribe"))
		require.Equal(r, 1, hung.Count("resources/subscribe"))
		c = r.w.everybody()[0]
		for i := range 8 {
			c.watch(fmt.Sprintf("file:///hung/%d", i), "")
		}
		heal()
		require.NoError(r, hung.Restart())
		time.Sleep(time.Minute)
		require.LessOrEqual(r, hung.Count("resources/subscribe"), 2, "only the one that hung")
		r.end()
		r.w = nil
	})
}

// A note that state is gone is said after a restart, if no result could have it before.
func TestOwedNoteOutlivesARestart(t *testing.T) {
	overRestarts(t, "", false, func(r *restarts, e *faults.Server, _ *ClientStore) {
		one := r.visitor("one")
		one.says(2, "tools/call", counts)
		require.NoError(r, e.Restart())
		plain := e.Inject("tools/call", jsonInNewSession())
		require.Contains(r, one.says(4, "tools/call", counts), `{\"n\":1}`)
		plain()
		r.startAgain()
		require.Contains(r, one.says(5, "tools/call", counts), "has a new session")
		require.NotContains(r, one.says(6, "tools/call", counts), "Note")
	})
}

// A call is answered although the record of its client cannot be written. What the client sets is written before it is answered.
func TestCallWaitsForNoWriteOfARecord(t *testing.T) {
	tools := faults.NewTools()
	server := faults.Local(tools.Handler)
	defer tools.Close()
	defer server.Close()
	w := worldOf(t, setup{
		Lists: &resume.Memory{}, Sessions: &resume.Memory{}, Clients: &ClientStore{t.TempDir()},
		Supervisor: supervisor.Config{Servers: []mcpbridge.Server{remote("s", server)}}, Tools: []toolset.Filter{{Name: "s"}},
	})
	defer w.stop()
	r := w.raw()
	r.open()
	c := w.everybody()[0]
	c.writing.Lock()
	r.send(`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"error"}}`)
	for id := range 3 {
		answer := r.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":"c%d","method":"tools/call","params":{"name":"count"}}`, id), fmt.Sprintf(`"c%d"`, id))
		require.Contains(t, string(answer.Result), fmt.Sprintf(`"text":"%d"`, id+1))
	}
	require.Empty(t, r.came(), "the setting is not written")
	c.writing.Unlock()
	r.await(func(m *mcpserver.Message) bool { return string(m.ID) == "1" && m.Result != nil })
	require.Eventually(t, func() bool {
		written, err := w.cfg.Clients.find(c.kept)
		return err == nil && written.LogLevel == "error" && written.State["s"] == 1
	}, 10*time.Second, time.Millisecond)
}

// That a client must be told is written together with the session that it must be told of: a kill does not come between them, however long it
// takes to find out more about the server.
func TestOwedNoteIsWrittenWithItsSession(t *testing.T) {
	overRestarts(t, "", false, func(r *restarts, e *faults.Server, clients *ClientStore) {
		one := r.visitor("one")
		s := r.w.everybody()[0].servers()[0]
		s.leaves(1, "count")
		_, err := r.w.do.Do(r.Context(), &messages.CloseSession{Key: s.key(), Now: true})
		require.NoError(r, err)
		heal := e.Inject("initialize", faults.Hang())
		go s.leaves(2, "count")
		synctest.Wait()
		written, err := clients.find(one.session)
		require.NoError(r, err)
		require.EqualValues(r, 2, written.State["s"])
		require.Contains(r, written.Owed, "s")
		heal()
		time.Sleep(time.Minute)
	})
}

// A visit of a client counts, also if it changes nothing.
func TestVisitOfAClientIsNoted(t *testing.T) {
	overRestarts(t, "", false, func(r *restarts, _ *faults.Server, clients *ClientStore) {
		one := r.visitor("one")
		visited := func() time.Time {
			info, err := os.Stat(clients.file(one.session))
			require.NoError(r, err)
			return info.ModTime()
		}
		time.Sleep(5 * time.Minute)
		r.startAgain()
		time.Sleep(5 * time.Minute)
		came := time.Now()
		one.says(2, "ping", "{}")
		require.WithinDuration(r, came, visited(), time.Minute)
		time.Sleep(11 * time.Minute)
		require.WithinDuration(r, came.Add(10*time.Minute), visited(), time.Minute)
	})
}

// A client whose record cannot be read just now is told to try again. One whose record is none is not known.
func TestClientWhoseRecordCannotBeReadTriesAgain(t *testing.T) {
	overRestarts(t, "", false, func(r *restarts, _ *faults.Server, clients *ClientStore) {
		one := r.visitor("one")
		r.startAgain()
		file := clients.file(one.session)
		ping := func() int {
			return one.send(r.Context(), http.MethodPost, `{"jsonrpc":"2.0","id":2,"method":"ping"}`, "")
		}
		require.NoError(r, os.Rename(file, file+".away"))
		require.NoError(r, os.Mkdir(file, 0o700))
		require.Equal(r, http.StatusServiceUnavailable, ping())
		_, err := clients.sweep(map[string]bool{}, time.Now())
		require.ErrorContains(r, err, file)
		require.NoError(r, os.Remove(file))
		require.NoError(r, os.WriteFile(file, []byte("{"), 0o600))
		require.Equal(r, http.StatusNotFound, ping())
		require.NoError(r, os.Rename(file+".away", file))
		require.Equal(r, http.StatusOK, ping())
	})
}

// A client that was silent for so long that its sessions were closed is still known.
func TestClientThatWasSilentForLongReturns(t *testing.T) {
	overRestarts(t, "", false, func(r *restarts, e *faults.Server, _ *ClientStore) {
		t := r.T
		one := r.visitor("one")
		require.Contains(t, one.says(2, "tools/call", counts), `"text":"1"`)
		time.Sleep(11 * time.Minute)
		require.Zero(t, e.Sessions())
		require.Contains(t, one.says(3, "tools/call", counts), `"text":"1\n\nNote`)
	})
}

// What a client did last, such as a call that ends late, does not make it known again.
func TestClientThatHasLeftIsNotKept(t *testing.T) {
	overRestarts(t, "", false, func(r *restarts, _ *faults.Server, clients *ClientStore) {
		one := r.visitor("one")
		late := r.w.everybody()[0]
		require.FileExists(r, clients.file(one.session))
		require.Equal(r, http.StatusOK, one.send(r.Context(), http.MethodDelete, "", ""))
		late.note(func(k *record) bool {
			k.LogLevel = "error"
			return true
		})
		require.NoFileExists(r, clients.file(one.session))
	})
}

// Clients that have been away for long are forgotten, and their sessions on servers are closed. Those that are there stay.
func TestOldClientsAreForgotten(t *testing.T) {
	overRestarts(t, "", false, func(r *restarts, e *faults.Server, clients *ClientStore) {
		t := r.T
		gone, here := r.visitor("gone"), r.visitor("here")
		gone.says(2, "tools/call", counts)
		here.says(2, "tools/call", counts)
		login := recordkey.Login("of a person") // which is of no client
		require.NoError(t, r.cfg.Sessions.Save(t.Context(), login, &mcpbridge.Record{Login: []byte("sealed")}))
		r.startAgain()
		require.Contains(t, here.says(3, "tools/call", counts), `"text":"2"`)
		here.send(t.Context(), http.MethodGet, "", "") // it is not silent
		require.Equal(t, 2, e.Sessions())
		files, err := filepath.Glob(filepath.Join(clients.Folder, "*"))
		require.NoError(t, err)
		for _, file := range files {
			require.NoError(t, os.Chtimes(file, time.Now(), time.Now()))
		}
		time.Sleep(maxAway + 2*sweepEvery)
		require.Equal(t, 1, e.Sessions())
		require.Equal(t, http.StatusNotFound, gone.send(t.Context(), http.MethodGet, "", ""))
		keys, err := r.cfg.Sessions.Keys(t.Context())
		require.NoError(t, err)
		require.Len(t, keys, 2)
		require.Contains(t, keys, login)
		r.startAgain()
		require.Contains(t, here.says(4, "tools/call", counts), `"text":"3"`)
	})
}

// The clients that are kept are bounded: those that have been away for the longest time go first. What is no record goes with age.
func TestClientsThatAreKeptAreBounded(t *testing.T) {
	s := &ClientStore{filepath.Join(t.TempDir(), "clients")}
	now := time.Now()
	require.NoError(t, s.save("0", []byte("{}")))
	add := func(id, text string, age time.Duration) {
		require.NoError(t, os.WriteFile(s.file(id), []byte(text), 0o600))
		require.NoError(t, os.Chtimes(s.file(id), now, now.Add(-age)))
	}
	for i := range maxClients + 2 {
		add(fmt.Sprint(i), fmt.Sprintf(`{"scope":"scope-%d"}`, i), time.Duration(i)*time.Second)
	}
	add("here", `{"scope":"here"}`, 2*maxAway)
	add("broken", `{`, 2*maxAway)
	known, err := s.sweep(map[string]bool{"here": true}, now)
	require.NoError(t, err)
	require.Len(t, known, maxClients+1)
	for id, want := range map[string]bool{"here": true, "0": true, fmt.Sprint(maxClients - 1): true, fmt.Sprint(maxClients): false, fmt.Sprint(maxClients + 1): false} {
		r, err := s.find(id)
		require.NoError(t, err)
		require.Equal(t, want, r != nil, id)
	}
	require.NoFileExists(t, s.file("broken"))
	require.ErrorContains(t, s.save("long", make([]byte, maxRecord+1)), "more than")
}

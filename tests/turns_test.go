package tests

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/gateway"
	"github.com/mcpactor/mcpactor/internal/listfile"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
	"github.com/mcpactor/mcpactor/toolset"
)

// The tools in the requests of one conversation, in front of five servers that go away, restart and are upgraded: with append, only
// a definition that has changed changes what is in front, and with freeze nothing does.
func TestWhatServersDoChangesNoByteThatAModelWasShownUnlessADefinitionHasChanged(t *testing.T) {
	turns := 1000
	if testing.Short() {
		turns = 200
	}
	const seed = 1
	lines := []string{
		fmt.Sprintf("%d turns, seed %d; a token is taken for 4 bytes", turns, seed),
		"| mode | through | breaks | bytes charged again | tokens | of these unasked | list_changed |", "|---|---|---|---|---|---|---|",
	}
	for _, mode := range []toolset.Stability{toolset.Append, toolset.Freeze, toolset.Follow} {
		t.Run(string(mode), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
				c := converse(t, mode, seed, turns)
				for _, by := range []*requests{&c.byToolset, &c.byGateway} {
					lines = append(lines, fmt.Sprintf("| `%s` | %s | %d | %d | %d | %d | %s |", mode, by.through, by.breaks, by.again, by.again/4, by.unasked, by.told))
					switch mode {
					case toolset.Freeze:
						require.Zero(t, by.again, by.first)
					case toolset.Append:
						require.Zero(t, by.unasked, by.first)
						require.NotZero(t, by.again, "no definition has changed")
					case toolset.Follow:
						require.NotZero(t, by.unasked, "nothing has changed")
					}
					t.Logf("%s: %d bytes of tools in all requests, %d in the last one", by.through, by.all, len(joined(by.last)))
				}
			})
		})
	}
	t.Log("\n" + strings.Join(lines, "\n"))
}

// requests are the tools in the requests of a conversation.
type requests struct {
	through string
	last    []json.RawMessage
	all     int             // bytes of all requests
	breaks  int             // requests that did not begin with the tools of the one before
	again   int             // bytes of tools that were behind the first byte that differs
	unasked int             // those of again where no definition has changed
	first   string          // what differed in the first of these, or else in the first break
	told    string          // how many notifications there were, if there are any
	shown   map[string]bool // the definitions so far
}

// add counts the tools of the next request.
func (r *requests) add(turn int, tools []json.RawMessage) {
	was, is := joined(r.last), joined(tools)
	r.all += len(is)
	same := 0
	for same < min(len(was), len(is)) && was[same] == is[same] {
		same++
	}
	if again := len(was) - same; again > 0 {
		r.breaks++
		r.again += again
		isAsked, what := r.isRedefined(tools)
		if !isAsked && r.unasked == 0 || r.first == "" {
			r.first = fmt.Sprintf("turn %d: %s", turn, what)
		}
		if !isAsked {
			r.unasked += again
		}
	}
	r.last = tools
	if bytes.Equal(was, is) {
		return
	}
	for _, tool := range tools {
		r.shown[canonical(tool)] = true
	}
}

// joined returns tools as they stand in a request, up to the end of the last one.
func joined(tools []json.RawMessage) []byte {
	return bytes.Join([][]byte(asBytes(tools)), []byte(","))
}

func asBytes(tools []json.RawMessage) (all [][]byte) {
	for _, tool := range tools {
		all = append(all, tool)
	}
	return all
}

// isRedefined reports whether all tools of the last list have the same places in the next one, and those that differ have a new
// definition, and not only another text. what is the last one that differs.
func (r *requests) isRedefined(is []json.RawMessage) (redefined bool, what string) {
	for i, old := range r.last {
		if i >= len(is) {
			return false, "a tool has gone: " + string(old)
		}
		if bytes.Equal(old, is[i]) {
			continue
		}
		what = fmt.Sprintf("%s\nis now\n%s", old, is[i])
		if nameOf(old) != nameOf(is[i]) || r.shown[canonical(is[i])] {
			return false, what
		}
	}
	return true, what
}

func canonical(tool json.RawMessage) string {
	var value any
	json.Unmarshal(tool, &value)
	text, _ := json.Marshal(value) // with sorted members
	return string(text)
}

func nameOf(tool json.RawMessage) string { return definitionOf(tool).Name }

type described struct{ Name, Description string }

func definitionOf(tool json.RawMessage) (d described) {
	json.Unmarshal(tool, &d)
	return d
}

// conversation is one whose model gets tools through a toolset, and through a gateway to whose client they are listed.
type conversation struct {
	*testing.T
	servers              []*flapping
	byToolset, byGateway requests
}

// converse plays a conversation. What servers do depends only on the seed.
func converse(t *testing.T, mode toolset.Stability, seed uint64, turns int) *conversation {
	c := &conversation{
		T: t, byToolset: requests{through: "toolset", shown: map[string]bool{}}, byGateway: requests{through: "`serve`", shown: map[string]bool{}},
	}
	var servers []mcpbridge.Server
	var filters []toolset.Filter
	for i, name := range []string{"mail", "issues", "files", "search", "calendar"} {
		f := newFlapping(name, seed<<8+uint64(i))
		defer f.end()
		c.servers = append(c.servers, f)
		servers = append(servers, mcpbridge.Server{Name: name, URL: f.URL() + "/" + name, HTTPClient: &http.Client{Transport: f}})
		filters = append(filters, toolset.Filter{Name: name})
	}
	sup, err := supervisor.Start(actor.NewActorSystem(quietLog), supervisor.Config{Servers: servers})
	require.NoError(t, err)
	defer stopSupervisor(t, sup)
	tools, err := toolset.New(nil, sup, toolset.Config{Scope: "conversation", Servers: filters, Stability: mode})
	require.NoError(t, err)
	defer tools.Close()
	folder := t.TempDir()
	served := &servedAgain{T: t, servers: servers, cfg: gateway.Config{
		Servers: filters, Prefixed: true, Stability: mode, Lists: &listfile.Store{Folder: filepath.Join(folder, "lists")}, Sessions: &resume.Memory{},
		Clients: &gateway.ClientStore{Folder: filepath.Join(folder, "clients")},
	}}
	served.start()
	served.front = faults.Local(func() http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { served.http.ServeHTTP(w, r) })
	})
	defer served.front.Close()
	defer served.end()
	client := &listClient{T: t, http: &http.Client{Transport: served.front}}
	client.open()

	take := func(turn int, anyway bool) {
		set, err := tools.Tools(t.Context())
		require.NoError(t, err)
		c.byToolset.add(turn, set.Anthropic())
		if client.isTold() || anyway {
			c.byGateway.add(turn, client.list())
		} else {
			c.byGateway.add(turn, c.byGateway.last)
		}
	}
	callAll := func() {
		for _, f := range c.servers {
			if f.isAway {
				continue
			}
			name := f.name + "__" + f.steady
			tools.Call(t.Context(), name, nil) // the call that finds that the session has ended may be lost
			client.ask("tools/call", fmt.Sprintf(`{"name":%q,"arguments":{}}`, name))
		}
	}
	take(0, true)
	random := rand.New(rand.NewPCG(seed, 1))
	for turn := 1; turn <= turns; turn++ {
		isRestart := turn%(turns/6+1) == 0
		if isRestart {
			served.end()
		}
		if random.IntN(2) == 0 {
			c.servers[random.IntN(len(c.servers))].act()
		}
		if isRestart {
			served.start()
			client.listen()
		}
		if random.IntN(4) == 0 {
			callAll()
		}
		time.Sleep(30 * time.Second)
		take(turn, turn%50 == 0)
	}
	for _, f := range c.servers {
		f.comeBack()
	}
	callAll()
	callAll()                   // the first call may only find that the session has ended
	time.Sleep(2 * time.Minute) // longer than lists take to be current
	take(turns+1, true)
	c.byGateway.told = fmt.Sprint(client.told)
	c.requireAll(mode)
	return c
}

// requireAll requires that the model was shown all tools that servers have, unless a frozen definition is shown as they have it.
func (c *conversation) requireAll(mode toolset.Stability) {
	for _, by := range []*requests{&c.byToolset, &c.byGateway} {
		shown := map[string]string{}
		for _, tool := range by.last {
			d := definitionOf(tool)
			shown[d.Name] = d.Description
		}
		for _, f := range c.servers {
			for name, description := range f.descriptions() {
				require.Contains(c, shown, name, by.through)
				if mode != toolset.Freeze {
					require.Equal(c, description, shown[name], by.through)
				}
			}
		}
	}
}

// servedAgain is a gateway as mcpactor serve starts it, which ends and starts again.
type servedAgain struct {
	*testing.T
	servers []mcpbridge.Server
	cfg     gateway.Config
	front   *faults.Server

	sup     *supervisor.Supervisor
	gateway *gateway.Gateway
	http    *gateway.HTTP
}

func (s *servedAgain) start() {
	var err error
	s.sup, err = supervisor.Start(actor.NewActorSystem(quietLog), supervisor.Config{
		Servers: gateway.Prepare(append([]mcpbridge.Server{}, s.servers...)...), Store: listfile.Beside(s.cfg.Lists, s.cfg.Sessions), LeaveOpen: true,
		IdleTimeout: -1, CallTimeout: 24 * time.Hour, HandlerTimeout: time.Hour,
	})
	require.NoError(s, err)
	s.gateway, err = gateway.New(s.sup, s.cfg)
	require.NoError(s, err)
	s.http = s.gateway.HTTP("")
}

func (s *servedAgain) end() {
	s.http.Close()
	stopSupervisor(s.T, s.sup)
	s.gateway.Close()
}

func stopSupervisor(t *testing.T, sup *supervisor.Supervisor) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(t, sup.Stop(ctx))
}

// listClient is a client over HTTP that keeps what a list is made of as it was sent.
type listClient struct {
	*testing.T
	http    *http.Client
	session string
	id      int

	mu      sync.Mutex
	told    int // notifications of a list that has changed
	unheard bool
}

func (c *listClient) open() {
	c.ask("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"turns","version":"1"}}`)
	c.send(http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`).Close()
	c.listen()
}

func (c *listClient) send(method, message string) io.ReadCloser {
	r, err := http.NewRequestWithContext(context.Background(), method, "http://127.0.0.1/mcp", strings.NewReader(message))
	require.NoError(c, err)
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Content-Type", "application/json")
	if c.session != "" {
		r.Header.Set("Mcp-Session-Id", c.session)
		r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	}
	response, err := c.http.Do(r)
	require.NoError(c, err)
	require.Less(c, response.StatusCode, 300)
	if c.session == "" {
		c.session = response.Header.Get("Mcp-Session-Id")
	}
	return response.Body
}

// ask sends a request, and returns its result.
func (c *listClient) ask(method, params string) json.RawMessage {
	c.id++
	body := c.send(http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, c.id, method, params))
	defer body.Close()
	return c.read(body, c.id)
}

// listen opens the stream of notifications.
func (c *listClient) listen() {
	body := c.send(http.MethodGet, "")
	go func() {
		defer body.Close()
		c.read(body, 0)
	}()
}

// read reads messages until the response with an id, or the end.
func (c *listClient) read(body io.Reader, id int) json.RawMessage {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var message struct {
			ID     int
			Method string
			Result json.RawMessage
		}
		if json.Unmarshal(bytes.TrimPrefix(lines.Bytes(), []byte("data: ")), &message) != nil {
			continue
		}
		if message.Method == "notifications/tools/list_changed" {
			c.mu.Lock()
			c.told++
			c.unheard = true
			c.mu.Unlock()
		}
		if message.ID == id && message.Result != nil {
			return message.Result
		}
	}
	return nil
}

// isTold reports whether the list has changed since it was last asked for.
func (c *listClient) isTold() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unheard
}

// list returns the tools as they are sent.
func (c *listClient) list() []json.RawMessage {
	c.mu.Lock()
	c.unheard = false
	c.mu.Unlock()
	var result struct{ Tools []json.RawMessage }
	require.NoError(c, json.Unmarshal(c.ask("tools/list", "{}"), &result))
	return result.Tools
}

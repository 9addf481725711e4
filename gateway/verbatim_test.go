package gateway

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/internal/listfile"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/tests/oddtest"
)

// rawServer is a server without an SDK. During a call it sends what no SDK knows, and the result of the call is the answer to
// its question.
type rawServer struct {
	answers chan string
	told    chan string // the parameters of initialize, or nil
	json    bool        // it answers initialize with JSON
}

// What the server sends during a call. %s is the token of its progress.
const (
	rawLog      = `{"level":"info","logger":"l","data":{"n":12345678901234567890},"later":{"a":[1]},"_meta":{"m":1}}`
	rawUpdate   = `{"uri":"file:///x","later":"<&>"}`
	rawProgress = `{"progressToken":%s,"progress":0.25,"later":true}`
	rawQuestion = `{"message":"?","requestedSchema":{"type":"object","properties":{"a":{"type":"hologram"}}},"later":7,"_meta":{"q":1}}`
	rawAnswer   = `{"action":"accept","content":{"a":{"deep":[1]}},"later":8}`
)

// receive takes a message, and sends what follows from it.
func (s *rawServer) receive(line []byte, send func(string)) {
	var m mcpserver.Message
	if json.Unmarshal(line, &m) != nil {
		return
	}
	result := `{}`
	switch {
	case m.Method == "" && string(m.ID) == `"question"`:
		s.answers <- string(m.Result)
		return
	case m.ID == nil:
		return
	case m.Method == "initialize":
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"later":1},"logging":{},"resources":{"subscribe":true},"tasks":{"list":{}},` +
			`"experimental":{"x":{"n":12345678901234567890}}},"serverInfo":{"name":"raw","version":"1","later":2},"instructions":"<do>","_meta":{"i":1},"later":3}`
		select {
		case s.told <- string(m.Params):
		default:
		}
	case m.Method == "tools/list":
		result = `{"tools":[{"name":"t","inputSchema":{"type":"object"},"later":1}],"more":{"a":2}}`
	case m.Method == "tools/call":
		token := mcpserver.ObjectOf(mcpserver.ObjectOf(m.Params)["_meta"])["progressToken"]
		send(`{"jsonrpc":"2.0","method":"notifications/message","params":` + rawLog + `}`)
		send(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":` + rawUpdate + `}`)
		send(`{"jsonrpc":"2.0","method":"notifications/progress","params":` + fmt.Sprintf(rawProgress, token) + `}`)
		send(`{"jsonrpc":"2.0","id":"question","method":"elicitation/create","params":` + rawQuestion + `}`)
		result = `{"content":[],"answer":` + <-s.answers + `}`
	}
	send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + result + `}`)
}

// ServeHTTP serves it over streamable HTTP.
func (s *rawServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	opens := strings.Contains(string(body), `"initialize"`)
	if !opens && r.Header.Get("Mcp-Session-Id") != "one" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Mcp-Session-Id", "one")
	if opens && s.json {
		w.Header().Set("Content-Type", "application/json")
		s.receive(body, func(line string) { io.WriteString(w, line) })
		return
	}
	if !strings.Contains(string(body), `"method"`) || !strings.Contains(string(body), `"id"`) {
		w.WriteHeader(http.StatusAccepted)
	} else {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	s.receive(body, func(line string) {
		fmt.Fprintf(w, "data: %s\n\n", line)
		w.(http.Flusher).Flush()
	})
}

// runRawServer runs it over stdio.
func runRawServer() {
	s := &rawServer{answers: make(chan string, 1)}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		go s.receive([]byte(strings.Clone(lines.Text())), func(line string) { os.Stdout.WriteString(line + "\n") })
	}
	os.Exit(0)
}

// What a server sends goes through as it is: the fields that the SDK does not know, numbers, and forms that it would refuse.
// So does the answer of the client.
func TestWhatServersSendGoesThroughAsItIs(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	remote := httptest.NewServer(&rawServer{answers: make(chan string, 1)})
	defer remote.Close()
	for name, server := range map[string]mcpbridge.Server{
		"stdio": {Name: "s", Command: self, Env: map[string]string{processVar: "raw", "GORACE": "atexit_sleep_ms=0"}},
		"http":  {Name: "s", URL: remote.URL},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, server)
			defer w.stop()
			r := w.raw()
			said := r.ask(`{"jsonrpc":"2.0","id":"open","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"raw","version":"1"}}}`, `"open"`)
			require.Contains(t, string(said.Result), `"tasks":{"list":{}}`)
			r.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			require.Nil(t, r.ask(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"file:///x"}}`, "1").Error)
			for id := range 20 { // at the same time
				r.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"list %d","method":"tools/list"}`, id))
			}
			for range 20 {
				listed := r.await(func(m *mcpserver.Message) bool { return strings.HasPrefix(string(m.ID), `"list `) })
				require.JSONEq(t, `{"tools":[{"name":"t","inputSchema":{"type":"object"},"later":1}],"more":{"a":2}}`, string(listed.Result))
			}
			r.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":"mine"}}}`)
			comes := func(method string) *mcpserver.Message {
				return r.await(func(m *mcpserver.Message) bool { return m.Method == method })
			}
			require.Equal(t, members(rawLog), members(string(comes("notifications/message").Params)))
			require.Equal(t, members(rawUpdate), members(string(comes("notifications/resources/updated").Params)))
			require.Equal(t, members(fmt.Sprintf(rawProgress, `"mine"`)), members(string(comes("notifications/progress").Params)))
			question := comes("elicitation/create")
			require.Equal(t, members(rawQuestion), members(string(question.Params)))
			r.send(`{"jsonrpc":"2.0","id":` + string(question.ID) + `,"result":` + rawAnswer + `}`)
			result := r.await(func(m *mcpserver.Message) bool { return string(m.ID) == "2" })
			require.Nil(t, result.Error)
			require.Equal(t, members(rawAnswer), members(string(mcpserver.ObjectOf(result.Result)["answer"])))
		})
	}
}

// members returns the members of an object as text, so that no digit is lost.
func members(object string) map[string]string {
	all := map[string]string{}
	for name, value := range mcpserver.ObjectOf(json.RawMessage(object)) {
		all[name] = string(value)
	}
	return all
}

// So does what servers and clients say of themselves, also when it comes from the store.
func TestWhatBothSidesSayOfThemselvesGoesThroughAsItIs(t *testing.T) {
	for name, json := range map[string]bool{"events": false, "json": true} {
		t.Run(name, func(t *testing.T) { sayOfThemselves(t, &rawServer{told: make(chan string, 10), json: json}) })
	}
}

func sayOfThemselves(t *testing.T, s *rawServer) {
	remote := httptest.NewServer(s)
	defer remote.Close()
	store := &listfile.Store{Folder: t.TempDir()}
	const hello = `{"jsonrpc":"2.0","id":"open","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"sampling":{"later":1},"tasks":{"x":[]}},` +
		`"clientInfo":{"name":"raw","version":"1","later":2},"later":3,"_meta":{"progressToken":1}}}`
	for _, when := range []string{"at first", "from the store"} {
		t.Run(when, func(t *testing.T) {
			w := newWorld(t, store, mcpbridge.Server{Name: "s", URL: remote.URL})
			defer w.stop()
			r := w.raw()
			said := r.ask(hello, `"open"`)
			require.JSONEq(t, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"later":1,"listChanged":true},"logging":{},`+
				`"resources":{"subscribe":true,"listChanged":true},"tasks":{"list":{}},"experimental":{"x":{"n":12345678901234567890}}},`+
				`"serverInfo":{"name":"raw","version":"1","later":2},"instructions":"<do>","_meta":{"i":1},"later":3}`, string(said.Result))
			require.Contains(t, string(said.Result), "12345678901234567890")
			require.Nil(t, r.ask(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"file:///x"}}`, "1").Error)
			require.JSONEq(t, `{"protocolVersion":"2025-06-18","capabilities":{"sampling":{"later":1},"tasks":{"x":[]}},`+
				`"clientInfo":{"name":"raw","version":"1","later":2},"later":3}`, <-s.told)
		})
	}
}

// What a client sends reaches the server as it is: the numbers in its _meta, and arguments that have another type than the protocol says.
func TestWhatAClientSendsGoesThroughAsItIs(t *testing.T) {
	var s oddtest.Server
	arrived := make(chan *mcpserver.Message, 100)
	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m := new(mcpserver.Message)
		if json.Unmarshal(body, m) == nil {
			arrived <- m
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		s.ServeHTTP(w, r)
	}))
	defer remote.Close()
	w := newWorld(t, nil, mcpbridge.Server{Name: "s", URL: remote.URL + "/mcp"})
	defer w.stop()
	r := w.raw()
	r.open()
	const meta = `{"n":9007199254740993,"f":1.0,"large":1e400,"inside":[{"n":-0}],"text":"a"}`
	for method, params := range map[string]string{
		"tools/call":          `"name":"first","arguments":{"n":9007199254740993,"f":1.0}`,
		"prompts/get":         `"name":"m00","arguments":{"n":9007199254740993,"f":1.0,"text":"a"}`,
		"resources/read":      `"uri":"m00"`,
		"completion/complete": `"ref":{"type":"ref/prompt","name":"m00"},"argument":{"name":"a","value":"v"}`,
	} {
		answer := r.ask(`{"jsonrpc":"2.0","id":"`+method+`","method":"`+method+`","params":{`+params+`,"_meta":`+meta+`}}`, `"`+method+`"`)
		require.Nil(t, answer.Error, method)
		m := <-arrived
		for m.Method != method {
			m = <-arrived
		}
		its := members(string(m.Params))
		gotMeta := members(its["_meta"])
		delete(gotMeta, "progressToken")
		delete(its, "_meta")
		require.Equal(t, members(meta), gotMeta, method)
		require.Equal(t, members("{"+params+"}"), its, method)
	}
}

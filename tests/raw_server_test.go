package tests

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcpactor/mcpactor/tests/faults"
)

// rawServer is an MCP server without an SDK, which can be as poor and as odd as its habits
// say. It keeps a counter for each session. Its tools take the arguments "call" and
// "scope", as those of package faults do:
//
//	count  adds one to the counter, and returns it
//	wait   does the same, and waits for release the first time that it gets a call
type rawServer struct {
	habits

	mu       sync.Mutex
	serial   int
	sessions map[string]*rawSession
	runs     map[string]int
	ran      func(call string) int // records a run, and returns how often the call has run
	released chan struct{}
}

// habits are what makes a server poor or odd. The zero value is a plain server.
type habits struct {
	without  []string                   // the methods, of JSON-RPC or of HTTP, that it does not have
	revision string                     // of the protocol, whatever the client asks for; 2025-06-18 if empty
	instead  map[string]string          // what it answers to a method in place of a result; never if empty
	refuses  func(rawMessage) bool      // the requests that it answers with a parse error
	write    func(answer string) string // changes each answer
	banner   string                     // what it writes to stdout at its start
	unknown  faults.Fault               // its answer to a session that it does not know; 404 if nil

	// Over HTTP.
	resumable bool          // answers are event streams that can be resumed
	onStream  bool          // answers come on the standalone stream, and each POST gets 202
	noID      bool          // there is one session, without an id
	sse       bool          // it speaks HTTP+SSE
	newIDs    bool          // each answer names another session id, and any id is known
	keepAlive time.Duration // of the sessions
}

// rawSession is the state of a session.
type rawSession struct {
	count   int
	events  chan string            // for its standalone stream
	answers map[string]chan string // by the ids of requests, if they are resumable
}

// rawMessage is a message of the client.
type rawMessage struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Name      string
		Arguments struct{ Call string }
	}
}

func newRawServer(h habits) *rawServer {
	s := &rawServer{habits: h, sessions: map[string]*rawSession{}, runs: map[string]int{}, released: make(chan struct{})}
	s.ran = func(call string) int { s.runs[call]++; return s.runs[call] }
	return s
}

// fresh returns the server after a restart: it knows no session.
func (s *rawServer) fresh() http.Handler {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions = map[string]*rawSession{}
	return s
}

// release lets the calls of wait return, later ones included.
func (s *rawServer) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.released:
	default:
		close(s.released)
	}
}

func (s *rawServer) executions() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.runs)
}

// open opens a session.
func (s *rawServer) open() (id string, session *rawSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serial++
	session = &rawSession{events: make(chan string, 100), answers: map[string]chan string{}}
	if !s.noID {
		id = fmt.Sprint("raw-", s.serial)
	}
	if s.newIDs {
		s.sessions = map[string]*rawSession{}
	}
	s.sessions[id] = session
	return id, session
}

// find returns the session with an id, or nil.
func (s *rawServer) find(id string) *rawSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newIDs {
		for _, session := range s.sessions {
			return session
		}
	}
	return s.sessions[id]
}

// ServeHTTP serves streamable HTTP.
func (s *rawServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var msg rawMessage
	json.Unmarshal(body, &msg)
	id := cmp.Or(r.Header.Get("Mcp-Session-Id"), r.URL.Query().Get("sessionid"))
	if s.noID {
		id = ""
	}
	session := s.find(id)
	if s.sse && r.Method == http.MethodGet {
		s.streamAll(w, r)
		return
	}
	if msg.Method == "initialize" && !s.sse {
		id, session = s.open()
	}
	if s.newIDs {
		id = fmt.Sprint(id, "+")
	}
	if id != "" && !s.sse {
		w.Header().Set("Mcp-Session-Id", id)
	}
	switch {
	case slices.Contains(s.without, r.Method):
		w.WriteHeader(http.StatusMethodNotAllowed)
	case session == nil && msg.Method == "server/discover" && !s.sse:
		writeJSON(w, s.answer(nil, msg))
	case session == nil:
		w.Header().Del("Mcp-Session-Id")
		form := s.unknown
		if form == nil {
			form = faults.Expiries()[0].Fault
		}
		form(w, &faults.Request{Request: r, Kind: msg.Method, ID: msg.ID, Session: id}, nil)
	case r.Method == http.MethodDelete:
		s.mu.Lock()
		delete(s.sessions, id)
		s.mu.Unlock()
	case r.Method == http.MethodGet:
		s.stream(w, r, session)
	case msg.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	case s.onStream && msg.Method != "initialize", s.sse:
		go func() {
			if answer := s.answer(session, msg); answer != "" {
				session.events <- answer
			}
		}()
		w.WriteHeader(http.StatusAccepted)
	case s.resumable && msg.Method == "tools/call":
		answer := make(chan string, 1)
		s.mu.Lock()
		session.answers[string(msg.ID)] = answer
		s.mu.Unlock()
		go func() { answer <- s.answer(session, msg) }()
		beginStream(w, "id: "+string(msg.ID)+"\ndata:\n\n")
		deliver(w, r, answer)
	default:
		answer := make(chan string, 1)
		go func() { answer <- s.answer(session, msg) }()
		select {
		case text := <-answer:
			if text == "" {
				<-r.Context().Done()
			}
			writeJSON(w, text)
		case <-r.Context().Done():
		}
	}
}

func writeJSON(w http.ResponseWriter, answer string) {
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, answer)
}

// stream serves the standalone stream, or resumes an answer.
func (s *rawServer) stream(w http.ResponseWriter, r *http.Request, session *rawSession) {
	if last := r.Header.Get("Last-Event-Id"); last != "" {
		s.mu.Lock()
		answer := session.answers[last]
		s.mu.Unlock()
		if answer != nil {
			beginStream(w, "")
			deliver(w, r, answer)
		}
		return
	}
	beginStream(w, "")
	for r.Context().Err() == nil {
		deliver(w, r, session.events)
	}
}

// streamAll serves the stream of a session over HTTP+SSE, which ends with the session.
func (s *rawServer) streamAll(w http.ResponseWriter, r *http.Request) {
	id, session := s.open()
	beginStream(w, "event: endpoint\ndata: /mcp?sessionid="+id+"\n\n")
	for r.Context().Err() == nil {
		deliver(w, r, session.events)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, id)
}

// beginStream begins an event stream.
func beginStream(w http.ResponseWriter, event string) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	io.WriteString(w, event)
	http.NewResponseController(w).Flush()
}

// deliver writes one message as an event, unless the client gives up first.
func deliver(w http.ResponseWriter, r *http.Request, messages chan string) {
	select {
	case <-r.Context().Done():
	case text := <-messages:
		io.WriteString(w, "data: "+text+"\n\n")
		http.NewResponseController(w).Flush()
	}
}

// serveLines serves stdio.
func (s *rawServer) serveLines(in io.Reader, out io.Writer) {
	io.WriteString(out, s.banner)
	var mu sync.Mutex
	_, session := s.open()
	for lines := json.NewDecoder(in); ; {
		var msg rawMessage
		if lines.Decode(&msg) != nil {
			return
		}
		if msg.ID == nil {
			continue
		}
		go func() {
			answer := s.answer(session, msg)
			mu.Lock()
			defer mu.Unlock()
			if answer != "" {
				io.WriteString(out, answer+"\n")
			}
		}()
	}
}

// answer answers a request. It returns "" for one that is never answered.
func (s *rawServer) answer(session *rawSession, msg rawMessage) string {
	outcome := `"result":{}`
	revision := s.revision
	if revision == "" {
		revision = "2025-06-18"
	}
	instead, is := s.instead[msg.Method]
	if instead == exits {
		os.Exit(1)
	}
	switch {
	case is && instead == "":
		return ""
	case is:
		outcome = instead
	case s.refuses != nil && s.refuses(msg):
		outcome = `"error":{"code":-32700,"message":"Parse error"}`
	case slices.Contains(s.without, msg.Method), msg.Method == "server/discover":
		outcome = `"error":{"code":-32601,"message":"Method not found"}`
	case msg.Method == "initialize":
		outcome = `"result":{"protocolVersion":"` + revision + `","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`
	case msg.Method == "tools/list":
		outcome = `"result":{"tools":[{"name":"count","inputSchema":{"type":"object"}},{"name":"wait","inputSchema":{"type":"object"}}]}`
	case msg.Method == "tools/call":
		outcome = `"result":{"content":[{"type":"text","text":"` + strconv.Itoa(s.run(session, msg)) + `"}]}`
	}
	answer := `{"jsonrpc":"2.0","id":` + string(msg.ID) + `,` + outcome + `}`
	if s.write != nil {
		answer = s.write(answer)
	}
	return answer
}

// run runs a tool.
func (s *rawServer) run(session *rawSession, msg rawMessage) int {
	s.mu.Lock()
	call := msg.Params.Arguments.Call
	session.count++
	n, first := session.count, s.ran(call) == 1
	s.mu.Unlock()
	if first && strings.HasPrefix(msg.Params.Name, "wait") {
		<-s.released
	}
	return n
}

package serve

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// endpointPath is where clients reach the endpoint.
const endpointPath = "/mcp"

// idleTime is how long a client over HTTP may be silent, without a stream. Many clients do not say that they leave.
const idleTime = 10 * time.Minute

// keepAlive is how often a stream without messages has a comment, which proxies and clients count as a sign of life.
const keepAlive = 25 * time.Second

const headerSession = "Mcp-Session-Id"

// endpoint is streamable HTTP for any number of clients.
type endpoint struct {
	g     *gateway
	token string // that requests carry, or empty

	mu    sync.Mutex
	links map[string]*httpLink // by the id of the session
}

// ServeHTTP serves a request of a client on this machine.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case !isLocal(r):
		http.Error(w, "only programs on this machine may use it: the Host or the Origin is another", http.StatusForbidden)
	case !e.hasToken(r):
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "the token is missing or wrong", http.StatusUnauthorized)
	case r.Method == http.MethodPost:
		e.post(w, r)
	case r.Method == http.MethodGet || r.Method == http.MethodDelete:
		l := e.linkOf(w, r)
		if l == nil {
			return
		}
		defer l.use()()
		if r.Method == http.MethodDelete {
			e.end(l)
			return
		}
		l.stream(w, r, l.newStandalone())
	default:
		w.Header().Set("Allow", "POST, GET, DELETE")
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

// isLocal reports whether a request was sent to this machine by its name, and not by a page of another site: that keeps off
// pages whose name leads here.
func isLocal(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = strings.Trim(r.Host, "[]")
	}
	ip := net.ParseIP(host)
	if host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host == r.Host
}

// hasToken reports whether a request carries the token.
func (e *endpoint) hasToken(r *http.Request) bool {
	given, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return e.token == "" || subtle.ConstantTimeCompare([]byte(given), []byte(e.token)) == 1
}

// linkOf returns the client of a request. If there is none, it answers the request.
func (e *endpoint) linkOf(w http.ResponseWriter, r *http.Request) *httpLink {
	id := r.Header.Get(headerSession)
	if revision := r.Header.Get("Mcp-Protocol-Version"); revision != "" && !slices.Contains(revisions, revision) {
		http.Error(w, "Mcp-Protocol-Version: use one of "+strings.Join(revisions, ", "), http.StatusBadRequest)
		return nil
	}
	e.mu.Lock()
	l := e.links[id]
	e.mu.Unlock()
	switch {
	case id == "":
		http.Error(w, headerSession+" is missing: send initialize first", http.StatusBadRequest)
	case l == nil:
		http.Error(w, "session not found", http.StatusNotFound)
	}
	return l
}

// post takes the messages of a client, and answers its requests.
func (e *endpoint) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLine))
	if err != nil {
		http.Error(w, "the body cannot be read", http.StatusRequestEntityTooLarge)
		return
	}
	batch, err := decode(body)
	if err != nil || slices.Contains(batch, nil) {
		writeMessage(w, http.StatusBadRequest, &message{ID: json.RawMessage("null"), Error: &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "the body is no JSON-RPC"}})
		return
	}
	var l *httpLink
	if len(batch) == 1 && batch[0].Method == "initialize" && batch[0].isRequest() && r.Header.Get(headerSession) == "" {
		l = e.open()
		w.Header().Set(headerSession, l.id)
	} else if refused := refuseRevision(&request{message: batch[0]}); refused != nil && r.Header.Get(headerSession) == "" && batch[0].isRequest() {
		writeMessage(w, http.StatusBadRequest, &message{ID: batch[0].ID, Error: rpcError(refused)})
		return
	} else if l = e.linkOf(w, r); l == nil {
		return
	}
	defer l.use()()
	s := l.newStream(batch)
	for _, m := range batch {
		l.c.receive(m)
	}
	if s == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	l.stream(w, r, s)
}

func writeMessage(w http.ResponseWriter, status int, m *message) {
	data, err := m.encode()
	if err != nil {
		status = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(data) //nolint:errcheck // the client has gone then
}

// open returns the link to a new client.
func (e *endpoint) open() *httpLink {
	l := &httpLink{id: rand.Text(), streams: map[string]*stream{}}
	l.standalone = newStream()
	l.c = newClient(e.g, l)
	l.idle = time.AfterFunc(idleTime, func() { e.end(l) })
	e.mu.Lock()
	defer e.mu.Unlock()
	e.links[l.id] = l
	return l
}

// end ends a client.
func (e *endpoint) end(l *httpLink) {
	e.mu.Lock()
	delete(e.links, l.id)
	e.mu.Unlock()
	l.idle.Stop()
	e.g.leave(l.c)
}

// close ends all clients.
func (e *endpoint) close() {
	e.mu.Lock()
	links := e.links
	e.links = map[string]*httpLink{}
	e.mu.Unlock()
	for _, l := range links {
		l.c.end()
	}
}

// httpLink is the link to a client over HTTP.
type httpLink struct {
	id   string
	c    *client
	idle *time.Timer // ends the client

	mu         sync.Mutex
	used       int                // requests of the client that are open
	streams    map[string]*stream // of the requests that have no response, by their ids
	standalone *stream            // of what belongs to no request
}

// use notes that the client is there, until it is called.
func (l *httpLink) use() (done func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used++
	l.idle.Stop()
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.used--; l.used == 0 && l.c.ctx.Err() == nil {
			l.idle.Reset(idleTime)
		}
	}
}

// maxQueued bounds the messages that wait for a stream which nobody reads. Past it, the oldest goes.
const maxQueued = 1000

// stream is a queue of messages for one response over HTTP.
type stream struct {
	ready chan struct{} // has an element when something has changed

	mu    sync.Mutex
	queue []*message
	open  map[string]bool // the requests without a response; nil for the standalone stream
	ended bool            // another stream has taken its place
}

func newStream() *stream { return &stream{ready: make(chan struct{}, 1)} }

// put adds a message.
func (s *stream) put(m *message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queue = append(s.queue, m); len(s.queue) > maxQueued && s.open == nil {
		s.queue = s.queue[1:]
	}
	s.wake()
}

// wake wakes the reader. The caller holds the mutex.
func (s *stream) wake() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// answered notes that a request needs no response any more.
func (s *stream) answered(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, id)
	s.wake()
}

// take empties the queue. last is true if nothing more will come.
func (s *stream) take() (queue []*message, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue, s.queue = s.queue, nil
	return queue, s.ended || s.open != nil && len(s.open) == 0
}

// newStream returns the stream for the responses to requests, or nil if there are none.
func (l *httpLink) newStream(batch []*message) *stream {
	s := newStream()
	s.open = map[string]bool{}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range batch {
		if m.isRequest() {
			s.open[string(m.ID)], l.streams[string(m.ID)] = true, s
		}
	}
	if len(s.open) == 0 {
		return nil
	}
	return s
}

// newStandalone returns the stream for what belongs to no request, in place of the one before, with what that has.
func (l *httpLink) newStandalone() *stream {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.standalone
	l.standalone = newStream()
	before.mu.Lock()
	defer before.mu.Unlock()
	l.standalone.queue, before.queue, before.ended = before.queue, nil, true
	before.wake()
	l.standalone.ready <- struct{}{}
	return l.standalone
}

// send puts a message into the stream of a request, or else into the standalone one.
func (l *httpLink) send(m *message, of json.RawMessage) {
	l.mu.Lock()
	s, its := l.streams[string(of)]
	if s == nil {
		s = l.standalone
	}
	l.mu.Unlock()
	isResponse := m.Method == ""
	if isResponse && !its {
		return // nobody waits for it
	}
	s.put(m)
	if isResponse {
		l.finish(of)
	}
}

// finish ends the stream of a request.
func (l *httpLink) finish(of json.RawMessage) {
	l.mu.Lock()
	s := l.streams[string(of)]
	delete(l.streams, string(of))
	l.mu.Unlock()
	if s != nil {
		s.answered(string(of))
	}
}

// stream writes a stream: as JSON if it is one response and nothing else, or else as events.
func (l *httpLink) stream(w http.ResponseWriter, r *http.Request, s *stream) {
	out := http.NewResponseController(w)
	began := s.open == nil
	begin := func() {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Cache-Control", "no-cache, no-transform")
		w.WriteHeader(http.StatusOK)
		out.Flush() //nolint:errcheck // the client has gone then
	}
	if began {
		begin()
	}
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	for {
		queue, last := s.take()
		if !began && last && len(queue) <= 1 {
			if len(queue) == 0 { // it was cancelled
				w.WriteHeader(http.StatusAccepted)
				return
			}
			writeMessage(w, http.StatusOK, queue[0])
			return
		}
		if !began && len(queue) > 0 {
			began = true
			begin()
		}
		for _, m := range queue {
			data, err := m.encode()
			if err != nil {
				continue
			}
			if _, err := w.Write(slices.Concat([]byte("data: "), data, []byte("\n\n"))); err != nil {
				return
			}
		}
		if len(queue) > 0 {
			out.Flush() //nolint:errcheck // the next write says so
		}
		if last {
			return
		}
		select {
		case <-s.ready:
		case <-tick.C:
			if !began {
				began = true
				begin()
			}
			if _, err := io.WriteString(w, ": still there\n\n"); err != nil {
				return
			}
			out.Flush() //nolint:errcheck // the next write says so
		case <-r.Context().Done():
			return
		case <-l.c.ctx.Done():
			return
		}
	}
}

package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpactor/mcpactor/internal/freeport"
)

// Server is an HTTP server for MCP on a loopback socket, with faults in front of its
// handler. Its methods may be called from any goroutine.
type Server struct {
	fresh func() http.Handler

	running sync.Mutex // held while it starts and stops
	closed  bool       // after Close

	local bool // without a socket

	mu       sync.Mutex
	addr     string
	life     context.Context    // of the requests of a local server
	stopping context.CancelFunc // ends it; nil while it is stopped
	back     *time.Timer        // starts it after an outage, or nil
	http     *http.Server       // of one with a socket; nil while it is stopped
	listener net.Listener
	handler  http.Handler
	faults   []*injected
	sessions map[string]*session
	latest   map[string]*session // by the scope of their calls
	unknown  Fault               // how a session that was never opened is refused; nil: as the handler does
	counts   map[string]int
	overlaps []string
}

// session is the state of one session.
type session struct {
	leaving bool // a DELETE has come
	ended   bool
	expiry  Fault // how it is refused after it expired, or nil
	serial  int   // its position in the order of opening
	opened  time.Time
	counts  map[string]int
}

type injected struct {
	kind  string
	fault Fault
}

// Request is a request of a client.
type Request struct {
	*http.Request
	// Kind is the method of the JSON-RPC message, such as "tools/call". Without a message
	// it is the method of HTTP: "GET" for the standalone stream or to continue an answer,
	// "DELETE" to end a session.
	Kind string
	// ID is the id of the JSON-RPC request, as JSON. It is nil for a notification.
	ID json.RawMessage
	// Session is the id of the session, or empty.
	Session string

	server    *Server
	tool      string          // the name of a tool call
	arguments json.RawMessage // of a tool call
	scope     string          // of a tool call, as its arguments say
}

// Serve starts a server in front of the handler that fresh returns. fresh is called
// again for each [Server.Restart], and must return a handler that knows no session. See
// [Tools.Handler].
func Serve(fresh func() http.Handler) (*Server, error) {
	s := newServer(fresh)
	return s, s.Start()
}

func newServer(fresh func() http.Handler) *Server {
	return &Server{
		fresh: fresh, handler: fresh(),
		sessions: map[string]*session{}, latest: map[string]*session{}, counts: map[string]int{},
	}
}

// Proxy starts a server that passes requests on to another server, which is given by
// its origin, such as "http://127.0.0.1:3001". Paths do not change: the endpoint "/mcp"
// of that server is [Server.URL] + "/mcp".
func Proxy(origin string) (*Server, error) {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("faults: %q is not the origin of a server: use one such as http://127.0.0.1:3001", origin)
	}
	return Serve(func() http.Handler {
		return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) }, FlushInterval: -1}
	})
}

// URL returns the URL of the server. It stays the same after a restart.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return "http://" + s.addr
}

// Start listens again after a [Server.Stop], on the same address and with the same
// sessions.
func (s *Server) Start() error {
	s.running.Lock()
	defer s.running.Unlock()
	return s.start()
}

func (s *Server) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return errors.New("faults: the server is closed")
	case s.http != nil || s.stopping != nil:
		return nil
	case s.local:
		s.life, s.stopping = context.WithCancel(context.Background())
		return nil
	}
	l, err := listen(s.addr)
	if err != nil {
		return fmt.Errorf("faults: %w", err)
	}
	s.addr, s.listener = l.Addr().String(), l
	s.http = &http.Server{
		Handler: s.serving(s.handler), ErrorLog: log.New(io.Discard, "", 0),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
	}
	go s.http.Serve(l) //nolint:errcheck // it ends with Stop
	return nil
}

// listen listens on an address, or on a new port if addr is empty.
func listen(addr string) (net.Listener, error) {
	if addr == "" {
		return freeport.Listen("127.0.0.1")
	}
	return net.Listen("tcp", addr)
}

// Stop closes all connections and the socket. The sessions stay.
func (s *Server) Stop() {
	s.running.Lock()
	defer s.running.Unlock()
	s.stop()
}

func (s *Server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.back != nil {
		s.back.Stop()
	}
	if s.stopping != nil {
		s.stopping()
		s.stopping = nil
	}
	if s.http != nil {
		s.listener.Close() //nolint:errcheck // http.Server may not know it yet
		s.http.Close()
		s.http = nil
	}
}

// stopFor stops the server, and starts it again after the given time.
func (s *Server) stopFor(d time.Duration) {
	s.running.Lock()
	defer s.running.Unlock()
	s.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.back = time.AfterFunc(d, func() {
		s.Start() //nolint:errcheck // a server that was closed meanwhile does not come back
	})
}

// Close stops the server for good.
func (s *Server) Close() {
	s.running.Lock()
	defer s.running.Unlock()
	s.closed = true
	s.stop()
}

// Restart simulates a restart of the server's process: all connections are closed, and
// no session is known afterwards.
func (s *Server) Restart() error {
	s.running.Lock()
	defer s.running.Unlock()
	s.stop()
	handler := s.fresh()
	s.mu.Lock()
	s.handler = handler
	unknown := s.unknown
	if unknown == nil {
		unknown = Expiries()[0].Fault
	}
	for _, known := range s.sessions {
		if !known.ended {
			known.ended, known.expiry = true, unknown // a server behind a proxy still knows it
		}
	}
	s.mu.Unlock()
	return s.start()
}

// Expire expires all sessions that are known: the server refuses their requests in the
// given form, and from then on those of sessions that were never opened. Calls that are
// running continue. It returns the number of these sessions.
func (s *Server) Expire(form Expiry) (n int) {
	return s.ExpireSome(1<<30, form)
}

// ExpireSome is [Server.Expire] for up to n sessions, in the order of their ids.
func (s *Server) ExpireSome(n int, form Expiry) (expired int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unknown = form.Fault
	for _, id := range slices.Sorted(maps.Keys(s.sessions)) {
		if known := s.sessions[id]; !known.ended && expired < n {
			known.ended, known.expiry = true, form.Fault
			expired++
		}
	}
	return expired
}

// Forget returns a fault that expires the session of the request.
func (s *Server) Forget(form Expiry) Fault {
	return func(w http.ResponseWriter, r *Request, next http.Handler) {
		s.mu.Lock()
		known := s.sessions[r.Session]
		if known != nil {
			known.ended, known.expiry, s.unknown = true, form.Fault, form.Fault
		}
		s.mu.Unlock()
		if known == nil {
			next.ServeHTTP(w, r.Request)
			return
		}
		form.Fault(w, r, next)
	}
}

// Late returns a fault that refuses each session for the given time after it was opened,
// like a server whose session store is eventually consistent.
func (s *Server) Late(d time.Duration, form Expiry) Fault {
	return func(w http.ResponseWriter, r *Request, next http.Handler) {
		s.mu.Lock()
		known := s.sessions[r.Session]
		early := known != nil && time.Since(known.opened) < d || known == nil && r.Session != ""
		s.mu.Unlock()
		if !early {
			next.ServeHTTP(w, r.Request)
			return
		}
		form.Fault(w, r, next)
	}
}

// Inject adds a fault for requests of a kind, see [Request.Kind]; an empty kind means
// all requests. The fault that was added last runs first. Call remove to remove the
// fault.
func (s *Server) Inject(kind string, f Fault) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := &injected{kind, f}
	s.faults = append(s.faults, one)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.faults = slices.DeleteFunc(slices.Clone(s.faults), func(other *injected) bool { return other == one })
	}
}

// Count returns the number of requests of a kind, including those that met a fault.
func (s *Server) Count(kind string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[kind]
}

// Sessions returns the number of sessions that are known: those that have neither
// expired nor been ended by a DELETE.
func (s *Server) Sessions() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, known := range s.sessions {
		if !known.ended {
			n++
		}
	}
	return n
}

// knows reports whether a session is known: see [Server.Sessions].
func (s *Server) knows(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.sessions[id]
	return known != nil && !known.ended
}

// CountEach returns the number of requests of a kind on each session, in the order in
// which the sessions were opened.
func (s *Server) CountEach(kind string) (counts []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, known := range slices.SortedFunc(maps.Values(s.sessions), func(a, b *session) int { return a.serial - b.serial }) {
		counts = append(counts, known.counts[kind])
	}
	return counts
}

// Overlaps returns the scopes that had two known sessions at the same time, once for
// each call that met this condition. The scope of a session is the argument "scope" of
// its calls. A session of HTTP+SSE ends when the server notices the end of its
// connection, which may be after the client has opened the next one.
func (s *Server) Overlaps() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.overlaps)
}

// serving returns a handler that runs the faults, then refuses expired sessions, then
// calls the given handler. A request that came in before a restart uses the handler
// from before the restart.
func (s *Server) serving(behind http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, behind) })
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, behind http.Handler) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // its client is gone
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	req := newRequest(r, body)
	req.server = s

	s.mu.Lock()
	s.counts[req.Kind]++
	handler := s.note(req, behind)
	for _, one := range s.faults {
		if one.kind == "" || one.kind == req.Kind {
			handler = one.fault.around(req, handler)
		}
	}
	s.mu.Unlock()
	n := &noted{ResponseWriter: w, opened: s.opened}
	defer func() { s.ended(n.stream) }()
	handler.ServeHTTP(n, r)
}

// note records a request of a session, and returns the handler that answers it.
func (s *Server) note(req *Request, behind http.Handler) http.Handler {
	known, unknown := s.sessions[req.Session], s.unknown
	switch {
	case known == nil && req.Session != "" && unknown != nil:
		return unknown.around(req, behind)
	case known == nil:
		return behind // it does not know the session either
	}
	known.counts[req.Kind]++
	if known.expiry != nil {
		return known.expiry.around(req, behind)
	}
	if req.Kind == http.MethodDelete {
		known.leaving = true
		return s.deleting(req.Session, behind)
	}
	if req.scope != "" && !known.ended {
		if other := s.latest[req.scope]; other != nil && other != known && !other.ended && !other.leaving {
			s.overlaps = append(s.overlaps, req.scope)
		}
		s.latest[req.scope] = known
	}
	return behind
}

// deleting returns a handler for the DELETE of a session.
func (s *Server) deleting(id string, behind http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := &noted{ResponseWriter: w}
		n.opened = func(string) { // before the client learns of it
			if n.status < 300 || n.status == http.StatusNotFound {
				s.ended(id)
			}
		}
		behind.ServeHTTP(n, r)
		if n.status == 0 {
			n.WriteHeader(http.StatusOK)
		}
	})
}

// opened records a new session.
func (s *Server) opened(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id != "" && s.sessions[id] == nil {
		s.sessions[id] = &session{serial: len(s.sessions), opened: time.Now(), counts: map[string]int{}}
	}
}

// ended records the end of a session.
func (s *Server) ended(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.sessions[id]; known != nil {
		known.ended = true
	}
}

const headerSession = "Mcp-Session-Id"

type connKey struct{}

// newRequest parses a request.
func newRequest(r *http.Request, body []byte) *Request {
	var msg struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"params"`
	}
	json.Unmarshal(body, &msg) //nolint:errcheck // the handler reports what is not JSON-RPC
	req := &Request{
		Request: r, Kind: msg.Method, ID: msg.ID, Session: r.Header.Get(headerSession),
		tool: msg.Params.Name, arguments: msg.Params.Arguments,
	}
	var in toolArgs
	json.Unmarshal(req.arguments, &in) //nolint:errcheck // as above
	req.scope = in.Scope
	if req.Kind == "" {
		req.Kind = r.Method
	}
	if req.Session == "" && r.Method == http.MethodPost { // HTTP+SSE has it in the URL
		req.Session = r.URL.Query().Get("sessionid")
	}
	return req
}

// noted records the session that an answer opens. The id is in a header or, with
// HTTP+SSE, in the URL of the first event.
type noted struct {
	http.ResponseWriter
	opened func(id string)
	status int    // 0 until the headers are written
	stream string // the session that ends with this answer
}

var sessionURL = regexp.MustCompile(`^event: endpoint\n.*[?&]sessionid=([^&\s]+)`)

func (n *noted) WriteHeader(status int) {
	if n.status == 0 {
		n.status = status
		n.opened(n.Header().Get(headerSession))
	}
	n.ResponseWriter.WriteHeader(status)
}

func (n *noted) Write(p []byte) (int, error) {
	if n.status == 0 {
		n.WriteHeader(http.StatusOK)
	}
	if found := sessionURL.FindSubmatch(p); found != nil {
		n.stream = string(found[1])
		n.opened(n.stream)
	}
	return n.ResponseWriter.Write(p)
}

// Unwrap is for [http.ResponseController].
func (n *noted) Unwrap() http.ResponseWriter { return n.ResponseWriter }

// Flush is for handlers that ask for an [http.Flusher].
func (n *noted) Flush() {
	http.NewResponseController(n.ResponseWriter).Flush() //nolint:errcheck // http.Flusher reports no error
}

package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
)

// Server is an HTTP server for MCP on a loopback socket, with faults in front of
// it. Its methods may be called from any goroutine.
type Server struct {
	fresh func() http.Handler

	mu       sync.Mutex
	addr     string
	http     *http.Server // nil while it is stopped
	handler  http.Handler
	faults   []*injected
	sessions map[string]*session
	counts   map[string]int
	overlaps []string
}

// session is what the server knows of one, by its id.
type session struct {
	scopes map[string]bool // of the calls that it got
	ended  bool
	expiry *Expiry // how it is refused, once it expired
}

type injected struct {
	kind  string
	fault Fault
}

// Request is one exchange with a client.
type Request struct {
	*http.Request
	// Kind is the method of the JSON-RPC message, such as "tools/call". Where
	// there is none, it is the method of HTTP: "GET" for the standalone stream or
	// to resume an answer, "DELETE" to end a session.
	Kind string
	// ID is the id of the JSON-RPC request, as JSON; nil for a notification.
	ID json.RawMessage
	// Session is the session's id, or empty.
	Session string

	scope string // of a tool call, as its arguments say
}

// Serve starts a server in front of a handler. fresh makes it: now, and for each
// [Server.Restart], when it must return one that knows no session. See
// [Tools.Handler].
func Serve(fresh func() http.Handler) (*Server, error) {
	s := &Server{
		fresh: fresh, addr: "127.0.0.1:0", handler: fresh(),
		sessions: map[string]*session{}, counts: map[string]int{},
	}
	return s, s.Start()
}

// Proxy starts a server that passes everything on to the server whose origin,
// such as "http://127.0.0.1:3001", is given. Paths stay as they are.
func Proxy(origin string) (*Server, error) {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("faults: %q is no origin of a server", origin)
	}
	return Serve(func() http.Handler {
		return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) }, FlushInterval: -1}
	})
}

// URL is where the server listens, also after a restart.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return "http://" + s.addr
}

// Start listens again after a [Server.Stop], on the same address, with the
// sessions that there were.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.http != nil {
		return nil
	}
	l, err := net.Listen("tcp", s.addr)
	if err != nil {
		return fmt.Errorf("faults: %w", err)
	}
	s.addr = l.Addr().String()
	s.http = &http.Server{
		Handler:     s,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
	}
	go s.http.Serve(l) //nolint:errcheck // it ends with Stop
	return nil
}

// Stop cuts all connections and listens no more. The sessions stay.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.http != nil {
		s.http.Close()
		s.http = nil
	}
}

// Close stops the server for good.
func (s *Server) Close() { s.Stop() }

// Restart is what happens when the server's process is restarted: all
// connections are cut, and no session is known any more.
func (s *Server) Restart() error {
	s.Stop()
	handler := s.fresh()
	s.mu.Lock()
	s.handler = handler
	for _, known := range s.sessions {
		known.ended = true
	}
	s.mu.Unlock()
	return s.Start()
}

// Expire makes the server refuse all the sessions that it knows now, in the given
// form. Calls that are running go on. It returns how many sessions there were.
func (s *Server) Expire(form Expiry) (n int) {
	return s.ExpireSome(1<<30, form)
}

// ExpireSome is [Server.Expire] for at most n sessions, in the order of their
// ids.
func (s *Server) ExpireSome(n int, form Expiry) (expired int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.sessions)) {
		if known := s.sessions[id]; !known.ended && expired < n {
			known.ended, known.expiry = true, &form
			expired++
		}
	}
	return expired
}

// Inject has a fault handle the requests of a kind, see [Request.Kind]; an empty
// kind is all of them. The one that was injected last comes first. It stays until
// remove is called.
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

// Count returns how many requests of a kind came in, those that met a fault
// included.
func (s *Server) Count(kind string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[kind]
}

// Sessions returns how many sessions are known, which neither expired nor were
// ended by a DELETE.
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

// Overlaps tells of every scope that had two sessions at once. It knows the scope
// of a session from the calls of tools that have an argument "scope".
func (s *Server) Overlaps() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.overlaps)
}

// ServeHTTP handles one request: faults first, then expired sessions, then the
// server behind.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // its client is gone
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	req := newRequest(r, body)

	s.mu.Lock()
	s.counts[req.Kind]++
	handler := s.note(req)
	for _, one := range s.faults {
		if one.kind == "" || one.kind == req.Kind {
			handler = one.fault.around(req, handler)
		}
	}
	s.mu.Unlock()
	handler.ServeHTTP(&noted{ResponseWriter: w, header: func(h http.Header) { s.opened(h.Get(headerSession)) }}, r)
}

// note records what a request says of its session, and returns who answers it.
func (s *Server) note(req *Request) http.Handler {
	known := s.sessions[req.Session]
	switch {
	case known == nil && req.Header.Get(headerSession) != "", req.Session == "":
		return s.handler // which knows no such session
	case known == nil:
		known = &session{scopes: map[string]bool{}}
		s.sessions[req.Session] = known
	case known.expiry != nil:
		form := *known.expiry
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { form.write(w, req.ID) })
	}
	if req.Kind == http.MethodDelete {
		known.ended = true
	}
	if req.scope != "" && !known.ended {
		known.scopes[req.scope] = true
		for id, other := range s.sessions {
			if id != req.Session && !other.ended && other.scopes[req.scope] {
				s.overlaps = append(s.overlaps, fmt.Sprintf("scope %q had two sessions at once", req.scope))
			}
		}
	}
	return s.handler
}

// opened records a session that was given out.
func (s *Server) opened(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id != "" && s.sessions[id] == nil {
		s.sessions[id] = &session{scopes: map[string]bool{}}
	}
}

const headerSession = "Mcp-Session-Id"

type connKey struct{}

// newRequest reads what there is to know of a request.
func newRequest(r *http.Request, body []byte) *Request {
	var msg struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Arguments struct {
				Scope string `json:"scope"`
			} `json:"arguments"`
		} `json:"params"`
	}
	json.Unmarshal(body, &msg) //nolint:errcheck // what is no JSON-RPC is left to the handler
	req := &Request{Request: r, Kind: msg.Method, ID: msg.ID, Session: r.Header.Get(headerSession), scope: msg.Params.Arguments.Scope}
	if req.Kind == "" {
		req.Kind = r.Method
	}
	if req.Session == "" && r.Method == http.MethodPost { // HTTP+SSE has it in the URL
		req.Session = r.URL.Query().Get("sessionid")
	}
	return req
}

// noted tells of the headers of an answer.
type noted struct {
	http.ResponseWriter
	header func(http.Header)
	once   sync.Once
}

func (n *noted) WriteHeader(status int) {
	n.once.Do(func() { n.header(n.Header()) })
	n.ResponseWriter.WriteHeader(status)
}

func (n *noted) Write(p []byte) (int, error) {
	n.once.Do(func() { n.header(n.Header()) })
	return n.ResponseWriter.Write(p)
}

// Unwrap is for [http.ResponseController].
func (n *noted) Unwrap() http.ResponseWriter { return n.ResponseWriter }

// Flush is for handlers that ask for an [http.Flusher].
func (n *noted) Flush() {
	n.once.Do(func() { n.header(n.Header()) })
	http.NewResponseController(n.ResponseWriter).Flush() //nolint:errcheck // as that of http.Flusher
}

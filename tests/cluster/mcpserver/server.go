// Package mcpserver is the MCP server of the tests. It keeps a counter for each MCP session,
// and records every execution and every session.
package mcpserver

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/tests/cluster/history"
)

// The headers by which a member says who it is, and which scope a session belongs to.
const (
	MemberHeader = "X-Member"
	ScopeHeader  = "X-Scope"

	sessionHeader = "Mcp-Session-Id"
)

// Args are the arguments of the tools.
type Args struct {
	// Call is the id of the call.
	Call string `json:"call"`
	// Scope is the scope of the key.
	Scope string `json:"scope"`
	// Millis is how long [history.Slow] takes.
	Millis int `json:"millis,omitempty"`
	// Size is how many bytes [history.Big] returns.
	Size int `json:"size,omitempty"`
}

// Result is the structured result of the tools.
type Result struct {
	// Session is a short name of the MCP session.
	Session string `json:"session"`
	Count   int    `json:"count"`
}

// Server is the server. Its methods may be called from any goroutine.
type Server struct {
	http *http.Server
	url  string
	mcp  *mcp.Server

	mu         sync.Mutex
	sessions   map[string]*history.Session
	opened     []*history.Session
	counts     map[string]int
	executions []*history.Execution
}

// Start starts a server, which closes the listener when it ends.
func Start(l net.Listener) *Server {
	s := &Server{
		url: "http://" + l.Addr().String(), sessions: map[string]*history.Session{}, counts: map[string]int{},
		mcp: mcp.NewServer(&mcp.Implementation{Name: "counter", Version: "1"}, nil),
	}
	safe := &mcp.ToolAnnotations{ReadOnlyHint: true}
	mcp.AddTool(s.mcp, &mcp.Tool{Name: history.Add}, s.run)
	mcp.AddTool(s.mcp, &mcp.Tool{Name: history.Slow}, s.run)
	mcp.AddTool(s.mcp, &mcp.Tool{Name: history.Read, Annotations: safe}, s.run)
	mcp.AddTool(s.mcp, &mcp.Tool{Name: history.Big, Annotations: safe}, s.run)
	behind := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.mcp }, &mcp.StreamableHTTPOptions{JSONResponse: true})
	s.http = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, behind) })}
	go s.http.Serve(l) //nolint:errcheck // it ends with Close
	return s
}

// URL returns the endpoint.
func (s *Server) URL() string { return s.url }

// Close stops the server, and ends its sessions.
func (s *Server) Close() error {
	err := s.http.Close()
	for session := range s.mcp.Sessions() {
		if session.InitializeParams() != nil { // closing one that the SDK still connects would panic
			err = errors.Join(err, session.Close())
		}
	}
	return err
}

// Record adds what the server has seen to a history.
func (s *Server) Record(h *history.History) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.executions {
		copied := *e
		h.Executions = append(h.Executions, &copied)
	}
	for _, one := range s.opened {
		copied := *one
		copied.Used = map[string]time.Time{}
		for member, at := range one.Used {
			copied.Used[member] = at
		}
		h.Sessions = append(h.Sessions, &copied)
	}
}

// Live returns the number of sessions that the server was not told to end.
func (s *Server) Live() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

// serve records the opening, the use and the end of sessions.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, behind http.Handler) {
	id, now := r.Header.Get(sessionHeader), time.Now()
	s.mu.Lock()
	if known := s.sessions[id]; known != nil {
		known.Used[r.Header.Get(MemberHeader)] = now
		if r.Method == http.MethodDelete {
			known.Ended = now
			delete(s.sessions, id)
		}
	}
	s.mu.Unlock()
	if id == "" && r.Method == http.MethodPost {
		w = &opening{ResponseWriter: w, opened: func(id string) { s.open(id, r) }}
	}
	behind.ServeHTTP(w, r)
}

// open records a new session.
func (s *Server) open(id string, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	one := &history.Session{
		ID: short(id), Scope: r.Header.Get(ScopeHeader), Opener: r.Header.Get(MemberHeader), Opened: now,
		Used: map[string]time.Time{r.Header.Get(MemberHeader): now},
	}
	s.sessions[id] = one
	s.opened = append(s.opened, one)
}

// short returns a name of a session that is no secret.
func short(id string) string { return id[:min(len(id), 12)] }

// run implements every tool.
func (s *Server) run(ctx context.Context, req *mcp.CallToolRequest, in Args) (*mcp.CallToolResult, Result, error) {
	id := req.Session.ID()
	e := &history.Execution{
		Call: in.Call, Scope: in.Scope, Tool: req.Params.Name, Session: short(id), Started: time.Now(),
		Member: req.Extra.Header.Get(MemberHeader),
	}
	s.mu.Lock()
	if !history.Safe(e.Tool) {
		s.counts[id]++
	}
	e.Count = s.counts[id]
	s.executions = append(s.executions, e)
	s.mu.Unlock()
	if in.Millis > 0 {
		select {
		case <-time.After(time.Duration(in.Millis) * time.Millisecond):
		case <-ctx.Done():
		}
	}
	s.mu.Lock()
	e.Ended = time.Now()
	s.mu.Unlock()
	out := &mcp.CallToolResult{}
	if in.Size > 0 {
		out.Content = []mcp.Content{&mcp.TextContent{Text: strings.Repeat("x", in.Size)}}
	}
	return out, Result{e.Session, e.Count}, nil
}

// opening is the answer to a request without a session, which may have the id of a new one.
type opening struct {
	http.ResponseWriter
	opened func(id string)
	begun  bool
}

// WriteHeader writes the headers.
func (o *opening) WriteHeader(status int) {
	if id := o.Header().Get(sessionHeader); id != "" && !o.begun && status == http.StatusOK {
		o.opened(id)
	}
	o.begun = true
	o.ResponseWriter.WriteHeader(status)
}

// Write writes the headers, unless they were written, and a part of the body.
func (o *opening) Write(p []byte) (int, error) {
	if !o.begun {
		o.WriteHeader(http.StatusOK)
	}
	return o.ResponseWriter.Write(p)
}

// Flush is for handlers that ask for an [http.Flusher].
func (o *opening) Flush() {
	http.NewResponseController(o.ResponseWriter).Flush() //nolint:errcheck // http.Flusher reports no error
}

// Unwrap is for [http.ResponseController].
func (o *opening) Unwrap() http.ResponseWriter { return o.ResponseWriter }

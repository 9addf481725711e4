package main

import (
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// web is the show's HTTP server, on a loopback socket. It forgets sessions and
// restarts when told to.
type web struct {
	executed func(call string)
	addr     string

	mu        sync.Mutex
	http      *http.Server
	mcp       *mcp.Server
	forgotten map[string]int // session id to the form in which it is refused
}

// refusals are the forms in which servers in use say that they do not know a
// session.
var refusals = []struct {
	status int
	body   string
}{
	{http.StatusNotFound, "session not found"},
	{http.StatusNotFound, `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}`},
	{http.StatusBadRequest, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`},
}

// newWeb starts the server.
func newWeb(executed func(string)) (*web, error) {
	s := &web{executed: executed, addr: "127.0.0.1:0", forgotten: map[string]int{}}
	return s, s.listen()
}

func (s *web) listen() error {
	l, err := net.Listen("tcp", s.addr)
	if err != nil {
		return err
	}
	server := newToolServer(s.executed)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addr = l.Addr().String()
	s.mcp = server
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	s.http = &http.Server{Handler: s.refusing(handler)}
	go s.http.Serve(l) //nolint:errcheck // it ends with Close
	return nil
}

// refusing refuses sessions that were forgotten, and passes the others on.
func (s *web) refusing(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		form, gone := s.forgotten[r.Header.Get("Mcp-Session-Id")]
		s.mu.Unlock()
		if !gone {
			handler.ServeHTTP(w, r)
			return
		}
		if refusals[form].body[0] == '{' {
			w.Header().Set("Content-Type", "application/json")
		}
		w.WriteHeader(refusals[form].status)
		fmt.Fprint(w, refusals[form].body)
	})
}

// forget makes the server forget up to n sessions.
func (s *web) forget(n, form int) (forgotten int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for session := range s.mcp.Sessions() {
		if forgotten == n {
			break
		}
		if session.InitializeParams() == nil {
			continue // it is being opened still, and the SDK would race with its closing
		}
		s.forgotten[session.ID()] = form
		go session.Close() //nolint:errcheck // calls that it runs may finish
		forgotten++
	}
	return forgotten
}

// restart ends the server with all its connections and sessions, and starts a
// new one on the same address.
func (s *web) restart() error {
	s.close()
	return s.listen()
}

// sessions returns how many sessions are open that were not forgotten.
func (s *web) sessions() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for session := range s.mcp.Sessions() {
		if _, gone := s.forgotten[session.ID()]; !gone {
			n++
		}
	}
	return n
}

// close ends the server.
func (s *web) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.http.Close()
	for session := range s.mcp.Sessions() {
		session.Close() //nolint:errcheck // its client will find out
	}
}

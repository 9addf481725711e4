package main

import (
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// httpServer is the HTTP server of the show, on a loopback socket. The show makes it forget
// sessions and restart.
type httpServer struct {
	executed func(call string)
	addr     string
	socket   *net.TCPListener // it stays open, so that nobody else gets its port during a restart
	serving  sync.WaitGroup   // the server that accepts its connections

	mu        sync.Mutex
	http      *http.Server
	mcp       *mcp.Server
	forgotten map[string]int // indexes into refusals, by session id
}

// refusals are the answers with which servers in use refuse a session that they do not know.
var refusals = []struct {
	status int
	body   string
}{
	{http.StatusNotFound, "session not found"},
	{http.StatusNotFound, `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}`},
	{http.StatusBadRequest, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`},
}

// newHTTPServer starts the server. It calls executed for each tool call that runs.
func newHTTPServer(executed func(call string)) (*httpServer, error) {
	socket, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	s := &httpServer{executed: executed, addr: socket.Addr().String(), socket: socket, forgotten: map[string]int{}}
	return s, s.start()
}

func (s *httpServer) start() error {
	if err := s.socket.SetDeadline(time.Time{}); err != nil {
		return err
	}
	server := newCounterServer(s.executed)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mcp = server
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	running := &http.Server{Handler: s.refuseForgotten(handler)}
	s.http = running
	s.serving.Go(func() {
		running.Serve(kept{s.socket}) //nolint:errcheck // Serve returns an error when the server is stopped
	})
	return nil
}

// kept is a listener that stops accepting connections when it is closed, and keeps its
// socket.
type kept struct{ *net.TCPListener }

// Close ends Accept.
func (l kept) Close() error { return l.SetDeadline(time.Now()) }

// refuseForgotten refuses the requests of forgotten sessions, and passes on the others.
func (s *httpServer) refuseForgotten(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		refusal, forgotten := s.forgotten[r.Header.Get("Mcp-Session-Id")]
		s.mu.Unlock()
		if !forgotten {
			handler.ServeHTTP(w, r)
			return
		}
		if refusals[refusal].body[0] == '{' {
			w.Header().Set("Content-Type", "application/json")
		}
		w.WriteHeader(refusals[refusal].status)
		fmt.Fprint(w, refusals[refusal].body)
	})
}

// forget makes the server forget up to n sessions, and returns how many it forgot.
func (s *httpServer) forget(n, refusal int) (forgotten int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for session := range s.mcp.Sessions() {
		if forgotten == n {
			break
		}
		if session.InitializeParams() == nil {
			continue // the session is not open yet, and closing it would be a data race in the SDK
		}
		s.forgotten[session.ID()] = refusal
		go session.Close() //nolint:errcheck // the calls in flight may finish first
		forgotten++
	}
	return forgotten
}

// restart closes the server with all its connections and sessions, and starts a new one on
// the same address.
func (s *httpServer) restart() error {
	s.stop()
	return s.start()
}

// sessions returns the number of open sessions, without the forgotten ones.
func (s *httpServer) sessions() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for session := range s.mcp.Sessions() {
		if _, forgotten := s.forgotten[session.ID()]; !forgotten {
			n++
		}
	}
	return n
}

// close closes the server for good.
func (s *httpServer) close() {
	s.stop()
	s.socket.Close() //nolint:errcheck // nothing can be done about it
}

// stop closes the server with all its connections and sessions, but not its socket.
func (s *httpServer) stop() {
	defer s.serving.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.http.Close()
	for session := range s.mcp.Sessions() {
		session.Close() //nolint:errcheck // the connection is closed already
	}
}

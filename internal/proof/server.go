package proof

import (
	"net/http"
	"sync"
	"time"
)

// maxDrift is how far the clock of a server may be from ours before its time is used in place of ours.
const maxDrift = 5 * time.Second

// State is what a proof for a server is made of, besides the request. A proof of another nonce or another time than the server's
// is refused.
type State struct {
	nonce string
	ahead time.Duration // of our clock
}

// Now returns the time of the server.
func (s State) Now() time.Time { return time.Now().Add(s.ahead) }

// Server is what a server has said that proofs for it need: its last nonce (RFC 9449, sections 8 and 9), and its time. The zero
// value knows nothing. Its methods may be called from any goroutine.
type Server struct {
	mu    sync.Mutex
	state State
}

// Note notes what a response says, and returns what the next proof is made of. If the server has refused a proof that was made of
// something else, the request is worth another attempt.
func (s *Server) Note(h http.Header) State {
	s.mu.Lock()
	defer s.mu.Unlock()
	if nonce := h.Get("Dpop-Nonce"); nonce != "" {
		s.state.nonce = nonce
	}
	date, err := http.ParseTime(h.Get("Date"))
	if err == nil && h.Get("Age") == "" { // else it is the time of a cache
		if ahead := time.Until(date); (ahead - s.state.ahead).Abs() > maxDrift {
			s.state.ahead = ahead
		}
	}
	return s.state
}

// State returns what the next proof is made of.
func (s *Server) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Now returns the time of the server.
func (s *Server) Now() time.Time { return s.State().Now() }

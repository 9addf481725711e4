package tests

import (
	"bytes"
	"net/http"
	"sync"

	"github.com/mcpactor/mcpactor/tests/faults"
)

// endStream answers with an event stream of one blank line, and ends it.
func endStream() faults.Fault {
	return func(w http.ResponseWriter, _ *faults.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Write([]byte("\n"))
	}
}

// withhold passes an answer on when it is complete, like a proxy that buffers.
func withhold() faults.Fault {
	return func(w http.ResponseWriter, r *faults.Request, next http.Handler) {
		b := &withheld{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(b, r.Request)
		w.WriteHeader(b.status)
		w.Write(b.body.Bytes())
	}
}

type withheld struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (b *withheld) WriteHeader(status int)      { b.status = status }
func (b *withheld) Write(p []byte) (int, error) { return b.body.Write(p) }
func (b *withheld) Flush()                      {}

// broadcastAll copies the events of each stream to all other open streams, as a gateway
// does whose sessions share one server. The answer to a POST is passed on when it is
// complete, and begins with the events of the other streams.
func broadcastAll() faults.Fault {
	all := &broadcast{open: map[*shared]bool{}}
	return func(w http.ResponseWriter, r *faults.Request, next http.Handler) {
		s := &shared{ResponseWriter: w, all: all, holds: r.Method == http.MethodPost}
		if s.holds {
			all.join(s)
		}
		next.ServeHTTP(s, r.Request)
		all.leave(s)
	}
}

type broadcast struct {
	mu   sync.Mutex
	open map[*shared]bool
}

func (b *broadcast) join(s *shared) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open[s] = true
}

func (b *broadcast) leave(s *shared) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.open, s)
	if s.holds {
		s.ResponseWriter.Write(append(s.others, s.own...))
	}
}

// shared is a stream of a broadcast.
type shared struct {
	http.ResponseWriter
	all    *broadcast
	holds  bool
	others []byte // events of other streams
	own    []byte // events of this stream
}

func (s *shared) Write(p []byte) (int, error) {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	if bytes.HasPrefix(p, []byte("event: endpoint")) {
		s.all.open[s] = true
		return s.ResponseWriter.Write(p)
	}
	for other := range s.all.open {
		switch {
		case other == s:
		case other.holds:
			other.others = append(other.others, p...)
		default:
			other.ResponseWriter.Write(p)
			http.NewResponseController(other.ResponseWriter).Flush()
		}
	}
	if s.holds {
		s.own = append(s.own, p...)
		return len(p), nil
	}
	return s.ResponseWriter.Write(p)
}

// Flush is for handlers that ask for an [http.Flusher].
func (s *shared) Flush() {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	if !s.holds {
		http.NewResponseController(s.ResponseWriter).Flush()
	}
}

//go:build real

package real

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// site is a web site for servers that fetch pages. It can delay its answers.
type site struct {
	*httptest.Server

	mu    sync.Mutex
	asked map[string]int // the number of requests, by path
	open  chan struct{}  // closed by release
}

// newSite starts a site. It ends with the harness.
func (h *harness) newSite() *site {
	s := &site{asked: map[string]int{}, open: make(chan struct{})}
	s.Server = httptest.NewServer(s)
	h.sites = append(h.sites, s)
	return s
}

// ServeHTTP serves a page with the path as its title and heading. Paths below /wait/ are
// answered after release.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked[r.URL.Path]++
	s.mu.Unlock()
	if strings.HasPrefix(r.URL.Path, "/wait/") {
		select {
		case <-s.open:
		case <-r.Context().Done():
			return
		}
	}
	w.Header().Set("Content-Type", "text/html")
	fmt.Fprintf(w, "<!doctype html><link rel=icon href=data:,><title>%[1]s</title><h1>Welcome to %[1]s</h1>", r.URL.Path)
}

// visits returns the number of requests for a path.
func (s *site) visits(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[path]
}

// release lets the requests below /wait/ be answered.
func (s *site) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.open:
	default:
		close(s.open)
	}
}

func (s *site) close() {
	s.release()
	s.CloseClientConnections()
	s.Close()
}

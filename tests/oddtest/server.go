package oddtest

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// Server answers as it is told, over streamable HTTP at /mcp, over HTTP+SSE at /sse, and over two pipes.
type Server struct {
	mu      sync.Mutex
	results map[string]string
	failure string
	calls   []Odd                      // the results of the next calls
	pages   func(cursor string) string // of the list of tools, or nil
	breaks  bool                       // a call breaks its connection
	streams map[string]chan string     // by the id of a session over HTTP+SSE
	ran     int
}

// Set sets the result of requests with a method, for the time being.
func (s *Server) Set(method, result string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.results == nil {
		s.results = map[string]string{}
	}
	s.results[method] = result
}

// Follow sets the results of the next calls of tools.
func (s *Server) Follow(calls []Odd) { s.calls = calls }

// Pages sets the pages of the list of tools by the cursor of the request: "" is none, and "empty" is an empty text. A page that is
// missing is refused. With nil, there is always another one.
func (s *Server) Pages(pages map[string]string) {
	n := 0
	s.pages = func(cursor string) string {
		if n++; pages == nil {
			return fmt.Sprintf(`{"tools":[{"name":"t%d","inputSchema":{"type":"object"}}],"nextCursor":"c%d"}`, n, n)
		}
		return pages[cursor]
	}
}

// Break makes calls break their connection, over streamable HTTP.
func (s *Server) Break() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.breaks = true
}

// broken stands for an answer that breaks the connection.
const broken = "broken"

// Fail sets the error of calls of tools, or none if it is empty.
func (s *Server) Fail(failure string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = failure
}

// Ran returns how many calls of tools the server has run.
func (s *Server) Ran() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ran
}

// answer returns the response to a message, or nothing for a notification.
func (s *Server) answer(message []byte) string {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Cursor *string `json:"cursor"`
		} `json:"params"`
	}
	if json.Unmarshal(message, &m) != nil || m.ID == nil || m.Method == "" {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	member := `"result":` + s.results[m.Method]
	switch {
	case m.Method == "tools/call":
		s.ran++
		switch {
		case s.breaks:
			return broken
		case s.failure != "":
			member = `"error":` + s.failure
		case len(s.calls) > 0:
			member, s.calls = `"result":`+s.calls[0].Result, s.calls[1:]
		}
	case m.Method == "tools/list" && s.pages != nil:
		cursor := ""
		if m.Params.Cursor != nil {
			cursor = cmp.Or(*m.Params.Cursor, "empty")
		}
		if page := s.pages(cursor); page != "" {
			member = `"result":` + page
		} else {
			member = `"error":{"code":-32602,"message":"invalid cursor"}`
		}
	case m.Method == "initialize" && s.results[m.Method] == "":
		member = `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{},"prompts":{},"completions":{}},"serverInfo":{"name":"odd","version":"1"}}`
	case m.Method == "ping":
		member = `"result":{}`
	case s.results[m.Method] == "" && results[m.Method] != "":
		member = `"result":` + encode(json.RawMessage(results[m.Method]))
	case s.results[m.Method] == "":
		member = `"error":{"code":-32601,"message":"method not found"}`
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, m.ID, member)
}

// Pipe answers on one pipe what comes on another.
func (s *Server) Pipe(in io.Reader, out io.Writer) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if answer := s.answer(lines.Bytes()); answer != "" {
			fmt.Fprintln(out, answer)
		}
	}
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodGet && r.URL.Path == "/sse":
		s.stream(w, r)
		return
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	answer := s.answer(body)
	if id := r.URL.Query().Get("session"); id != "" {
		w.WriteHeader(http.StatusAccepted)
		s.mu.Lock()
		stream := s.streams[id]
		s.mu.Unlock()
		if answer != "" && stream != nil {
			stream <- answer
		}
		return
	}
	switch answer {
	case "":
		w.WriteHeader(http.StatusAccepted)
		return
	case broken:
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			conn.Close() //nolint:errcheck // the client sees it
		}
		return
	}
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, answer) //nolint:errcheck // the client has left
}

// stream is the one stream of a session over HTTP+SSE.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	answers := make(chan string, 100)
	s.mu.Lock()
	if s.streams == nil {
		s.streams = map[string]chan string{}
	}
	id := fmt.Sprint("s", len(s.streams))
	s.streams[id] = answers
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "event: endpoint\ndata: /messages?session=%s\n\n", id)
	for {
		w.(http.Flusher).Flush()
		select {
		case answer := <-answers:
			fmt.Fprintf(w, "event: message\ndata: %s\n\n", answer)
		case <-r.Context().Done():
			return
		}
	}
}

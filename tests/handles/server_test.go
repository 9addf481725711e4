//go:build handles && linux

package handles

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	dice "math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// capacity is how many handles there are.
const capacity = 16

// The tools of the server.
const (
	openTool  = "open"
	useTool   = "use"
	closeTool = "close"
	listTool  = "list"
)

// What the tools say.
var (
	errFull = fmt.Errorf("too many: there are %d handles", capacity)
	errGone = errors.New("no such handle")
)

// input are the arguments of all tools. By is the agent that calls, with the life of its platform before a dot. A supervisor gives none.
type input struct {
	ID string `json:"id,omitempty"`
	By string `json:"by,omitempty"`
}

// output is the result of open.
type output struct {
	ID string `json:"id"`
}

// counts is what the server has seen.
type counts struct {
	Minted int `json:"minted"`
	Held   int `json:"held"`
	// Doubles are releases of what was released before.
	Doubles int `json:"doubles"`
	// Wrong are releases by the supervisor of what an agent held, and WrongByAgents are those by another agent.
	Wrong         int `json:"wrong"`
	WrongByAgents int `json:"wrongByAgents"`
	// Taken are uses of what the supervisor of the same platform has released.
	Taken int `json:"taken"`
	// Dropped are answers that were lost.
	Dropped int `json:"dropped"`
}

// plus returns the counts of two lives of a server. What the first one held is gone.
func (c counts) plus(next counts) counts {
	return counts{
		Minted: c.Minted + next.Minted, Held: next.Held, Doubles: c.Doubles + next.Doubles, Wrong: c.Wrong + next.Wrong,
		WrongByAgents: c.WrongByAgents + next.WrongByAgents, Taken: c.Taken + next.Taken, Dropped: c.Dropped + next.Dropped,
	}
}

// server mints handles.
type server struct {
	role role

	mu      sync.Mutex
	counts  counts
	holders map[string][]string // of each handle that there is
	closed  map[string]string   // handles that there were, and which agent has released them, or the supervisor in which life
	dead    map[string]bool     // lives of platforms
}

// runServer is the MCP server. What it has seen is at /counts. A platform says at /ended that an agent has ended, and the test at
// /killed that a platform was killed.
func runServer(r role) error {
	s := &server{role: r, holders: map[string][]string{}, closed: map[string]string{}, dead: map[string]bool{}}
	m := mcp.NewServer(&mcp.Implementation{Name: "handles", Version: "1"}, nil)
	mcp.AddTool(m, &mcp.Tool{Name: openTool}, func(_ context.Context, req *mcp.CallToolRequest, in input) (*mcp.CallToolResult, output, error) {
		id, err := s.open(in.By, req.Extra.Header.Get(droppedHeader) != "")
		return nil, output{id}, err
	})
	addText(m, &mcp.Tool{Name: useTool}, func(in input, _ http.Header) (string, error) { return "used", s.use(in) })
	addText(m, &mcp.Tool{Name: closeTool}, func(in input, h http.Header) (string, error) { return "closed", s.close(in, h.Get(lifeHeader)) })
	list := &mcp.Tool{Name: listTool, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}
	addText(m, list, func(input, http.Header) (string, error) { return s.list(), nil })
	tools := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return m }, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})

	mux := http.NewServeMux()
	mux.Handle("/mcp", s.dropping(tools))
	mux.HandleFunc("/counts", func(w http.ResponseWriter, _ *http.Request) { json.NewEncoder(w).Encode(s.seen()) })
	mux.HandleFunc("/ended", func(_ http.ResponseWriter, req *http.Request) { s.ended(req.FormValue("by")) })
	mux.HandleFunc("/killed", func(_ http.ResponseWriter, req *http.Request) { s.killed(req.FormValue("life")) })
	go func() {
		inputEnds()
		os.Exit(0)
	}()
	return http.ListenAndServe(r.Addr, mux)
}

// addText adds a tool whose result is a text.
func addText(m *mcp.Server, tool *mcp.Tool, run func(input, http.Header) (string, error)) {
	mcp.AddTool(m, tool, func(_ context.Context, req *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
		text, err := run(in, req.Extra.Header)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, err
	})
}

const (
	lifeHeader    = "X-Life"    // of a request: the life of the platform
	droppedHeader = "X-Dropped" // of a request whose answer will be lost
)

// dropping loses answers of open and close: the call runs, and then the connection breaks.
func (s *server) dropping(tools http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return // the platform was killed
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		var call struct{ Params struct{ Name string } }
		json.Unmarshal(body, &call) // or it is no call
		if drops := call.Params.Name == openTool || call.Params.Name == closeTool; !drops || dice.IntN(100) >= s.role.Drops {
			tools.ServeHTTP(w, req)
			return
		}
		req.Header.Set(droppedHeader, "true")
		tools.ServeHTTP(httptest.NewRecorder(), req)
		s.mu.Lock()
		s.counts.Dropped++
		s.mu.Unlock()
		panic(http.ErrAbortHandler)
	})
}

// open mints a handle. Nobody holds one whose answer is lost.
func (s *server) open(by string, isDropped bool) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.holders) >= capacity {
		return "", errFull
	}
	s.counts.Minted++
	id := rand.Text() + "-" + strconv.Itoa(s.counts.Minted)
	if s.role.Counted {
		id = strconv.Itoa(s.counts.Minted)
	}
	s.holders[id] = nil
	if !isDropped {
		s.holds(id, by)
	}
	return id, nil
}

// holds notes that an agent holds a handle, with the lock.
func (s *server) holds(id, by string) {
	life, _, _ := strings.Cut(by, ".")
	if !s.dead[life] && !slices.Contains(s.holders[id], by) {
		s.holders[id] = append(s.holders[id], by)
	}
}

func (s *server) use(in input) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, is := s.holders[in.ID]; !is {
		if life, _, _ := strings.Cut(in.By, "."); s.closed[in.ID] == life {
			s.counts.Taken++
		}
		return errGone
	}
	s.holds(in.ID, in.By)
	return nil
}

// close releases a handle, whoever holds it.
func (s *server) close(in input, life string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	holders, is := s.holders[in.ID]
	if !is {
		if s.closed[in.ID] != "" {
			s.counts.Doubles++
		}
		return errGone
	}
	if slices.ContainsFunc(holders, func(holder string) bool { return holder != in.By }) {
		if in.By == "" {
			s.counts.Wrong++
		} else {
			s.counts.WrongByAgents++
		}
	}
	delete(s.holders, in.ID)
	s.closed[in.ID] = cmp.Or(in.By, life)
	return nil
}

// list returns a line for each handle that there is.
func (s *server) list() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var text strings.Builder
	for id := range s.holders {
		fmt.Fprintf(&text, "handle %s\n", id)
	}
	return text.String()
}

// ended notes that an agent holds nothing any more.
func (s *server) ended(by string) {
	s.release(func(holder string) bool { return holder == by })
}

// killed notes that the agents of a platform hold nothing, also of what they have sent and what has not arrived yet.
func (s *server) killed(life string) {
	s.mu.Lock()
	s.dead[life] = true
	s.mu.Unlock()
	s.release(func(holder string) bool { return strings.HasPrefix(holder, life+".") })
}

func (s *server) release(of func(holder string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, holders := range s.holders {
		s.holders[id] = slices.DeleteFunc(holders, of)
	}
}

func (s *server) seen() counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.Held = len(s.holders)
	return s.counts
}

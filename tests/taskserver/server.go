// Package taskserver is an MCP server that turns calls into tasks (SEP-2663). The SDK has none.
package taskserver

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Server is a server whose tasks outlive its processes. Its tools have an optional argument "call", and those that
// become tasks an optional argument "seconds":
//
//	now          returns at once, without a task; it greets who is in its argument "name"
//	work         is completed after the seconds; without tasks it returns at once
//	report       is completed after two seconds
//	fail         fails after the seconds, with a JSON-RPC error
//	complain     is completed after the seconds, with an error of the tool
//	confirm      asks a question, and is completed with the answer
//	confirm_all  asks two questions, and is completed with both answers
//	introduce    asks for a name before there is a task, and is completed with the name
//	hang         works until it is cancelled
//	odd          has a state that does not exist
//	instant      is completed when it becomes a task
//	mixed_up     is mistaken for another task
//
// Some have a second name: that which the official conformance suite has for such a tool, see [Server.ASCII].
//
// All methods may be called from any goroutine.
type Server struct {
	// ASCII has the ids of tasks be ASCII, as the suite needs it: it does not encode others for a header.
	ASCII bool
	// Poll is how often the server wants to be asked for a task, or 0.
	Poll time.Duration

	mu        sync.Mutex
	last      int
	tasks     map[string]*task
	runs      map[string]int
	requests  map[string]int // by their methods
	cancelled []string       // the argument "call" of tasks
	failing   int            // how many requests for tasks fail yet
	wrong     []string       // what clients have done that they must not do
}

// task is a task in the database of the server.
type task struct {
	id, tool, call string
	created, due   time.Time
	asks           map[string]string // the open questions by their keys
	answers        string
	cancelled      bool
}

// New returns a server without tasks.
func New() *Server {
	return &Server{tasks: map[string]*task{}, runs: map[string]int{}, requests: map[string]int{}}
}

// tools are the tools by their names.
var tools = map[string]string{
	"now": "now", "work": "work", "report": "report", "fail": "fail", "complain": "complain", "confirm": "confirm", "confirm_all": "confirm_all",
	"introduce": "introduce", "hang": "hang", "odd": "odd", "instant": "instant", "mixed_up": "mixed_up",
	// The names of the conformance suite.
	"greet": "now", "slow_compute": "work", "protocol_error_job": "fail", "failing_job": "complain", "confirm_delete": "confirm",
	"multi_input": "confirm_all", "test_tool_with_task": "introduce",
}

// Handler returns a new process of the server.
func (s *Server) Handler() http.Handler {
	server := s.Process()
	inner := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if wrong := misrouted(r); wrong != nil {
			s.note(string(wrong))
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			w.Write(wrong) //nolint:errcheck // the client may be gone
			return
		}
		inner.ServeHTTP(w, r)
	})
}

// Process returns a new process of the server, for any transport.
func (s *Server) Process() *mcp.Server {
	can := &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}
	can.AddExtension("io.modelcontextprotocol/tasks", nil)
	server := mcp.NewServer(&mcp.Implementation{Name: "tasks", Version: "1"}, &mcp.ServerOptions{Capabilities: can})
	for name := range tools {
		server.AddTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}, atOnce)
	}
	server.AddReceivingMiddleware(s.create)
	mcp.AddReceivingCustomMethod(server, "tasks/get", s.get)       //nolint:errcheck // no method of the SDK
	mcp.AddReceivingCustomMethod(server, "tasks/update", s.update) //nolint:errcheck // likewise
	mcp.AddReceivingCustomMethod(server, "tasks/cancel", s.cancel) //nolint:errcheck // likewise
	return server
}

// Forget makes the server forget its tasks.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tasks)
}

// Fail makes the next n requests for tasks fail, with an internal error.
func (s *Server) Fail(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing = n
}

// Runs returns how often each call has run, by its argument "call".
func (s *Server) Runs() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.runs)
}

// Requests returns how many requests of a method have come.
func (s *Server) Requests(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[method]
}

// Cancelled returns the arguments "call" of the tasks that were cancelled.
func (s *Server) Cancelled() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.cancelled...)
}

// Wrong returns what clients have done that they must not do.
func (s *Server) Wrong() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.wrong...)
}

func (s *Server) note(wrong string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrong = append(s.wrong, wrong)
}

// create turns calls into tasks, if the client has declared them with the request.
func (s *Server) create(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		call, is := req.(*mcp.CallToolRequest)
		if !is {
			return next(ctx, method, req)
		}
		var in struct {
			Call    string  `json:"call"`
			Seconds float64 `json:"seconds"`
		}
		if err := json.Unmarshal(call.Params.Arguments, &in); len(call.Params.Arguments) > 0 && err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		tool, declared := tools[call.Params.Name], declared(call.Params.Meta)
		name := call.Params.InputResponses["name"]
		switch {
		case tool == "now", tool == "work" && !declared:
			s.runs[in.Call]++
			return next(ctx, method, req)
		case !declared:
			return nil, missing()
		case tool == "introduce" && name == nil:
			return resultOf(map[string]any{"resultType": "input_required", "requestState": "asked", "inputRequests": questions(map[string]string{"name": "who?"})}), nil
		case tool == "introduce" && call.Params.RequestState != "asked":
			s.wrong = append(s.wrong, "the state of the request was not sent back")
		case tool == "report":
			in.Seconds = 2
		}
		s.last++
		now, id := time.Now(), "task/%d é"
		if s.ASCII {
			id = "task-%d"
		}
		t := &task{id: fmt.Sprintf(id, s.last), tool: tool, call: in.Call, created: now, due: now.Add(time.Duration(in.Seconds * float64(time.Second)))}
		switch tool {
		case "confirm":
			t.asks = map[string]string{"sure": "sure?"}
		case "confirm_all":
			t.asks = map[string]string{"sure": "sure?", "really": "really?"}
		case "introduce":
			t.answers = fmt.Sprint(" for ", name.(*mcp.ElicitResult).Content["name"])
		}
		s.tasks[t.id] = t
		s.runs[in.Call]++
		seed := "working"
		if tool == "instant" {
			seed = "completed"
		}
		return resultOf(s.described(t, "task", seed)), nil
	}
}

// atOnce is the result of a call that becomes no task.
func atOnce(_ context.Context, call *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var in struct {
		Name string `json:"name"`
	}
	said := "at once"
	if json.Unmarshal(call.Params.Arguments, &in) == nil && in.Name != "" {
		said = "Hello, " + in.Name + "!"
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: said}}}, nil
}

// described returns what every description of a task has.
func (s *Server) described(t *task, resultType, status string) map[string]any {
	fields := map[string]any{
		"resultType": resultType, "taskId": t.id, "status": status, "createdAt": t.created, "lastUpdatedAt": t.created, "ttlMs": nil,
	}
	if s.Poll > 0 {
		fields["pollIntervalMs"] = s.Poll.Milliseconds()
	}
	return fields
}

// find returns the task of a request. The lock is held.
func (s *Server) find(method string, p *params) (*task, error) {
	s.requests[method]++
	if !declared(p.Meta) {
		return nil, missing()
	}
	if s.failing > 0 {
		s.failing--
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the database is away"}
	}
	t := s.tasks[p.ID]
	if t == nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "task not found"}
	}
	return t, nil
}

func (s *Server) get(_ context.Context, _ *mcp.ServerSession, p *params) (*result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.find("tasks/get", p)
	if err != nil {
		return nil, err
	}
	state := s.described(t, "complete", t.status())
	done := map[string]any{"content": []any{map[string]any{"type": "text", "text": "worked" + t.answers}}}
	if t.tool == "mixed_up" {
		state["taskId"] = "another"
	}
	switch state["status"] {
	case "cancelled":
		state["statusMessage"] = "as was asked"
	case "input_required":
		state["inputRequests"] = questions(t.asks)
	case "working":
		state["statusMessage"] = "at it"
	case "failed":
		state["error"] = map[string]any{"code": -32603, "message": "the disk is full"}
	case "completed":
		if t.tool == "complain" {
			done["isError"] = true
		}
		state["result"] = done
	}
	return resultOf(state), nil
}

// status returns the state of a task.
func (t *task) status() string {
	switch {
	case t.cancelled:
		return "cancelled"
	case t.tool == "odd":
		return "pondering"
	case len(t.asks) > 0:
		return "input_required"
	case t.tool == "hang" || time.Now().Before(t.due):
		return "working"
	case t.tool == "fail":
		return "failed"
	}
	return "completed"
}

func (s *Server) update(_ context.Context, _ *mcp.ServerSession, p *params) (*result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.find("tasks/update", p)
	if err != nil {
		return nil, err
	}
	for key, answer := range p.Answers {
		if t.asks[key] == "" {
			s.wrong = append(s.wrong, key+" was answered twice")
			continue
		}
		delete(t.asks, key)
		t.answers += fmt.Sprint(" ", key, "=", answer["action"])
	}
	return resultOf(map[string]any{"resultType": "complete"}), nil
}

func (s *Server) cancel(_ context.Context, _ *mcp.ServerSession, p *params) (*result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.find("tasks/cancel", p)
	if err != nil {
		return nil, err
	}
	if status := t.status(); !t.cancelled && status != "completed" && status != "failed" {
		t.cancelled = true
		s.cancelled = append(s.cancelled, t.call)
	}
	return resultOf(map[string]any{"resultType": "complete"}), nil
}

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
//	now          returns at once, without a task
//	work         is completed after the seconds
//	report       is completed after two seconds
//	fail         fails after the seconds, with a JSON-RPC error
//	complain     is completed after the seconds, with an error of the tool
//	confirm      asks a question, and is completed with the answer
//	confirm_all  asks two questions, and is completed with both answers
//	hang         works until it is cancelled
//	odd          has a state that does not exist
//
// All methods may be called from any goroutine.
type Server struct {
	// Poll is how often the server wants to be asked for a task, or 0.
	Poll time.Duration

	mu        sync.Mutex
	last      int
	tasks     map[string]*task
	runs      map[string]int
	requests  map[string]int // by their methods
	cancelled []string       // the argument "call" of tasks
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

// Handler returns a new process of the server.
func (s *Server) Handler() http.Handler {
	server := s.Process()
	inner := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if method := r.Header.Get("Mcp-Method"); len(method) > 6 && method[:6] == "tasks/" && r.Header.Get("Mcp-Name") == "" {
			s.note(method + " has no Mcp-Name")
		}
		inner.ServeHTTP(w, r)
	})
}

// Process returns a new process of the server, for any transport.
func (s *Server) Process() *mcp.Server {
	can := &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}
	can.AddExtension("io.modelcontextprotocol/tasks", nil)
	server := mcp.NewServer(&mcp.Implementation{Name: "tasks", Version: "1"}, &mcp.ServerOptions{Capabilities: can})
	for _, tool := range []string{"now", "work", "report", "fail", "complain", "confirm", "confirm_all", "hang", "odd"} {
		server.AddTool(&mcp.Tool{Name: tool, InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return text("at once"), nil
		})
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
		if call.Params.Name == "now" {
			s.ran(call)
			return next(ctx, method, req)
		}
		if !declared(call.Params.Meta) {
			return nil, missing()
		}
		var in struct {
			Call    string  `json:"call"`
			Seconds float64 `json:"seconds"`
		}
		if err := json.Unmarshal(call.Params.Arguments, &in); len(call.Params.Arguments) > 0 && err != nil {
			return nil, err
		}
		if call.Params.Name == "report" {
			in.Seconds = 2
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.last++
		now := time.Now()
		t := &task{id: fmt.Sprintf("task/%d é", s.last), tool: call.Params.Name, call: in.Call, created: now, due: now.Add(time.Duration(in.Seconds * float64(time.Second)))}
		switch t.tool {
		case "confirm":
			t.asks = map[string]string{"sure": "sure?"}
		case "confirm_all":
			t.asks = map[string]string{"sure": "sure?", "really": "really?"}
		}
		s.tasks[t.id] = t
		s.runs[in.Call]++
		return resultOf(map[string]any{"resultType": "task", "taskId": t.id, "status": "working", "createdAt": now, "lastUpdatedAt": now, "ttlMs": nil, "pollIntervalMs": s.poll()}), nil
	}
}

// ran counts a call that is no task.
func (s *Server) ran(call *mcp.CallToolRequest) {
	var in struct {
		Call string `json:"call"`
	}
	if json.Unmarshal(call.Params.Arguments, &in) == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.runs[in.Call]++
	}
}

// poll returns what the server says about polling, or nil.
func (s *Server) poll() any {
	if s.Poll == 0 {
		return nil
	}
	return s.Poll.Milliseconds()
}

// declared reports whether a request declares tasks.
func declared(meta mcp.Meta) bool {
	data, _ := json.Marshal(meta["io.modelcontextprotocol/clientCapabilities"])
	var can mcp.ClientCapabilities
	_ = json.Unmarshal(data, &can)
	_, is := can.Extensions["io.modelcontextprotocol/tasks"]
	return is
}

// missing is the error for a client that has not declared tasks.
func missing() error {
	return &jsonrpc.Error{Code: -32021, Message: "missing required client capability", Data: json.RawMessage(`{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`)}
}

// params are the parameters of the methods of tasks.
type params struct {
	mcp.ParamsBase
	ID      string                    `json:"taskId"`
	Answers map[string]map[string]any `json:"inputResponses"`
}

// result is a result of any form.
type result struct {
	mcp.ResultBase
	fields map[string]any
}

// MarshalJSON returns the fields.
func (r *result) MarshalJSON() ([]byte, error) { return json.Marshal(r.fields) }

// resultOf returns a result.
func resultOf(fields map[string]any) *result { return &result{fields: fields} }

func text(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// find returns the task of a request. The lock is held.
func (s *Server) find(method string, p *params) (*task, error) {
	s.requests[method]++
	if !declared(p.Meta) {
		return nil, missing()
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
	state := map[string]any{"resultType": "complete", "taskId": t.id, "status": "working", "createdAt": t.created, "lastUpdatedAt": t.created, "ttlMs": nil, "pollIntervalMs": s.poll()}
	done := map[string]any{"content": []any{map[string]any{"type": "text", "text": "worked" + t.answers}}}
	switch {
	case t.cancelled:
		state["status"], state["statusMessage"] = "cancelled", "as was asked"
	case t.tool == "odd":
		state["status"] = "pondering"
	case len(t.asks) > 0:
		inputs := map[string]any{}
		for key, question := range t.asks {
			inputs[key] = map[string]any{"method": "elicitation/create", "params": map[string]any{"message": question, "requestedSchema": map[string]any{"type": "object", "properties": map[string]any{}}}}
		}
		state["status"], state["inputRequests"] = "input_required", inputs
	case t.tool == "hang" || time.Now().Before(t.due):
		state["statusMessage"] = "at it"
	case t.tool == "fail":
		state["status"], state["error"] = "failed", map[string]any{"code": -32603, "message": "the disk is full"}
	case t.tool == "complain":
		done["isError"] = true
		fallthrough
	default:
		state["status"], state["result"] = "completed", done
	}
	return resultOf(state), nil
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
	t.cancelled = true
	s.cancelled = append(s.cancelled, t.call)
	return resultOf(map[string]any{"resultType": "complete"}), nil
}

// Always is the middleware of a server that answers each call with a task, whether or not its client has declared tasks.
func Always(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if _, is := req.(*mcp.CallToolRequest); !is {
			return next(ctx, method, req)
		}
		return resultOf(map[string]any{"resultType": "task", "taskId": "1", "status": "working", "createdAt": time.Now(), "lastUpdatedAt": time.Now(), "ttlMs": nil}), nil
	}
}

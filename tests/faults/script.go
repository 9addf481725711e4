package faults

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// Script is an MCP server for the test of an agent: the test says what each tool returns,
// and which faults its calls meet.
//
// The agent runs on a real supervisor with real sessions. Only the HTTP transport is
// replaced: requests go to the script, in memory. So the agent gets the codes, replays,
// generations and events that it would get from a server on the network. A script works
// inside a bubble of testing/synctest if it is made there.
//
// The script is a [Server], with all of its methods: [Server.Expire] expires all sessions,
// [Server.Stop] and [Server.Start] take the server down and up again, and [Server.Inject]
// adds faults to requests that are not calls of tools.
//
// The methods may be called from any goroutine, also while calls run.
type Script struct {
	*Server
	t      testing.TB
	name   string
	mcp    *mcp.Server
	client *http.Client // reaches the script

	mu          sync.Mutex
	tools       map[string]*Steps   // the steps without a condition
	conditional map[string][]*Steps // in the order in which they were made
	origins     map[string]origin   // by the id of the session
	generations map[messages.Key]uint64
	random      *random // nil without FailsAtRandom
	runs        []*run
	alive       context.Context // of tools that run
	kill        context.CancelFunc
}

// origin is whose a session is.
type origin struct {
	key        messages.Key
	generation uint64
}

// run is a call, with what it meets.
type run struct {
	Call
	answer *step // nil if there is none
}

// Call is a call of a tool that has reached the script.
type Call struct {
	// Key is the server and the scope of the caller.
	Key messages.Key
	// Generation counts the sessions of the key, from 1. It is the one in the reply, unless
	// a session was opened and never used, for example because its set-up failed: such a
	// session counts here only.
	Generation uint64
	Tool       string
	// Arguments are read-only. They are nil if the caller sent no JSON object.
	Arguments map[string]any
	Time      time.Time
	// Fault is the fault that the call met, or empty. One without a name is "other".
	Fault Name
	// Ran is true if the tool ran.
	Ran bool
}

// Run is a call whose tool runs.
type Run struct {
	Call
	// Request is the call as the SDK of MCP has it. Request.Session asks questions, by
	// Elicit and CreateMessage, and sends notifications.
	Request *mcp.CallToolRequest
}

// Progress tells the caller how far the tool is. Without a subscriber of the call it does
// nothing. total is 0 if it is not known.
func (r *Run) Progress(ctx context.Context, progress, total float64, message string) error {
	token := r.Request.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	return r.Request.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
		ProgressToken: token, Progress: progress, Total: total, Message: message,
	})
}

// headerRun is the header by which a tool finds its run.
const headerRun = "Faults-Run"

// NewScript returns a script for the server of the given name, without tools. It is closed
// at the end of the test.
func NewScript(t testing.TB, server string) *Script {
	s := &Script{
		t: t, name: server, tools: map[string]*Steps{}, conditional: map[string][]*Steps{},
		origins: map[string]origin{}, generations: map[messages.Key]uint64{},
		mcp: mcp.NewServer(&mcp.Implementation{Name: server, Version: "1"}, &mcp.ServerOptions{
			Capabilities:       &mcp.ServerCapabilities{Logging: &mcp.LoggingCapabilities{}, Tools: &mcp.ToolCapabilities{ListChanged: true}},
			SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
			UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		}),
	}
	s.Server = Local(s.fresh)
	s.client = &http.Client{Transport: s}
	s.Inject("tools/call", s.meet)
	t.Cleanup(func() {
		s.Close()
		s.end()
		if time.Now().Before(realTime) {
			time.Sleep(restLimit)
		}
	})
	return s
}

// realTime is later than the clock of a bubble of testing/synctest, which starts with the
// year 2000. In a bubble, the end of a test waits until the goroutines that rest have
// ended: those of the supervisor, and Proto.Actor's throttle of dead letters. This takes no
// real time. Outside of a bubble they end by themselves.
var realTime = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// restLimit is how long goroutines rest at most.
const restLimit = 10 * time.Second

// MCP returns the server of the SDK. It serves what else the agent needs: resources and
// prompts.
func (s *Script) MCP() *mcp.Server { return s.mcp }

// Config returns a configuration in which the script takes the place of its server. The
// server keeps its settings, apart from those that say how it is reached, and so does each
// result of its PerKey. If cfg has no server of that name, it is added. Several scripts may replace the servers of one
// configuration, one after the other.
func (s *Script) Config(cfg supervisor.Config) supervisor.Config {
	cfg.Servers = slices.Clone(cfg.Servers)
	i := slices.IndexFunc(cfg.Servers, func(srv supervisor.Server) bool { return srv.Name == s.name })
	if i < 0 {
		i = len(cfg.Servers)
		cfg.Servers = append(cfg.Servers, supervisor.Server{Name: s.name})
	}
	srv := &cfg.Servers[i]
	s.replace(srv)
	if perKey := srv.PerKey; perKey != nil {
		srv.PerKey = func(ctx context.Context, key messages.Key) (supervisor.Server, error) {
			one, err := perKey(ctx, key)
			s.replace(&one)
			return one, err
		}
	}
	return dial.Wrap(cfg, func(inner dial.Dialer) dial.Dialer { return &watched{inner, s} })
}

// replace makes the script the place where a server is reached.
func (s *Script) replace(srv *supervisor.Server) {
	srv.Command, srv.Args, srv.Env, srv.InheritEnv, srv.Dir, srv.InMemory = "", nil, nil, false, "", nil
	srv.URL, srv.Transport, srv.HTTPClient = "https://script.invalid/"+s.name, "", s.client
}

// Supervise starts a supervisor with [Script.Config], and stops it at the end of the test.
func (s *Script) Supervise(system *actor.ActorSystem, cfg supervisor.Config) *supervisor.Supervisor {
	s.t.Helper()
	sup, err := supervisor.Start(system, s.Config(cfg))
	if err != nil {
		s.t.Fatalf("%v", err)
	}
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
		defer cancel()
		sup.Stop(ctx) //nolint:errcheck // the sessions end with the script
	})
	return sup
}

// stopLimit bounds the stop of a supervisor at the end of a test.
const stopLimit = 30 * time.Second

// Calls returns the calls that have reached the script so far, in their order: those of
// the given tools, or all. A call that the supervisor sent twice is there twice.
func (s *Script) Calls(tools ...string) (calls []Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.runs {
		if len(tools) == 0 || slices.Contains(tools, one.Tool) {
			calls = append(calls, one.Call)
		}
	}
	return calls
}

// Unused returns the steps that no call has met, in words. A test that wants all steps to
// be used requires it to be empty.
func (s *Script) Unused() (unused []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, steps := range s.tools {
		unused = append(unused, steps.unused()...)
	}
	for _, all := range s.conditional {
		for _, steps := range all {
			unused = append(unused, steps.unused()...)
		}
	}
	slices.Sort(unused)
	return unused
}

// watched is a dialer that tells the script whose sessions it opens.
type watched struct {
	dial.Dialer
	script *Script
}

// Dial dials, and notes the session.
func (d *watched) Dial(ctx context.Context, req dial.Request) (dial.Conn, error) {
	conn, err := d.Dialer.Dial(ctx, req)
	if err == nil && req.Key.Server == d.script.name {
		d.script.opens(req.Key, conn.Resume())
	}
	return conn, err
}

// opens records whose a session is.
func (s *Script) opens(key messages.Key, session *mcpbridge.Resume) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if session == nil || s.origins[session.SessionID].generation > 0 {
		return
	}
	s.generations[key]++
	s.origins[session.SessionID] = origin{key, s.generations[key]}
}

// fresh returns a handler that knows no session.
func (s *Script) fresh() http.Handler {
	s.end()
	s.mu.Lock()
	s.alive, s.kill = context.WithCancel(context.Background())
	s.mu.Unlock()
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.mcp }, nil)
}

// end ends all sessions, and the tools that run.
func (s *Script) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kill != nil {
		s.kill()
	}
	endSessions(s.mcp)
}

// endSessions ends the sessions of a server, but for those that the SDK still connects: closing one would panic.
func endSessions(server *mcp.Server) {
	for session := range server.Sessions() {
		if session.InitializeParams() != nil {
			go session.Close() //nolint:errcheck // it waits for running calls
		}
	}
}

// meet is the fault for calls of tools. It records the call, and runs the fault that the
// call meets.
func (s *Script) meet(w http.ResponseWriter, r *Request, next http.Handler) {
	if !s.knows(r.Session) {
		next.ServeHTTP(w, r.Request) // which refuses it
		return
	}
	fault, id := s.begin(r)
	r.Header.Set(headerRun, strconv.Itoa(id))
	if fault == nil {
		next.ServeHTTP(w, r.Request)
		return
	}
	fault(w, r, next)
}

// begin records a call, and returns the fault that it meets, or nil, and the number of its
// run.
func (s *Script) begin(r *Request) (fault Fault, id int) {
	one := &run{Call: Call{Tool: r.tool, Time: time.Now()}}
	json.Unmarshal(r.arguments, &one.Arguments) //nolint:errcheck // what is no object stays nil
	s.mu.Lock()
	from := s.origins[r.Session]
	one.Key, one.Generation = from.key, from.generation
	steps := s.tools[r.tool]
	var conditional []*Steps
	for _, other := range s.conditional[r.tool] {
		if len(other.steps) > 0 {
			conditional = append(conditional, other)
		}
	}
	s.mu.Unlock()
	for _, other := range conditional { // without the lock: a condition may look at the script
		if other.when(one.Call) {
			steps = other
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if steps != nil {
		var chosen *step
		if s.random != nil {
			chosen = s.random.choose(one.Call)
		}
		now, answer := steps.take(chosen)
		one.answer = answer
		if now != nil {
			fault, one.Fault = now.fault, now.name
		}
	}
	s.runs = append(s.runs, one)
	return fault, len(s.runs) - 1
}

// call is the handler of all tools.
func (s *Script) call(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	id, err := strconv.Atoi(req.Extra.Header.Get(headerRun))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	one := s.runs[id]
	one.Ran = true
	now, alive := &Run{one.Call, req}, s.alive
	s.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(alive, cancel)()
	if one.answer == nil {
		return textOf(""), nil
	}
	return one.answer.run(ctx, now)
}

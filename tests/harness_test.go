package tests

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	cmap "github.com/orcaman/concurrent-map"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/internal/leaktest"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/internal/stdioserver"
)

func TestMain(m *testing.M) {
	flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))) // most of the tests that run in parallel wait; -parallel overrides it
	debug.SetGCPercent(400)                                          // a test lives shortly, and its memory is small
	cmap.SHARD_COUNT = 1                                             // an actor system has 1,024 of these maps: without this, most of a short test is making them
	stdioserver.Main()
	if name := os.Getenv(rawVar); name != "" {
		runRaw(name)
	}
	if dir := os.Getenv(ownerVar); dir != "" {
		runOwner(dir)
	}
	if value := os.Getenv(askerVar); value != "" {
		runAsker(value)
	}
	if value := os.Getenv(roundsVar); value != "" {
		runRounds(value)
	}
	if os.Getenv(oddVar) != "" {
		runOdd()
	}
	if os.Getenv(describeVar) != "" {
		runDescribing()
	}
	goleak.VerifyTestMain(m, leaktest.Throttle...)
}

// harness is a supervisor under test, with records of what happens around it.
type harness struct {
	t       *testing.T
	system  *actor.ActorSystem
	sup     *supervisor.Supervisor
	pid     *actor.PID // to which commands are sent
	server  *fakeServer
	dials   *dialRecorder
	handler *actor.PID // answers the requests of servers; may be nil
	log     *logCheck  // nil if the scenario has a logger of its own
	stopped bool       // all lines are written, and all events published

	mu          sync.Mutex
	pending     []*sentCommand
	events      []messages.Event
	faults      []*actor.SupervisorEvent
	deadLetters []*actor.DeadLetterEvent
	changed     chan struct{}         // closed and replaced at each event
	strict      bool                  // the verifier reports dead letters and supervision events that are no faults
	executed    func() map[string]int // how often each call ran on the server, by call id; may be nil
	overlaps    func() []string       // the scopes that had two sessions at once on the server; may be nil
}

// inFakeTime runs a scenario in a bubble of fake time, with a fake server named "s" and
// another one named "other".
func inFakeTime(t *testing.T, cfg supervisor.Config, scenario func(h *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer()
		cfg.Servers = append(cfg.Servers, mcpbridge.Server{Name: "s", URL: "http://fake.invalid"}, mcpbridge.Server{Name: "other", URL: "http://other.invalid"})
		h := start(t, dial.Replace(cfg, f))
		h.server = f
		h.executed = f.executions
		scenario(h)
		h.stopAndVerify()
		time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
	})
}

// start starts a supervisor in a new harness.
func start(t *testing.T, cfg supervisor.Config) *harness {
	t.Helper()
	return newHarness(t).start(cfg)
}

// start starts the supervisor. Its dials are recorded.
func (h *harness) start(cfg supervisor.Config) *harness {
	h.t.Helper()
	cfg = dial.Wrap(cfg, func(d dial.Dialer) dial.Dialer {
		h.dials.Dialer = d
		return h.dials
	})
	switch {
	case !isSilent(cfg.Logger):
		h.log = nil
	case h.log != nil:
		cfg.Logger = h.log.logger()
	}
	sup, err := supervisor.Start(h.system, cfg)
	require.NoError(h.t, err)
	h.sup, h.pid = sup, sup.PID()
	return h
}

// newHarness returns a harness without a supervisor.
func newHarness(t *testing.T) *harness {
	h := &harness{t: t, system: actor.NewActorSystem(quietLog), dials: newDialRecorder(), changed: make(chan struct{}), strict: true, log: newLogCheck()}
	h.system.EventStream.Subscribe(func(event any) {
		h.mu.Lock()
		defer h.mu.Unlock()
		switch e := event.(type) {
		case messages.Event:
			h.events = append(h.events, e)
			close(h.changed)
			h.changed = make(chan struct{})
		case *actor.SupervisorEvent:
			h.faults = append(h.faults, e)
		case *actor.DeadLetterEvent:
			h.deadLetters = append(h.deadLetters, e)
		}
	})
	return h
}

// sentCommand is a command that was sent, with its replies. There must be exactly one.
type sentCommand struct {
	h       *harness
	cmd     messages.Command
	replies chan messages.Reply

	sent, answeredAt time.Time // answeredAt may be read after reply has returned
}

func (p *sentCommand) SendUserMessage(_ *actor.PID, msg any) {
	if len(p.replies) == 0 {
		p.answeredAt = time.Now()
	}
	p.replies <- actor.UnwrapEnvelopeMessage(msg).(messages.Reply)
}
func (p *sentCommand) SendSystemMessage(*actor.PID, any) {}
func (p *sentCommand) Stop(*actor.PID)                   {}

// send sends a command as an actor would.
func (h *harness) send(cmd messages.Command) *sentCommand {
	p := &sentCommand{h: h, cmd: cmd, replies: make(chan messages.Reply, 10), sent: time.Now()}
	h.mu.Lock()
	h.pending = append(h.pending, p)
	h.mu.Unlock()
	pid, _ := h.system.ProcessRegistry.Add(p, h.system.ProcessRegistry.NextId())
	h.system.Root.RequestWithCustomSender(h.pid, cmd, pid)
	return p
}

// reply waits for the reply.
func (p *sentCommand) reply() messages.Reply {
	p.h.t.Helper()
	select {
	case r := <-p.replies:
		p.replies <- r
		return r
	case <-time.After(2 * time.Minute):
		p.h.t.Fatalf("%T was not answered", p.cmd)
		return nil
	}
}

// answered reports whether there is a reply already.
func (p *sentCommand) answered() bool { return len(p.replies) > 0 }

// ok waits for a tool result.
func (p *sentCommand) ok() *messages.ToolResult {
	p.h.t.Helper()
	r, is := p.reply().(*messages.ToolResult)
	require.True(p.h.t, is, "%v", p.reply())
	return r
}

// text waits for a tool result, and returns its text.
func (p *sentCommand) text() string {
	p.h.t.Helper()
	r := p.ok()
	require.NotEmpty(p.h.t, r.Result.Content)
	return r.Result.Content[0].(*mcp.TextContent).Text
}

// fails waits for a failure with a code.
func (p *sentCommand) fails(code messages.Code) *messages.Failure {
	p.h.t.Helper()
	f, is := p.reply().(*messages.Failure)
	require.True(p.h.t, is, "%v is no failure", p.reply())
	require.ErrorIs(p.h.t, f, code, "%v", f)
	return f
}

var serial struct {
	sync.Mutex
	n int
}

// call returns a call on server "s", with a new id.
func call(scope, tool string, opts ...func(*messages.CallTool)) *messages.CallTool {
	serial.Lock()
	serial.n++
	id := fmt.Sprint("c", serial.n) // which no test uses for another command
	serial.Unlock()
	op := &messages.CallTool{Header: messages.To("s", scope)}
	op.ID = id
	op.Params = &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"call": id, "scope": scope}}
	for _, opt := range opts {
		opt(op)
	}
	return op
}

func within(d time.Duration) func(*messages.CallTool) {
	return func(op *messages.CallTool) { op.Deadline = time.Now().Add(d) }
}

func replay(r messages.Replay) func(*messages.CallTool) {
	return func(op *messages.CallTool) { op.Replay = r }
}

func on(server string) func(*messages.CallTool) {
	return func(op *messages.CallTool) { op.Key.Server = server }
}

// with adds an argument.
func with(name string, value any) func(*messages.CallTool) {
	return func(op *messages.CallTool) { op.Params.Arguments.(map[string]any)[name] = value }
}

// calls sends n calls of a tool.
func (h *harness) calls(n int, scope, tool string, opts ...func(*messages.CallTool)) []*sentCommand {
	all := make([]*sentCommand, n)
	for i := range all {
		all[i] = h.send(call(scope, tool, opts...))
	}
	return all
}

// sent returns the commands that were sent so far.
func (h *harness) sent() []*sentCommand {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.pending)
}

// cancel cancels an operation.
func (h *harness) cancel(p *sentCommand) {
	op := p.cmd.(messages.Operation)
	h.system.Root.Send(h.sup.PID(), &messages.Cancel{Key: op.Head().Key, ID: op.RequestID()})
}

// inspect asks for a snapshot, and checks that its numbers agree.
func (h *harness) inspect() *messages.Snapshot {
	h.t.Helper()
	snap := h.send(&messages.Inspect{}).reply().(*messages.Snapshot)
	outstanding, waiting := map[string]int{}, map[string]int{}
	for _, one := range snap.Sessions {
		outstanding[one.Key.Server] += one.Outstanding
		waiting[one.Key.Server] += one.Waiting
	}
	for _, one := range snap.Servers {
		if snap.Total == len(snap.Sessions) {
			require.Equal(h.t, outstanding[one.Name], one.Load.InFlight+one.Load.Waiting, one.Name)
			require.Equal(h.t, waiting[one.Name], one.Load.Waiting, one.Name)
		}
	}
	return snap
}

// session returns the snapshot of one key, or nil.
func (h *harness) session(scope string) *messages.SessionSnapshot {
	h.t.Helper()
	for _, s := range h.inspect().Sessions {
		if s.Key.Scope == scope {
			return &s
		}
	}
	return nil
}

// awaitEvent waits for an event of a type that matches, and returns it.
func awaitEvent[E messages.Event](h *harness, matches func(E) bool) E {
	h.t.Helper()
	limit := time.After(time.Minute)
	for from := 0; ; {
		h.mu.Lock()
		seen, changed := h.events, h.changed
		h.mu.Unlock()
		for _, event := range seen[from:] {
			if e, ok := event.(E); ok && matches(e) {
				return e
			}
		}
		from = len(seen)
		select {
		case <-changed:
		case <-limit:
			var e E
			h.t.Fatalf("no %T came", e)
		}
	}
}

// requireEvents checks that there were n events of a type. It waits for them, because an
// event may come after the reply of the call that caused it.
func requireEvents[E messages.Event](h *harness, n int) {
	h.t.Helper()
	seen := 0
	awaitEvent(h, func(E) bool { seen++; return seen == n })
	require.Equal(h.t, n, countEvents[E](h), "%T", *new(E))
}

// countEvents returns the number of events of a type so far.
func countEvents[E messages.Event](h *harness) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, event := range h.events {
		if _, ok := event.(E); ok {
			n++
		}
	}
	return n
}

// stopAndVerify stops the supervisor, and runs the verifier.
func (h *harness) stopAndVerify() {
	h.t.Helper()
	h.stop()
	h.verify()
}

// stop stops the supervisor.
func (h *harness) stop() {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	require.NoError(h.t, h.sup.Stop(ctx))
	h.stopped = true
}

package tests

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

func TestMain(m *testing.M) {
	faults.Main()
	if dir := os.Getenv(ownerVar); dir != "" {
		own(dir)
	}
	goleak.VerifyTestMain(m, throttle)
}

// world is a supervisor under test, with everything that is watched.
type world struct {
	t       *testing.T
	system  *actor.ActorSystem
	sup     *supervisor.Supervisor
	pid     *actor.PID // where commands go
	fake    *fake
	watch   *watch
	handler *actor.PID // of what servers ask, where there is one

	mu       sync.Mutex
	pending  []*pending
	events   []messages.Event
	faults   []*actor.SupervisorEvent
	letters  []*actor.DeadLetterEvent
	changed  chan struct{}         // closed and renewed with each event
	strict   bool                  // dead letters and untyped faults are failures
	executed func() map[string]int // call id to executions, as the server knows it
	overlaps func() []string       // scopes that had two sessions at once, as the server knows it
}

// imagine runs a scenario on a fake server named "s", in a bubble of fake time.
func imagine(t *testing.T, cfg supervisor.Config, scenario func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		cfg.Servers = append(cfg.Servers, mcpbridge.Server{Name: "s", URL: "http://fake.invalid"}, mcpbridge.Server{Name: "other", URL: "http://other.invalid"})
		wrap := cfg.WrapDialer
		cfg.WrapDialer = func(mcpbridge.Dialer) mcpbridge.Dialer {
			if wrap != nil {
				return wrap(f)
			}
			return f
		}
		w := start(t, cfg)
		w.fake = f
		w.executed = f.executions
		scenario(w)
		w.end()
		time.Sleep(3 * time.Second) // synctest: Proto.Actor's throttle of dead letters ends
	})
}

// start starts a supervisor whose dialer is watched.
func start(t *testing.T, cfg supervisor.Config) *world {
	t.Helper()
	return newWorld(t).start(cfg)
}

// start starts the supervisor of a world.
func (w *world) start(cfg supervisor.Config) *world {
	w.t.Helper()
	inner := cfg.WrapDialer
	cfg.WrapDialer = func(d mcpbridge.Dialer) mcpbridge.Dialer {
		if inner != nil {
			d = inner(d)
		}
		w.watch.Dialer = d
		return w.watch
	}
	sup, err := supervisor.Start(w.system, cfg)
	require.NoError(w.t, err)
	w.sup, w.pid = sup, sup.PID()
	return w
}

// newWorld returns a world without a supervisor.
func newWorld(t *testing.T) *world {
	w := &world{t: t, system: actor.NewActorSystem(quiet), watch: newWatch(), changed: make(chan struct{}), strict: true}
	w.system.EventStream.Subscribe(func(event any) {
		w.mu.Lock()
		defer w.mu.Unlock()
		switch e := event.(type) {
		case messages.Event:
			w.events = append(w.events, e)
			close(w.changed)
			w.changed = make(chan struct{})
		case *actor.SupervisorEvent:
			w.faults = append(w.faults, e)
		case *actor.DeadLetterEvent:
			w.letters = append(w.letters, e)
		}
	})
	return w
}

// pending is a command that was sent, and its replies: there must be one.
type pending struct {
	w       *world
	cmd     messages.Command
	replies chan messages.Reply

	sent, answeredAt time.Time // the latter may be read after a reply
}

func (p *pending) SendUserMessage(_ *actor.PID, msg any) {
	if len(p.replies) == 0 {
		p.answeredAt = time.Now()
	}
	p.replies <- actor.UnwrapEnvelopeMessage(msg).(messages.Reply)
}
func (p *pending) SendSystemMessage(*actor.PID, any) {}
func (p *pending) Stop(*actor.PID)                   {}

// send sends a command as an actor would.
func (w *world) send(cmd messages.Command) *pending {
	p := &pending{w: w, cmd: cmd, replies: make(chan messages.Reply, 10), sent: time.Now()}
	w.mu.Lock()
	w.pending = append(w.pending, p)
	w.mu.Unlock()
	pid, _ := w.system.ProcessRegistry.Add(p, w.system.ProcessRegistry.NextId())
	w.system.Root.RequestWithCustomSender(w.pid, cmd, pid)
	return p
}

// reply waits for the reply.
func (p *pending) reply() messages.Reply {
	p.w.t.Helper()
	select {
	case r := <-p.replies:
		p.replies <- r
		return r
	case <-time.After(2 * time.Minute):
		p.w.t.Fatalf("%T was not answered", p.cmd)
		return nil
	}
}

// answered reports whether there is a reply now.
func (p *pending) answered() bool { return len(p.replies) > 0 }

// ok waits for a tool result.
func (p *pending) ok() *messages.ToolResult {
	p.w.t.Helper()
	r, is := p.reply().(*messages.ToolResult)
	require.True(p.w.t, is, "%v", p.reply())
	return r
}

// text waits for a tool result, and returns its text.
func (p *pending) text() string {
	p.w.t.Helper()
	r := p.ok()
	require.NotEmpty(p.w.t, r.Result.Content)
	return r.Result.Content[0].(*mcp.TextContent).Text
}

// fails waits for a failure with a code.
func (p *pending) fails(code messages.Code) *messages.Failure {
	p.w.t.Helper()
	f, is := p.reply().(*messages.Failure)
	require.True(p.w.t, is, "%v is no failure", p.reply())
	require.ErrorIs(p.w.t, f, code, "%v", f)
	return f
}

var serial struct {
	sync.Mutex
	n int
}

// call makes a call with an id of its own on server "s".
func call(scope, tool string, opts ...func(*messages.CallTool)) *messages.CallTool {
	serial.Lock()
	serial.n++
	id := fmt.Sprint(serial.n)
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

// calls sends n calls.
func (w *world) calls(n int, scope, tool string, opts ...func(*messages.CallTool)) []*pending {
	all := make([]*pending, n)
	for i := range all {
		all[i] = w.send(call(scope, tool, opts...))
	}
	return all
}

// sent returns what was sent so far.
func (w *world) sent() []*pending {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.pending)
}

// cancel cancels what was sent.
func (w *world) cancel(p *pending) {
	op := p.cmd.(messages.Operation)
	w.system.Root.Send(w.sup.PID(), &messages.Cancel{Key: op.Head().Key, ID: op.RequestID()})
}

// inspect asks for a snapshot.
func (w *world) inspect() *messages.Snapshot {
	w.t.Helper()
	return w.send(&messages.Inspect{}).reply().(*messages.Snapshot)
}

// session returns the snapshot of one key, or nil.
func (w *world) session(scope string) *messages.SessionSnapshot {
	w.t.Helper()
	for _, s := range w.inspect().Sessions {
		if s.Key.Scope == scope {
			return &s
		}
	}
	return nil
}

// await waits for an event that matches.
func await[E messages.Event](w *world, matches func(E) bool) E {
	w.t.Helper()
	limit := time.After(time.Minute)
	for from := 0; ; {
		w.mu.Lock()
		seen, changed := w.events, w.changed
		w.mu.Unlock()
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
			w.t.Fatalf("no %T came", e)
		}
	}
}

// happened checks how many events of a type there were. An event may come after the reply
// of the call that it tells of.
func happened[E messages.Event](w *world, n int) {
	w.t.Helper()
	limit := time.After(10 * time.Second)
	for {
		w.mu.Lock()
		changed := w.changed
		w.mu.Unlock()
		if count[E](w) >= n {
			break
		}
		select {
		case <-changed:
			continue
		case <-limit:
		}
		break
	}
	require.Equal(w.t, n, count[E](w), "%T", *new(E))
}

// count returns how many events of a type there were so far.
func count[E messages.Event](w *world) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, event := range w.events {
		if _, ok := event.(E); ok {
			n++
		}
	}
	return n
}

// end stops the supervisor, and verifies.
func (w *world) end() {
	w.t.Helper()
	w.stop()
	w.verify()
}

// stop stops the supervisor.
func (w *world) stop() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	require.NoError(w.t, w.sup.Stop(ctx))
}

package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cluster/internal/lease"
	"github.com/mcpactor/mcpactor/cluster/internal/view"
	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

const (
	leaseTime = 2 * time.Second
	removal   = 3500 * time.Millisecond // after which the others have removed a member that is silent
	shards    = 64
	maxTime   = 20 * time.Minute // that a scenario may take
)

// world is a cluster in one process: members with nodes and supervisors of their own, the network
// between them, the provider that tells them of each other, and the MCP server that all of them use.
type world struct {
	t       *testing.T
	seed    uint64
	rand    *rand.Rand
	server  *fakeServer
	logs    *logs
	cfg     supervisor.Config
	change  func(cfg *Config) // of the node of the next member, or nil
	members []*member

	linksMu   sync.Mutex // of the links; taken before mu
	mu        sync.Mutex
	register  view.Register           // of the witness
	listening map[string]*incarnation // by address
	lastAt    map[[2]string]time.Time // of the last envelope between two addresses
	cut       map[[2]string]bool
	began     time.Time
	lose      float64
	delay     time.Duration
	jitter    time.Duration // at most this much is added to the delay
}

// inWorld runs a scenario in a bubble of fake time, on a cluster of n members, and then the
// verifier. MCPACTOR_SEED repeats a run, as far as the order of goroutines allows it.
func inWorld(t *testing.T, n int, prepare func(w *world), scenario func(w *world)) {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("MCPACTOR_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	synctest.Test(t, func(t *testing.T) {
		defer time.AfterFunc(maxTime, func() { // the heartbeats keep the fake time going
			stacks := make([]byte, 1<<20)
			panic(fmt.Sprintf("%s did not end within %v, MCPACTOR_SEED=%d\n%s", t.Name(), maxTime, seed, stacks[:runtime.Stack(stacks, true)]))
		}).Stop()
		w := &world{
			t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 1)), server: newFakeServer(), logs: new(logs),
			listening: map[string]*incarnation{}, began: time.Now(), lastAt: map[[2]string]time.Time{}, cut: map[[2]string]bool{}, delay: time.Millisecond,
			cfg: supervisor.Config{
				Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{}},
				CallTimeout:  20 * time.Second, ConnectTimeout: 5 * time.Second, DrainTimeout: 3 * time.Second, CloseTimeout: time.Second,
				Servers: []supervisor.Server{{Name: "s", URL: "http://fake.invalid"}, {Name: "stdio", Command: "fake"}},
			},
		}
		defer func() {
			time.Sleep(20 * time.Second) // until timers of the nodes, the supervisors and Proto.Actor's throttle have ended
			if t.Failed() {
				t.Logf("MCPACTOR_SEED=%d", seed)
			}
		}()
		if prepare != nil {
			prepare(w)
		}
		for range n {
			w.join()
		}
		w.awaitStable()
		scenario(w)
		w.verify()
	})
}

// member is a member under test.
type member struct {
	w       *world
	name    string
	address string
	system  *actor.ActorSystem
	sup     *supervisor.Supervisor
	node    *node
	pid     *actor.PID
	lease   *lease.Lease
	killed  atomic.Bool
	left    bool

	serial  int          // of the current incarnation, of which there may be none. Guarded by w.mu
	current *incarnation // likewise

	mu      sync.Mutex
	pending []*sent
	strays  []string
}

// join starts a member. It does not wait until it has joined.
func (w *world) join() *member {
	m := &member{w: w, name: string(rune('a' + len(w.members)))}
	m.address, m.lease = m.name+":1", lease.New(leaseTime, w.clock)
	m.system = actor.NewActorSystem(func(c *actor.Config) {
		c.LoggerFactory = func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }
	})
	m.system.EventStream.Subscribe(m.onDeadLetter)
	placement := new(Placement)
	cfg := w.cfg
	cfg.Name, cfg.Logger = m.name, w.logs.logger()
	cfg = clusterapi.ReplaceDialer(cfg, m.lease.Dialer(&memberDialer{w.server, m}, cfg.Store))
	if cfg.Store != nil {
		cfg.Store = m.lease.Store(cfg.Store, placement.Has, clusterapi.IsOutcome)
	}
	var err error
	m.sup, err = supervisor.Start(m.system, cfg)
	require.NoError(w.t, err)
	full := cfg.WithDefaults()
	own := &Config{
		Name: m.name, Address: m.address, System: m.system, Supervisor: m.sup.PID(), Shards: shards, Logger: w.logs.logger(),
		Placement: placement, Lease: m.lease, LeaseTime: leaseTime, Ask: m.ask, Joined: func(error) {}, Observe: m.sup.Subscribe,
		CallTimeout: full.CallTimeout, MaxWaiting: full.MaxWaitingTotal, KeepOpen: cfg.Store != nil, LeaveOpen: cfg.LeaveOpen,
	}
	if w.change != nil {
		w.change(own)
	}
	m.node = newNode(own)
	m.node.outside.newID = func() string {
		m.serial++
		return fmt.Sprint(m.name, "#", m.serial)
	}
	m.pid, err = m.node.spawn()
	require.NoError(w.t, err)
	w.mu.Lock()
	w.members = append(w.members, m)
	w.mu.Unlock()
	m.current = &incarnation{m: m}
	w.later(50*time.Millisecond, func() { m.system.Root.Send(m.pid, &Joined{memberNetwork{m}}) })
	return m
}

// clock is that of all leases.
func (w *world) clock() time.Duration { return time.Since(w.began) }

// ownerOf returns the address of the owner of a shard.
func ownerOf(shard int, members []Address) string {
	var v view.View
	for _, m := range members {
		v.Members = append(v.Members, view.Member{ID: m.Host, Host: m.Host})
	}
	owner, _ := v.Owners().Of(shard)
	return owner.Host
}

// ofActors matches the messages that our actors send.
var ofActors = regexp.MustCompile(`^\*(contract|messages|node|protocol|registry|session)\.`)

// onDeadLetter keeps the dead letters that may mean a bug.
func (m *member) onDeadLetter(event any) {
	e, ok := event.(*actor.DeadLetterEvent)
	if !ok {
		return
	}
	if _, late := e.Message.(actor.IgnoreDeadLetterLogging); late {
		return
	}
	if kind := fmt.Sprintf("%T", e.Message); ofActors.MatchString(kind) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.strays = append(m.strays, "dead letter "+kind+" for "+e.PID.GetId())
	}
}

// incarnation is one of a member.
type incarnation struct {
	m       *member
	id      string
	links   map[string]*scriptedLink // by incarnation
	stopped bool                     // it sends and gets nothing
}

// memberNetwork is the network of a member.
type memberNetwork struct{ m *member }

var _ Network = memberNetwork{}

// Begin begins an incarnation.
func (n memberNetwork) Begin(id string) {
	w := n.m.w
	w.mu.Lock()
	defer w.mu.Unlock()
	n.m.current.stopped = true
	n.m.current = &incarnation{m: n.m, id: id, links: map[string]*scriptedLink{}}
	w.listening[n.m.address] = n.m.current
}

func (n memberNetwork) Link(to Address) Link { return n.m.current.Link(to) }

// ask asks the witness, which takes its time.
func (m *member) ask(number uint64, q *view.Request) {
	w := m.w
	away := func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return m.killed.Load() || w.cut[[2]string{m.address, "provider"}]
	}
	w.later(w.random(5*time.Millisecond), func() {
		if away() {
			return
		}
		w.mu.Lock()
		a := w.register.Do(q)
		w.mu.Unlock()
		w.later(w.random(5*time.Millisecond), func() {
			if !away() {
				m.system.Root.Send(m.pid, &Answered{number, a})
			}
		})
	})
}

// later runs a function after a time.
func (w *world) later(d time.Duration, f func()) { time.AfterFunc(d, f) }

func (w *world) random(most time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Duration(w.rand.Int64N(int64(most) + 1))
}

// tell sends a message to the node, unless the process was killed.
func (i *incarnation) tell(msg any) {
	if i.m.killed.Load() {
		return
	}
	i.m.system.Root.Send(i.m.pid, msg)
}

// Link begins the link to another incarnation.
func (i *incarnation) Link(to Address) Link {
	w := i.m.w
	l := newScriptedLink(&w.linksMu, over{
		from: Address{ID: i.id, Host: i.m.address}, to: to, tell: i.tell,
		carry: func(how way, arrive, lost func()) {
			from, to := i.m.address, to.Host
			if how.back {
				from, to = to, from
			}
			w.carry(i, from, to, how, arrive, lost)
		},
		far: func() (there *scriptedLink, ended bool) {
			w.mu.Lock()
			defer w.mu.Unlock()
			other := w.listening[to.Host]
			if other == nil || other.stopped || other.m.killed.Load() {
				return nil, false
			}
			return other.links[i.id], other.id != to.ID
		},
		after: w.later,
		pause: func() time.Duration { return 200*time.Millisecond + w.random(time.Second) },
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	i.links[to.ID] = l
	return l
}

// carry carries something between two addresses for an incarnation.
func (w *world) carry(i *incarnation, from, to string, how way, arrive, lost func()) {
	at := [2]string{from, to}
	w.mu.Lock()
	defer w.mu.Unlock()
	if i.stopped || i.m.killed.Load() {
		return
	}
	if w.cut[at] || w.rand.Float64() < w.lose {
		w.later(w.delay, lost)
		return
	}
	when, order := time.Now().Add(w.delay), at
	if how.large {
		when, order[0] = when.Add(5*time.Millisecond), "large of "+from
	}
	if w.jitter > 0 {
		when = when.Add(time.Duration(w.rand.Int64N(int64(w.jitter))))
	}
	if last := w.lastAt[order]; !when.After(last) {
		when = last.Add(1)
	}
	w.lastAt[order] = when
	w.later(time.Until(when), func() {
		w.mu.Lock()
		dead, cut := i.stopped || i.m.killed.Load(), w.cut[at]
		w.mu.Unlock()
		switch {
		case dead:
		case cut:
			lost()
		default:
			arrive()
		}
	})
}

// remove removes an incarnation from the view, as if it had been silent.
func (w *world) remove(i *incarnation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := w.register.View
	v.Number++
	v.Members = slices.DeleteFunc(slices.Clone(v.Members), func(m view.Member) bool { return m.ID == i.id })
	w.register.View = v
	delete(w.register.Beats, i.id)
}

// kill ends the process of a member. The others remove it later.
func (w *world) kill(m *member) {
	m.killed.Store(true)
	w.mu.Lock()
	i := m.current
	i.stopped = true
	delete(w.listening, m.address)
	w.mu.Unlock()
	w.server.cutOff(m)
}

// isolate cuts a member off from all others, and from the witness. heal ends that.
func (w *world) isolate(m *member) { w.setCut(m, true) }

func (w *world) heal(m *member) { w.setCut(m, false) }

// hang has the witness answer nobody, or go on.
func (w *world) hang(is bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.members {
		w.cut[[2]string{m.address, "provider"}] = is
	}
}

func (w *world) setCut(m *member, is bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut[[2]string{m.address, "provider"}] = is
	for _, other := range w.members {
		w.cut[[2]string{m.address, other.address}], w.cut[[2]string{other.address, m.address}] = is, is
	}
}

// cutLink cuts two members off from each other.
func (w *world) cutLink(a, b *member, is bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut[[2]string{a.address, b.address}], w.cut[[2]string{b.address, a.address}] = is, is
}

// live returns the members that were neither killed nor have left.
func (w *world) live() (list []*member) {
	for _, m := range w.members {
		if !m.killed.Load() && !m.left {
			list = append(list, m)
		}
	}
	return list
}

// awaitStable waits until all live members know each other and have their leases.
func (w *world) awaitStable() {
	w.t.Helper()
	for range 600 {
		time.Sleep(100 * time.Millisecond)
		live := w.live()
		stable := true
		for _, m := range live {
			known := 0
			for _, one := range m.known() {
				if !one.Leaving && one.ID != "" && one.Answered {
					known++
				}
			}
			stable = stable && known == len(live) && m.lease.Held()
		}
		if stable {
			return
		}
	}
	for _, m := range w.live() {
		w.t.Logf("%s has its lease: %v, and knows %+v", m.name, m.lease.Held(), m.known())
	}
	w.t.Fatal("the cluster does not become stable")
}

// known returns the members that a member knows.
func (m *member) known() []messages.MemberSnapshot {
	p := newSent(m, nil)
	m.system.Root.RequestWithCustomSender(m.pid, &ListMembers{}, p.pid)
	msg := <-p.others
	p.close()
	return msg.(*Members).List
}

// inNode runs a function in the actor of a member's node.
func (m *member) inNode(do func(n *node)) {
	done := make(chan bool)
	m.node.do(func() { do(m.node); close(done) })
	<-done
}

// ownerOf returns the member that owns a key by the view.
func (w *world) ownerOf(scope string) *member {
	w.mu.Lock()
	owner, _ := w.register.View.Owners().Of(ShardOf(messages.Key{Server: "s", Scope: scope}, shards))
	w.mu.Unlock()
	address := owner.Host
	for _, m := range w.members {
		if m.address == address {
			return m
		}
	}
	return nil
}

// scopeOf returns a scope whose keys a member owns.
func (w *world) scopeOf(m *member, n int) string {
	for i := 0; ; i++ {
		if scope := fmt.Sprint("scope", i); w.ownerOf(scope) == m {
			if n--; n < 0 {
				return scope
			}
		}
	}
}

// sent is a command that was sent, with its replies.
type sent struct {
	m        *member
	cmd      messages.Command
	pid      *actor.PID
	replies  chan messages.Reply
	others   chan any // that are no replies
	deadline time.Time
	at       atomic.Pointer[time.Time] // of the first reply
}

func newSent(m *member, cmd messages.Command) *sent {
	p := &sent{m: m, cmd: cmd, replies: make(chan messages.Reply, 10), others: make(chan any, 1000)}
	p.pid, _ = m.system.ProcessRegistry.Add(p, "sent"+m.system.ProcessRegistry.NextId())
	return p
}

func (p *sent) SendUserMessage(_ *actor.PID, msg any) {
	switch msg := actor.UnwrapEnvelopeMessage(msg).(type) {
	case messages.Reply:
		now := time.Now()
		p.at.CompareAndSwap(nil, &now)
		p.replies <- msg
	default:
		p.others <- msg
	}
}
func (p *sent) SendSystemMessage(*actor.PID, any) {}
func (p *sent) Stop(*actor.PID)                   {}
func (p *sent) close()                            { p.m.system.ProcessRegistry.Remove(p.pid) }

// send sends a command to the node of a member.
func (m *member) send(cmd messages.Command) *sent {
	p := newSent(m, cmd)
	p.deadline = time.Now().Add(20 * time.Second)
	if op, ok := cmd.(messages.Operation); ok && !op.Head().Deadline.IsZero() {
		p.deadline = op.Head().Deadline
	}
	m.mu.Lock()
	m.pending = append(m.pending, p)
	m.mu.Unlock()
	m.system.Root.RequestWithCustomSender(m.pid, cmd, p.pid)
	return p
}

// reply waits for the reply.
func (p *sent) reply() messages.Reply {
	p.m.w.t.Helper()
	select {
	case r := <-p.replies:
		p.replies <- r
		return r
	case <-time.After(2 * time.Minute):
		p.m.w.t.Fatalf("%T %s was not answered", p.cmd, p.cmd.RequestID())
		return nil
	}
}

// text waits for a tool result, and returns its text.
func (p *sent) text() string {
	p.m.w.t.Helper()
	return textOf(p.ok())
}

func (p *sent) ok() *messages.ToolResult {
	p.m.w.t.Helper()
	r, is := p.reply().(*messages.ToolResult)
	require.True(p.m.w.t, is, "%T: %v", p.reply(), p.reply())
	return r
}

func textOf(r *messages.ToolResult) string { return r.Result.Content[0].(*mcp.TextContent).Text }

// fails waits for a failure with a code.
func (p *sent) fails(code messages.Code) *messages.Failure {
	p.m.w.t.Helper()
	f, is := p.reply().(*messages.Failure)
	require.True(p.m.w.t, is, "%T is no failure", p.reply())
	require.Equal(p.m.w.t, code, f.Code, "%v", f)
	return f
}

func (p *sent) answered() bool { return len(p.replies) > 0 }

var callID atomic.Int64

// call returns a call on server "s".
func call(scope, tool string, opts ...func(*messages.CallTool)) *messages.CallTool {
	op := &messages.CallTool{Header: messages.To("s", scope)}
	op.ID = fmt.Sprint("call", callID.Add(1))
	op.Params = &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"call": op.ID}}
	for _, opt := range opts {
		opt(op)
	}
	return op
}

func within(d time.Duration) func(*messages.CallTool) {
	return func(op *messages.CallTool) { op.Deadline = time.Now().Add(d) }
}

func with(name string, value any) func(*messages.CallTool) {
	return func(op *messages.CallTool) { op.Params.Arguments.(map[string]any)[name] = value }
}

func (m *member) cancel(p *sent) {
	op := p.cmd.(messages.Operation)
	m.system.Root.Send(m.pid, &messages.Cancel{Key: op.Head().Key, ID: op.RequestID()})
}

// agent is an actor that keeps what it gets, and answers questions.
type agent struct {
	got    chan any
	answer func(c actor.Context)
}

func (a *agent) Receive(c actor.Context) {
	switch msg := c.Message().(type) {
	case actor.SystemMessage, actor.AutoReceiveMessage:
	default:
		select {
		case a.got <- msg:
		default:
			panic("the agent got too much")
		}
		if a.answer != nil {
			a.answer(c)
		}
	}
}

func (m *member) spawn(answer func(actor.Context)) (*actor.PID, *agent) {
	a := &agent{make(chan any, 10000), answer}
	return m.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return a })), a
}

// leave makes a member leave, and stops its supervisor, as package cluster does.
func (m *member) leave() {
	m.w.t.Helper()
	m.left = true
	p := newSent(m, nil)
	m.system.Root.RequestWithCustomSender(m.pid, &Leave{}, p.pid)
	select {
	case msg := <-p.others:
		require.IsType(m.w.t, &Left{}, msg)
	case <-time.After(time.Minute):
		m.w.t.Fatalf("%s does not leave", m.name)
	}
	p.close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	require.NoError(m.w.t, m.sup.Stop(ctx))
	p = newSent(m, nil)
	m.system.Root.RequestWithCustomSender(m.pid, &Leave{}, p.pid) // the last one has left only now
	select {
	case <-p.others:
	case <-p.replies: // of the door
	}
	p.close()
}

// verify ends a scenario: all members leave, nothing is left of them, and the replies are true.
func (w *world) verify() {
	t := w.t
	t.Helper()
	for _, m := range w.live() {
		m.leave()
	}
	for _, m := range w.members { // the processes that were killed still exist here
		if m.killed.Load() {
			m.system.Root.Stop(m.pid)
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			m.sup.Stop(ctx)
			cancel()
		}
	}
	synctest.Wait()
	var errs []error
	executed := w.server.executions()
	for _, m := range w.members {
		if !m.killed.Load() {
			errs = append(errs, m.leftovers()...)
		}
		for _, stray := range m.strays {
			errs = append(errs, fmt.Errorf("%s: %s", m.name, stray))
		}
		for _, p := range m.pending {
			if !m.killed.Load() {
				errs = append(errs, p.check(executed)...)
			} else if op, ok := p.cmd.(*messages.CallTool); ok && executed[op.ID] > 1 && !mayRunTwice(op) {
				errs = append(errs, fmt.Errorf("call %s of a member that was killed ran %d times", op.ID, executed[op.ID]))
			}
		}
	}
	errs = append(errs, w.server.violations()...)
	errs = append(errs, w.logs.errors()...)
	require.NoError(t, errors.Join(errs...))
}

func mayRunTwice(op *messages.CallTool) bool {
	return op.Replay == messages.ReplayAlways || op.Replay == messages.ReplaySafe && strings.HasSuffix(op.Params.Name, "/ro")
}

// check returns what is wrong with the replies to a command.
func (p *sent) check(executed map[string]int) (errs []error) {
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %T %s: "+format, append([]any{p.m.name, p.cmd, p.cmd.RequestID()}, args...)...))
	}
	if n := len(p.replies); n != 1 {
		wrong("%d replies", n)
		return errs
	}
	reply := <-p.replies
	op, isCall := p.cmd.(*messages.CallTool)
	if isCall && p.at.Load().After(p.deadline.Add(time.Second)) {
		wrong("answered %v after its deadline: %v", p.at.Load().Sub(p.deadline), reply)
	}
	if !isCall {
		return errs
	}
	runs := executed[op.ID]
	switch r := reply.(type) {
	case *messages.ToolResult:
		if runs == 0 {
			wrong("it has a result, and never ran")
		}
		if runs > 1 && (!mayRunTwice(op) || !r.Replayed) {
			wrong("it ran %d times, replayed: %v", runs, r.Replayed)
		}
	case *messages.Failure:
		if runs > 0 && !r.MayHaveRun {
			wrong("it is said not to have run, and ran: %v", r)
		}
		switch r.Code {
		case messages.CodeUnavailable, messages.CodeBusy, messages.CodeDraining:
			if runs > 0 || r.MayHaveRun {
				wrong("the code says that it did not run, but it may have: %v, runs %d", r, runs)
			}
		case messages.CodeInternal, messages.CodeProtocol:
			wrong("%v", r)
		}
		if runs > 1 && !mayRunTwice(op) {
			wrong("it ran %d times", runs)
		}
	}
	return errs
}

// leftovers returns what a node that has left still has.
func (m *member) leftovers() (errs []error) {
	n := m.node
	for what, size := range map[string]int{
		"exchanges": len(n.routing.exchanges), "keys of exchanges": len(n.routing.byKey), "served": len(n.serving.all),
		"asked": len(n.questions.asked), "waiting": n.routing.served, "peers": len(n.members.peers),
	} {
		if size > 0 {
			errs = append(errs, fmt.Errorf("%s: %d %s are left", m.name, size, what))
		}
	}
	for prefix, size := range m.processes() {
		errs = append(errs, fmt.Errorf("%s: %d processes %q are left", m.name, size, prefix))
	}
	return errs
}

// processes counts the processes of a node, by the prefix of their ids.
func (m *member) processes() map[string]int {
	counts := map[string]int{}
	for _, shard := range m.system.ProcessRegistry.LocalPIDs.LocalPIDs {
		if shard.Count() == 0 {
			continue
		}
		for _, id := range shard.Keys() {
			prefix, _, generated := strings.Cut(id, "$")
			if generated && slices.Contains([]string{"remote", "ask", "proxy", "question"}, prefix) {
				counts[prefix]++
			}
		}
	}
	return counts
}

// logs keeps the lines that say that something is wrong.
type logs struct {
	mu      sync.Mutex
	lines   []string
	allowed []string
}

func (l *logs) logger() zerolog.Logger { return zerolog.New(l) }

func (l *logs) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(`"level":"error"`)) || bytes.Contains(p, []byte(`"level":"warn"`)) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lines = append(l.lines, string(p))
	}
	return len(p), nil
}

// count returns how many warnings and errors have a text.
func (l *logs) count(text string) (count int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if strings.Contains(line, text) {
			count++
		}
	}
	return count
}

func (l *logs) errors() (errs []error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if strings.Contains(line, `"level":"error"`) && !slices.ContainsFunc(l.allowed, func(part string) bool { return strings.Contains(line, part) }) {
			errs = append(errs, fmt.Errorf("logged: %s", strings.ReplaceAll(line, `\n`, "\n")))
		}
	}
	return errs
}

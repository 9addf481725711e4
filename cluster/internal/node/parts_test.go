package node

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cluster/internal/lease"
	"github.com/mcpactor/mcpactor/cluster/internal/link"
	"github.com/mcpactor/mcpactor/messages"
)

// parts has routing and serving without a node: a test is the membership, the supervisor, the link to another member, and the
// clock.
type parts struct {
	*base
	routing    *routing
	serving    *serving
	node       *recorder
	caller     *recorder
	supervisor *recorder
	other      *peer
	link       *recordedLink
	owner      *peer // of all shards, or nil
	own        bool  // this member owns all shards
	serves     bool
	left       bool
}

func newParts(t *testing.T) *parts {
	p := &parts{node: &recorder{}, caller: &recorder{}, supervisor: &recorder{}, link: &recordedLink{}}
	system := actor.NewActorSystem()
	t.Cleanup(func() { system.Shutdown() })
	p.caller.pid, _ = system.ProcessRegistry.Add(p.caller, "caller")
	p.supervisor.pid, _ = system.ProcessRegistry.Add(p.supervisor, "supervisor")
	cfg := &Config{
		Name: "a", System: system, Supervisor: p.supervisor.pid, Shards: 8, Logger: zerolog.Nop(), MaxWaiting: 2,
		Lease: lease.New(time.Minute, func() time.Duration { return time.Hour }), LeaseTime: time.Minute,
	}
	p.base = newBase(cfg)
	p.self, _ = system.ProcessRegistry.Add(p.node, "node")
	p.outside = outside{
		after:  func(time.Duration, func()) timer { return time.NewTimer(time.Hour) },
		work:   func(f func()) { f() },
		random: func(time.Duration) time.Duration { return 0 },
	}
	proxies := newProxies(p.base, newQuestions(p.base))
	p.routing = newRouting(p.base, p, proxies)
	p.serving = newServing(p.base, p, p.routing, newBindings("a", p.isThere))
	p.other = &peer{
		Address: Address{ID: "b#1"}, name: "b", member: true, greets: true, heard: true, heardAt: time.Hour, cfg: cfg, link: p.link,
		proxies: map[string]*proxy{},
	}
	return p
}

func (p *parts) ownerOf(int) (*peer, bool) { return p.owner, p.own }
func (p *parts) Serves(int) bool           { return p.serves }
func (p *parts) whyFenced() string         { return "" }
func (p *parts) leaves() bool              { return p.left }
func (p *parts) isLast() bool              { return false }

// begin begins an exchange of one key.
func (p *parts) begin(id string) *messages.CallTool {
	op := &messages.CallTool{Header: messages.Header{Key: messages.Key{Server: "s", Scope: "c"}, ID: id}, Params: &mcp.CallToolParams{Name: "t"}}
	p.routing.begin(&exchange{cmd: op, caller: p.caller.pid, key: op.Key.Normal(), deadline: time.Now().Add(time.Hour)})
	return op
}

// passOn does the tasks of the node.
func (p *parts) passOn() {
	for ; len(p.node.got) > 0; p.node.got = p.node.got[1:] {
		p.node.got[0].(task)()
	}
}

// failures returns the failures that the caller has got.
func (p *parts) failures(t *testing.T) (all []*messages.Failure) {
	for _, m := range p.caller.got {
		f, failed := m.(*messages.Failure)
		require.True(t, failed, "%v", m)
		all = append(all, f)
	}
	return all
}

// recorder is a process that keeps what it gets.
type recorder struct {
	pid *actor.PID
	got []any
}

func (r *recorder) SendUserMessage(_ *actor.PID, message any) {
	_, inner, _ := actor.UnwrapEnvelope(message)
	r.got = append(r.got, inner)
}
func (*recorder) SendSystemMessage(*actor.PID, any) {}
func (*recorder) Stop(*actor.PID)                   {}
func (*recorder) Prompt()                           {}

// recordedLink keeps what is sent.
type recordedLink struct {
	Link
	sent    []link.Message
	written bool // what is sent cannot be withdrawn
}

func (l *recordedLink) Send(m link.Message, _ bool) (*link.Sent, error) {
	l.sent = append(l.sent, m)
	return &link.Sent{Message: m}, nil
}
func (l *recordedLink) Withdraw(*link.Sent) bool { return !l.written }

func TestCallsOfAKeyWaitForItsOwnerInTheirOrder(t *testing.T) {
	p := newParts(t)
	p.begin("first")
	p.owner = p.other
	p.begin("second")
	require.Empty(t, p.link.sent, "it must not pass the first one")
	p.routing.routeAll()
	require.Len(t, p.link.sent, 2)
	require.Contains(t, string(p.link.sent[0].Body), "first")
	require.Contains(t, string(p.link.sent[1].Body), "second")
	require.Empty(t, p.caller.got)
}

func TestCallsBeyondMaxWaitingAreRefusedAtOnce(t *testing.T) {
	p := newParts(t)
	p.begin("1")
	p.begin("2")
	require.Empty(t, p.caller.got)
	p.begin("3")
	require.Equal(t, messages.CodeBusy, p.failures(t)[0].Code)
	p.routing.leave()
	require.Len(t, p.failures(t), 3)
	require.Empty(t, p.routing.exchanges)
	require.Empty(t, p.routing.byKey)
}

func TestSilentMemberIsGivenNothing(t *testing.T) {
	p := newParts(t)
	p.owner, p.other.cut = p.other, true
	p.begin("1")
	require.Empty(t, p.link.sent)
	p.other.cut = false
	p.routing.routeAll()
	require.Len(t, p.link.sent, 1)
}

func TestCallOfALostMemberMayHaveRunOnlyIfItWasWritten(t *testing.T) {
	for _, written := range []bool{false, true} {
		p := newParts(t)
		p.owner, p.link.written = p.other, written
		p.begin("1")
		p.owner = nil
		p.routing.lose(p.other)
		require.Empty(t, p.caller.got, "it waits for the next owner")
		p.routing.leave()
		f := p.failures(t)[0]
		require.Equal(t, written, f.MayHaveRun)
	}
}

// WaitUntil bounds the wait of a call that has not run. One that may have run waits until its deadline, and stays with the next owner.
func TestCallThatMayHaveRunIsNotTakenBackWhenItMayWaitNoLonger(t *testing.T) {
	p := newParts(t)
	p.owner, p.link.written = p.other, true
	p.begin("1")
	p.routing.lose(p.other)
	p.routing.routeAll()
	p.link.written = false // it waits for a connection
	x := p.routing.givenTo(p.other)[0]
	require.True(t, x.MayHaveRun)
	p.routing.onOverdue(x)
	require.NotNil(t, x.sent)
	require.Empty(t, p.caller.got)
}

func TestCommandOfAnotherMemberWaitsUntilItsShardIsServed(t *testing.T) {
	p := newParts(t)
	p.own = true
	op := &messages.CallTool{Header: messages.Header{Key: messages.Key{Server: "s", Scope: "c"}, ID: "1", Deadline: time.Now().Add(time.Minute)}, Params: &mcp.CallToolParams{Name: "t"}}
	shard := ShardOf(op.Key, p.cfg.Shards)
	p.serving.serve(p.other, 7, op, history{})
	require.Empty(t, p.supervisor.got)
	p.routing.routeShards([]int{(shard + 1) % p.cfg.Shards})
	require.Empty(t, p.supervisor.got)
	p.serves = true
	p.routing.routeShards([]int{shard})
	require.Len(t, p.supervisor.got, 1)
	require.Same(t, op, p.supervisor.got[0])
	p.serving.onServed(p.serving.servedBy(op.Owner), &messages.ToolResult{Result: &mcp.CallToolResult{}})
	require.Len(t, p.link.sent, 1)
	require.Equal(t, uint64(7|isReply), p.link.sent[0].ID)
	require.Empty(t, p.serving.all)
}

func TestCommandOfAnotherMemberLooksForTheNextOwnerWhenItsShardHasMoved(t *testing.T) {
	p := newParts(t)
	p.own = true
	op := &messages.CallTool{Header: messages.Header{Key: messages.Key{Server: "s", Scope: "c"}, ID: "1"}, Params: &mcp.CallToolParams{Name: "t"}}
	p.serving.serve(p.other, 7, op, history{Runs: 1})
	p.owner, p.own = p.other, false
	p.routing.routeAll()
	p.passOn()
	require.Empty(t, p.supervisor.got)
	require.Equal(t, "moved", p.link.sent[0].Type)
	require.Contains(t, string(p.link.sent[0].Body), `"runs":1`)
	p.own, p.left = true, true
	p.serving.serve(p.other, 8, op, history{})
	require.Equal(t, "moved", p.link.sent[1].Type, "a member that leaves takes nothing")
	require.Empty(t, p.serving.all)
	require.Empty(t, p.routing.exchanges)
}

func TestCommandOfAnotherMemberThatWaitsEndsWithItsMemberOrCaller(t *testing.T) {
	p := newParts(t)
	p.own = true
	op := func(id string) *messages.CallTool {
		return &messages.CallTool{Header: messages.Header{Key: messages.Key{Server: "s", Scope: "c"}, ID: id, Deadline: time.Now().Add(time.Hour)}, Params: &mcp.CallToolParams{Name: "t"}}
	}
	p.serving.serve(p.other, 7, op("cancelled"), history{})
	p.serving.serve(p.other, 8, op("cancelled by id"), history{})
	p.serving.serve(p.other, 9, op("lost"), history{})
	p.begin("own")
	p.begin("own, too")
	require.Empty(t, p.caller.got, "calls of others do not count for MaxWaiting")
	p.serving.onExchangeCancelled(p.other, 7, false)
	p.serving.serve(p.other, 0, &messages.Cancel{Key: messages.Key{Server: "s", Scope: "c"}, ID: "cancelled by id"}, history{})
	p.passOn()
	require.Len(t, p.link.sent, 2)
	for i, id := range []uint64{7, 8} {
		require.Equal(t, id|isReply, p.link.sent[i].ID)
		require.Contains(t, string(p.link.sent[i].Body), `"code":"cancelled"`)
	}
	p.serving.lose(p.other)
	require.Empty(t, p.serving.all)
	require.Zero(t, p.routing.served)
	require.Len(t, p.routing.exchanges, 2)
}

// The operation of a list goes to the owner of the list, and from there to the member of the session.
func TestOwnerOfAnOperationThatCrossesTwiceIsForgottenWithItsReply(t *testing.T) {
	p := newParts(t)
	p.own, p.serves = true, true
	op := &messages.CallTool{Header: messages.Header{Key: messages.Key{Server: "s", Scope: "c"}, ID: "1"}, Params: &mcp.CallToolParams{Name: "t"}}
	p.serving.serve(p.other, 7, op, history{})
	p.owner, p.own = p.other, false
	p.routing.begin(&exchange{cmd: op, caller: p.caller.pid, key: op.Key.Normal(), deadline: time.Now().Add(time.Hour)})
	require.Len(t, p.routing.proxies.watched, 1)
	p.serving.onServed(p.serving.servedBy(op.Owner), &messages.ToolResult{Result: &mcp.CallToolResult{}})
	require.Empty(t, p.routing.proxies.watched)
}

func TestCancelThatOvertakesItsCommandCounts(t *testing.T) {
	p := newParts(t)
	p.own, p.serves = true, true
	p.serving.onExchangeCancelled(p.other, 7, true)
	p.serving.serve(p.other, 7, &messages.CallTool{Header: messages.Header{ID: "1"}}, history{})
	require.Empty(t, p.supervisor.got)
	require.Equal(t, "failure", p.link.sent[0].Type)
}

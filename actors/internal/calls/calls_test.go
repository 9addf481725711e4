package calls

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors/internal/alarm"
	"github.com/mcpactor/mcpactor/actors/internal/closer"
	"github.com/mcpactor/mcpactor/actors/internal/closing"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/dialing"
	"github.com/mcpactor/mcpactor/actors/internal/jobs"
	"github.com/mcpactor/mcpactor/actors/internal/lists"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/actors/internal/member"
	"github.com/mcpactor/mcpactor/actors/internal/owners"
	"github.com/mcpactor/mcpactor/actors/internal/pace"
	"github.com/mcpactor/mcpactor/actors/internal/refusal"
	"github.com/mcpactor/mcpactor/actors/internal/reports"
	"github.com/mcpactor/mcpactor/actors/internal/servers"
	"github.com/mcpactor/mcpactor/actors/internal/sessions"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/internal/relay"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// spawner spawns no actor.
type spawner int

func (s *spawner) SpawnPrefix(*actor.Props, string) *actor.PID {
	*s++
	return &actor.PID{Id: fmt.Sprint(*s)}
}

// session is a session whose actor does nothing, and what it was sent.
type session struct {
	*table.Registration
	read []any
}

func (s *session) InvokeUserMessage(msg any) { s.read = append(s.read, msg) }
func (*session) InvokeSystemMessage(any)     {}
func (*session) EscalateFailure(_, _ any)    {}

// newCalls returns calls of one server.
func newCalls() *Calls {
	cfg := &contract.Config{Config: protocol.Config{
		Servers: []mcpbridge.Server{{Name: "s"}}, MaxSessions: 10, MaxDials: 10, MaxInFlight: 1, MaxWaiting: 2, MaxWaitingTotal: 100, CallTimeout: time.Minute, Random: rand.Float64,
		Logger: relay.NewLogger(zerolog.Nop()), Events: relay.New(100, func(any) {}, nil, nil),
	}}
	m, a, book, closes := new(mailbox.Mailbox), new(alarm.Alarm[func()]), owners.New(), closing.New(10)
	t, gate := table.New(servers.LimitsOf(cfg, mcpbridge.Limits{}), table.Tenants{}), servers.NewGate(cfg)
	with := With{Cfg: cfg, Table: t, Refusal: refusal.New(cfg, t, &gate.Sessions), Owners: book, Member: member.New(cfg, t), Reports: reports.New(cfg), Jobs: jobs.New(cfg, m)}
	with.Lists = lists.New(lists.With{Cfg: cfg, Table: t, Owners: book})
	with.Sessions = sessions.New(sessions.With{
		Cfg: cfg, Mailbox: m, Table: t, Gate: gate, Servers: servers.New(cfg, t, gate), Lists: with.Lists, Owners: book, Closings: closes, Alarm: a,
	})
	with.Sessions.Spawner = new(spawner)
	with.Dialing = dialing.New(dialing.With{Cfg: cfg, Table: t, Gate: gate, Sessions: with.Sessions, Reports: with.Reports, Alarm: a, Jobs: with.Jobs})
	with.Closer = closer.New(closer.With{Cfg: cfg, Table: t, Book: closes, Sessions: with.Sessions, Member: with.Member, Alarm: a, Jobs: with.Jobs})
	return New(with)
}

// session spawns a session of a key.
func (c *Calls) session() *session {
	s := &session{Registration: c.Sessions.Current(key)}
	s.Mailbox = new(mailbox.Mailbox)
	s.Mailbox.RegisterHandlers(s, actor.NewSynchronizedDispatcher(1))
	return s
}

// failed returns how many calls of the server have failed with a code.
func (c *Calls) failed(code messages.Code) uint64 {
	snap := messages.ServerSnapshot{Name: "s"}
	c.Table.Describe(&snap)
	return snap.Load.Failed[code]
}

var key = messages.Key{Server: "s", Scope: "a"}

func operation(id string) *messages.CallTool {
	op := &messages.CallTool{Header: messages.To("s", "a"), Params: &mcp.CallToolParams{Name: "tool"}}
	op.ID = id
	return op
}

func TestEachCallHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		for deadline, want := range map[time.Time]time.Duration{
			{}:                        time.Minute,
			now.Add(time.Second):      time.Second,
			now.Add(-time.Second):     -time.Second,
			now.Add(1<<63 - 1):        maxDeadline,
			time.Unix(1<<40, 0).UTC(): maxDeadline,
		} {
			op := operation("")
			op.Deadline = deadline
			require.Equal(t, want, newCalls().New(op, nil).Deadline.Sub(now))
		}
	})
}

func TestAResentCallThatMayHaveRunIsNotReplayedUnlessItMay(t *testing.T) {
	c := newCalls()
	k := c.NewResent(&protocol.ResentCall{Op: operation("")}, nil)
	require.Zero(t, k.Run.Attempts)
	require.Nil(t, k.Run.Lost)
	op := operation("")
	op.Replay = messages.ReplayNever
	k = c.NewResent(&protocol.ResentCall{Op: op, MayHaveRun: true, Detail: "detail"}, nil)
	require.Equal(t, 1, k.Run.Attempts)
	require.True(t, k.Run.Lost.Sent)
	c.Accept(k)
	require.EqualValues(t, 1, c.failed(messages.CodeLost))
}

// More calls than may run and wait are refused. One that a session no longer has makes room.
func TestASessionHasAsManyCallsAsItMay(t *testing.T) {
	c := newCalls()
	s := c.session()
	for range 5 {
		c.Accept(c.New(operation("id"), nil))
	}
	require.Len(t, s.read, 3)
	require.Equal(t, 3, s.Outstanding)
	require.EqualValues(t, 2, c.failed(messages.CodeBusy))
	k := s.read[0].(*contract.Call)
	c.Replied(&contract.CallReplied{Of: s.Registration, Call: k})
	c.TimedOut(&contract.CallsTimedOut{Of: s.Registration, Calls: []*contract.Call{s.read[1].(*contract.Call)}})
	require.Equal(t, 1, s.Outstanding)
	require.EqualValues(t, 1, c.failed(messages.CodeDeadline)+c.failed(messages.CodeUnavailable))
	require.Same(t, s.read[2], c.Table.Calls.Named(s.Registration, "id"))
	c.Accept(c.New(operation("id"), nil))
	require.Len(t, s.read, 4)
}

// The next session of the key gets the calls that an evicted one has not run, apart from those that were cancelled.
func TestCallsThatAreHandedBackGoToTheNextSession(t *testing.T) {
	c := newCalls()
	s := c.session()
	var all []*contract.Call
	for i := range 3 {
		all = append(all, c.New(operation(fmt.Sprint(i)), nil))
		c.Accept(all[i])
	}
	turns := pace.New[messages.Key](new(alarm.Alarm[func()]))
	c.CancelNamed(key, "1", turns)
	c.CancelNamed(key, "1", turns)
	require.Equal(t, &contract.CancelCalls{Call: all[1]}, s.read[3])
	require.Len(t, s.read, 4, "once")
	c.Sessions.Drain(s.Registration, contract.Drain{Evict: true})
	next := c.session()
	require.Equal(t, 3, c.CancelScope("a", all[0].Serial, ""))
	c.HandedBack(&contract.CallsHandedBack{Of: s.Registration, Calls: all})
	require.Equal(t, []any{&contract.CancelCalls{UpTo: all[0].Serial}, all[2]}, next.read)
	require.EqualValues(t, 2, c.failed(messages.CodeCancelled))
	require.Zero(t, s.Outstanding)
	require.Equal(t, 1, next.Outstanding)
}

// Other code may have stopped the actor of a session, which was then removed.
func TestACallOfASessionThatWasRemovedIsNotCountedAgain(t *testing.T) {
	c := newCalls()
	s := c.session()
	k := c.New(operation(""), nil)
	c.Accept(k)
	c.Sessions.TakeOutOfUse(s.Registration)
	c.Sessions.Remove(s.Registration)
	c.TimedOut(&contract.CallsTimedOut{Of: s.Registration, Calls: []*contract.Call{k}})
	snap := messages.ServerSnapshot{Name: "s"}
	c.Table.Describe(&snap)
	require.Zero(t, snap.Load.InFlight+snap.Load.Waiting+c.Table.Waiting)
}

package calls

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors/internal/alarm"
	"github.com/mcpactor/mcpactor/actors/internal/closer"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/dialing"
	"github.com/mcpactor/mcpactor/actors/internal/jobs"
	"github.com/mcpactor/mcpactor/actors/internal/member"
	"github.com/mcpactor/mcpactor/actors/internal/pace"
	"github.com/mcpactor/mcpactor/actors/internal/refusal"
	"github.com/mcpactor/mcpactor/actors/internal/reports"
	"github.com/mcpactor/mcpactor/actors/internal/sessions/sessionstest"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/messages"
)

// newCalls returns calls of one server.
func newCalls() *Calls {
	all := sessionstest.New(protocol.Config{MaxInFlight: 1, MaxWaiting: 2, MaxWaitingTotal: 100, CallTimeout: time.Minute})
	cfg, t := all.Cfg, all.Table
	with := With{
		Cfg: cfg, Table: t, Refusal: refusal.New(cfg, t, &all.Gate.Sessions), Owners: all.Owners, Lists: all.Lists, Sessions: all, Member: member.New(cfg, t),
		Reports: reports.New(cfg),
	}
	work := jobs.New(cfg, all.Mailbox)
	with.Dialing = dialing.New(dialing.With{Cfg: cfg, Table: t, Gate: all.Gate, Sessions: all, Reports: with.Reports, Alarm: all.Alarm, Jobs: work})
	with.Closer = closer.New(closer.With{Cfg: cfg, Table: t, Book: all.Closings, Sessions: all, Member: with.Member, Alarm: all.Alarm, Jobs: work})
	return New(with)
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
	s := sessionstest.Current(c.Sessions, key)
	for range 5 {
		c.Accept(c.New(operation("id"), nil))
	}
	require.Len(t, *s.Inbox, 3)
	require.Equal(t, 3, s.Outstanding)
	require.EqualValues(t, 2, c.failed(messages.CodeBusy))
	k := (*s.Inbox)[0].(*contract.Call)
	c.Replied(&contract.CallReplied{Of: s.Registration, Call: k})
	c.TimedOut(&contract.CallsTimedOut{Of: s.Registration, Calls: []*contract.Call{(*s.Inbox)[1].(*contract.Call)}})
	require.Equal(t, 1, s.Outstanding)
	require.EqualValues(t, 1, c.failed(messages.CodeDeadline)+c.failed(messages.CodeUnavailable))
	require.Same(t, (*s.Inbox)[2], c.Table.Calls.Named(s.Registration, "id"))
	c.Accept(c.New(operation("id"), nil))
	require.Len(t, *s.Inbox, 4)
}

// The next session of the key gets the calls that an evicted one has not run, apart from those that were cancelled.
func TestCallsThatAreHandedBackGoToTheNextSession(t *testing.T) {
	c := newCalls()
	s := sessionstest.Current(c.Sessions, key)
	var all []*contract.Call
	for i := range 3 {
		all = append(all, c.New(operation(fmt.Sprint(i)), nil))
		c.Accept(all[i])
	}
	turns := pace.New[messages.Key](new(alarm.Alarm[func()]))
	c.CancelNamed(key, "1", turns)
	c.CancelNamed(key, "1", turns)
	require.Equal(t, &contract.CancelCalls{Call: all[1]}, (*s.Inbox)[3])
	require.Len(t, *s.Inbox, 4, "once")
	c.Sessions.Drain(s.Registration, contract.Drain{Evict: true})
	next := sessionstest.Current(c.Sessions, key)
	require.Equal(t, 3, c.CancelScope("a", all[0].Serial, ""))
	c.HandedBack(&contract.CallsHandedBack{Of: s.Registration, Calls: all})
	require.Equal(t, []any{&contract.CancelCalls{UpTo: all[0].Serial}, all[2]}, next.Take())
	require.EqualValues(t, 2, c.failed(messages.CodeCancelled))
	require.Zero(t, s.Outstanding)
	require.Equal(t, 1, next.Outstanding)
}

// Other code may have stopped the actor of a session, which was then removed.
func TestACallOfASessionThatWasRemovedIsNotCountedAgain(t *testing.T) {
	c := newCalls()
	s := sessionstest.Current(c.Sessions, key)
	k := c.New(operation(""), nil)
	c.Accept(k)
	c.Sessions.TakeOutOfUse(s.Registration)
	c.Sessions.Remove(s.Registration)
	c.TimedOut(&contract.CallsTimedOut{Of: s.Registration, Calls: []*contract.Call{k}})
	snap := messages.ServerSnapshot{Name: "s"}
	c.Table.Describe(&snap)
	require.Zero(t, snap.Load.InFlight+snap.Load.Waiting+c.Table.Waiting)
}

package mailbox

import (
	"fmt"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is an actor that notes what it is given. It panics at the message "panic".
type recorder []string

func (r *recorder) InvokeSystemMessage(message any) { *r = append(*r, fmt.Sprint("system ", message)) }

func (r *recorder) InvokeUserMessage(message any) {
	*r = append(*r, fmt.Sprint("user ", message))
	if message == "panic" {
		panic("because")
	}
}

func (r *recorder) EscalateFailure(reason, message any) {
	*r = append(*r, fmt.Sprint("failed ", message, " ", reason))
}

// later is a dispatcher that collects what it is to run.
type later []func()

func (l *later) Schedule(f func()) { *l = append(*l, f) }
func (*later) Throughput() int     { return 2 }

// runAll runs all that was scheduled.
func (l *later) runAll() {
	for _, f := range *l {
		f()
	}
	*l = nil
}

func TestSystemMessagesAreReadFirst(t *testing.T) {
	var got recorder
	var work later
	m := new(Mailbox)
	m.RegisterHandlers(&got, &work)
	for i := range 3 {
		m.PostUserMessage(i)
		m.PostSystemMessage(i)
	}
	require.Len(t, work, 1, "the actor is scheduled once")
	require.Equal(t, 3, m.UserMessageCount())
	work.runAll()
	require.Equal(t, recorder{"system 0", "system 1", "system 2", "user 0", "user 1", "user 2"}, got)
	m.PostUserMessage(nil)
	work.runAll()
	require.Equal(t, "user <nil>", got[6])
	require.Zero(t, m.UserMessageCount())
}

func TestAPanicIsEscalatedAndTheNextMessagesAreRead(t *testing.T) {
	var got recorder
	var work later
	m := new(Mailbox)
	m.RegisterHandlers(&got, &work)
	m.PostUserMessage("panic")
	m.PostUserMessage("next")
	work.runAll()
	require.Equal(t, recorder{"user panic", "failed panic because", "user next"}, got)
}

func TestASuspendedMailboxGivesSystemMessagesOnly(t *testing.T) {
	var got recorder
	var work later
	m := new(Mailbox)
	m.RegisterHandlers(&got, &work)
	m.PostSystemMessage(&actor.SuspendMailbox{})
	m.PostUserMessage(1)
	m.PostSystemMessage(2)
	work.runAll()
	require.Equal(t, recorder{"system 2"}, got)
	require.Equal(t, 1, m.UserMessageCount())
	m.PostSystemMessage(&actor.ResumeMailbox{})
	work.runAll()
	require.Equal(t, recorder{"system 2", "user 1"}, got)
}

// restarted is an actor that is restarted as the engine does it: the mailbox is resumed before Started is read, which
// panics the first time.
type restarted struct {
	recorder
	m      *Mailbox
	starts int
}

func (r *restarted) Self() *actor.PID { return actor.NewPID("here", "restarted") }

func (r *restarted) InvokeSystemMessage(any) {
	r.m.PostSystemMessage(&actor.ResumeMailbox{})
	if r.starts++; r.starts == 1 {
		panic("in Started")
	}
}

func TestAnActorWhoseStartHasPanickedReadsNothingBeforeItIsRestarted(t *testing.T) {
	var work later
	parent, m := new(Mailbox), new(Mailbox)
	parent.RegisterHandlers(new(recorder), new(later))
	got := &restarted{m: m}
	m.Parent = parent
	m.RegisterHandlers(got, &work)
	m.PostSystemMessage(&actor.Restart{})
	m.PostUserMessage("next")
	work.runAll()
	require.Empty(t, got.recorder)
	m.PostSystemMessage(&actor.Restart{})
	work.runAll()
	require.Equal(t, recorder{"user next"}, got.recorder)
}

func TestMessagesThatAreLeftAtTheEndAreNotLost(t *testing.T) {
	for _, suspended := range []bool{false, true} {
		var got recorder
		var work later
		var unread []any
		m := new(Mailbox)
		m.RegisterHandlers(&got, &work)
		if suspended {
			m.PostSystemMessage(&actor.SuspendMailbox{})
		}
		m.PostUserMessage(1)
		m.Close(func(message any) { unread = append(unread, message) })
		work.runAll()
		m.PostUserMessage(2)
		m.PostSystemMessage(3)
		work.runAll()
		require.Equal(t, []any{1, 2}, unread)
		require.Equal(t, recorder{"system 3"}, got)
	}
}

// counting is an actor that counts the messages of each sender, which come in order.
type counting struct {
	t    *testing.T
	next map[int]int
	left *sync.WaitGroup
}

func (c *counting) InvokeUserMessage(message any) {
	m := message.([2]int)
	require.Equal(c.t, c.next[m[0]], m[1])
	c.next[m[0]]++
	c.left.Done()
}

func (c *counting) InvokeSystemMessage(any)  { c.left.Done() }
func (c *counting) EscalateFailure(any, any) {}

func TestNoMessageOfConcurrentSendersIsLost(t *testing.T) {
	const senders, each = 8, 2000
	var left, done sync.WaitGroup
	left.Add(2 * senders * each)
	m := new(Mailbox)
	m.RegisterHandlers(&counting{t, map[int]int{}, &left}, actor.NewDefaultDispatcher(300))
	for s := range senders {
		done.Go(func() {
			for i := range each {
				m.PostUserMessage([2]int{s, i})
				m.PostSystemMessage(i)
			}
		})
	}
	done.Wait()
	left.Wait()
	require.Zero(t, m.UserMessageCount())
}

func TestAQueueKeepsItsOrderAndLittleMemory(t *testing.T) {
	var q queue
	pushed, popped := 0, 0
	step := func(pushes, pops int) {
		for range pushes {
			q.push(pushed)
			pushed++
		}
		for range pops {
			require.Equal(t, popped, q.pop())
			popped++
		}
		require.Equal(t, pushed-popped, q.len())
	}
	step(10, 3)
	for range 10_000 { // never empty
		step(3, 3)
	}
	require.LessOrEqual(t, cap(q.messages), 32)
	step(1000, 1007)
	require.Zero(t, cap(q.messages))
	step(5, 5)
	require.NotZero(t, cap(q.messages))
}

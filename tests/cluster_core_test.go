package tests

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
)

// node takes the place of the node of a cluster: it says which keys the supervisor of a harness
// owns, and keeps what is handed back.
type node struct {
	h       *harness
	foreign atomic.Bool // keys of server "s" with scope "a" are not owned

	mu        sync.Mutex
	back      []*protocol.HandedBack
	cancelled []*messages.Cancel
	timeouts  *protocol.Timeouts
}

// join makes the supervisor a member of a cluster. It owns all keys until foreign is set.
func join(h *harness) *node {
	n := &node{h: h}
	pid, _ := h.system.ProcessRegistry.Add(n, "node"+h.system.ProcessRegistry.NextId())
	h.system.Root.Send(h.pid, &protocol.Cluster{Owns: n.owns, HandBack: pid})
	return n
}

func (n *node) owns(key messages.Key) bool {
	return !n.foreign.Load() || key.Server != "s" || key.Scope != "a"
}

func (n *node) SendUserMessage(_ *actor.PID, msg any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch msg := actor.UnwrapEnvelopeMessage(msg).(type) {
	case *protocol.HandedBack:
		n.back = append(n.back, msg)
	case *protocol.Withdrawn:
		n.cancelled = append(n.cancelled, msg.Cancel)
	case *protocol.Timeouts:
		n.timeouts = msg
	default:
		panic(fmt.Sprintf("%T", msg))
	}
}
func (n *node) SendSystemMessage(*actor.PID, any) {}
func (n *node) Stop(*actor.PID)                   {}

// told waits until the actors are idle, and returns the timeouts that were told last.
func (n *node) told() *protocol.Timeouts {
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.timeouts
}

// open returns the ids of the MCP sessions that the server knows.
func (f *fakeServer) open() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Keys(f.sessions))
}

// take waits until the actors are idle, and returns what was handed back since the last time.
func (n *node) take() []*protocol.HandedBack {
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	back := n.back
	n.back = nil
	return back
}

// cancels returns the cancellations.
func (n *node) cancels() []*messages.Cancel {
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cancelled
}

// resend sends a call that was handed back, as the node of its owner does.
func (n *node) resend(back *protocol.HandedBack) {
	n.h.system.Root.RequestWithCustomSender(n.h.pid, &protocol.ResentCall{
		Op: back.Op, Values: back.Values, Intercepted: back.Intercepted, Runs: back.Runs, MayHaveRun: back.MayHaveRun, Detail: back.Detail,
	}, back.Caller)
}

// release releases the keys that are not owned. The reply comes from the channel.
func (n *node) release(msg protocol.Release) <-chan any {
	msg.Match = func(key messages.Key) bool { return key.Server == "s" && key.Scope == "a" }
	future := protocol.NewFuture(n.h.system, nil)
	n.h.system.Root.RequestWithCustomSender(n.h.pid, &msg, future.PID)
	return future.Reply
}

// resent sends an operation as one of another member.
func (h *harness) resent(msg *protocol.ResentCall) *sentCommand {
	p := &sentCommand{h: h, cmd: msg.Op, replies: make(chan messages.Reply, 10), sent: time.Now()}
	h.mu.Lock()
	h.pending = append(h.pending, p)
	h.mu.Unlock()
	pid, _ := h.system.ProcessRegistry.Add(p, h.system.ProcessRegistry.NextId())
	h.system.Root.RequestWithCustomSender(h.pid, msg, pid)
	return p
}

func TestCallOfAKeyThatIsNotOwnedIsHandedBack(t *testing.T) {
	inFakeTime(t, supervisor.Config{Name: "one", CallTimeout: 20 * time.Second}, func(h *harness) {
		n := join(h)
		n.foreign.Store(true)
		who := owner(h)
		p := h.send(call("a", "count", ownedBy(who)))
		require.Equal(t, "1", h.send(call("b", "count")).text(), "others run")
		h.send(call("a", "")).fails(messages.CodeInvalid)
		all := n.take()
		require.Len(t, all, 1)
		back := all[0]
		require.Equal(t, messages.Key{Server: "s", Scope: "a"}, back.Op.Head().Key)
		require.Equal(t, p.cmd.RequestID(), back.Op.RequestID())
		require.Equal(t, p.sent.Add(20*time.Second), back.Op.Head().Deadline)
		require.Zero(t, back.Runs)
		require.False(t, back.MayHaveRun)
		require.False(t, back.Intercepted)
		require.Nil(t, h.session("a"))
		require.Equal(t, "one", h.session("b").Supervisor)

		h.send(&messages.Cancel{Key: messages.Key{Server: "s", Scope: "a"}, ID: p.cmd.RequestID()}).replies <- nil // it has no reply
		h.system.Root.Stop(who)
		synctest.Wait()
		require.False(t, p.answered(), "the registry has forgotten it")
		require.Empty(t, terminations(h))
		h.system.Root.Send(back.Caller, messages.NewFailure(back.Op, messages.CodeBusy, "elsewhere"))
		p.fails(messages.CodeBusy)

		h.system.Root.Send(h.pid, &protocol.Cluster{})
		require.Equal(t, "1", h.send(call("a", "count")).text(), "without a cluster it owns all keys")
	})
}

func TestReleaseLetsRunningCallsFinishAndHandsWaitingCallsBack(t *testing.T) {
	inFakeTime(t, supervisor.Config{MaxInFlight: 1}, func(h *harness) {
		n := join(h)
		h.send(call("b", "count")).ok()
		running := h.send(call("a", "slow"))
		waiting := h.calls(3, "a", "count")
		synctest.Wait()
		n.foreign.Store(true)
		began := time.Now()
		closed := n.release(protocol.Release{})
		back := n.take()
		require.Len(t, back, 3)
		for i, p := range waiting {
			require.Equal(t, p.cmd.RequestID(), back[i].Op.RequestID(), "in their order")
			require.Zero(t, back[i].Runs)
		}
		require.Equal(t, 1, h.session("a").Outstanding)
		require.Zero(t, h.inspect().Waiting)
		late := h.send(call("a", "count"))
		require.Len(t, n.take(), 1)
		require.Equal(t, &messages.Closed{Sessions: 1}, <-closed)
		require.Equal(t, time.Second, time.Since(began))
		require.Equal(t, "done", running.text())
		require.Nil(t, h.session("a"))
		require.NotNil(t, h.session("b"))

		n.foreign.Store(false)
		for _, one := range back {
			n.resend(one)
		}
		for i, p := range waiting {
			require.Equal(t, fmt.Sprint(i+1), p.text(), "the MCP session was closed")
			require.EqualValues(t, 2, p.ok().Generation)
			require.Equal(t, 1, p.ok().Attempt)
		}
		late.replies <- &messages.Done{ID: late.cmd.RequestID()} // it is at the node
	})
}

func TestReleaseCutsCallsOffThatDoNotFinish(t *testing.T) {
	for _, now := range []bool{false, true} {
		t.Run(fmt.Sprint(now), func(t *testing.T) {
			inFakeTime(t, supervisor.Config{}, func(h *harness) {
				n := join(h)
				p := h.send(call("a", "hang"))
				synctest.Wait()
				n.foreign.Store(true)
				began, want := time.Now(), 10*time.Second
				if now {
					want = 0
				}
				closed := n.release(protocol.Release{Now: now})
				f := p.fails(messages.CodeLost)
				require.True(t, f.MayHaveRun)
				require.Equal(t, 1, f.Attempt)
				require.Equal(t, want, time.Since(began))
				require.Equal(t, 1, (<-closed).(*messages.Closed).Sessions)
				require.Less(t, time.Since(began), want+time.Second)
			})
		})
	}
}

// A release that comes again, with less time, has effect on what drains already.
func TestSecondReleaseMayLeaveLessTime(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		n := join(h)
		p := h.send(call("a", "hang"))
		synctest.Wait()
		n.foreign.Store(true)
		first := n.release(protocol.Release{})
		began := time.Now()
		second := n.release(protocol.Release{Now: true})
		p.fails(messages.CodeLost)
		require.Zero(t, time.Since(began))
		require.Equal(t, 1, (<-first).(*messages.Closed).Sessions)
		require.Equal(t, 1, (<-second).(*messages.Closed).Sessions)
	})
}

func TestReleaseEndsDialsAndWaiting(t *testing.T) {
	for name, dial := range map[string]func(context.Context, dial.Request) error{
		"dialing":         slowDial(20*time.Second, nil),
		"server is down":  slowDial(0, unavailableError("no route")),
		"heeds no cancel": func(context.Context, dial.Request) error { time.Sleep(time.Second); return nil }, // synctest
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, supervisor.Config{}, func(h *harness) {
				n := join(h)
				h.server.dial = dial
				p := h.send(call("a", "count"))
				time.Sleep(500 * time.Millisecond) // synctest
				n.foreign.Store(true)
				began := time.Now()
				require.Empty(t, (<-n.release(protocol.Release{})).(*messages.Closed).Left)
				require.Less(t, time.Since(began), time.Second)
				require.Nil(t, h.session("a"))
				require.Empty(t, h.server.open(), "a connection that came late is closed")
				back := n.take()
				require.Len(t, back, 1)
				h.server.set(func() { h.server.dial = nil })
				n.foreign.Store(false)
				n.resend(back[0])
				require.Equal(t, "1", p.text())
			})
		})
	}
}

func TestReleaseOfAKeyThatIsOwnedIsARestart(t *testing.T) {
	inFakeTime(t, supervisor.Config{MaxInFlight: 1}, func(h *harness) {
		n := join(h)
		running := h.send(call("a", "slow"))
		waiting := h.send(call("a", "count"))
		synctest.Wait()
		require.Equal(t, 1, (<-n.release(protocol.Release{})).(*messages.Closed).Sessions)
		require.Equal(t, "done", running.text())
		require.Equal(t, "1", waiting.text())
		require.EqualValues(t, 2, waiting.ok().Generation)
		require.Empty(t, n.take())
	})
}

func TestReleaseClosesWhatCouldNotBeClosedBeforeAndNothingElse(t *testing.T) {
	for name, theirs := range map[string]string{"its record": "", "another record": "theirs"} {
		t.Run(name, func(t *testing.T) {
			store := new(resume.Memory)
			inFakeTime(t, supervisor.Config{Store: store, LeaveOpen: true}, func(h *harness) {
				n := join(h)
				h.send(call("a", "count")).ok()
				h.server.set(func() {
					h.server.close = func(context.Context, messages.Key) error { return unavailableError("refused") }
				})
				require.NotEmpty(t, h.send(&messages.CloseScope{Scope: "a"}).reply().(*messages.Closed).Left)
				h.server.set(func() { h.server.close = nil })
				record := *storedRecord(h.t, store)
				if theirs != "" {
					record.SessionID = theirs
					saved(h.t, store, record)
					h.server.set(func() { h.server.sessions[theirs] = new(int) })
				}
				n.foreign.Store(true)
				closed := (<-n.release(protocol.Release{Leave: true})).(*messages.Closed)
				require.Positive(t, closed.Sessions, "although MCP sessions stay open")
				require.Empty(t, closed.Left)
				if theirs == "" {
					require.Empty(t, h.server.open())
					require.False(t, storedRecord(h.t, store).Valid())
					return
				}
				require.Len(t, h.server.open(), 1)
				require.Contains(t, h.server.open(), theirs)
				require.Equal(t, record, *storedRecord(h.t, store))
			})
		})
	}
}

func TestReleaseLeavesMCPSessionsOpenThatTheStoreHas(t *testing.T) {
	store := new(resume.Memory)
	inFakeTime(t, supervisor.Config{Store: store}, func(h *harness) {
		n := join(h)
		require.Equal(t, "1", h.send(call("a", "count")).text())
		before := storedRecord(h.t, store)
		release := func() {
			n.foreign.Store(true)
			require.Equal(t, &messages.Closed{Sessions: 1}, <-n.release(protocol.Release{Leave: true}))
			n.foreign.Store(false)
			require.Equal(t, before, storedRecord(h.t, store))
			require.Len(t, h.server.open(), 1)
		}
		release()
		p := h.send(call("a", "count"))
		require.Equal(t, "2", p.text(), "it is resumed")
		require.EqualValues(t, 1, p.ok().Generation)

		h.server.breakConnection("a", true)
		synctest.Wait()
		release()
		require.Equal(t, "3", h.send(call("a", "count")).text(), "also after its connection was lost")

		running := h.send(call("a", "slow"))
		synctest.Wait()
		n.foreign.Store(true)
		closed := n.release(protocol.Release{Leave: true})
		synctest.Wait()
		n.foreign.Store(false)
		p = h.send(call("a", "count"))
		require.Equal(t, "4", p.text(), "also by a session that began before the release has ended")
		require.EqualValues(t, 1, p.ok().Generation)
		require.Equal(t, "done", running.text())
		<-closed

		require.Equal(t, &messages.Closed{Sessions: 1}, <-n.release(protocol.Release{}))
		require.Equal(t, &mcpbridge.Record{Generation: 1}, storedRecord(h.t, store))
		require.Empty(t, h.server.open())
		require.EqualValues(t, 2, h.send(call("a", "count")).ok().Generation)
	})
}

// Without a store nobody could resume the MCP session.
func TestReleaseWithoutAStoreClosesMCPSessions(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		n := join(h)
		h.send(call("a", "count")).ok()
		require.Equal(t, &messages.Closed{Sessions: 1}, <-n.release(protocol.Release{Leave: true}))
		require.Empty(t, h.server.open())
	})
}

// The dial ignores its context, and resumes the MCP session after the release has come.
func TestDialThatIsReleasedLeavesItsMCPSessionOpen(t *testing.T) {
	store := new(resume.Memory)
	inFakeTime(t, supervisor.Config{Store: store}, func(h *harness) {
		n := join(h)
		h.send(call("a", "count")).ok()
		<-n.release(protocol.Release{Leave: true})
		before := storedRecord(h.t, store)
		h.server.set(func() {
			h.server.dial = func(context.Context, dial.Request) error { time.Sleep(time.Second); return nil } // synctest
		})
		p := h.send(call("a", "count"))
		synctest.Wait()
		n.foreign.Store(true)
		<-n.release(protocol.Release{Leave: true})
		require.Equal(t, before, storedRecord(h.t, store))
		back := n.take()
		require.Len(t, back, 1)
		n.foreign.Store(false)
		n.resend(back[0])
		require.Equal(t, "2", p.text())
		require.EqualValues(t, 1, p.ok().Generation)
	})
}

func TestCloseOfTheUserOverridesARelease(t *testing.T) {
	store := new(resume.Memory)
	inFakeTime(t, supervisor.Config{Store: store}, func(h *harness) {
		n := join(h)
		p := h.send(call("a", "slow"))
		synctest.Wait()
		n.foreign.Store(true)
		released := n.release(protocol.Release{Leave: true})
		require.Equal(t, 1, h.send(&messages.CloseScope{Scope: "a"}).reply().(*messages.Closed).Sessions)
		p.ok()
		<-released
		require.False(t, storedRecord(h.t, store).Valid())
		require.Empty(t, h.server.open())
	})
}

func TestReleaseLeavesAnMCPSessionOpenThatARestartWouldClose(t *testing.T) {
	store := new(resume.Memory)
	inFakeTime(t, supervisor.Config{Store: store}, func(h *harness) {
		n := join(h)
		p := h.send(call("a", "slow"))
		synctest.Wait()
		restart := h.send(&messages.Restart{Key: messages.Key{Server: "s", Scope: "a"}})
		synctest.Wait()
		n.foreign.Store(true)
		<-n.release(protocol.Release{Leave: true})
		require.Contains(t, restart.fails(messages.CodeClosed).Detail, "another member")
		p.ok()
		require.True(t, storedRecord(h.t, store).Valid())
		require.Empty(t, n.take(), "a restart is not handed back")

		h.send(call("b", "count")).ok()
		require.IsType(t, &messages.Done{}, h.send(&messages.Restart{Key: messages.Key{Server: "s", Scope: "b"}}).reply())
		require.IsType(t, &messages.Done{}, h.send(&messages.Restart{Key: messages.Key{Server: "s", Scope: "a"}}).reply(), "it has no session")
	})
}

func TestReleaseOfAStoppedSupervisorIsRefused(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		n := join(h)
		h.stop()
		require.Equal(t, messages.CodeClosed, (<-n.release(protocol.Release{})).(*messages.Failure).Code)
		h.resent(&protocol.ResentCall{Op: call("a", "count"), Runs: 1, MayHaveRun: true}).fails(messages.CodeClosed)
		h.executed = nil
	})
}

func TestResentCallIsReplayedUnderTheConditionsOfALostConnection(t *testing.T) {
	for name, c := range map[string]struct {
		msg     protocol.ResentCall
		attempt int // 0: it is lost
	}{
		"never ran":             {protocol.ResentCall{Op: call("a", "count")}, 1},
		"ran and certainly not": {protocol.ResentCall{Op: call("a", "count"), Runs: 1}, 2},
		"not safe":              {protocol.ResentCall{Op: call("a", "count"), Runs: 1, MayHaveRun: true}, 0},
		"not counted":           {protocol.ResentCall{Op: call("a", "count"), MayHaveRun: true}, 0},
		"annotated":             {protocol.ResentCall{Op: call("a", "count/ro"), Runs: 1, MayHaveRun: true}, 2},
		"allowed":               {protocol.ResentCall{Op: call("a", "count", replay(messages.ReplayAlways)), Runs: 1, MayHaveRun: true}, 2},
		"forbidden":             {protocol.ResentCall{Op: call("a", "count/ro", replay(messages.ReplayNever)), Runs: 1, MayHaveRun: true}, 0},
		"replayed already":      {protocol.ResentCall{Op: call("a", "count/ro"), Runs: 2, MayHaveRun: true}, 0},
	} {
		for _, interceptors := range []int{0, 1} {
			t.Run(fmt.Sprint(name, interceptors), func(t *testing.T) {
				cfg, passed := supervisor.Config{}, 0
				if interceptors > 0 {
					cfg = withInterceptors(func(ctx context.Context, op messages.Operation, next actors.Runner) (messages.Result, error) {
						passed++
						return next(ctx, op)
					})
				}
				inFakeTime(t, cfg, func(h *harness) {
					join(h)
					msg := c.msg
					msg.Detail = "the member has left"
					p := h.resent(&msg)
					if c.attempt > 0 {
						require.Equal(t, "1", p.text())
						require.Equal(t, c.attempt, p.ok().Attempt)
						require.Equal(t, c.attempt > 1, p.ok().Replayed)
					} else {
						f := p.fails(messages.CodeLost)
						require.True(t, f.MayHaveRun)
						require.Equal(t, max(1, msg.Runs), f.Attempt)
						require.Contains(t, f.Detail, "the member has left")
					}
					require.Equal(t, interceptors, passed)
				})
			})
		}
	}
}

func TestResentCallThatIsReplayedAndLostAgainIsLost(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		p := h.resent(&protocol.ResentCall{Op: call("a", "hang/ro"), Runs: 1, MayHaveRun: true})
		synctest.Wait()
		h.server.breakConnection("a", true)
		f := p.fails(messages.CodeLost)
		require.Equal(t, 2, f.Attempt)
		require.True(t, f.Replayed)
	})
}

// A call whose connection was lost, and that waits for the next one, may have run.
func TestCallThatWaitsForItsReplayIsHandedBackAsOneThatMayHaveRun(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		n := join(h)
		p := h.send(call("a", "hang/ro"))
		synctest.Wait()
		h.server.set(func() { h.server.dial = slowDial(time.Second, nil) })
		h.server.breakConnection("a", true)
		synctest.Wait()
		n.foreign.Store(true)
		<-n.release(protocol.Release{})
		back := n.take()
		require.Len(t, back, 1)
		require.Equal(t, 1, back[0].Runs)
		require.True(t, back[0].MayHaveRun)
		require.Equal(t, "connection reset", back[0].Detail)
		n.foreign.Store(false)
		n.resend(back[0])
		time.Sleep(2 * time.Second) // synctest
		require.Equal(t, 2, h.server.executions()[p.cmd.RequestID()], "it runs again")
		h.cancel(p)
		require.Equal(t, 2, p.fails(messages.CodeCancelled).Attempt)
		h.executed = nil // a failure after a replay
	})
}

func TestInterceptorsOfAnOperationRunOnOneMember(t *testing.T) {
	var passed atomic.Int32
	cfg := withInterceptors(func(ctx context.Context, op messages.Operation, next actors.Runner) (messages.Result, error) {
		passed.Add(1)
		if op.(*messages.CallTool).Params.Name == "slow" {
			time.Sleep(time.Second) // synctest
		}
		return next(ctx, op)
	})
	inFakeTime(t, cfg, func(h *harness) {
		n := join(h)
		passes := h.send(call("a", "slow"))
		synctest.Wait()
		n.foreign.Store(true)
		comes := h.send(call("a", "count"))
		back := n.take()
		require.Len(t, back, 1)
		require.False(t, back[0].Intercepted)
		require.EqualValues(t, 1, passed.Load(), "the interceptors of the owner run")
		time.Sleep(time.Second) // synctest
		back = append(back, n.take()...)
		require.Len(t, back, 2)
		require.True(t, back[1].Intercepted)
		n.foreign.Store(false)
		for _, one := range back {
			n.resend(one)
		}
		require.Equal(t, "1", comes.text())
		require.Equal(t, "done", passes.text())
		require.EqualValues(t, 2, passed.Load())
	})
}

func TestInterceptedCallThatWasHandedBackEndsInTime(t *testing.T) {
	pass := func(ctx context.Context, op messages.Operation, next actors.Runner) (messages.Result, error) {
		time.Sleep(100 * time.Millisecond) // synctest
		return next(ctx, op)
	}
	inFakeTime(t, withInterceptors(pass), func(h *harness) {
		n := join(h)
		who := owner(h)
		late, cancelled, orphan := h.send(call("a", "count", within(3*time.Second))), h.send(call("a", "count")), h.send(call("a", "count", ownedBy(who)))
		synctest.Wait()
		n.foreign.Store(true)
		time.Sleep(time.Second) // synctest
		require.Len(t, n.take(), 3)
		require.Empty(t, n.cancels())
		h.cancel(cancelled)
		h.system.Root.Stop(who)
		var ids []string
		for _, cancel := range n.cancels() { // the owner of the key is told
			require.Equal(t, messages.Key{Server: "s", Scope: "a"}, cancel.Key)
			ids = append(ids, cancel.ID)
		}
		require.ElementsMatch(t, []string{cancelled.cmd.RequestID(), orphan.cmd.RequestID()}, ids)
		require.True(t, cancelled.fails(messages.CodeCancelled).MayHaveRun, "nobody has said what became of it")
		orphan.fails(messages.CodeCancelled)
		require.True(t, late.fails(messages.CodeDeadline).MayHaveRun)
		require.Less(t, late.answeredAt.Sub(late.sent), 4*time.Second)
		require.Zero(t, h.inspect().Waiting)
	})
}

// saved stores a record for scope "a", as another process does.
func saved(t *testing.T, store mcpbridge.Store, record mcpbridge.Record) {
	t.Helper()
	require.NoError(t, store.Save(t.Context(), messages.Key{Server: "s", Scope: "a"}, &record))
}

func TestRecordOfAnotherProcessWinsOverWhatThisOneRemembers(t *testing.T) {
	store := new(resume.Memory)
	inFakeTime(t, supervisor.Config{Store: store}, func(h *harness) {
		n := join(h)
		generation := func() uint64 { return h.send(call("a", "count")).ok().Generation }
		require.EqualValues(t, 1, generation())
		<-n.release(protocol.Release{})

		saved(h.t, store, mcpbridge.Record{Generation: 7})
		require.EqualValues(t, 8, generation(), "a generation is not used twice")
		<-n.release(protocol.Release{Leave: true})

		theirs := *storedRecord(h.t, store)
		theirs.SessionID, theirs.Generation = "theirs", 9
		state := 41
		h.server.set(func() { h.server.sessions["theirs"] = &state })
		saved(h.t, store, theirs)
		p := h.send(call("a", "count"))
		require.Equal(t, "42", p.text(), "it is resumed")
		require.EqualValues(t, 9, p.ok().Generation)
		<-n.release(protocol.Release{Leave: true})

		older := theirs
		older.Generation = 3
		saved(h.t, store, older)
		p = h.send(call("a", "count"))
		require.Equal(t, "1", p.text(), "an older record is not resumed")
		require.EqualValues(t, 10, p.ok().Generation)

		saved(h.t, store, mcpbridge.Record{Generation: 20})
		<-n.release(protocol.Release{})
		require.EqualValues(t, 20, storedRecord(h.t, store).Generation, "a later record is not overwritten")
		require.EqualValues(t, 21, generation())
	})
}

func TestClusterIsToldTheTimeouts(t *testing.T) {
	cfg := supervisor.Config{
		CallTimeout: 4 * time.Second, ConnectTimeout: 3 * time.Second, DrainTimeout: 2 * time.Second, CloseTimeout: time.Second,
		Servers: own(supervisor.Limits{CallTimeout: time.Minute}),
	}
	inFakeTime(t, cfg, func(h *harness) {
		n := join(h)
		first := n.told()
		require.Equal(t, map[string]time.Duration{"own": time.Minute, "s": 4 * time.Second, "other": 4 * time.Second}, first.Calls)
		require.Equal(t, 4*time.Second, first.Call)
		require.Equal(t, 3*time.Second, first.Connect)

		h.reload(own(supervisor.Limits{CallTimeout: 2 * time.Minute, ConnectTimeout: 10 * time.Second, DrainTimeout: time.Hour})...)
		second := n.told()
		require.Equal(t, map[string]time.Duration{"own": 2 * time.Minute, "s": 4 * time.Second, "other": 4 * time.Second}, second.Calls)
		require.Equal(t, 10*time.Second, second.Connect)
		require.Equal(t, first.Close+time.Hour-2*time.Second, second.Close)
	})
}

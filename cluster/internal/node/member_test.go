package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/cluster/internal/link"
	"github.com/mcpactor/mcpactor/cluster/internal/view"
	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
)

func TestMembersWithoutAnAnswerOfTheWitnessAreFenced(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		a, b := w.members[0], w.members[1]
		mine, other := w.scopeOf(a, 0), w.scopeOf(b, 0)
		a.send(call(mine, "count")).ok()
		a.send(call(other, "count")).ok()
		w.hang(true)
		time.Sleep(leaseTime + time.Second/2)
		require.False(t, a.lease.Held())
		for _, m := range a.known() {
			require.Equal(t, !m.Self, m.Answered, "it hears the others, and has no lease itself")
		}
		a.send(&messages.Bind{Scope: other, Handler: a.pid}).fails(messages.CodeUnavailable)
		bindings := 0
		a.inNode(func(n *node) { bindings = len(n.bindings.of) })
		require.Zero(t, bindings)
		p, q, r := a.send(call(mine, "count")), a.send(call(other, "count")), a.send(call(w.scopeOf(a, 1), "count"))
		for _, scope := range []string{mine, w.scopeOf(a, 2), other} {
			f := a.send(call(scope, "count", within(time.Second))).fails(messages.CodeUnavailable)
			require.False(t, f.MayHaveRun)
		}
		time.Sleep(2 * time.Second)
		for _, waits := range []*sent{p, q, r} {
			require.False(t, waits.answered())
		}
		w.hang(false)
		require.Equal(t, "2", p.text())
		require.Equal(t, "2", q.text())
		require.Equal(t, "1", r.text())
		require.Zero(t, w.logs.count("session lost"))
		require.Len(t, a.known(), 3)
		require.Equal(t, "a#1", a.current.id, "it was not removed")
		require.Equal(t, 3, w.logs.count("member starts no calls"))
	})
}

// The witness hangs, and answers again when calls that have waited have little time left. Those that are sent have enough of it for
// an answer, and the others are told that they have certainly not run.
func TestCallsThatHaveWaitedOutAHangAreNotSentWithoutTimeLeft(t *testing.T) {
	inWorld(t, 2, nil, func(w *world) {
		a, b := w.members[0], w.members[1]
		scopes := []string{w.scopeOf(a, 0), w.scopeOf(b, 0)}
		for _, scope := range scopes {
			a.send(call(scope, "count")).ok()
		}
		w.hang(true)
		time.Sleep(leaseTime + time.Second/2)
		require.False(t, a.lease.Held())
		var all []*sent
		for n := range 200 {
			for _, scope := range scopes {
				all = append(all, a.send(call(scope, "brief", within(time.Second+time.Duration(n)*5*time.Millisecond))))
			}
		}
		time.Sleep(time.Second)
		w.hang(false)
		ran := 0
		for _, p := range all {
			if f, failed := p.reply().(*messages.Failure); failed {
				require.False(t, f.MayHaveRun, "%v", f)
			} else {
				ran++
			}
		}
		require.NotZero(t, ran)
		require.Less(t, ran, len(all))
	})
}

func TestAnotherMemberAtTheOwnAddressIsLogged(t *testing.T) {
	inWorld(t, 2, nil, func(w *world) {
		const message = "another member has the same address"
		w.logs.allowed = []string{message}
		other := view.Member{ID: "x", Host: w.members[0].address, Name: "x", Shards: shards}
		for range 2 * rivalAfter * 4 {
			w.mu.Lock()
			w.register.Do(&view.Request{From: other, Beat: true, First: true})
			w.mu.Unlock()
			time.Sleep(leaseTime / 4)
		}
		require.Equal(t, 1, w.logs.count(message))
	})
}

// Two members have heard each other when one of them joins, since they had to wait for the end of a third one: the other one does
// not follow it into the view.
func TestMembersThatDoNotFitAreNeverInOneView(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"Config.Member must be unique":   func(c *Config) { c.Name = "a" },
		"Config.Shards must be the same": func(c *Config) { c.Shards *= 2 },
	} {
		t.Run(want, func(t *testing.T) {
			inWorld(t, 0, nil, func(w *world) {
				w.logs.allowed = []string{want}
				var refused []string
				w.change = func(c *Config) {
					c.Joined = func(err error) {
						if err != nil {
							refused = append(refused, err.Error())
						}
					}
					if len(w.members) > 0 {
						change(c)
					}
				}
				w.register.View = view.View{Number: 1, Members: []view.Member{{ID: "x", Host: "x:1", Name: "x", Shards: shards}}}
				w.join()
				w.join()
				time.Sleep(time.Minute)
				w.mu.Lock()
				number, members := w.register.View.Number, w.register.View.Members
				w.mu.Unlock()
				require.EqualValues(t, 3, number)
				require.Len(t, members, 1)
				require.NotEmpty(t, refused)
				require.Contains(t, refused[0], want)
				require.Equal(t, 1, w.logs.count("member does not join"))
			})
		})
	}
}

func TestMemberThatWasRemovedJoinsAgain(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		a, b := w.members[0], w.members[1]
		mine, other := w.scopeOf(a, 0), w.scopeOf(b, 0)
		a.send(call(mine, "count")).ok()
		running, remote := a.send(call(mine, "hang")), a.send(call(other, "hang"))
		toA := b.send(call(mine, "hang"))
		time.Sleep(100 * time.Millisecond)
		w.server.set(func() { w.server.unstable = true }) // the fenced member still has its connection
		w.isolate(a)
		time.Sleep(removal + time.Second)
		p, q := a.send(call(mine, "count")), a.send(call(other, "count"))
		require.Equal(t, "1", b.send(call(mine, "count")).text(), "its keys work elsewhere")
		toA.fails(messages.CodeLost)
		w.heal(a)
		w.awaitStable()
		require.Equal(t, "a#2", a.current.id)
		require.True(t, running.fails(messages.CodeLost).MayHaveRun)
		require.True(t, remote.fails(messages.CodeLost).MayHaveRun)
		p.ok()
		q.ok()
		w.server.set(func() { w.server.unstable = false })
		require.Equal(t, "a", b.send(call(mine, "count")).ok().Supervisor)
	})
}

func TestMemberThatNobodyRemembersJoinsAgain(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		a := w.members[0]
		a.send(call("x", "count")).ok()
		w.remove(a.current)
		time.Sleep(time.Second)
		w.awaitStable()
		require.Equal(t, "a#2", a.current.id)
		require.Equal(t, "1", a.send(call("x", "count")).text(), "a new session")
	})
}

func TestMCPSessionsMoveWithASharedStore(t *testing.T) {
	store := new(resume.Memory)
	inWorld(t, 3, func(w *world) { w.cfg.Store = store }, func(w *world) {
		a, b := w.members[0], w.members[1]
		scope := w.scopeOf(b, 0)
		require.Equal(t, "1", a.send(call(scope, "count")).text())
		slow := a.send(call(scope, "slow"))
		time.Sleep(100 * time.Millisecond)
		b.leave()
		require.Equal(t, "2", a.send(call(scope, "count")).text())
		slow.ok()
		d := w.join()
		w.awaitStable()
		moved := ""
		for i := 0; moved == ""; i++ {
			if s := fmt.Sprint("other", i); w.ownerOf(s) == a {
				moved = s
			}
		}
		require.Equal(t, "1", d.send(call(moved, "count")).text())
		w.kill(a)
		time.Sleep(removal + time.Second)
		require.Equal(t, "2", d.send(call(moved, "count")).text(), "another member attaches to it")
	})
}

func TestLastMemberClosesItsSessionsUnlessTheyAreToStayOpen(t *testing.T) {
	for _, open := range []bool{false, true} {
		t.Run(fmt.Sprint("LeaveOpen=", open), func(t *testing.T) {
			store := new(resume.Memory)
			inWorld(t, 1, func(w *world) { w.cfg.Store, w.cfg.LeaveOpen = store, open }, func(w *world) {
				w.members[0].send(call("x", "count")).ok()
				w.members[0].leave()
				w.server.set(func() { require.Equal(t, open, len(w.server.sessions) > 0) })
			})
		})
	}
}

func TestMembersThatLeaveAtOnceHandNothingOver(t *testing.T) {
	for _, members := range []int{1, 2, 3} {
		t.Run(fmt.Sprint(members), func(t *testing.T) {
			store := new(resume.Memory)
			inWorld(t, members, func(w *world) { w.cfg.Store, w.cfg.MaxInFlight = store, 1 }, func(w *world) {
				var running, waiting []*sent
				for _, m := range w.members {
					for _, owner := range w.members {
						running = append(running, m.send(call(w.scopeOf(owner, 0), "hang")))
						waiting = append(waiting, m.send(call(w.scopeOf(owner, 0), "count")))
					}
				}
				time.Sleep(100 * time.Millisecond)
				began := time.Now()
				var all sync.WaitGroup
				for _, m := range w.members {
					all.Go(m.leave)
				}
				for _, p := range waiting {
					p.fails(messages.CodeClosed)
					require.Less(t, p.at.Load().Sub(began), time.Second)
				}
				all.Wait()
				for _, p := range running {
					p.reply()
				}
				w.server.set(func() { require.Empty(t, w.server.sessions) })
			})
		})
	}
}

// All members leave while the witness is silent for longer than a lease: the one that is left then closes all sessions.
func TestMembersThatLeaveAtOnceWaitForTheWitness(t *testing.T) {
	store := new(resume.Memory)
	inWorld(t, 3, func(w *world) { w.cfg.Store = store }, func(w *world) {
		for _, m := range w.members {
			m.send(call(w.scopeOf(m, 0), "count")).ok()
		}
		w.hang(true)
		time.AfterFunc(2*leaseTime, func() { w.hang(false) })
		var all sync.WaitGroup
		for _, m := range w.members {
			all.Go(m.leave)
		}
		all.Wait()
		w.server.set(func() { require.Empty(t, w.server.sessions) })
	})
}

// The scope is bound to an actor of another member. When the member that was removed drops what it had
// with that one, this must not close the MCP session, which a third member has resumed.
func TestMemberThatWasRemovedClosesNoSessionOfOthers(t *testing.T) {
	store := new(resume.Memory)
	inWorld(t, 3, func(w *world) { w.cfg.Store = store }, func(w *world) {
		a, b := w.members[0], w.members[1]
		scope := w.scopeOf(a, 0)
		owner, _ := b.spawn(nil)
		b.send(&messages.Bind{Scope: scope, Owner: owner}).reply()
		require.Equal(t, "1", a.send(call(scope, "count")).text())
		w.server.set(func() { w.server.unstable = true }) // the fenced member still has its connection
		w.isolate(a)
		time.Sleep(leaseTime + time.Second/2)
		waiting := a.send(call(scope, "count"))
		time.Sleep(removal)
		require.Equal(t, "2", b.send(call(scope, "count")).text(), "another member attaches to it")
		w.heal(a)
		require.Equal(t, "3", waiting.text(), "it is handed back, and runs when the member has joined again")
		w.awaitStable()
		require.Equal(t, "a#2", a.current.id)
		require.Equal(t, "4", b.send(call(scope, "count")).text())
		b.system.Root.Stop(owner)
		time.Sleep(time.Second)
		require.Zero(t, w.server.openOf(scope), "the member knows the binding again")
		w.server.set(func() { require.Empty(t, w.server.sessions) })
	})
}

func TestCommandsToAllMembers(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		a := w.members[0]
		for i := range 30 {
			a.send(call(fmt.Sprint("scope", i), "count")).ok()
		}
		snap := a.send(&messages.Inspect{ID: "i"}).reply().(*messages.Snapshot)
		require.Equal(t, 30, snap.Total)
		require.Len(t, snap.Sessions, 30)
		require.Len(t, snap.Members, 3)
		for i, m := range snap.Members {
			require.Equal(t, w.members[i].name, m.Name)
			require.True(t, m.Answered)
			require.Positive(t, m.Sessions)
		}
		require.Equal(t, "i", snap.ID)
		require.IsType(t, &messages.Done{}, a.send(&messages.Forget{Server: "s"}).reply())
		require.Equal(t, &messages.Closed{ID: "p", Sessions: 20}, a.send(&messages.CloseMatching{ID: "p", Scopes: "scope[12]?"}).reply())
		require.Equal(t, 1, a.send(&messages.CloseScope{Scope: "scope0"}).reply().(*messages.Closed).Sessions)
		require.Equal(t, &messages.Closed{ID: "c", Sessions: 9}, a.send(&messages.CloseServer{ID: "c", Server: "s"}).reply())

		w.setCut(w.members[2], true)
		inspect, all, forget := a.send(&messages.Inspect{}), a.send(&messages.CloseAll{Now: true}), a.send(&messages.Forget{Server: "s"})
		snap = inspect.reply().(*messages.Snapshot)
		require.Len(t, snap.Members, 3)
		require.False(t, snap.Members[2].Answered)
		require.Equal(t, []string{"c"}, all.reply().(*messages.Closed).Unanswered)
		f := forget.fails(messages.CodeUnavailable)
		require.Contains(t, f.Detail, "c")
		w.heal(w.members[2])
		w.awaitStable()
		scope := w.scopeOf(w.members[1], 0)
		a.send(call(scope, "count")).ok()
		key := messages.Key{Server: "s", Scope: scope}
		require.IsType(t, &messages.Done{}, a.send(&messages.Restart{Key: key}).reply())
		require.Equal(t, 1, a.send(&messages.CloseSession{Key: key}).reply().(*messages.Closed).Sessions)
	})
}

func TestHandlesAreReleasedAndListedOnAllMembers(t *testing.T) {
	prepare := func(w *world) {
		w.cfg.Servers = slices.Clone(w.cfg.Servers)
		w.cfg.Servers[0].Handles = []mcpbridge.Handle{{Mint: "open", Pattern: "(handle-.*)", Release: "close", Argument: "id", Max: 3}}
	}
	inWorld(t, 3, prepare, func(w *world) {
		a, b, c := w.members[0], w.members[1], w.members[2]
		open := func() (n int) {
			w.server.set(func() { n = len(w.server.handles) })
			return n
		}
		const scope = "scope"
		first, second := a.send(call(scope, "open")).text(), c.send(call(scope, "open")).text()
		var others []string
		for _, m := range w.members {
			others = append(others, w.scopeOf(m, 0))
			a.send(call(others[len(others)-1], "open")).ok()
		}
		require.Equal(t, 5, open())

		list := b.send(&messages.ListHandles{ID: "l", Scope: scope}).reply().(*messages.HandleList)
		require.Equal(t, []string{first, second}, []string{list.Handles[0].Handle, list.Handles[1].Handle})
		require.Len(t, list.Handles, 2)
		require.Equal(t, "l", list.ID)
		snap := a.send(&messages.Inspect{}).reply().(*messages.Snapshot)
		require.Equal(t, []messages.HandleSnapshot{{Mint: "open", Held: 5, Max: 9}}, snap.Servers[slices.IndexFunc(snap.Servers, func(s messages.ServerSnapshot) bool { return s.Name == "s" })].Handles, "the line is per member")

		require.Equal(t, &messages.HandlesReleased{ID: "r", Released: 2}, b.send(&messages.ReleaseHandles{ID: "r", Scope: scope}).reply())
		require.Equal(t, 3, open())
		require.Equal(t, &messages.HandleList{Handles: []messages.HeldHandle{}}, b.send(&messages.ListHandles{Scope: scope}).reply())
		require.Equal(t, 1, a.send(&messages.CloseScope{Scope: others[2]}).reply().(*messages.Closed).Sessions)
		require.Equal(t, 2, open(), "what ends a scope releases its handles on any member")

		w.server.set(func() { clear(w.server.handles) }) // the server has closed them
		closed := a.send(&messages.CloseScope{Scope: others[1]}).reply().(*messages.Closed)
		require.Len(t, closed.Left, 1)
		require.Equal(t, "open", closed.Left[0].Handle)

		w.setCut(c, true)
		listing, releasing := a.send(&messages.ListHandles{Scope: others[0]}), a.send(&messages.ReleaseHandles{Scope: scope})
		list = listing.reply().(*messages.HandleList)
		require.Len(t, list.Handles, 1)
		require.Equal(t, []string{"c"}, list.Unanswered)
		require.Equal(t, []string{"c"}, releasing.reply().(*messages.HandlesReleased).Unanswered)
	})
}

// With a shared store, the next member of a key releases its handles.
func TestHandlesMoveWithTheirKey(t *testing.T) {
	for name, move := range map[string]func(w *world, m *member){
		"the member leaves":    func(_ *world, m *member) { m.leave() },
		"the member is killed": func(w *world, m *member) { w.kill(m) },
	} {
		t.Run(name, func(t *testing.T) {
			prepare := func(w *world) {
				w.cfg.Store, w.cfg.LeaveOpen = new(resume.Memory), true
				w.cfg.Servers = slices.Clone(w.cfg.Servers)
				w.cfg.Servers[0].Handles = []mcpbridge.Handle{{Mint: "open", Pattern: "(handle-.*)", Release: "close", Argument: "id"}}
			}
			inWorld(t, 2, prepare, func(w *world) {
				a, b := w.members[0], w.members[1]
				scope := w.scopeOf(b, 0)
				handle := a.send(call(scope, "open")).text()
				move(w, b)
				w.awaitStable()
				require.Equal(t, a, w.ownerOf(scope))
				a.send(call(scope, "count")).ok()
				time.Sleep(20 * time.Second) // until the member has looked for the handles of its keys
				list := a.send(&messages.ListHandles{Scope: scope}).reply().(*messages.HandleList)
				require.Len(t, list.Handles, 1)
				require.Equal(t, handle, list.Handles[0].Handle)
				require.Empty(t, a.send(&messages.CloseScope{Scope: scope}).reply().(*messages.Closed).Left)
				w.server.set(func() { require.Empty(t, w.server.handles) })
			})
		})
	}
}

func TestSnapshotOfOneMemberIsThatOfItsSupervisor(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		a := w.members[0]
		key := messages.To("s", "scope").Key
		for _, cmd := range []*messages.Inspect{{ID: "i"}, {Server: "other"}, {Scope: "scope", Limit: 1}, {Limit: -1}} {
			merged := a.send(cmd).reply().(*messages.Snapshot)
			p := newSent(a, cmd)
			a.system.Root.RequestWithCustomSender(a.sup.PID(), cmd, p.pid)
			own := p.reply().(*messages.Snapshot)
			p.close()
			require.Len(t, merged.Members, 1)
			own.Time = merged.Time
			require.Equal(t, own, merged)
			a.send(call(key.Scope, "count")).ok()
		}
	})
}

// The configuration of the members is reloaded one after the other.
func TestCommandsAboutAServerThatSomeMembersLack(t *testing.T) {
	inWorld(t, 2, nil, func(w *world) {
		w.cfg.Servers = append(slices.Clone(w.cfg.Servers), supervisor.Server{Name: "new", URL: "http://fake.invalid"})
		w.join()
		w.awaitStable()
		for _, m := range w.members {
			require.IsType(t, &messages.Done{}, m.send(&messages.Forget{Server: "new"}).reply())
			require.Equal(t, &messages.Closed{ID: "i"}, m.send(&messages.CloseServer{ID: "i", Server: "new"}).reply())
			m.send(&messages.Forget{Server: "other"}).fails(messages.CodeUnknownServer)
			m.send(&messages.CloseServer{Server: "other"}).fails(messages.CodeUnknownServer)
		}
	})
}

func TestMembersHaveAsMuchTimeToCloseAsASupervisorTakes(t *testing.T) {
	inWorld(t, 2, nil, func(w *world) {
		a, b := w.members[0], w.members[1]
		for _, m := range w.members {
			for _, now := range []bool{false, true} {
				a.send(call(w.scopeOf(m, 0), "deaf"))
				time.Sleep(100 * time.Millisecond)
				closed := b.send(&messages.CloseAll{Now: now}).reply().(*messages.Closed)
				require.Empty(t, closed.Unanswered)
				require.Len(t, closed.Left, 1)
				time.Sleep(30 * time.Second)
			}
		}
		require.Empty(t, b.send(&messages.CloseAll{}).reply().(*messages.Closed).Left)
		a.strays, b.strays = nil, nil // the calls have returned after their sessions gave up
	})
}

func TestMisuseGetsTheReplyOfASupervisor(t *testing.T) {
	type embeds struct{ *messages.CallTool }
	inWorld(t, 2, nil, func(w *world) {
		a := w.members[0]
		send := func(msg any) any {
			box := clusterapi.NewFuture(a.system, nil)
			defer box.Close()
			a.system.Root.RequestWithCustomSender(a.pid, msg, box.PID)
			return <-box.Reply
		}

		for _, msg := range []any{
			(*messages.CallTool)(nil), (*messages.CloseSession)(nil), (*messages.Restart)(nil), (*messages.Pin)(nil), (*messages.Check)(nil),
			(*messages.Bind)(nil), (*messages.CancelScope)(nil), (*messages.CloseScope)(nil), (*messages.CloseServer)(nil),
			(*messages.CloseMatching)(nil), (*messages.CloseAll)(nil), (*messages.Inspect)(nil), (*messages.Forget)(nil),
			(*messages.ReleaseHandles)(nil), (*messages.ListHandles)(nil),
			embeds{},
			&embeds{}, "text",
		} {
			f, failed := send(msg).(*messages.Failure)
			require.True(t, failed, "%T", msg)
			require.Equal(t, messages.CodeInvalid, f.Code, "%T", msg)
		}
		a.system.Root.Send(a.pid, (*messages.Cancel)(nil)) // has no reply
		for i := range 10 {
			require.IsType(t, &messages.ToolResult{}, send(*call(fmt.Sprint("scope", i), "count")))
		}
		require.Equal(t, 10, send(messages.Inspect{}).(*messages.Snapshot).Total)
		require.Equal(t, 10, send(messages.CloseAll{}).(*messages.Closed).Sessions)
	})
}

func TestInterceptorsRunOnceForAnOperation(t *testing.T) {
	seen := make(chan string, 1000)
	prepare := func(w *world) {
		seen = make(chan string, 1000)
		w.cfg.Interceptors = []actors.Interceptor{func(next actors.Runner) actors.Runner {
			return func(ctx context.Context, op messages.Operation) (messages.Result, error) {
				seen <- op.RequestID()
				return next(ctx, op)
			}
		}}
	}
	inWorld(t, 3, prepare, func(w *world) {
		var all []*sent
		for i := range 30 {
			all = append(all, w.members[i%3].send(call(fmt.Sprint("scope", i%10), "slow")))
		}
		time.Sleep(100 * time.Millisecond)
		w.members[1].leave()
		times := map[string]int{}
		for _, p := range all {
			p.reply()
		}
		for len(seen) > 0 {
			times[<-seen]++
		}
		for _, p := range all {
			require.LessOrEqual(t, times[p.cmd.RequestID()], 1)
		}
	})
}

func TestSpanOfAClientIsTheTraceOnAnotherMember(t *testing.T) {
	traces := make(chan messages.Trace, 2)
	prepare := func(w *world) {
		traces = make(chan messages.Trace, 2)
		w.cfg.Interceptors = []actors.Interceptor{func(next actors.Runner) actors.Runner {
			return func(ctx context.Context, op messages.Operation) (messages.Result, error) {
				traces <- messages.TraceOf(ctx)
				return next(ctx, op)
			}
		}}
	}
	inWorld(t, 2, prepare, func(w *world) {
		client, scope := supervisor.NewClient(w.members[0].system, w.members[0].pid), w.scopeOf(w.members[1], 0)
		traced := func(ctx context.Context) messages.Trace {
			reply, err := client.Do(ctx, call(scope, "count"))
			require.NoError(t, err)
			require.Equal(t, "b", reply.(*messages.ToolResult).Supervisor)
			return <-traces
		}
		state, err := trace.ParseTraceState("vendor=1")
		require.NoError(t, err)
		ctx := trace.ContextWithSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, TraceState: state,
		}))
		span := messages.Trace{Parent: "00-01000000000000000000000000000000-0200000000000000-01", State: "vendor=1"}
		require.Equal(t, span, traced(ctx))
		require.Empty(t, traced(context.Background()))
		own := messages.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
		require.Equal(t, own, traced(messages.WithTrace(ctx, own)), "the trace of the operation takes precedence")
	})
}

func TestNonsenseChangesNothing(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		a, b := w.members[0], w.members[1]
		scope := w.scopeOf(b, 0)
		a.send(call(scope, "count")).ok()
		from := a.current.id
		r := rand.New(rand.NewPCG(1, 2))
		types := []string{"", "heartbeat", "confirm", "call-tool", "moved", "leaves", "elicit", "progress", "bound", "closed", "session-opened"}
		for i := range 2000 {
			m := link.Message{Type: types[r.IntN(len(types))], ID: r.Uint64() | 1<<40, Head: []byte("{nonsense"), Body: []byte([]string{"{}", "{nonsense"}[r.IntN(2)])}
			of := from
			switch i % 3 {
			case 0:
				of = "nobody"
			case 1:
				m.Type, m.Body = "heartbeat", make([]byte, 100)
			}
			b.system.Root.Send(b.pid, Decode(b.current.id, of, m))
		}
		b.system.Root.Send(b.pid, &Received{Network: b.current.id})
		b.system.Root.Send(b.pid, &Received{Network: "before", From: from})
		b.system.Root.Send(b.pid, &Changed{Network: b.current.id, Peer: "nobody", State: link.State{Ended: true}})
		time.Sleep(5 * time.Second)
		require.Equal(t, "2", a.send(call(scope, "count")).text())
		require.Len(t, b.known(), 3)
		require.Equal(t, "b#1", b.current.id)
	})
}

// A process that has the address of a killed member, and speaks another version, says nothing of what the member has run.
func TestCallOfAMemberThatComesBackInAnotherVersionIsLost(t *testing.T) {
	inWorld(t, 2, nil, func(w *world) {
		a, b := w.members[0], w.members[1]
		scope := w.scopeOf(b, 0)
		a.send(call(scope, "count")).ok()
		running := a.send(call(scope, "hang"))
		time.Sleep(100 * time.Millisecond)
		w.kill(b)
		waits := a.send(call(scope, "count"))
		a.system.Root.Send(a.pid, &Changed{Network: a.current.id, Peer: b.current.id, State: link.State{Version: 7}})
		require.True(t, running.fails(messages.CodeLost).MayHaveRun)
		require.True(t, waits.fails(messages.CodeLost).MayHaveRun)
		require.Equal(t, "1", a.send(call(scope, "count")).text(), "a new session")
	})
}

func TestUnknownMessagesOfAPeerAreRefused(t *testing.T) {
	inWorld(t, 2, nil, func(w *world) {
		a, b := w.members[0], w.members[1]
		scope := w.scopeOf(b, 0)
		a.send(call(scope, "count")).ok()
		running := a.send(call(scope, "slow"))
		time.Sleep(100 * time.Millisecond)
		send := func(m link.Message) {
			b.inNode(func(n *node) {
				_, err := n.members.peers[a.current.id].link.Send(m, true)
				require.NoError(t, err)
			})
		}
		// Ids that both have for exchanges of their own.
		for id := range uint64(10) {
			for _, m := range []link.Message{{Type: "of the future", ID: id}, {Type: "call-tool", ID: id, Body: []byte("nonsense")}, {Type: "moved", ID: id, Body: []byte("{}")}, {Type: "closed", ID: id, Body: []byte("{}")}} {
				send(m)
			}
		}
		running.ok()
		require.Equal(t, "2", a.send(call(scope, "count")).text())

		running = a.send(call(scope, "slow"))
		time.Sleep(100 * time.Millisecond)
		for id := range uint64(20) {
			send(link.Message{Type: "of the future", ID: id | isReply})
		}
		f := running.reply().(*messages.Failure)
		require.Equal(t, messages.CodeProtocol, f.Code)
		require.True(t, f.MayHaveRun)
		a.pending = nil // the verifier takes this code for a bug
	})
}

func TestLeavingWithoutANetwork(t *testing.T) {
	inWorld(t, 2, nil, func(w *world) {
		a := w.members[0]
		scope := w.scopeOf(a, 0)
		w.remove(a.current)
		w.setCut(a, false)
		var joining bool
		for !joining {
			time.Sleep(time.Millisecond)
			a.inNode(func(n *node) { joining = !n.members.inside() })
		}
		w.setCut(a, true)
		p := a.send(call(scope, "count"))
		a.leave()
		f := p.fails(messages.CodeClosed)
		require.False(t, f.MayHaveRun)
		w.setCut(a, false)
	})
	inWorld(t, 1, nil, func(w *world) {
		m := w.join()
		p := m.send(call("x", "count"))
		m.leave() // before it has joined
		p.fails(messages.CodeClosed)
	})
}

// TestSoak does random things to a cluster under load. MCPACTOR_SEED repeats a run.
func TestSoak(t *testing.T) {
	inWorld(t, 4, func(w *world) { w.lose = 0.01 }, func(w *world) {
		r := rand.New(rand.NewPCG(w.seed, 3))
		w.server.unstable = true
		var all []*sent
		anyOf := func() *member { live := w.live(); return live[r.IntN(len(live))] }
		for i := range 400 {
			m := anyOf()
			tool := []string{"count", "count", "slow", "slow/ro", "big", "hang", "progress"}[r.IntN(7)]
			op := call(fmt.Sprint("scope", r.IntN(30)), tool, with("size", r.IntN(300_000)))
			op.Replay = []messages.Replay{messages.ReplaySafe, messages.ReplayNever, messages.ReplayAlways}[r.IntN(3)]
			if r.IntN(3) == 0 || tool == "hang" {
				op.Deadline = time.Now().Add(time.Duration(r.IntN(8000)) * time.Millisecond)
			}
			if r.IntN(4) == 0 {
				op.Owner, _ = m.spawn(nil)
				if r.IntN(2) == 0 {
					time.AfterFunc(time.Duration(r.IntN(2000))*time.Millisecond, func() { m.system.Root.Stop(op.Owner) })
				}
			}
			if tool == "progress" {
				op.Subscriber, _ = m.spawn(nil)
			}
			p := m.send(op)
			all = append(all, p)
			time.Sleep(time.Duration(r.IntN(30)) * time.Millisecond)
			switch r.IntN(60) {
			case 0, 1, 2, 3:
				m.cancel(p)
			case 4, 5:
				anyOf().send(&messages.CloseScope{Scope: op.Key.Scope})
			case 6:
				anyOf().send(&messages.Inspect{})
			case 7:
				other := anyOf()
				w.cutLink(m, other, true)
				time.AfterFunc(time.Duration(r.IntN(4000))*time.Millisecond, func() { w.cutLink(m, other, false) })
			case 8:
				owner, _ := m.spawn(nil)
				m.send(&messages.Bind{Scope: op.Key.Scope, Owner: owner})
				time.AfterFunc(time.Duration(r.IntN(4000))*time.Millisecond, func() { m.system.Root.Stop(owner) })
			}
			if i%50 == 49 {
				switch r.IntN(4) {
				case 0:
					if len(w.live()) > 3 {
						w.kill(m)
						break
					}
					fallthrough
				case 1:
					w.join()
				case 2:
					w.isolate(m)
					time.AfterFunc(time.Duration(r.IntN(8000))*time.Millisecond, func() { w.heal(m) })
				case 3:
					if len(w.live()) > 3 {
						m.leave()
					}
				}
			}
		}
		time.Sleep(time.Minute)
		w.mu.Lock()
		w.lose = 0
		w.mu.Unlock()
		w.awaitStable()
		for _, p := range all {
			if !p.m.killed.Load() {
				p.reply()
			}
		}
		w.server.set(func() { w.server.unstable = false })
		for i := range 30 {
			for _, m := range w.live() {
				require.Equal(t, w.ownerOf(fmt.Sprint("scope", i)).name, m.send(call(fmt.Sprint("scope", i), "count")).ok().Supervisor)
			}
			require.Equal(t, 1, w.server.openOf(fmt.Sprint("scope", i)))
		}
	})
}

func TestTheOwnerOfAKeySaysWhetherItIsReady(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		a, b := w.members[0], w.members[1]
		cmd := &messages.Check{Key: messages.Key{Server: "s", Scope: w.scopeOf(b, 0)}}
		require.Empty(t, a.send(cmd).reply().(*messages.Status).State)
		w.members[2].send(call(cmd.Key.Scope, "count")).ok()
		for _, m := range w.members {
			status := m.send(cmd).reply().(*messages.Status)
			require.Equal(t, messages.StateReady, status.State)
			require.EqualValues(t, 1, status.Generation)
			require.Equal(t, messages.HealthUp, status.Health)
		}
	})
}

// What a supervisor has refused, or may have run, is not counted as refused by the member.
func TestOnlyWhatAMemberHasFailedItselfIsCountedAsRefused(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		a, b := w.members[0], w.members[1]
		scope := w.scopeOf(b, 0)
		running := a.send(call(scope, "hang"))
		time.Sleep(100 * time.Millisecond)
		a.send(&messages.CloseServer{Server: "other"}).fails(messages.CodeUnknownServer)
		w.kill(b)
		running.fails(messages.CodeLost)
		require.Zero(t, a.node.refused.Load())
		w.isolate(a)
		time.Sleep(removal)
		a.send(&messages.CloseServer{Server: "s"}).fails(messages.CodeUnavailable)
		require.EqualValues(t, 1, a.node.refused.Load())
	})
}

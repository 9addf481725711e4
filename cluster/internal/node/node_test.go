package node

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

func TestFirstCallsOfAllMembersOpenOneSession(t *testing.T) {
	inWorld(t, 4, nil, func(w *world) {
		var all []*sent
		for i := range 40 {
			for _, m := range w.members {
				all = append(all, m.send(call(fmt.Sprint("scope", i), "count")))
			}
		}
		counts := map[string]int{}
		for _, p := range all {
			require.Equal(t, w.ownerOf(p.ok().Key.Scope).name, p.ok().Supervisor)
			counts[p.ok().Key.Scope+p.text()]++
		}
		require.Len(t, counts, len(all), "each call had its session")
		require.Equal(t, 40, w.server.dials)
	})
}

func TestCallsSurviveFaultsOfTheNetwork(t *testing.T) {
	for name, faults := range map[string]func(w *world){
		"loss":       func(w *world) { w.lose = 0.1 },
		"jitter":     func(w *world) { w.jitter = 10 * time.Millisecond },
		"everything": func(w *world) { w.lose, w.jitter = 0.05, 5*time.Millisecond },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 3, faults, func(w *world) {
				var all []*sent
				for i := range 20 {
					for _, m := range w.members {
						all = append(all, m.send(call(fmt.Sprint("scope", i), "count")))
						all = append(all, m.send(call(fmt.Sprint("scope", i), "big", with("size", 300_000))))
						time.Sleep(10 * time.Millisecond)
					}
				}
				for _, p := range all {
					p.ok()
				}
				require.Equal(t, 20, w.server.dials)
			})
		})
	}
}

func TestCallsSurviveACutLink(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		a, b := w.members[0], w.members[1]
		scope := w.scopeOf(b, 0)
		require.Equal(t, "1", a.send(call(scope, "count")).text())
		w.cutLink(a, b, true)
		p := a.send(call(scope, "count"))
		time.Sleep(time.Second)
		require.False(t, p.answered())
		w.cutLink(a, b, false)
		require.Equal(t, "2", p.text())

		p = a.send(call(scope, "slow"))
		time.Sleep(500 * time.Millisecond)
		w.cutLink(a, b, true)
		time.Sleep(time.Second)
		w.cutLink(a, b, false)
		p.ok()

		time.Sleep(leaseTime) // they hear each other again
		w.cutLink(a, b, true)
		f := a.send(call(scope, "count", within(time.Second))).fails(messages.CodeDeadline)
		require.True(t, f.MayHaveRun)
		f = a.send(call(scope, "count", within(time.Second))).fails(messages.CodeUnavailable)
		require.False(t, f.MayHaveRun, "nothing is sent to a member that is silent")
		p = a.send(call(scope, "count"))
		time.Sleep(leaseTime)
		w.cutLink(a, b, false)
		p.ok()
	})
}

func TestCallsToAMemberWhoseConnectionHasEndedWait(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		a, b := w.members[0], w.members[1]
		scope := w.scopeOf(b, 0)
		a.send(call(scope, "count")).ok()
		w.cutLink(a, b, true)
		a.current.links[b.current.id].breaks()
		f := a.send(call(scope, "count", within(100*time.Millisecond))).fails(messages.CodeUnavailable)
		require.False(t, f.MayHaveRun)
		waits := a.send(call(scope, "count"))
		w.cutLink(a, b, false)
		require.Equal(t, "2", waits.text())
	})
}

func TestCallThatIsSaidNotToHaveRunDoesNotRunLater(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		a, b := w.members[0], w.members[1]
		scope := w.scopeOf(b, 0)
		a.send(call(scope, "count")).ok()
		w.cutLink(a, b, true)
		var all []*sent
		for range 700 { // more than a link has on its way
			all = append(all, a.send(call(scope, "count", within(500*time.Millisecond))))
		}
		most := 2
		for _, p := range all {
			if p.fails(messages.CodeDeadline).MayHaveRun {
				most++
			}
		}
		require.Less(t, most, len(all))
		w.cutLink(a, b, false)
		time.Sleep(10 * time.Second)
		ran, err := strconv.Atoi(a.send(call(scope, "count")).text())
		require.NoError(t, err)
		require.LessOrEqual(t, ran, most)
	})
}

func TestKilledMemberIsReplaced(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		a, b := w.members[0], w.members[1]
		scope := w.scopeOf(b, 0)
		a.send(call(scope, "count")).ok()
		running := a.send(call(scope, "hang"))
		safe := a.send(call(scope, "slow/ro", func(op *messages.CallTool) { op.Replay = messages.ReplaySafe }))
		always := a.send(call(scope, "slow", func(op *messages.CallTool) { op.Replay = messages.ReplayAlways }))
		time.Sleep(100 * time.Millisecond)
		w.kill(b)
		began := time.Now()
		late := a.send(call(scope, "count")) // given to the network, which does not deliver it
		var other []*sent
		for i := range 20 {
			other = append(other, a.send(call(w.scopeOf(w.members[2], i), "count")))
		}
		f := running.fails(messages.CodeLost)
		require.True(t, f.MayHaveRun)
		require.Equal(t, 1, f.Attempt)
		require.False(t, f.Replayed)
		for _, p := range []*sent{safe, always} {
			require.True(t, p.ok().Replayed)
			require.Equal(t, 2, p.ok().Attempt)
			require.NotEqual(t, "b", p.ok().Supervisor)
		}
		late.fails(messages.CodeLost)
		require.Less(t, time.Since(began), removal+2*time.Second)
		require.Equal(t, "1", a.send(call(scope, "count")).text(), "a new session")
		for _, p := range other {
			p.ok()
		}
	})
}

func TestLargeCallThatWaitsBehindAnotherIsNotLostWithTheMember(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		a, b := w.members[0], w.members[1]
		scope := w.scopeOf(b, 0)
		a.send(call(scope, "count")).ok()
		w.cutLink(a, b, true)
		text := strings.Repeat("x", 5<<20)
		written := a.send(call(scope, "count", with("text", text)))
		time.Sleep(time.Millisecond) // until it is encoded
		waits := a.send(call(scope, "count", with("text", text)))
		time.Sleep(100 * time.Millisecond)
		w.kill(b)
		require.True(t, written.fails(messages.CodeLost).MayHaveRun)
		require.Equal(t, "1", waits.text(), "it was not sent")
		require.False(t, waits.ok().Replayed)
		require.Equal(t, 1, waits.ok().Attempt)
	})
}

func TestGracefulLeaveAndJoinUnderLoad(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		stop := make(chan bool)
		var done []chan []*sent
		for _, m := range []*member{w.members[0], w.members[2]} {
			result := make(chan []*sent, 1)
			done = append(done, result)
			go func() {
				var all []*sent
				for i := 0; ; i++ {
					select {
					case <-stop:
						result <- all
						return
					case <-time.After(20 * time.Millisecond):
						tool := "count"
						if i%5 == 0 {
							tool = "slow"
						}
						all = append(all, m.send(call(fmt.Sprint("scope", i%30), tool)))
					}
				}
			}()
		}
		time.Sleep(2 * time.Second)
		w.members[1].leave()
		time.Sleep(2 * time.Second)
		w.awaitStable()
		w.join()
		w.awaitStable()
		time.Sleep(3 * time.Second)
		close(stop)
		for _, result := range done {
			for _, p := range <-result {
				p.ok()
			}
		}
	})
}

func TestSubscriptionsOfOneURIKeepTheirOrder(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		a, b, c := w.members[0], w.members[1], w.members[2]
		check := func(scope string, wait func(i int)) {
			t.Helper()
			w.server.set(func() { w.server.ordered = nil })
			var all []*sent
			var ids []string
			for i := range 50 {
				h := messages.To("s", scope)
				h.ID = fmt.Sprint(scope, i)
				ids = append(ids, h.ID)
				if i%2 == 0 {
					all = append(all, a.send(&messages.Subscribe{Header: h, URI: "file:///one"}))
				} else {
					all = append(all, a.send(&messages.Unsubscribe{Header: h, URI: "file:///one"}))
				}
				wait(i)
			}
			for _, p := range all {
				require.IsType(t, &messages.Ack{}, p.reply())
			}
			w.server.set(func() { require.Equal(t, ids, w.server.ordered) })
		}
		none := func(int) {}
		check(w.scopeOf(b, 0), none) // the owner activates the shard
		check(w.scopeOf(b, 0), none) // which is active
		check(w.scopeOf(a, 0), none) // the shard is activated here
		check(w.scopeOf(a, 0), none)
		w.cutLink(a, b, true)
		time.Sleep(leaseTime/2 + 100*time.Millisecond)
		check(w.scopeOf(b, 0), func(i int) { // b is silent
			time.Sleep(10 * time.Millisecond)
			if i == 40 {
				w.cutLink(a, b, false)
			}
		})
		w.cutLink(a, c, true)
		check(w.scopeOf(c, 0), func(i int) { // none arrives before c is gone
			if time.Sleep(10 * time.Millisecond); i == 40 {
				w.kill(c)
			}
		})
	})
}

func TestCancelAtEveryStage(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		a, b := w.members[0], w.members[1]
		scope := w.scopeOf(b, 0)
		a.send(call(scope, "count")).ok()
		large := with("text", strings.Repeat("x", 3<<20))
		for name, wait := range map[string]func(){
			"encoding":    func() {},
			"sent":        func() { time.Sleep(500 * time.Microsecond) },
			"running":     func() { time.Sleep(100 * time.Millisecond) },
			"parts":       func() { time.Sleep(1500 * time.Microsecond) },
			"parts later": func() { time.Sleep(4 * time.Millisecond) },
		} {
			for _, opts := range [][]func(*messages.CallTool){nil, {large}} {
				p := a.send(call(scope, "hang", opts...))
				wait()
				a.cancel(p)
				began := time.Now()
				p.fails(messages.CodeCancelled)
				require.Less(t, time.Since(began), time.Second, name)
				other := a.send(call(scope, "hang", opts...))
				wait()
				w.members[2].cancel(other) // by an agent elsewhere
				if name == "running" {
					other.fails(messages.CodeCancelled)
				} else {
					time.Sleep(100 * time.Millisecond)
					a.cancel(other)
					other.fails(messages.CodeCancelled)
				}
			}
		}
		w.isolate(a)
		time.Sleep(leaseTime + time.Second/2)
		waiting := a.send(call(scope, "count"))
		time.Sleep(time.Millisecond)
		a.cancel(waiting)
		f := waiting.fails(messages.CodeCancelled)
		require.False(t, f.MayHaveRun)
		w.heal(a)
		w.awaitStable()
	})
}

func TestCancelReachesCallsOfAShardThatIsNotActive(t *testing.T) {
	for name, end := range map[string]func(w *world, a *member){
		"moves":  func(w *world, _ *member) { w.join() },
		"leaves": func(w *world, a *member) { w.later(0, a.leave) },
		"fenced": func(w *world, a *member) { w.setCut(a, true) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 3, nil, func(w *world) {
				a := w.members[0]
				scope := w.scopeOf(a, 0)
				for i := 1; ownerOf(ShardOf(messages.Key{Server: "s", Scope: scope}, shards), []Address{{Host: "a:1"}, {Host: "d:1"}}) != "d:1"; i++ {
					scope = w.scopeOf(a, i)
				}
				a.send(call(scope, "count")).ok()
				p := a.send(call(scope, "hang"))
				time.Sleep(100 * time.Millisecond)
				end(w, a)
				time.Sleep(leaseTime + time.Second/2)
				require.False(t, p.answered())
				a.cancel(p)
				time.Sleep(100 * time.Millisecond)
				require.True(t, p.answered())
				p.fails(messages.CodeCancelled)
				w.heal(a)
				time.Sleep(10 * time.Second)
			})
		})
	}
}

func TestCancelledCallIsNotRunElsewhere(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		a, b := w.members[0], w.members[1]
		scope := w.scopeOf(b, 0)
		a.send(call(scope, "count")).ok()
		w.cutLink(a, b, true)
		p := a.send(call(scope, "count", func(op *messages.CallTool) { op.Replay = messages.ReplayAlways }))
		time.Sleep(time.Millisecond)
		a.cancel(p)
		w.kill(b)
		f := p.fails(messages.CodeCancelled)
		require.True(t, f.MayHaveRun)
		require.Zero(t, w.server.executions()[p.cmd.RequestID()])
	})
}

// What a member has lost may have run, also if the next member only keeps it waiting for its shard when
// it is cancelled.
func TestCallThatWasLostAndIsCancelledElsewhereMayHaveRun(t *testing.T) {
	inWorld(t, 4, nil, func(w *world) {
		a, b := w.members[0], w.members[1]
		scope := w.scopeOf(b, 0)
		for i := 0; ownerOf(ShardOf(messages.Key{Server: "s", Scope: scope}, shards), []Address{{Host: "a:1"}, {Host: "c:1"}, {Host: "d:1"}}) != "c:1"; i++ {
			scope = w.scopeOf(b, i)
		}
		p := a.send(call(scope, "slow", func(op *messages.CallTool) { op.Replay = messages.ReplayAlways }))
		time.Sleep(100 * time.Millisecond)
		w.kill(b)
		time.Sleep(removal - leaseTime)
		w.cutLink(w.members[2], w.members[3], true) // so that the one does not know what the other one holds
		for waits := false; !waits; {
			time.Sleep(time.Millisecond)
			require.False(t, p.answered())
			w.members[2].inNode(func(n *node) {
				for _, s := range n.serving.all {
					waits = waits || n.routing.holds(s.waits)
				}
			})
		}
		a.cancel(p)
		f := p.fails(messages.CodeCancelled)
		require.Equal(t, 1, w.server.executions()[p.cmd.RequestID()])
		require.True(t, f.MayHaveRun)
		require.Equal(t, 1, f.Attempt)
	})
}

func TestCallsHaveTheirDeadline(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		a, b := w.members[0], w.members[1]
		scope := w.scopeOf(b, 0)
		began := time.Now()
		p := a.send(call(scope, "hang", within(2*time.Second)))
		p.fails(messages.CodeDeadline)
		require.WithinDuration(t, began.Add(2*time.Second), *p.at.Load(), time.Second)
		p = a.send(call(scope, "hang"))
		p.fails(messages.CodeDeadline)
		require.WithinDuration(t, p.deadline, *p.at.Load(), time.Second)

		p = a.send(call(scope, "count", within(0)))
		require.Contains(t, p.fails(messages.CodeDeadline).Detail, "had passed before the call came")

		servers := slices.Clone(w.cfg.Servers)
		servers[0].Limits.CallTimeout = 5 * time.Second
		_, err := a.sup.Reload(w.t.Context(), servers) // of the member that is called
		require.NoError(t, err)
		began = time.Now()
		p = a.send(call(scope, "hang"))
		p.fails(messages.CodeDeadline)
		require.WithinDuration(t, began.Add(5*time.Second), *p.at.Load(), time.Second)
	})
}

func TestCancelScopeReachesAllMembers(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		a, b := w.members[0], w.members[1]
		scope := w.scopeOf(b, 0)
		began := time.Now()
		mine, other := a.send(call(scope, "hang")), w.members[2].send(call(scope, "hang"))
		time.Sleep(100 * time.Millisecond)
		done := a.send(&messages.CancelScope{ID: "x", Scope: scope})
		require.Equal(t, &messages.Done{ID: "x"}, done.reply())
		mine.fails(messages.CodeCancelled)
		other.fails(messages.CodeCancelled)

		large := a.send(call(scope, "hang", with("text", strings.Repeat("x", 3<<20))))
		time.Sleep(1500 * time.Microsecond)
		require.Equal(t, &messages.Done{ID: "y"}, a.send(&messages.CancelScope{ID: "y", Scope: scope}).reply())
		large.fails(messages.CodeCancelled)
		require.Less(t, time.Since(began), time.Second)
	})
}

func TestOwnerThatTerminatesCancelsItsCalls(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		a, b := w.members[0], w.members[1]
		scope := w.scopeOf(b, 0)
		a.send(call(scope, "count")).ok()
		for _, wait := range []time.Duration{0, 500 * time.Microsecond, 3 * time.Millisecond, 100 * time.Millisecond} {
			for _, size := range []int{10, 3 << 20} {
				owner, _ := a.spawn(nil)
				owned := func(op *messages.CallTool) { op.Owner = owner }
				p := a.send(call(scope, "hang", owned, with("text", strings.Repeat("x", size))))
				nameless := call(scope, "hang", owned)
				nameless.ID = ""
				q := a.send(nameless)
				time.Sleep(wait)
				a.system.Root.Stop(owner)
				began := time.Now()
				p.fails(messages.CodeCancelled)
				q.fails(messages.CodeCancelled)
				require.Less(t, time.Since(began), time.Second)
			}
		}
		owner, _ := a.spawn(nil)
		a.system.Root.Stop(owner)
		synctest.Wait()
		a.send(call(scope, "hang", func(op *messages.CallTool) { op.Owner = owner })).fails(messages.CodeCancelled)
	})
}

func TestOwnerThatTerminatesCancelsNoCallOfOthersWithTheSameID(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		a, b, c := w.members[0], w.members[1], w.members[2]
		scope := w.scopeOf(b, 0)
		owner, _ := a.spawn(nil)
		owned := a.send(call(scope, "hang", func(op *messages.CallTool) { op.Owner = owner }))
		time.Sleep(100 * time.Millisecond) // it comes first
		other := c.send(call(scope, "slow", func(op *messages.CallTool) { op.ID = owned.cmd.RequestID() }))
		time.Sleep(100 * time.Millisecond)
		a.system.Root.Stop(owner)
		owned.fails(messages.CodeCancelled)
		other.ok()
	})
}

func TestBoundScopeEndsWithItsOwner(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		a, b, c := w.members[0], w.members[1], w.members[2]
		scope := w.scopeOf(b, 0)
		owner, _ := a.spawn(nil)
		require.Equal(t, scope, a.send(&messages.Bind{Scope: scope, Owner: owner}).reply().(*messages.Bound).Scope)
		c.send(call(scope, "count")).ok()
		running := c.send(call(scope, "hang"))
		time.Sleep(time.Second)
		a.system.Root.Stop(owner)
		running.fails(messages.CodeCancelled)
		time.Sleep(time.Second)
		require.Zero(t, w.server.openOf(scope))
		require.Equal(t, "1", c.send(call(scope, "count")).text())

		other, _ := a.spawn(nil)
		a.send(&messages.Bind{Scope: scope, Owner: other}).reply()
		d := w.join() // a member that joins learns of it
		w.awaitStable()
		late := w.scopeOf(d, 0)
		third, _ := a.spawn(nil)
		a.send(&messages.Bind{Scope: late, Owner: third}).reply()
		c.send(call(late, "count")).ok()
		running, elsewhere := c.send(call(scope, "hang")), c.send(call(late, "hang"))
		time.Sleep(time.Second)
		w.kill(a)
		running.fails(messages.CodeCancelled)
		elsewhere.fails(messages.CodeCancelled)
		time.Sleep(time.Second)
		require.Zero(t, w.server.openOf(scope))
		require.Zero(t, w.server.openOf(late))
		require.Zero(t, c.processes()["proxy"])
	})
}

func TestArgumentsMayHaveNumbersOfAnySize(t *testing.T) {
	inWorld(t, 2, nil, func(w *world) {
		for _, m := range w.members {
			w.members[0].send(call(w.scopeOf(m, 0), "count", with("n", json.Number("1e400")))).ok()
			w.members[0].send(call(w.scopeOf(m, 0), "count", func(op *messages.CallTool) { op.Params.Meta = mcp.Meta{"n": json.Number("1e400")} })).ok()
		}
	})
}

func TestCommandThatTheOwnerDoesNotUnderstandIsNamed(t *testing.T) {
	inWorld(t, 2, nil, func(w *world) {
		a, b := w.members[0], w.members[1]
		op := call(w.scopeOf(b, 0), "count", func(op *messages.CallTool) {
			op.Params.InputResponses = mcp.InputResponseMap{"x": nil} // which the SDK encodes, but does not decode
		})
		f := a.send(op).fails(messages.CodeInvalid)
		require.Contains(t, f.Detail, "the member b does not understand the command")
		require.Equal(t, &messages.Failure{
			ID: op.ID, Key: op.Key, Op: op.Method(), Target: "count", Code: f.Code, Detail: f.Detail, Supervisor: "b",
		}, f)
	})
}

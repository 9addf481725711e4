package node

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

// bindAll binds scopes to an owner, or removes their bindings.
func bindAll(m *member, scopes []string, owner *actor.PID) {
	for _, scope := range scopes {
		m.send(&messages.Bind{Scope: scope, Owner: owner})
	}
	time.Sleep(10 * time.Second)
}

// requireOpen opens a session in each scope that has none, runs a function, and checks afterwards which
// sessions are open.
func requireOpen(w *world, scopes []string, open bool, do func()) {
	w.t.Helper()
	for _, scope := range scopes {
		w.live()[0].send(call(scope, "count")).ok()
	}
	do()
	time.Sleep(2 * time.Second)
	for _, scope := range scopes {
		require.Equal(w.t, open, w.server.openOf(scope) > 0, "%s of %s", scope, w.ownerOf(scope).name)
	}
}

// scopesOfAll returns two scopes of each live member.
func scopesOfAll(w *world) (first, second []string) {
	for _, m := range w.live() {
		first, second = append(first, w.scopeOf(m, 0)), append(second, w.scopeOf(m, 1))
	}
	return first, second
}

func TestNewMemberLearnsTheLastBindingOnly(t *testing.T) {
	inWorld(t, 2, nil, func(w *world) {
		a, b := w.members[0], w.members[1]
		former, _ := a.spawn(nil)
		latter, _ := b.spawn(nil)
		var removed, replaced, all []string
		for i := range 40 {
			all = append(all, fmt.Sprint("scope", i))
		}
		removed, replaced = all[:20], all[20:]
		bindAll(a, all, former)
		bindAll(b, removed, nil)
		bindAll(b, replaced, latter)
		w.join()
		w.awaitStable()
		requireOpen(w, all, true, func() { a.system.Root.Stop(former) })
		requireOpen(w, replaced, false, func() { b.system.Root.Stop(latter) })
		requireOpen(w, removed, true, func() {})
	})
}

func TestMemberThatWasAwayLearnsTheLastBinding(t *testing.T) {
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("its member was killed=%v", killed), func(t *testing.T) {
			inWorld(t, 4, nil, func(w *world) {
				a, b := w.members[0], w.members[1]
				removed, replaced := scopesOfAll(w)
				former, _ := a.spawn(nil)
				latter, _ := b.spawn(nil)
				bindAll(a, append(removed, replaced...), former)
				w.isolate(a)
				bindAll(b, removed, nil)
				bindAll(b, replaced, latter)
				if killed {
					w.kill(b)
					time.Sleep(2 * removal)
				}
				w.heal(a)
				w.awaitStable()
				require.Equal(t, "a#2", a.current.id)
				requireOpen(w, append(removed, replaced...), true, func() { a.system.Root.Stop(former) })
				if !killed {
					requireOpen(w, replaced, false, func() { b.system.Root.Stop(latter) })
				}
			})
		})
	}
}

// A scope has a session on each of two servers, on different members: the one that wins ends both.
func TestMembersAgreeAfterConcurrentBinds(t *testing.T) {
	inWorld(t, 3, func(w *world) { w.jitter = 3 * time.Millisecond }, func(w *world) {
		a, b, c := w.members[0], w.members[1], w.members[2]
		ofA, _ := a.spawn(nil)
		ofB, _ := b.spawn(nil)
		var scopes []string
		for i := range 30 {
			scope := fmt.Sprint("scope", i)
			p, q := a.send(&messages.Bind{Scope: scope, Owner: ofA}), b.send(&messages.Bind{Scope: scope, Owner: ofB})
			require.IsType(t, &messages.Bound{}, p.reply())
			require.IsType(t, &messages.Bound{}, q.reply())
			one := c.send(call(scope, "count")).ok().Supervisor
			other := c.send(call(scope, "count", onStdio)).ok().Supervisor
			if one != other {
				scopes = append(scopes, scope)
			}
		}
		require.NotEmpty(t, scopes)
		a.system.Root.Stop(ofA)
		time.Sleep(2 * time.Second)
		open := map[string]bool{}
		w.server.set(func() {
			for _, scope := range scopes {
				open[scope] = len(w.server.open[messages.Key{Server: "s", Scope: scope}]) > 0
				require.Equal(t, open[scope], len(w.server.open[messages.Key{Server: "stdio", Scope: scope}]) > 0, scope)
			}
		})
		b.system.Root.Stop(ofB)
		time.Sleep(2 * time.Second)
		for scope := range open {
			require.Zero(t, w.server.openOf(scope))
		}
	})
}

// TestMembersAgreeOnBindingsAfterFaults binds few scopes at random while members come and go.
// MCPACTOR_SEED repeats a run.
func TestMembersAgreeOnBindingsAfterFaults(t *testing.T) {
	inWorld(t, 4, func(w *world) { w.lose, w.jitter = 0.05, 20*time.Millisecond }, func(w *world) {
		r := rand.New(rand.NewPCG(w.seed, 5))
		w.server.unstable = true
		anyOf := func() *member { live := w.live(); return live[r.IntN(len(live))] }
		for range 30 {
			for range r.IntN(20) {
				m := anyOf()
				bind := &messages.Bind{Scope: fmt.Sprint("scope", r.IntN(10))}
				if r.IntN(3) > 0 {
					bind.Owner, _ = m.spawn(nil)
				}
				if r.IntN(3) > 0 {
					bind.Handler = m.pid
				}
				m.send(bind)
				if bind.Owner != nil && r.IntN(3) == 0 {
					time.AfterFunc(time.Duration(r.IntN(3000))*time.Millisecond, func() { m.system.Root.Stop(bind.Owner) })
				}
				time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
			}
			m := anyOf()
			switch r.IntN(8) {
			case 0:
				if len(w.live()) > 3 {
					m.leave()
				}
			case 1, 2:
				w.join()
			case 3:
				if len(w.live()) > 3 {
					w.kill(m)
				}
			case 4, 5:
				w.isolate(m)
				time.AfterFunc(time.Duration(r.IntN(10_000))*time.Millisecond, func() { w.heal(m) })
			case 6:
				other := anyOf()
				w.cutLink(m, other, true)
				time.AfterFunc(time.Duration(r.IntN(4000))*time.Millisecond, func() { w.cutLink(m, other, false) })
			}
			time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
		}
		time.Sleep(time.Minute)
		w.awaitStable()
		var want map[string]bindVersion
		for _, m := range w.live() {
			got := map[string]bindVersion{}
			m.inNode(func(n *node) {
				for scope, b := range n.bindings.of {
					if !n.bindings.hasEnded(b) {
						got[scope] = b.version
					}
				}
			})
			if want == nil {
				want = got
			}
			require.Equal(t, want, got, m.name)
		}
	})
}

func onStdio(op *messages.CallTool) { op.Key.Server = "stdio" }

// A caller may bind a new scope for each of its tasks.
func TestBindingsThatHaveEndedAreForgotten(t *testing.T) {
	inWorld(t, 2, nil, func(w *world) {
		a, b := w.members[0], w.members[1]
		owner, _ := a.spawn(nil)
		stays, _ := a.spawn(nil)
		a.send(&messages.Bind{Scope: "owned", Owner: owner}).reply()
		a.send(&messages.Bind{Scope: "removed", Handler: stays}).reply()
		b.send(&messages.Bind{Scope: "removed"}).reply()
		a.send(&messages.Bind{Scope: "stays", Owner: stays}).reply()
		a.system.Root.Stop(owner)
		known := func(m *member) (count int) {
			m.inNode(func(n *node) { count = len(n.bindings.of) })
			return count
		}
		time.Sleep(endedFor / 2)
		require.Equal(t, 3, known(a))
		require.Equal(t, 3, known(b))
		time.Sleep(endedFor)
		require.Equal(t, 1, known(a))
		require.Equal(t, 1, known(b))
	})
}

// A supervisor bounds the bindings without owners, and a node keeps none that its supervisor has refused.
func TestBindingsThatAreRefusedAreForgotten(t *testing.T) {
	inWorld(t, 2, nil, func(w *world) {
		handler, _ := w.members[0].spawn(nil)
		bind := func(scope string) messages.Reply {
			return w.members[0].send(&messages.Bind{Scope: scope, Handler: handler}).reply()
		}
		bindings := func() (n []int) {
			for _, m := range w.members {
				m.inNode(func(of *node) { n = append(n, len(of.bindings.of)) })
			}
			return n
		}
		require.IsType(t, &messages.Bound{}, bind("first"))
		require.Equal(t, []int{1, 1}, bindings())
		for _, m := range w.members {
			local, _ := m.spawn(nil)
			m.inNode(func(of *node) {
				for i := range 1<<16 - 1 {
					m.system.Root.Send(of.cfg.Supervisor, &messages.Bind{Scope: fmt.Sprint("bound-", i), Handler: local})
				}
			})
		}
		for i := range 100 {
			f, failed := bind(fmt.Sprint("more-", i)).(*messages.Failure)
			require.True(t, failed)
			require.Equal(t, messages.CodeBusy, f.Code)
		}
		require.Equal(t, []int{1, 1}, bindings())
		owner, _ := w.members[1].spawn(nil)
		owned := &messages.Bind{Scope: "owned", Owner: owner}
		require.IsType(t, &messages.Bound{}, w.members[1].send(owned).reply())
		require.Equal(t, messages.CodeBusy, bind("owned").(*messages.Failure).Code)
		for _, m := range w.members {
			var held *binding
			m.inNode(func(of *node) { held = of.bindings.of["owned"] })
			require.NotNil(t, held)
			require.NotNil(t, held.bind.Owner, "the former one holds")
			require.Nil(t, held.previous)

		}
	})
}

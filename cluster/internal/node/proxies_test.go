package node

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cluster/internal/link"
	"github.com/mcpactor/mcpactor/messages"
)

// answering returns a handler that answers each question. It answers nothing if answer returns nil.
func answering(answer func() messages.Answer) func(actor.Context) {
	return func(c actor.Context) {
		if _, asks := c.Message().(messages.Request); asks {
			if a := answer(); a != nil {
				c.Respond(a)
			}
		}
	}
}

func withName(name string) func() messages.Answer {
	return func() messages.Answer {
		return &messages.Elicited{Result: &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": name}}}
	}
}

func handledBy(pid *actor.PID) func(*messages.CallTool) {
	return func(op *messages.CallTool) { op.Handler = pid }
}

func TestQuestionsReachHandlersElsewhere(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		a, b, c := w.members[0], w.members[1], w.members[2]
		scope := w.scopeOf(b, 0)
		mine, asked := a.spawn(answering(withName("header")))
		require.Equal(t, "header", a.send(call(scope, "elicit", handledBy(mine))).text())
		origin := (<-asked.got).(*messages.Elicit).Origin
		require.Equal(t, scope, origin.Key.Scope)

		bound, _ := c.spawn(answering(withName("bound")))
		c.send(&messages.Bind{Scope: scope, Handler: bound}).reply()
		require.Equal(t, "bound", a.send(call(scope, "elicit")).text())
		require.Equal(t, "header", a.send(call(scope, "elicit", handledBy(mine))).text())
		c.system.Root.Stop(bound)
		require.Contains(t, a.send(call(scope, "elicit")).text(), "refused")
		a.system.Root.Stop(mine)
		synctest.Wait()
		require.Contains(t, a.send(call(scope, "elicit", handledBy(mine))).text(), "refused")
	})
}

func TestAnswersAreTakenAsFromHandlersHere(t *testing.T) {
	large := strings.Repeat("x", 100<<10)
	inWorld(t, 2, nil, func(w *world) {
		a := w.members[0]
		for _, owner := range w.members { // here, and elsewhere
			for want, reply := range map[string]any{
				"value":                                  messages.Elicited{Result: &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "value"}}},
				large:                                    withName(large)(),
				"refused: no":                            messages.Refusal{Reason: "no"},
				"refused: the answer is of another kind": "text",
			} {
				handler, _ := a.spawn(func(c actor.Context) { c.Respond(reply) })
				got := a.send(call(w.scopeOf(owner, 0), "elicit", handledBy(handler), with("size", len(want)))).text()
				require.True(t, got == want, "%.100s", got)
			}
		}
	})
}

func TestAnswerThatIsTooLargeIsRefusedAtOnce(t *testing.T) {
	inWorld(t, 2, nil, func(w *world) {
		a, b := w.members[0], w.members[1]
		large, _ := a.spawn(answering(withName(strings.Repeat("x", link.MaxMessage))))
		begun := time.Now()
		require.Contains(t, a.send(call(w.scopeOf(b, 0), "elicit", handledBy(large))).text(), "refused")
		require.Less(t, time.Since(begun), time.Second)
	})
}

func TestQuestionsAreWithdrawnElsewhere(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		a, b := w.members[0], w.members[1]
		scope := w.scopeOf(b, 0)
		silent, got := a.spawn(answering(func() messages.Answer { return nil }))
		for _, end := range []func(p *sent){
			func(p *sent) { a.cancel(p) },
			func(*sent) {
				a.send(&messages.CloseSession{Key: messages.Key{Server: "s", Scope: scope}, Now: true}).reply()
			},
			func(p *sent) {},
		} {
			p := a.send(call(scope, "elicit", handledBy(silent), within(3*time.Second)))
			question := (<-got.got).(*messages.Elicit).Question
			time.Sleep(100 * time.Millisecond)
			end(p)
			require.IsType(t, &messages.Failure{}, p.reply())
			withdrawn := (<-got.got).(*messages.Withdrawn)
			require.Equal(t, question, withdrawn.Question)
		}
		time.Sleep(2 * time.Second)
		for _, m := range w.members {
			m.inNode(func(n *node) { require.Empty(t, n.questions.asked) })
		}
	})
}

func TestQuestionThatIsWithdrawnOnItsWayIsNotAsked(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		a, b := w.members[0], w.members[1]
		scope := w.scopeOf(b, 0)
		a.send(call(scope, "count")).ok()
		silent, got := a.spawn(answering(func() messages.Answer { return nil }))
		p := a.send(call(scope, "elicit", handledBy(silent), with("size", 3<<20)))
		time.Sleep(4 * time.Millisecond) // the question takes 6 ms, and small messages take one
		a.cancel(p)
		p.fails(messages.CodeCancelled)
		time.Sleep(time.Second)
		require.Empty(t, got.got)
		p = a.send(call(scope, "elicit", handledBy(silent), with("size", 3<<20)))
		require.IsType(t, &messages.Elicit{}, <-got.got)
		a.cancel(p)
		require.IsType(t, &messages.Withdrawn{}, <-got.got)
	})
}

// The member that asks is cut off when the time of its question is over.
func TestQuestionThatIsOverdueIsWithdrawnOnce(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		a, b := w.members[0], w.members[1]
		scope := w.scopeOf(b, 0)
		silent, got := a.spawn(answering(func() messages.Answer { return nil }))
		a.send(call(scope, "elicit", handledBy(silent), within(time.Second)))
		question := (<-got.got).(*messages.Elicit).Question
		w.cutLink(a, b, true)
		time.Sleep(2500 * time.Millisecond)
		require.Equal(t, question, (<-got.got).(*messages.Withdrawn).Question)
		w.cutLink(a, b, false)
		time.Sleep(5 * time.Second)
		require.Empty(t, got.got)
	})
}

func TestQuestionsEndWithTheMember(t *testing.T) {
	inWorld(t, 4, nil, func(w *world) {
		a, b, c := w.members[0], w.members[1], w.members[2]
		silent, got := a.spawn(answering(func() messages.Answer { return nil }))
		p := a.send(call(w.scopeOf(b, 0), "elicit", handledBy(silent)))
		question := (<-got.got).(*messages.Elicit).Question
		scope := w.scopeOf(w.members[3], 0)
		elsewhere, _ := c.spawn(answering(func() messages.Answer { return nil }))
		c.send(&messages.Bind{Scope: scope, Handler: elsewhere}).reply()
		q := a.send(call(scope, "elicit"))
		time.Sleep(time.Second)
		w.kill(b) // which has asked
		p.fails(messages.CodeLost)
		require.Equal(t, question, (<-got.got).(*messages.Withdrawn).Question)
		w.kill(c) // which was asked
		require.Contains(t, q.text(), "refused")
	})
}

func TestProgressComesBeforeTheReply(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		a, b := w.members[0], w.members[1]
		for range 5 {
			caller, got := a.spawn(nil)
			op := call(w.scopeOf(b, 0), "progress", func(op *messages.CallTool) { op.Subscriber = caller })
			a.system.Root.RequestWithCustomSender(a.pid, op, caller)
			for i := range 3 {
				require.Equal(t, float64(i+1), (<-got.got).(*messages.Progress).Progress)
			}
			require.IsType(t, new(messages.ToolResult), <-got.got)
		}
	})
}

func TestProgressForAMemberThatCannotBeReachedIsBounded(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		a, b := w.members[0], w.members[1]
		subscriber, got := a.spawn(nil)
		p := a.send(call(w.scopeOf(b, 0), "progress", with("times", 1000), func(op *messages.CallTool) { op.Subscriber = subscriber }))
		time.Sleep(2 * time.Millisecond) // until it has arrived
		w.cutLink(a, b, true)
		time.Sleep(time.Second)
		w.cutLink(a, b, false)
		p.ok()
		require.Greater(t, len(got.got), 100)
		require.Less(t, len(got.got), 300, "of 9 KiB each, 1 MiB waits")
	})
}

func TestOnlyMembersThatKnowAnActorHearOfItsEnd(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		a, b, c := w.members[0], w.members[1], w.members[2]
		w.cutLink(a, c, true)
		owner, _ := a.spawn(nil)
		p := a.send(call(w.scopeOf(b, 0), "hang", func(op *messages.CallTool) { op.Owner = owner }))
		time.Sleep(100 * time.Millisecond)
		idle := func() (is bool) {
			a.inNode(func(n *node) { is = n.members.peers[c.current.id].link.Idle() })
			return is
		}
		require.True(t, idle())
		a.system.Root.Stop(owner)
		p.fails(messages.CodeCancelled)
		require.True(t, idle())
		w.cutLink(a, c, false)
	})
}

func TestSubscriberThatEndsWhileItsCommandWaits(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		a, b := w.members[0], w.members[1]
		w.cutLink(a, b, true)
		time.Sleep(leaseTime)
		op := &messages.Subscribe{Header: messages.To("s", w.scopeOf(b, 0)), URI: "file:///one"}
		op.Subscriber, _ = a.spawn(nil)
		p := a.send(op)
		time.Sleep(100 * time.Millisecond)
		a.system.Root.Stop(op.Subscriber)
		w.cutLink(a, b, false)
		p.reply()
		time.Sleep(time.Second)
		require.Zero(t, b.processes()["proxy"])
	})
}

func TestUpdatesReachSubscribersElsewhere(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		a, b := w.members[0], w.members[1]
		scope := w.scopeOf(b, 0)
		subscriber, got := a.spawn(nil)
		op := &messages.Subscribe{Header: messages.To("s", scope), URI: "file:///one"}
		op.Subscriber = subscriber
		require.IsType(t, &messages.Ack{}, a.send(op).reply())
		w.members[2].send(call(scope, "update")).ok()
		time.Sleep(100 * time.Millisecond)
		require.Equal(t, "file:///one", (<-got.got).(*messages.ResourceUpdated).URI)
		a.system.Root.Stop(subscriber)
		w.members[2].send(call(scope, "update")).ok()
		time.Sleep(100 * time.Millisecond)
		require.Empty(t, got.got)
	})
}

func TestEventsOfOtherMembers(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		a, b := w.members[0], w.members[1]
		events := make(chan messages.Event, 1000)
		watch := func(handle func(messages.Event)) {
			a.system.Root.Send(a.pid, &Watch{handle})
			time.Sleep(100 * time.Millisecond)
		}
		watch(func(e messages.Event) { events <- e })
		a.send(call(w.scopeOf(b, 0), "count")).ok()
		time.Sleep(100 * time.Millisecond)
		opened := (<-events).(*messages.SessionOpened)
		require.Equal(t, "b", opened.Supervisor)
		d := w.join()
		w.awaitStable()
		a.send(call(w.scopeOf(d, 0), "count")).ok()
		time.Sleep(100 * time.Millisecond)
		found := false
		for len(events) > 0 {
			e, ok := (<-events).(*messages.SessionOpened)
			found = found || ok && e.Supervisor == "d"
		}
		require.True(t, found)
		watch(nil)
		a.send(call(w.scopeOf(b, 1), "count")).ok()
		time.Sleep(100 * time.Millisecond)
		require.Empty(t, events)
		observes := func() (is bool) {
			b.inNode(func(n *node) { is = n.events.observed != nil })
			return is
		}
		require.False(t, observes())
		watch(func(e messages.Event) { events <- e })
		require.True(t, observes())
		w.kill(a)
		time.Sleep(removal + time.Second)
		require.False(t, observes(), "nobody is there who wants them")
	})
}

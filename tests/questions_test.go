package tests

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// newAsker returns a server whose tools ask, and wait no longer than until life ends. Each question
// is the argument "call" of its call.
//
//	ask    asks, and returns the answer or the error
//	leave  asks, and returns without the answer
//	late   asks after a second
//	hang   runs until it is cancelled
func newAsker(life context.Context) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "asker", Version: "1"}, nil)
	text := func(text string) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
	}
	elicit := func(ctx context.Context, req *mcp.CallToolRequest, args map[string]any) (*mcp.CallToolResult, any, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(life, cancel)()
		answer, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: fmt.Sprint(args["call"]), RequestedSchema: map[string]any{"type": "object"}})
		if err != nil {
			return text(err.Error()), nil, nil
		}
		return text(answer.Action), nil, nil
	}
	mcp.AddTool(s, &mcp.Tool{Name: "ask"}, elicit)
	mcp.AddTool(s, &mcp.Tool{Name: "leave"}, func(ctx context.Context, req *mcp.CallToolRequest, args map[string]any) (*mcp.CallToolResult, any, error) {
		asked := make(chan bool)
		go func() {
			close(asked)
			elicit(context.WithoutCancel(ctx), req, args)
		}()
		<-asked
		<-time.After(100 * time.Millisecond)
		return text("left"), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "late"}, func(ctx context.Context, req *mcp.CallToolRequest, args map[string]any) (*mcp.CallToolResult, any, error) {
		<-time.After(time.Second)
		return elicit(ctx, req, args)
	})
	mcp.AddTool(s, &mcp.Tool{Name: "hang"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, any, error) {
		<-ctx.Done()
		return nil, nil, ctx.Err()
	})
	return s
}

// desk is a handler that notes what it gets, and answers nothing by itself.
type desk struct {
	h         *harness
	pid       *actor.PID
	questions chan *question
	withdrawn chan *messages.Withdrawn
}

// question is a request that a desk got.
type question struct {
	*messages.Elicit
	from *actor.PID
	h    *harness
}

func newDesk(h *harness) *desk {
	d := &desk{h: h, questions: make(chan *question, 100), withdrawn: make(chan *messages.Withdrawn, 100)}
	d.pid = h.system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		switch msg := c.Message().(type) {
		case *messages.Elicit:
			d.questions <- &question{msg, c.Sender(), h}
		case *messages.Withdrawn:
			d.withdrawn <- msg
		case actor.SystemMessage, actor.AutoReceiveMessage:
		default:
			panic(fmt.Sprintf("%T", msg))
		}
	}))
	return d
}

// accept answers a question.
func (q *question) accept() {
	q.h.system.Root.Send(q.from, &messages.Elicited{Result: &mcp.ElicitResult{Action: "accept", Content: map[string]any{}}})
}

// question waits for a question.
func (d *desk) question() *question {
	d.h.t.Helper()
	select {
	case q := <-d.questions:
		return q
	case <-time.After(time.Minute):
		d.h.t.Fatal("no question came")
		return nil
	}
}

// takenBack waits until a question is withdrawn, and returns the reason.
func (d *desk) takenBack(q *question) string {
	d.h.t.Helper()
	select {
	case w := <-d.withdrawn:
		require.Equal(d.h.t, q.Origin, w.Origin)
		require.Equal(d.h.t, q.Key.String(), w.String(), "it prints as its key")
		return w.Reason
	case <-time.After(time.Minute):
		d.h.t.Fatal("the question was not withdrawn")
		return ""
	}
}

// elicits declares elicitation.
var elicits = &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}}}

// withDesk runs a scenario in fake time, with a server "s" in memory that asks, and a handler of the
// supervisor. At the end nothing more may have been withdrawn, and nobody watches the handler.
func withDesk(t *testing.T, cfg supervisor.Config, scenario func(h *harness, d *desk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		d := newDesk(h)
		cfg.Servers = []mcpbridge.Server{{Name: "s", InMemory: newAsker(t.Context()), ProtocolVersion: "2025-11-25"}}
		cfg.Handler, cfg.Capabilities = d.pid, elicits
		h.start(cfg)
		scenario(h, d)
		h.stopAndVerify()
		time.Sleep(time.Second)
		require.Empty(t, d.withdrawn)
		h.system.Root.Stop(d.pid)
		time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		require.Empty(t, questionsOf(h), "no process of a question is left")
	})
}

// questionsOf returns the ids of the processes of open questions.
func questionsOf(h *harness) (ids []string) {
	for _, bucket := range h.system.ProcessRegistry.LocalPIDs.LocalPIDs {
		for _, id := range bucket.Keys() {
			if len(id) > 8 && id[:8] == "question" {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

func TestAQuestionNamesItsOperationAndIsAnswered(t *testing.T) {
	withDesk(t, supervisor.Config{HandlerTimeout: time.Hour}, func(h *harness, d *desk) {
		op := call("a", "ask", within(time.Minute))
		p := h.send(op)
		q := d.question()
		require.Equal(t, messages.OperationRef{ID: op.ID, Method: "tools/call", Target: "ask"}, q.Operation)
		require.Equal(t, op.Deadline, q.Deadline, "it is not later than that of the call")
		require.NotEmpty(t, q.Question)
		q.accept()
		require.Equal(t, "accept", p.text())
		other := h.send(call("a", "ask"))
		next := d.question()
		require.NotEqual(t, q.Question, next.Question)
		next.accept()
		next.accept() // which is dropped
		require.Equal(t, "accept", other.text())
	})
}

// Each of these makes an open question moot. Its handler is told once, and a late answer is
// dropped.
func TestAQuestionThatIsMootIsWithdrawnOnce(t *testing.T) {
	for name, c := range map[string]struct {
		cfg    supervisor.Config
		tool   string // ask, if it is empty
		limit  time.Duration
		moot   func(h *harness, p *sentCommand)
		reason string
	}{
		"the call returns without the answer": {tool: "leave", reason: "the operation has returned"},
		"the call times out":                  {limit: time.Second, reason: "the deadline of the operation has passed"},
		"the call is cancelled":               {moot: func(h *harness, p *sentCommand) { h.cancel(p) }, reason: "the operation was cancelled"},
		"there is no answer in time":          {cfg: supervisor.Config{HandlerTimeout: time.Second}, reason: "there was no answer in time"},
		"the session is closed": {
			cfg:    supervisor.Config{DrainTimeout: time.Second},
			moot:   func(h *harness, _ *sentCommand) { h.send(&messages.CloseScope{Scope: "a"}) },
			reason: "the session was closed",
		},
		"the supervisor stops": {
			cfg:    supervisor.Config{DrainTimeout: time.Second},
			moot:   func(h *harness, _ *sentCommand) { h.stop() },
			reason: "the session was closed",
		},
		"other code stops the session": {
			moot: func(h *harness, _ *sentCommand) {
				h.strict = false
				for _, id := range sessionsOf(h) {
					h.system.Root.Stop(actor.NewPID(h.system.Address(), id))
				}
			},
			reason: "the session was closed",
		},
		"the owner of the scope terminates": {
			moot: func(h *harness, _ *sentCommand) {
				pid := owner(h)
				bind(h, "a", pid)
				h.system.Root.Stop(pid)
			},
			reason: "the operation was cancelled: its owner has terminated",
		},
	} {
		t.Run(name, func(t *testing.T) {
			withDesk(t, c.cfg, func(h *harness, d *desk) {
				tool := "ask"
				if c.tool != "" {
					tool = c.tool
				}
				op := call("a", tool)
				if c.limit > 0 {
					op.Deadline = time.Now().Add(c.limit)
				}
				p := h.send(op)
				q := d.question()
				if c.moot != nil {
					c.moot(h, p)
				}
				require.Equal(t, c.reason, d.takenBack(q))
				require.False(t, time.Now().After(q.Deadline))
				q.accept() // which is late
				p.reply()
				time.Sleep(time.Second)
				require.Empty(t, d.withdrawn, "it is withdrawn once")
				require.Empty(t, questionsOf(h))
			})
		})
	}
}

func TestAQuestionThatMayBelongToSeveralCallsEndsWithTheLast(t *testing.T) {
	withDesk(t, supervisor.Config{HandlerTimeout: time.Hour}, func(h *harness, d *desk) {
		first, last := call("a", "hang", within(20*time.Second)), call("a", "hang", within(30*time.Second))
		h.send(first)
		h.send(last)
		h.send(call("a", "leave", within(10*time.Second)))
		q := d.question()
		require.Empty(t, q.Operation)
		require.Equal(t, last.Deadline, q.Deadline)
		began := time.Now()
		require.Equal(t, "the deadline of the operation has passed", d.takenBack(q))
		require.Equal(t, 30*time.Second, time.Since(began).Round(time.Second))
	})
}

func TestAQuestionThatTheServerCancelsIsWithdrawn(t *testing.T) {
	withDesk(t, supervisor.Config{}, func(h *harness, d *desk) {
		h.send(call("a", "hang", within(20*time.Second)))
		asks := h.send(call("a", "ask"))
		q := d.question()
		require.Empty(t, q.Operation)
		h.cancel(asks) // then the tool does not wait for the answer
		require.Contains(t, d.takenBack(q), "the server does not wait any longer")
		asks.fails(messages.CodeCancelled)
	})
}

func TestHandlersAreOfTheOperationThenOfTheScopeThenOfTheSupervisor(t *testing.T) {
	withDesk(t, supervisor.Config{}, func(h *harness, d *desk) {
		ofScope, ofCall := newDesk(h), newDesk(h)
		bound := func(handler *actor.PID) {
			require.IsType(t, &messages.Bound{}, h.send(&messages.Bind{Scope: "a", Handler: handler}).reply())
		}
		asks := func(scope string, handler *actor.PID, at *desk) {
			t.Helper()
			op := call(scope, "ask")
			op.Handler = handler
			p := h.send(op)
			at.question().accept()
			require.Equal(t, "accept", p.text())
		}
		asks("a", nil, d)
		bound(ofScope.pid) // of a session that is open
		asks("a", nil, ofScope)
		asks("a", ofCall.pid, ofCall)
		asks("b", nil, d)
		h.send(&messages.CloseScope{Scope: "a"}).reply()
		asks("a", nil, ofScope) // of the next session
		bound(nil)
		asks("a", nil, d)

		// Calls that run together have a handler in common, or that of the scope.
		one, two := call("a", "hang", within(time.Second)), call("a", "hang", within(time.Second))
		one.Handler, two.Handler = ofCall.pid, ofCall.pid
		h.send(one)
		h.send(two)
		asks("a", ofCall.pid, ofCall)
		asks("a", nil, d)
		for _, one := range []*desk{ofScope, ofCall} {
			require.Empty(t, one.withdrawn)
			h.system.Root.Stop(one.pid)
		}
	})
}

func TestAHandlerThatHasStoppedRefusesAtOnce(t *testing.T) {
	withDesk(t, supervisor.Config{}, func(h *harness, _ *desk) {
		gone := newDesk(h)
		h.system.Root.Stop(gone.pid)
		synctest.Wait()
		asks := func(scope string, handler *actor.PID) *sentCommand {
			op := call(scope, "ask")
			op.Handler = handler
			return h.send(op)
		}
		began := time.Now()
		require.Contains(t, asks("a", gone.pid).text(), "nobody is there")
		h.send(&messages.Bind{Scope: "b", Handler: gone.pid}).reply()
		require.Contains(t, asks("b", nil).text(), "nobody is there")
		require.Zero(t, time.Since(began))

		// It stops with the question in its mailbox, or while it thinks about it.
		dying := newDesk(h)
		p := asks("a", dying.pid)
		dying.question()
		h.system.Root.Stop(dying.pid)
		require.Contains(t, p.text(), "nobody is there")
		require.Zero(t, time.Since(began))
	})
}

func TestWithoutAnyHandlerAServerIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t).start(supervisor.Config{
			Servers:      []mcpbridge.Server{{Name: "s", InMemory: newAsker(t.Context()), ProtocolVersion: "2025-11-25"}},
			Capabilities: elicits,
		})
		require.Contains(t, h.send(call("a", "ask")).text(), "nobody is there")
		h.stopAndVerify()
		time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
	})
}

// A handler is watched while it has a question, until it was told that the question is withdrawn, and
// not longer.
func TestAHandlerIsNotWatchedLongerThanNeeded(t *testing.T) {
	withDesk(t, supervisor.Config{}, func(h *harness, _ *desk) {
		w := newWatched(h)
		op := call("a", "ask", within(time.Second))
		op.Handler = w.pid
		p := h.send(op)
		time.Sleep(time.Millisecond)
		watchers, _ := w.count()
		require.Equal(t, 1, watchers)
		p.fails(messages.CodeDeadline)
		watchers, watches := w.count()
		require.Zero(t, watchers)
		require.Equal(t, 1, watches)
		require.Len(t, w.got, 2)
		require.IsType(t, &messages.Withdrawn{}, w.got[1])
		require.Equal(t, []bool{true, true}, w.watched)
	})
}

// What a server asks with protocol 2026-07-28 belongs to the call that it answers with the question.
func TestInputThatIsMootIsWithdrawn(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t)
				d := newDesk(h)
				h.start(supervisor.Config{
					Servers: []mcpbridge.Server{{Name: "s", InMemory: newChattyServer(), ProtocolVersion: protocol}},
					Handler: d.pid, Capabilities: elicits,
				})
				one, two := call("a", "elicit", within(time.Second)), call("a", "elicit", within(2*time.Second))
				first, second := h.send(one), h.send(two)
				q, r := d.question(), d.question()
				if protocol == "2026-07-28" {
					require.ElementsMatch(t, []string{one.ID, two.ID}, []string{q.Operation.ID, r.Operation.ID})
					require.ElementsMatch(t, []time.Time{one.Deadline, two.Deadline}, []time.Time{q.Deadline, r.Deadline})
				}
				first.fails(messages.CodeDeadline)
				second.fails(messages.CodeDeadline)
				got := []messages.Origin{(<-d.withdrawn).Origin, (<-d.withdrawn).Origin}
				require.ElementsMatch(t, []messages.Origin{q.Origin, r.Origin}, got)
				h.stopAndVerify()
				require.Empty(t, d.withdrawn)
				h.system.Root.Stop(d.pid)
				time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
			})
		})
	}
}

// withAskerOverHTTP runs a scenario in a bubble of fake time, with a server "s" over HTTP that asks.
func withAskerOverHTTP(t *testing.T, cfg supervisor.Config, scenario func(h *harness, server *faults.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		life, end := context.WithCancel(t.Context())
		var askers []*mcp.Server
		server := faults.Local(func() http.Handler {
			asker := newAsker(life)
			askers = append(askers, asker)
			return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return asker }, nil)
		})
		defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		defer func() {
			end()
			server.Close()
			for _, asker := range askers {
				for forgotten := range asker.Sessions() {
					forgotten.Close()
				}
			}
		}()
		cfg.Servers = []mcpbridge.Server{{
			Name: "s", URL: server.URL(), HTTPClient: &http.Client{Transport: server}, ProtocolVersion: "2025-11-25",
		}}
		cfg.Capabilities = elicits
		h := start(t, cfg)
		defer h.stop()
		scenario(h, server)
	})
}

// Over streamable HTTP the stream of a question names its operation, however many run.
func TestOverHTTPTheStreamNamesTheOperation(t *testing.T) {
	withAskerOverHTTP(t, supervisor.Config{DrainTimeout: 300 * time.Millisecond}, func(h *harness, _ *faults.Server) {
		hang := h.send(call("a", "hang"))
		synctest.Wait() // it runs: a cancellation that overtakes its call cancels nothing
		calls, desks := map[string]*sentCommand{}, map[string]*desk{}
		for range 10 {
			d := newDesk(h)
			op := call("a", "ask")
			op.Handler = d.pid
			calls[op.ID], desks[op.ID] = h.send(op), d
		}
		for id, d := range desks {
			q := d.question()
			require.Equal(t, messages.OperationRef{ID: id, Method: "tools/call", Target: "ask"}, q.Operation)
			require.Equal(t, id, q.Params.Message)
			require.Empty(t, q.Params.Meta, "nothing of the mark is left")
		}
		// One of them ends, and only its question is withdrawn.
		for id, p := range calls {
			h.cancel(p)
			p.fails(messages.CodeCancelled)
			require.Equal(t, "the operation was cancelled", (<-desks[id].withdrawn).Reason)
			delete(calls, id)
			delete(desks, id)
			break
		}
		h.send(&messages.CloseAll{})
		for id, p := range calls {
			require.Empty(t, desks[id].withdrawn)
			_ = p
		}
		h.cancel(hang)
		h.stop()
		for id, p := range calls {
			p.fails(messages.CodeClosed)
			require.Equal(t, "the session was closed", (<-desks[id].withdrawn).Reason)
		}
		h.verify()
	})
}

// The end of the server ends its questions.
func TestAQuestionIsWithdrawnWhenItsServerStops(t *testing.T) {
	withAskerOverHTTP(t, supervisor.Config{CallTimeout: 2 * time.Second}, func(h *harness, server *faults.Server) {
		d := newDesk(h)
		op := call("a", "ask")
		op.Handler = d.pid
		p := h.send(op)
		q := d.question()
		server.Stop()
		require.NotEmpty(t, d.takenBack(q))
		p.reply()
		require.NoError(t, server.Restart())
		h.stop()
		require.Empty(t, d.withdrawn)
		h.verify()
	})
}

// A session that expired takes its questions along, when the time of its running calls is over.
func TestAQuestionIsWithdrawnWhenItsSessionExpires(t *testing.T) {
	withAskerOverHTTP(t, supervisor.Config{DrainTimeout: 300 * time.Millisecond}, func(h *harness, server *faults.Server) {
		d, next := newDesk(h), newDesk(h)
		op, other := call("a", "ask"), call("a", "ask")
		op.Handler, other.Handler = d.pid, next.pid
		p := h.send(op)
		q := d.question()
		server.Expire(faults.Expiries()[0])
		answered := h.send(other)
		require.NotEmpty(t, d.takenBack(q))
		p.fails(messages.CodeLost)
		next.question().accept()
		require.Equal(t, "accept", answered.text())
		require.EqualValues(t, 2, answered.ok().Generation)
		h.stopAndVerify()
		require.Empty(t, d.withdrawn)
	})
}

// A validator that follows such a schema overflows its stack, which ends the process.
func TestFormWhoseSchemaHasNoEndIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script, asked := faults.NewScript(t, "s"), 0
		script.Tool("ask").Does(func(ctx context.Context, run *faults.Run) (any, error) {
			_, err := run.Request.Session.Elicit(ctx, &mcp.ElicitParams{Message: "?", RequestedSchema: map[string]any{"type": "object", "$ref": "#"}})
			return nil, err
		})
		system := actor.NewActorSystem()
		handler := system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
			if _, ok := c.Message().(*messages.Elicit); ok {
				asked++
				c.Respond(&messages.Elicited{Result: &mcp.ElicitResult{Action: "accept", Content: map[string]any{"a": 1}}})
			}
		}))
		sup := script.Supervise(system, supervisor.Config{Handler: handler})
		_, err := sup.Client().CallTool(t.Context(), "s", "a", &mcp.CallToolParams{Name: "ask"})
		require.ErrorContains(t, err, "requestedSchema: cannot be used: it refers to itself without an end")
		require.Zero(t, asked)
	})
}

// A question of an operation that is over reaches no handler: it may have been on its way when the
// operation returned. A question of a set-up does, which no caller has sent.
func TestAQuestionThatIsLateIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		h.server = newFakeServer()
		d := newDesk(h)
		var dialed dial.Request
		h.server.dial = func(ctx context.Context, req dial.Request) error {
			dialed = req
			require.IsType(t, &messages.Elicited{}, req.Ask(ctx, &messages.Elicit{}, &messages.CallTool{Params: &mcp.CallToolParams{Name: "login"}}))
			return nil
		}
		h.start(dial.Replace(supervisor.Config{
			Servers: []mcpbridge.Server{serverAt("s", "http://fake.invalid")}, Handler: d.pid, Capabilities: elicits,
		}, h.server))
		op := call("a", "count")
		p := h.send(op)
		d.question().accept()
		p.ok()
		synctest.Wait()
		require.Equal(t, &messages.Refusal{Reason: "its operation is over"}, dialed.Ask(t.Context(), &messages.Elicit{}, op))
		require.Empty(t, d.questions)
		h.stopAndVerify()
		h.system.Root.Stop(d.pid)
		time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
	})
}

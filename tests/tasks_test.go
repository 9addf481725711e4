package tests

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
	"github.com/mcpactor/mcpactor/tests/taskserver"
)

// declaring returns capabilities with tasks and elicitation.
func declaring() *mcp.ClientCapabilities {
	can := &mcp.ClientCapabilities{Elicitation: elicits.Elicitation}
	can.AddExtension(mcpbridge.TasksExtension, nil)
	return can
}

// taskWorld is a supervisor before a server of tasks over HTTP, in fake time.
type taskWorld struct {
	*harness
	tasks *taskserver.Server
	local *faults.Server
	desk  *desk
}

// config returns the configuration of a supervisor.
func (w *taskWorld) config(cfg supervisor.Config) supervisor.Config {
	cfg.Servers = []mcpbridge.Server{{Name: "s", URL: w.local.URL() + "/mcp", HTTPClient: &http.Client{Transport: w.local}}}
	if cfg.Capabilities == nil {
		cfg.Capabilities = declaring()
	}
	if cfg.CallTimeout == 0 {
		cfg.CallTimeout = time.Hour
	}
	return cfg
}

// withTasks runs a scenario.
func withTasks(t *testing.T, cfg supervisor.Config, scenario func(w *taskWorld)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		server := taskserver.New()
		server.Poll = 2 * time.Second
		w := &taskWorld{tasks: server, local: faults.Local(server.Handler)}
		defer w.local.Close()
		w.harness = newHarness(t)
		w.desk = newDesk(w.harness)
		defer w.system.Root.Stop(w.desk.pid)
		cfg.Handler = w.desk.pid
		w.start(w.config(cfg))
		defer w.stop()
		w.executed = server.Runs
		scenario(w)
		w.stopAndVerify()
		require.Empty(t, server.Wrong())
	})
}

// states returns the states of the tasks so far.
func (w *taskWorld) states() (states []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, event := range w.events {
		if e, is := event.(*messages.TaskChanged); is {
			states = append(states, e.Status)
		}
	}
	return states
}

func TestCallThatBecomesATaskIsFollowedToItsEnd(t *testing.T) {
	withTasks(t, supervisor.Config{}, func(w *taskWorld) {
		p := w.send(call("a", "work", with("seconds", 9)))
		require.Equal(t, "worked", p.text())
		require.False(t, p.ok().Replayed)
		require.Equal(t, 10*time.Second, p.answeredAt.Sub(p.sent), "it is asked for every 2 s, as the server wants it")
		require.Equal(t, 5, w.tasks.Requests("tasks/get"))
		awaitEvent(w.harness, func(e *messages.TaskChanged) bool { return e.Status == "completed" })
		require.Equal(t, []string{"working", "working", "completed"}, w.states(), "the second has a message")
		awaitEvent(w.harness, func(e *messages.TaskChanged) bool {
			return e.Message == "at it" && e.Operation.Target == "work" && e.Operation.ID == p.cmd.RequestID()
		})

		require.Equal(t, "at once", w.send(call("a", "now")).text(), "it is no task")
		require.True(t, w.send(call("a", "complain")).ok().Result.IsError)
		f := w.send(call("a", "fail")).fails(messages.CodeServerError)
		require.Equal(t, "the disk is full", f.Detail)
		require.True(t, f.MayHaveRun)
		require.Contains(t, w.send(call("a", "odd")).fails(messages.CodeProtocol).Detail, "pondering")
		f = w.send(call("a", "mixed_up")).fails(messages.CodeProtocol)
		require.Contains(t, f.Detail, "answered with another one")
		require.True(t, f.MayHaveRun)
		p = w.send(call("a", "instant"))
		require.Equal(t, "worked", p.text(), "a task may be over when it is created")
		require.Equal(t, p.sent, p.answeredAt)
		verbatim := w.send(call("a", "work", func(op *messages.CallTool) { op.Verbatim = true })).ok()
		require.JSONEq(t, `{"content":[{"type":"text","text":"worked"}]}`, string(verbatim.Verbatim))
		require.Equal(t, 1, w.dials.dialed())
	})
}

// Without the capability a task is no result, and the server is not told that it may answer with one.
func TestTaskThatWasNotDeclaredIsAProtocolFailure(t *testing.T) {
	withTasks(t, supervisor.Config{Capabilities: elicits}, func(w *taskWorld) {
		f := w.send(call("a", "hang")).fails(messages.CodeInvalid)
		require.Contains(t, f.Detail, "missing required client capability")
		require.Empty(t, w.tasks.Runs())
		require.Equal(t, "at once", w.send(call("a", "work")).text(), "the server needs no task for it")
	})
	w := newHarness(t)
	rude := mcp.NewServer(&mcp.Implementation{Name: "rude", Version: "1"}, nil)
	rude.AddTool(&mcp.Tool{Name: "work", InputSchema: map[string]any{"type": "object"}}, func(_ context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{}, nil
	})
	rude.AddReceivingMiddleware(taskserver.Always)
	w.start(supervisor.Config{Servers: []mcpbridge.Server{{Name: "s", InMemory: rude}}})
	f := w.send(call("a", "work")).fails(messages.CodeProtocol)
	require.Contains(t, f.Detail, `"task"`)
	require.True(t, f.MayHaveRun)
	w.stopAndVerify()
}

func TestQuestionsOfATaskAreAnsweredByTheHandlerOfItsCall(t *testing.T) {
	withTasks(t, supervisor.Config{}, func(w *taskWorld) {
		p := w.send(call("a", "confirm_all"))
		one, two := w.desk.question(), w.desk.question()
		require.ElementsMatch(t, []string{"sure?", "really?"}, []string{one.Params.Message, two.Params.Message})
		require.Equal(t, p.cmd.RequestID(), one.Operation.ID)
		time.Sleep(30 * time.Second)
		require.Empty(t, w.desk.questions, "each is asked once, however often the server is asked")
		one.accept()
		two.accept()
		require.Contains(t, p.text(), "sure=accept")
		require.Equal(t, 1, w.tasks.Requests("tasks/update"))
		awaitEvent(w.harness, func(e *messages.TaskChanged) bool { return e.Status == "input_required" })

		// A question that nobody answers fails the call, and ends the task.
		p = w.send(call("a", "confirm"))
		q := w.desk.question()
		w.system.Root.Send(q.from, &messages.Refusal{Reason: "nobody is there"})
		f := p.fails(messages.CodeRefused)
		require.True(t, f.MayHaveRun)
		time.Sleep(time.Second)
		require.Equal(t, []string{p.cmd.RequestID()}, w.tasks.Cancelled())
	})
}

// A server that does not take the answers for now is asked for the task at its pace, however fast the handler answers.
func TestAnswersThatAreNotTakenAreGivenAgainLater(t *testing.T) {
	withTasks(t, supervisor.Config{}, func(w *taskWorld) {
		w.local.Inject("tasks/update", faults.Times(3, faults.Refuse(429, "")))
		p := w.send(call("a", "confirm"))
		for range 4 {
			w.desk.question().accept()
		}
		require.Contains(t, p.text(), "sure=accept")
		require.Equal(t, 30*time.Second, p.answeredAt.Sub(p.sent), "it is asked for after 2 s, and 4, 8 and 16 s after an answer that is not taken")

		w.local.Inject("tasks/update", faults.Refuse(429, ""))
		p = w.send(call("a", "confirm"))
		for range 5 {
			w.desk.question().accept()
		}
		p.fails(messages.CodeRateLimited)
		require.Empty(t, w.desk.questions)
	})
}

// The questions that come before the task are asked first, and then the task is followed.
func TestCallIsAskedForMoreBeforeItBecomesATask(t *testing.T) {
	withTasks(t, supervisor.Config{}, func(w *taskWorld) {
		p := w.send(call("a", "introduce", with("seconds", 9)))
		q := w.desk.question()
		require.Equal(t, "who?", q.Params.Message)
		w.system.Root.Send(q.from, &messages.Elicited{Result: &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}})
		require.Equal(t, "worked for Ada", p.text())
		require.Equal(t, 1, w.tasks.Runs()[p.cmd.RequestID()])
		require.Equal(t, 5, w.tasks.Requests("tasks/get"))
		require.Zero(t, w.tasks.Requests("tasks/update"))
	})
}

func TestTaskIsCancelledWithItsCall(t *testing.T) {
	for name, end := range map[string]func(w *taskWorld, p *sentCommand) messages.Code{
		"cancelled": func(w *taskWorld, p *sentCommand) messages.Code { w.cancel(p); return messages.CodeCancelled },
		"deadline": func(*taskWorld, *sentCommand) messages.Code {
			time.Sleep(20 * time.Second)
			return messages.CodeDeadline
		},
		"closed": func(w *taskWorld, _ *sentCommand) messages.Code {
			w.send(&messages.CloseScope{Scope: "a", Now: true}).reply()
			return messages.CodeClosed
		},
		"asked": func(w *taskWorld, p *sentCommand) messages.Code {
			q := w.desk.question()
			w.cancel(p)
			require.Contains(w.t, w.desk.takenBack(q), "cancelled")
			return messages.CodeCancelled
		},
		"away": func(w *taskWorld, p *sentCommand) messages.Code {
			w.local.Stop()
			time.Sleep(5 * time.Second)
			w.cancel(p)
			p.reply()
			require.NoError(w.t, w.local.Start())
			require.Equal(w.t, "at once", w.send(call("a", "now")).text())
			return messages.CodeCancelled
		},
	} {
		t.Run(name, func(t *testing.T) {
			withTasks(t, supervisor.Config{}, func(w *taskWorld) {
				tool := "hang"
				if name == "asked" {
					tool = "confirm"
				}
				p := w.send(call("a", tool, within(20*time.Second)))
				time.Sleep(3 * time.Second)
				f := p.fails(end(w, p))
				require.True(t, f.MayHaveRun)
				time.Sleep(time.Second)
				require.Equal(t, []string{p.cmd.RequestID()}, w.tasks.Cancelled())
			})
		})
	}
}

// C15: the server is killed and comes back while it works on a task, which it still knows.
func TestTaskOutlivesItsConnectionAndItsServer(t *testing.T) {
	for name, fault := range map[string]func(w *taskWorld){
		"the server restarts":    func(w *taskWorld) { require.NoError(w.t, w.local.Restart()) },
		"the server is away":     func(w *taskWorld) { w.local.Stop(); time.Sleep(8 * time.Second); require.NoError(w.t, w.local.Start()) },
		"answers break off":      func(w *taskWorld) { w.local.Inject("tasks/get", faults.Times(2, faults.CutAnswer(0))) },
		"a front answers":        func(w *taskWorld) { w.local.Inject("tasks/get", faults.Times(2, faults.Refuse(503, ""))) },
		"its database fails":     func(w *taskWorld) { w.tasks.Fail(3) },
		"the limit is reached":   func(w *taskWorld) { w.local.Inject("tasks/get", faults.Times(3, faults.Refuse(429, ""))) },
		"the session is evicted": func(w *taskWorld) { w.send(&messages.Restart{Key: messages.Key{Server: "s", Scope: "a"}}).reply() },
	} {
		t.Run(name, func(t *testing.T) {
			withTasks(t, supervisor.Config{}, func(w *taskWorld) {
				p := w.send(call("a", "work", with("seconds", 30)))
				time.Sleep(3 * time.Second)
				fault(w)
				require.Equal(t, "worked", p.text())
				require.False(t, p.ok().Replayed, "it has run once")
				require.Less(t, p.answeredAt.Sub(p.sent), 45*time.Second)
				require.Equal(t, 1, w.tasks.Runs()[p.cmd.RequestID()])
			})
		})
	}
}

// C15: the server no longer knows the task.
func TestTaskThatIsForgottenIsLost(t *testing.T) {
	withTasks(t, supervisor.Config{}, func(w *taskWorld) {
		p := w.send(call("a", "hang", replay(messages.ReplayAlways)))
		time.Sleep(3 * time.Second)
		w.tasks.Forget()
		require.NoError(t, w.local.Restart())
		f := p.fails(messages.CodeLost)
		require.True(t, f.MayHaveRun)
		require.Contains(t, f.Detail, "no longer knows the task")
		require.Equal(t, 1, w.tasks.Runs()[p.cmd.RequestID()])
	})
}

// A call that is followed is not quiet, however long its task takes.
func TestTaskThatIsAnsweredForIsNotQuiet(t *testing.T) {
	withTasks(t, supervisor.Config{}, func(w *taskWorld) {
		require.Equal(t, "worked", w.send(call("a", "work", with("seconds", 60), quiet(5*time.Second))).text())
		w.tasks.Poll = 10 * time.Second
		require.Equal(t, "worked", w.send(call("a", "work", with("seconds", 60), quiet(5*time.Second))).text(), "it is not asked for more often")
		w.tasks.Poll = 2 * time.Second
		p := w.send(call("a", "work", with("seconds", 60), quiet(5*time.Second)))
		time.Sleep(3 * time.Second)
		w.local.Inject("tasks/get", faults.Hang())
		require.True(t, p.fails(messages.CodeQuiet).MayHaveRun)
		require.Less(t, p.answeredAt.Sub(p.sent), 10*time.Second)
	})
}

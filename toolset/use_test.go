package toolset_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// inbox is an actor that keeps what it gets.
type inbox struct {
	pid *actor.PID

	mu  sync.Mutex
	got []any
}

func newInbox(system *actor.ActorSystem) *inbox {
	in := &inbox{}
	in.pid = system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		switch c.Message().(type) {
		case *toolset.Told, *toolset.PendingList, *messages.Failure, *messages.Progress, *actor.DeadLetterResponse:
			in.mu.Lock()
			defer in.mu.Unlock()
			in.got = append(in.got, c.Message())
		}
	}))
	return in
}

// all returns what has come since the last call, when nothing moves any more.
func (in *inbox) all() []any {
	synctest.Wait()
	in.mu.Lock()
	defer in.mu.Unlock()
	defer func() { in.got = nil }()
	return in.got
}

// peek returns what has come since the last call of all.
func (in *inbox) peek() []any {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.got
}

// told returns the one reply since the last call.
func (in *inbox) told(w *world) *toolset.Told {
	w.Helper()
	got := in.all()
	require.Len(w, got, 1)
	told := got[0].(*toolset.Told)
	set := 0
	for _, is := range []bool{told.Result != nil, told.Failure != nil, told.Pending != nil} {
		if is {
			set++
		}
	}
	require.Equal(w, 1, set)
	return told
}

// request sends a message to the toolset.
func (in *inbox) request(w *world, message any) {
	w.system.Root.RequestWithCustomSender(w.PID(), message, in.pid)
}

func TestUseIsToldOnce(t *testing.T) {
	guarded(t, func(_ context.Context, w *world, _ *person, runs func(string) int) {
		in := newInbox(w.system)
		in.request(w, &toolset.Use{ID: "1", Name: "one__a", Arguments: `{"x":1}`})
		told := in.told(w)
		require.Equal(w, "1", told.ID)
		require.Equal(w, `a{"x":1}`, told.Output.Text())
		require.Equal(w, "1", told.Result.ID)
		require.Equal(w, 1, runs("a"))

		for _, test := range []struct {
			use  *toolset.Use
			code messages.Code
			text string
		}{
			{&toolset.Use{ID: "2", Name: "two__c"}, messages.CodeRefused, "it deletes data"},
			{&toolset.Use{ID: "3", Name: "onne__a"}, messages.CodeInvalid, `did you mean "one__a"? The tool did not run.`},
			{&toolset.Use{ID: "4", Name: "one__a", Arguments: "[]"}, messages.CodeInvalid, "not a JSON object"},
			{&toolset.Use{ID: "5", Name: "one__a", Arguments: panics{}}, messages.CodeInternal, "has a fault"},
			{&toolset.Use{ID: "6", Name: toolset.FindTool}, messages.CodeInvalid, "what the tool should do"},
		} {
			in.request(w, test.use)
			told := in.told(w)
			require.Equal(w, test.use.ID, told.ID)
			require.True(w, told.Output.IsError)
			require.ErrorIs(w, told.Failure, test.code)
			require.Contains(w, told.Output.Text(), test.text)
		}
		in.request(w, &toolset.Use{Name: toolset.FindTool, Arguments: `{"query": "one"}`})
		require.Contains(w, in.told(w).Output.Text(), "Found 2 of 3 tools.")
		for wrong, kind := range map[any]string{
			"hello": "string", (*toolset.Use)(nil): "*toolset.Use", (*toolset.AnswerPending)(nil): "*toolset.AnswerPending", (*messages.Cancel)(nil): "*messages.Cancel",
		} {
			in.request(w, wrong)
			got := in.all()
			require.Len(w, got, 1)
			require.ErrorContains(w, got[0].(*messages.Failure), "takes Use, AnswerPending, ListPending and Cancel, and not "+kind)
		}
		require.Nil(w, (*toolset.Toolset)(nil).PID())
	})
}

// fails counts how often it does not become JSON.
type fails struct{ times *int }

func (f fails) MarshalJSON() ([]byte, error) { *f.times++; return nil, errors.New("a bug") }

func TestArgumentsAreEncodedOnce(t *testing.T) {
	imagine(t, toolset.Config{}, func(ctx context.Context, w *world) {
		times := 0
		_, err := w.Call(ctx, "one__a", fails{&times})
		require.ErrorIs(w, err, messages.CodeInvalid)
		require.ErrorContains(w, err, "arguments: are not a JSON object")
		require.ErrorContains(w, errors.Unwrap(err), "a bug")
		require.Equal(w, 1, times)
	})
}

// panics panics when it becomes JSON.
type panics struct{}

func (panics) MarshalJSON() ([]byte, error) { panic("a bug") }

// sluggish takes its time to become JSON.
type sluggish struct{}

func (sluggish) MarshalJSON() ([]byte, error) { time.Sleep(8 * time.Second); return []byte("{}"), nil }

func TestUseWithSlowArgumentsIsAnsweredAtItsDeadline(t *testing.T) {
	imagine(t, toolset.Config{}, func(ctx context.Context, w *world) {
		for _, name := range []string{"one__a", toolset.FindTool, toolset.ReadTool, "unknown"} {
			in := newInbox(w.system)
			in.request(w, &toolset.Use{ID: "1", Name: name, Arguments: sluggish{}, Header: messages.Header{Deadline: time.Now().Add(time.Second / 2)}})
			time.Sleep(time.Second / 2)
			told := in.told(w)
			require.ErrorIs(w, told.Failure, messages.CodeDeadline)
			require.Equal(w, "1", told.ID)
			require.False(w, told.Failure.MayHaveRun)
		}
		over, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := w.Approve(over, "one__a", sluggish{})
		require.ErrorIs(w, err, messages.CodeDeadline)
		result, err := w.Call(ctx, "one__a", sluggish{})
		require.NoError(w, err)
		require.NotNil(w, result)
	})
}

// A toolset that is closed has no process in the actor system, and answers.
func TestPIDOfAToolsetThatIsClosedAnswers(t *testing.T) {
	imagine(t, toolset.Config{}, func(_ context.Context, w *world) {
		processes := func() (n int) {
			for _, bucket := range w.system.ProcessRegistry.LocalPIDs.LocalPIDs {
				n += bucket.Count()
			}
			return n
		}
		in, before := newInbox(w.system), processes()
		for _, early := range []bool{true, false} {
			tools, err := toolset.New(nil, w.sup, toolset.Config{})
			require.NoError(w, err)
			if early {
				tools.PID()
			}
			tools.Close()
			pid := tools.PID()
			require.Equal(w, before, processes())
			require.Same(w, pid, tools.PID())
			w.system.Root.RequestWithCustomSender(pid, &toolset.Use{ID: "1", Name: "one__a"}, in.pid)
			require.ErrorIs(w, in.told(w).Failure, messages.CodeClosed)
		}
	})
}

func TestMessagesOfAToolsetPrintNoArgumentsAndNoResult(t *testing.T) {
	for _, message := range []any{
		&toolset.Use{ID: "1", Name: "one__a", Arguments: `{"password":"secret"}`},
		&toolset.Told{ID: "1", Output: toolset.Output{Parts: []toolset.Part{{Text: "secret"}}}},
		&toolset.Pending{ID: "1", Arguments: []byte("secret")},
	} {
		require.NotContains(t, fmt.Sprintf("%v %+v", message, message), "secret")
		require.NotContains(t, message.(interface{ LogValue() slog.Value }).LogValue().String(), "secret")
	}
}

func TestUseIsCancelledWhereverItIs(t *testing.T) {
	for name, cancel := range map[string]func(w *world, owner *inbox){
		"by its id":         func(w *world, _ *inbox) { w.system.Root.Send(w.PID(), &messages.Cancel{ID: "1"}) },
		"with its owner":    func(w *world, owner *inbox) { w.system.Root.Stop(owner.pid) },
		"with the toolset":  func(w *world, _ *inbox) { w.Close() },
		"with its deadline": func(*world, *inbox) { time.Sleep(time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			guarded(t, func(_ context.Context, w *world, p *person, runs func(string) int) {
				in, owner := newInbox(w.system), newInbox(w.system)
				h := messages.Header{Owner: owner.pid, Deadline: time.Now().Add(time.Minute)}
				in.request(w, &toolset.Use{ID: "1", Name: "one__b", Header: h})
				in.request(w, &toolset.Use{ID: "2", Name: "one__b", Header: messages.Header{Deadline: time.Now().Add(time.Hour)}})
				require.Len(w, p.questions(), 2)
				require.Empty(w, in.all())
				cancel(w, owner)
				synctest.Wait()
				got := in.all()
				if name == "with the toolset" {
					require.Len(w, got, 2)
					require.ErrorIs(w, got[0].(*toolset.Told).Failure, messages.CodeClosed)
					in.request(w, &toolset.Use{ID: "3", Name: "one__b"})
					require.ErrorIs(w, in.told(w).Failure, messages.CodeClosed)
				} else {
					require.Len(w, got, 1)
					told := got[0].(*toolset.Told)
					require.Equal(w, "1", told.ID)
					require.True(w, errors.Is(told.Failure, messages.CodeCancelled) || errors.Is(told.Failure, messages.CodeDeadline), told.Failure)
					p.answers <- toolset.Decision{Verdict: toolset.Allow}
					require.Equal(w, "2", in.told(w).ID)
				}
				require.LessOrEqual(w, runs("b"), 1)
			})
		})
	}
}

func TestUseOfAnOwnerThatHasTerminatedIsCancelled(t *testing.T) {
	guarded(t, func(_ context.Context, w *world, _ *person, runs func(string) int) {
		in, owner := newInbox(w.system), newInbox(w.system)
		w.system.Root.Stop(owner.pid)
		synctest.Wait()
		in.request(w, &toolset.Use{ID: "1", Name: "one__b", Header: messages.Header{Owner: owner.pid}})
		require.ErrorIs(w, in.told(w).Failure, messages.CodeCancelled)
		require.Equal(w, 0, runs("b"))
	})
}

func TestUseThatRunsIsCancelledOnTheServer(t *testing.T) {
	imagine(t, toolset.Config{}, func(_ context.Context, w *world) {
		ended := make(chan error, 1)
		w.one.mcp.AddTool(&mcp.Tool{Name: "slow", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			require.NoError(w, req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: 1, Message: "begun"}))
			<-ctx.Done()
			ended <- ctx.Err()
			return nil, ctx.Err()
		})
		in, watching := newInbox(w.system), newInbox(w.system)
		in.request(w, &toolset.Use{ID: "1", Name: "one__slow", Header: messages.Header{Subscriber: watching.pid}})
		require.Empty(w, in.all())
		progress := watching.all()
		require.Len(w, progress, 1)
		require.Equal(w, "1", progress[0].(*messages.Progress).ID)
		w.system.Root.Send(w.PID(), &messages.Cancel{ID: "1"})
		require.ErrorIs(w, in.told(w).Failure, messages.CodeCancelled)
		require.ErrorIs(w, <-ended, context.Canceled)

		in.request(w, &toolset.Use{ID: "2", Name: "one__slow", Header: messages.Header{Quiet: time.Second}})
		time.Sleep(time.Second)
		told := in.told(w)
		require.ErrorIs(w, told.Failure, messages.CodeQuiet)
		require.Contains(w, told.Output.Text(), "The tool may have run.")
		require.ErrorIs(w, <-ended, context.Canceled)
	})
}

func TestUsesOfAToolsetAreBounded(t *testing.T) {
	guarded(t, func(_ context.Context, w *world, p *person, _ func(string) int) {
		in := newInbox(w.system)
		for i := range 1030 {
			in.request(w, &toolset.Use{ID: fmt.Sprint(i), Name: "one__b"})
		}
		got := in.all()
		require.Len(w, got, 6)
		for _, told := range got {
			require.ErrorIs(w, told.(*toolset.Told).Failure, messages.CodeBusy)
			require.False(w, told.(*toolset.Told).Failure.MayHaveRun)
		}
		in.request(w, &toolset.AnswerPending{ID: "answered", Decision: allow})
		mayHaveRun(w, in.told(w).Failure)
		p.answers <- toolset.Decision{Verdict: toolset.Deny, Remember: true}
		require.Len(w, in.all(), 1024)
	})
}

// The trace and the attributes of a use reach the policy, the listing and the call.
func TestUseHasItsTraceAndItsAttributesEverywhere(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	header := messages.Header{Trace: messages.Trace{Parent: parent}, Attributes: messages.NewAttributes(map[string]string{"run": "7"})}
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		seen := map[string]string{}
		note := func(ctx context.Context, where string) {
			run, _ := messages.AttributesOf(ctx).Get("run")
			mu.Lock()
			defer mu.Unlock()
			seen[where] = messages.TraceOf(ctx).Parent + " " + run
		}
		sup, err := supervisor.Start(nil, supervisor.Config{
			Servers: []mcpbridge.Server{{Name: "one", InMemory: newServer("one", "a", "b").mcp}},
			Interceptors: []actors.Interceptor{func(next actors.Runner) actors.Runner {
				return func(ctx context.Context, op messages.Operation) (messages.Result, error) {
					note(ctx, op.Method()+" "+messages.TargetOf(op))
					return next(ctx, op)
				}
			}},
		})
		require.NoError(t, err)
		defer func() {
			require.NoError(t, sup.Stop(context.Background()))
			time.Sleep(3 * time.Second) // until Proto.Actor's throttle of dead letters ends
		}()
		tools, err := toolset.New(nil, sup, toolset.Config{Servers: []toolset.Filter{{Name: "one"}}, Policy: &toolset.Policy{
			Ask: func(ctx context.Context, p toolset.Proposal) (toolset.Decision, error) {
				note(ctx, "ask")
				if p.Tool.Original == "b" {
					return toolset.Decision{Verdict: toolset.Defer}, nil
				}
				return toolset.Decision{Verdict: toolset.Allow}, nil
			},
		}})
		require.NoError(t, err)
		defer tools.Close()
		w, in := &world{T: t, system: sup.System(), Toolset: tools}, newInbox(sup.System())
		in.request(w, &toolset.Use{ID: "1", Name: "one__a", Header: header})
		require.NotNil(t, in.told(w).Result)
		in.request(w, &toolset.Use{ID: "2", Name: "one__b", Header: header})
		p := in.told(w).Pending
		in.request(w, &toolset.AnswerPending{ID: "2", Digest: p.Digest, Decision: toolset.Decision{Verdict: toolset.Allow}})
		require.NotNil(t, in.told(w).Result)
		both := parent + " 7"
		require.Equal(t, map[string]string{"tools/list ": both, "ask": both, "tools/call a": both, "tools/call b": both}, seen)
	})
}

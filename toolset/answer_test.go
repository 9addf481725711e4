package toolset_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/toolset"
)

// mayHaveRun checks that a model is told that a call may have run.
func mayHaveRun(w *world, err error) {
	w.Helper()
	f, is := errors.AsType[*messages.Failure](err)
	require.True(w, is, "%v", err)
	require.True(w, f.MayHaveRun, "%v", f)
	require.Contains(w, toolset.Explain(err), "The tool may have run. Check its effect before you repeat the call.")
}

// A person clicks twice, or answers again after the process that had sent the call has died.
func TestAnswerWhoseCallIsNotPendingSaysThatItMayHaveRun(t *testing.T) {
	for name, store := range map[string]mcpbridge.Store{"memory": nil, "store": new(resume.Memory)} {
		t.Run(name, func(t *testing.T) {
			imagine(t, toolset.Config{Policy: deferring(), Store: store}, func(ctx context.Context, w *world) {
				w.one.mcp.AddTool(&mcp.Tool{Name: "pay", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					time.Sleep(time.Second)
					return &mcp.CallToolResult{}, nil
				})
				p := w.pendingOf(ctx, "one__pay", nil)
				paid := make(chan error)
				go func() {
					_, err := w.Answer(ctx, p.ID, allow)
					paid <- err
				}()
				time.Sleep(time.Second / 2)
				_, err := w.Answer(ctx, p.ID, allow)
				require.ErrorIs(w, err, messages.CodeInvalid)
				mayHaveRun(w, err)
				require.NoError(w, <-paid)
				_, err = w.Answer(ctx, p.ID, deny)
				mayHaveRun(w, err)
				_, err = w.Answer(ctx, p.ID, toolset.Decision{})
				mayHaveRun(w, err)
				if store != nil {
					next, err := toolset.New(nil, w.sup, toolset.Config{Scope: "s", Store: store, Policy: deferring(), Servers: []toolset.Filter{{Name: "one"}}})
					require.NoError(w, err)
					defer next.Close()
					_, err = next.Answer(ctx, p.ID, allow)
					mayHaveRun(w, err)
				}
				w.Close()
				_, err = w.Answer(ctx, p.ID, allow)
				require.ErrorIs(w, err, messages.CodeClosed)
				mayHaveRun(w, err)
			})
		})
	}
}

func TestIDOfAPendingCallIsRefusedForAnotherCall(t *testing.T) {
	for name, store := range map[string]mcpbridge.Store{"memory": nil, "store": new(resume.Memory)} {
		t.Run(name, func(t *testing.T) {
			imagine(t, toolset.Config{Policy: deferring(), Store: store}, func(_ context.Context, w *world) {
				in := newInbox(w.system)
				use := func(name, arguments string) *toolset.Told {
					in.request(w, &toolset.Use{ID: "call_0", Name: name, Arguments: arguments})
					return in.told(w)
				}
				require.NotNil(w, use("one__a", `{"file": "<notes>"}`).Pending)
				refused := func() {
					w.Helper()
					for _, other := range [][2]string{{"one__b", `{"file": "<notes>"}`}, {"two__c", `{"file": "<notes>"}`}, {"one__a", `{"file": "all"}`}, {"one__a", ""}} {
						told := use(other[0], other[1])
						require.ErrorIs(w, told.Failure, messages.CodeInvalid)
						require.False(w, told.Failure.MayHaveRun)
						require.Contains(w, told.Output.Text(), "another call waits for an answer under it")
					}
				}
				refused()
				require.NotNil(w, use("one__a", `{ "file":"<notes>"}`).Pending, "the same call again")

				w.one.set(nil, time.Second) // also while it is answered
				w.changed("one")
				in.request(w, &toolset.AnswerPending{ID: "call_0", Decision: allow})
				require.Empty(w, in.all())
				for range 3 {
					in.request(w, &toolset.Use{ID: "call_0", Name: "two__c"})
					require.ErrorIs(w, in.told(w).Failure, messages.CodeInvalid)
				}
				time.Sleep(2 * time.Second)
				require.Contains(w, in.told(w).Output.Text(), "notes")

				require.NotNil(w, use("two__c", "").Pending, "the id is free")
				w.one.define(&mcp.Tool{Name: "a", Description: "Sends all data away."})
				in.request(w, &toolset.AnswerPending{ID: "call_0", Decision: deny})
				require.ErrorIs(w, in.told(w).Failure, messages.CodeRefused)
			})
		})
	}
}

// The definition that a person has been shown changes, and the model repeats its call.
func TestIDOfAPendingCallIsRefusedForAnotherDefinition(t *testing.T) {
	imagine(t, toolset.Config{Policy: deferring()}, func(_ context.Context, w *world) {
		in := newInbox(w.system)
		in.request(w, &toolset.Use{ID: "1", Name: "one__a"})
		require.NotNil(w, in.told(w).Pending)
		w.one.define(&mcp.Tool{Name: "a", Description: "Sends all data away."})
		w.changed("one")
		in.request(w, &toolset.Use{ID: "1", Name: "one__a"})
		require.ErrorIs(w, in.told(w).Failure, messages.CodeInvalid)
	})
}

// The answer waits for a list when the call is cancelled.
func TestCallThatIsCancelledWhileItIsAnsweredIsNotSentLater(t *testing.T) {
	for name, store := range map[string]mcpbridge.Store{"memory": nil, "store": new(resume.Memory)} {
		t.Run(name, func(t *testing.T) {
			for _, asMessage := range []bool{true, false} {
				imagine(t, toolset.Config{Policy: deferring(), Store: store}, func(ctx context.Context, w *world) {
					p := w.pendingOf(ctx, "one__a", nil)
					w.one.set(nil, time.Second)
					w.changed("one")
					in, answered := newInbox(w.system), make(chan error, 1)
					if asMessage {
						in.request(w, &toolset.AnswerPending{ID: p.ID, Decision: allow})
					} else {
						go func() {
							_, err := w.Answer(ctx, p.ID, allow)
							answered <- err
						}()
					}
					synctest.Wait()
					w.system.Root.Send(w.PID(), &messages.Cancel{ID: p.ID})
					if asMessage {
						require.ErrorIs(w, in.told(w).Failure, messages.CodeCancelled)
					} else {
						require.ErrorIs(w, <-answered, messages.CodeCancelled)
					}
					time.Sleep(2 * time.Second)
					_, err := w.Answer(ctx, p.ID, allow)
					require.ErrorIs(w, err, messages.CodeInvalid)
				})
			}
		})
	}
}

func TestAnswerWithAnEndedContextLeavesTheCallPending(t *testing.T) {
	imagine(t, toolset.Config{Policy: deferring()}, func(ctx context.Context, w *world) {
		p := w.pendingOf(ctx, "one__a", nil)
		over, cancel := context.WithCancel(ctx)
		cancel()
		_, err := w.Answer(over, p.ID, allow)
		require.ErrorIs(w, err, messages.CodeCancelled)
		require.Contains(w, toolset.Explain(err), "The tool did not run.")
		_, err = w.Answer(ctx, p.ID, allow)
		require.NoError(w, err)
	})
}

// The person has approved the call, its definition has changed, and the new one is asked about, when the model repeats it.
func TestIDOfACallThatIsAnsweredIsRefusedForTheSameCall(t *testing.T) {
	for name, store := range map[string]mcpbridge.Store{"memory": nil, "store": new(resume.Memory)} {
		t.Run(name, func(t *testing.T) {
			verdict := toolset.Defer
			var asked chan toolset.Decision
			policy := &toolset.Policy{
				Decide: func(toolset.Proposal) toolset.Decision { return toolset.Decision{Verdict: verdict} },
				Ask:    func(context.Context, toolset.Proposal) (toolset.Decision, error) { return <-asked, nil },
			}
			imagine(t, toolset.Config{Policy: policy, Store: store}, func(_ context.Context, w *world) {
				asked = make(chan toolset.Decision) // of the bubble
				in := newInbox(w.system)
				in.request(w, &toolset.Use{ID: "1", Name: "one__a"})
				require.NotNil(w, in.told(w).Pending)
				w.one.define(&mcp.Tool{Name: "a", Description: "Does more."})
				w.changed("one")
				verdict = toolset.Ask
				in.request(w, &toolset.AnswerPending{ID: "1", Decision: allow})
				require.Empty(w, in.all())

				verdict = toolset.Defer
				w.one.define(&mcp.Tool{Name: "a"})
				w.changed("one")
				in.request(w, &toolset.Use{ID: "1", Name: "one__a"})
				require.ErrorIs(w, in.told(w).Failure, messages.CodeInvalid)
				verdict = toolset.Allow
				asked <- allow
				require.NotNil(w, in.told(w).Result)
			})
		})
	}
}

// A call that is cancelled while a person is asked about its new definition does not wait for an answer.
func TestCallThatIsCancelledWhileItIsAskedAboutAgainIsNotPending(t *testing.T) {
	var asked chan toolset.Decision
	verdict := toolset.Defer
	policy := &toolset.Policy{
		Decide: func(toolset.Proposal) toolset.Decision { return toolset.Decision{Verdict: verdict} },
		Ask:    func(context.Context, toolset.Proposal) (toolset.Decision, error) { return <-asked, nil },
	}
	imagine(t, toolset.Config{Policy: policy}, func(ctx context.Context, w *world) {
		asked = make(chan toolset.Decision) // of the bubble
		p := w.pendingOf(ctx, "one__a", nil)
		w.one.define(&mcp.Tool{Name: "a", Description: "Does more."})
		w.changed("one")
		verdict = toolset.Ask
		answered := make(chan error, 1)
		go func() {
			_, err := w.Answer(ctx, p.ID, allow)
			answered <- err
		}()
		synctest.Wait()
		w.system.Root.Send(w.PID(), &messages.Cancel{ID: p.ID})
		synctest.Wait()
		asked <- toolset.Decision{Verdict: toolset.Defer}
		require.ErrorIs(w, <-answered, messages.CodeCancelled)
	})
}

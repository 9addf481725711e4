package toolset_test

import (
	"context"
	"errors"
	"sync/atomic"
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

// stores returns what keeps calls: the supervisor's memory, or a store.
func stores() map[string]mcpbridge.Store {
	return map[string]mcpbridge.Store{"memory": nil, "store": new(resume.Memory)}
}

// stillWaits checks that an answer has failed, and that the call still waits for one.
func (w *world) stillWaits(err error, p *toolset.Pending) {
	w.Helper()
	f, is := errors.AsType[*messages.Failure](err)
	require.True(w, is, "%v", err)
	require.False(w, f.MayHaveRun, "%v", f)
	waiting, is := errors.AsType[*toolset.Pending](err)
	require.True(w, is, "%v", err)
	require.Equal(w, [2]string{p.ID, p.Digest}, [2]string{waiting.ID, waiting.Digest})
	require.Contains(w, toolset.Explain(err), "The call waits for an approval, and has not run yet.")
	require.Contains(w, w.waiting(), p.ID)
}

// waiting returns the ids of the calls that wait for an answer.
func (w *world) waiting() (ids []string) {
	w.Helper()
	all, err := w.Pending(w.Context())
	require.NoError(w, err)
	for _, p := range all {
		ids = append(ids, p.ID)
	}
	return ids
}

// A person clicks twice, or answers again after the process that had sent the call has died.
func TestSecondAnswerGetsWhatBecameOfTheCall(t *testing.T) {
	for name, store := range stores() {
		t.Run(name, func(t *testing.T) {
			imagineWith(t, store, toolset.Config{Policy: deferring()}, func(ctx context.Context, w *world) {
				var runs atomic.Int32
				w.one.mcp.AddTool(&mcp.Tool{Name: "pay", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					runs.Add(1)
					time.Sleep(time.Second)
					return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "paid"}}}, nil
				})
				p := w.pendingOf(ctx, "one__pay", nil)
				paid := make(chan error)
				go func() {
					_, err := w.Answer(ctx, p.ID, p.Digest, allow)
					paid <- err
				}()
				time.Sleep(time.Second / 2)
				second, err := w.Answer(ctx, p.ID, p.Digest, allow) // waits for the first one
				require.NoError(w, err)
				require.NoError(w, <-paid)
				require.Equal(w, "paid", toolset.Convert(second.Result).Text())
				third, err := w.Answer(ctx, p.ID, p.Digest, deny)
				require.NoError(w, err)
				require.Equal(w, "paid", toolset.Convert(third.Result).Text(), "it is too late")
				_, err = w.Answer(ctx, p.ID, p.Digest, toolset.Decision{})
				mayHaveRun(w, err)
				_, err = w.Answer(ctx, p.ID, "sha256:other", allow)
				require.ErrorIs(w, err, messages.CodeInvalid)
				mayHaveRun(w, err)
				_, err = w.Answer(ctx, "other", p.Digest, allow)
				require.ErrorIs(w, err, messages.CodeInvalid)
				mayHaveRun(w, err)
				if store != nil {
					next, err := toolset.New(nil, w.sup, toolset.Config{Scope: "s", Policy: deferring(), Servers: []toolset.Filter{{Name: "one"}}})
					require.NoError(w, err)
					defer next.Close()
					fourth, err := next.Answer(ctx, p.ID, p.Digest, allow)
					require.NoError(w, err)
					require.Equal(w, "paid", toolset.Convert(fourth.Result).Text())
				}
				require.EqualValues(w, 1, runs.Load())
				w.Close()
				_, err = w.Answer(ctx, p.ID, p.Digest, allow)
				require.ErrorIs(w, err, messages.CodeClosed)
				mayHaveRun(w, err)
			})
		})
	}
}

func TestIDOfAPendingCallIsRefusedForAnotherCall(t *testing.T) {
	for name, store := range stores() {
		t.Run(name, func(t *testing.T) {
			imagineWith(t, store, toolset.Config{Policy: deferring()}, func(_ context.Context, w *world) {
				in := newInbox(w.system)
				use := func(name, arguments string) *toolset.Told {
					in.request(w, &toolset.Use{ID: "call_0", Name: name, Arguments: arguments})
					return in.told(w)
				}
				digest := use("one__a", `{"file": "<notes>"}`).Pending.Digest
				refused := func() {
					w.Helper()
					for _, other := range [][2]string{{"one__b", `{"file": "<notes>"}`}, {"two__c", `{"file": "<notes>"}`}, {"one__a", `{"file": "all"}`}, {"one__a", ""}} {
						told := use(other[0], other[1])
						require.ErrorIs(w, told.Failure, messages.CodeInvalid)
						require.False(w, told.Failure.MayHaveRun)
						require.Contains(w, told.Output.Text(), "another call has it: answer or cancel that one first")
					}
				}
				refused()
				require.NotNil(w, use("one__a", `{ "file":"<notes>"}`).Pending, "the same call again")

				w.one.set(nil, time.Second) // also while it is answered
				w.changed("one")
				in.request(w, &toolset.AnswerPending{ID: "call_0", Digest: digest, Decision: allow})
				require.Empty(w, in.all())
				for range 3 {
					in.request(w, &toolset.Use{ID: "call_0", Name: "two__c"})
					require.ErrorIs(w, in.told(w).Failure, messages.CodeInvalid)
				}
				time.Sleep(2 * time.Second)
				require.Contains(w, in.told(w).Output.Text(), "notes")

				next := use("two__c", "").Pending
				require.NotEqual(w, "call_0", next.ID, "that is of the earlier call")
				in.request(w, &toolset.AnswerPending{ID: "call_0", Digest: next.Digest, Decision: allow})
				require.ErrorIs(w, in.told(w).Failure, messages.CodeInvalid)
				in.request(w, &toolset.AnswerPending{ID: next.ID, Digest: next.Digest, Decision: deny})
				require.ErrorIs(w, in.told(w).Failure, messages.CodeRefused)
				require.Equal(w, [2]int{1, 0}, [2]int{w.one.count("a"), w.two.count("c")})
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
	for name, store := range stores() {
		t.Run(name, func(t *testing.T) {
			for _, asMessage := range []bool{true, false} {
				imagineWith(t, store, toolset.Config{Policy: deferring()}, func(ctx context.Context, w *world) {
					p := w.pendingOf(ctx, "one__a", nil)
					w.one.set(nil, time.Second)
					w.changed("one")
					in, answered := newInbox(w.system), make(chan error, 1)
					if asMessage {
						in.request(w, &toolset.AnswerPending{ID: p.ID, Digest: p.Digest, Decision: allow})
					} else {
						go func() {
							_, err := w.Answer(ctx, p.ID, p.Digest, allow)
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
					_, err := w.Answer(ctx, p.ID, p.Digest, allow)
					require.ErrorIs(w, err, messages.CodeCancelled)
					require.Contains(w, toolset.Explain(err), "The tool did not run.")
					require.Zero(w, w.one.count("a"))
				})
			}
		})
	}
}

func TestAnswerWithAnEndedContextLeavesTheCallPending(t *testing.T) {
	for name, store := range stores() {
		t.Run(name, func(t *testing.T) {
			imagineWith(t, store, toolset.Config{Policy: deferring()}, func(ctx context.Context, w *world) {
				p := w.pendingOf(ctx, "one__a", nil)
				over, cancel := context.WithCancel(ctx)
				cancel()
				for _, decision := range []toolset.Decision{allow, deny} {
					_, err := w.Answer(over, p.ID, p.Digest, decision)
					require.ErrorIs(w, err, messages.CodeCancelled)
					w.stillWaits(err, p)
				}
				in := newInbox(w.system)
				in.request(w, &toolset.AnswerPending{ID: p.ID, Digest: p.Digest, Decision: allow, Header: messages.Header{Deadline: time.Now().Add(-time.Second)}})
				require.Equal(w, p.ID, in.told(w).Pending.ID)
				_, err := w.Answer(ctx, p.ID, p.Digest, allow)
				require.NoError(w, err)
				require.Equal(w, 1, w.one.count("a"))
			})
		})
	}
}

// The person has approved the call, its definition has changed, and the new one is asked about, when the model repeats it.
func TestSameCallAgainWhileItIsAnsweredIsTheSamePending(t *testing.T) {
	for name, store := range stores() {
		t.Run(name, func(t *testing.T) {
			verdict := toolset.Defer
			var asked chan toolset.Decision
			policy := &toolset.Policy{
				Decide: func(toolset.Proposal) toolset.Decision { return toolset.Decision{Verdict: verdict} },
				Ask:    func(context.Context, toolset.Proposal) (toolset.Decision, error) { return <-asked, nil },
			}
			imagineWith(t, store, toolset.Config{Policy: policy}, func(_ context.Context, w *world) {
				asked = make(chan toolset.Decision) // of the bubble
				in := newInbox(w.system)
				in.request(w, &toolset.Use{ID: "1", Name: "one__a"})
				shown := in.told(w).Pending
				w.one.define(&mcp.Tool{Name: "a", Description: "Does more."})
				w.changed("one")
				verdict = toolset.Ask
				in.request(w, &toolset.AnswerPending{ID: "1", Digest: shown.Digest, Decision: allow})
				require.Empty(w, in.all())

				verdict = toolset.Defer
				w.one.define(&mcp.Tool{Name: "a"})
				w.changed("one")
				in.request(w, &toolset.Use{ID: "1", Name: "one__a"})
				again := in.told(w).Pending
				require.Equal(w, [2]string{shown.ID, shown.Digest}, [2]string{again.ID, again.Digest})
				require.True(w, shown.Since.Equal(again.Since))
				verdict = toolset.Allow
				asked <- allow
				require.NotNil(w, in.told(w).Result)
				in.request(w, &toolset.AnswerPending{ID: "1", Digest: shown.Digest, Decision: allow})
				require.NotNil(w, in.told(w).Result)
				require.Equal(w, 1, w.one.count("a"))
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
			_, err := w.Answer(ctx, p.ID, p.Digest, allow)
			answered <- err
		}()
		synctest.Wait()
		w.system.Root.Send(w.PID(), &messages.Cancel{ID: p.ID})
		synctest.Wait()
		asked <- toolset.Decision{Verdict: toolset.Defer}
		require.ErrorIs(w, <-answered, messages.CodeCancelled)
	})
}

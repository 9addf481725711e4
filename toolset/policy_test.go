package toolset_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/toolset"
)

// person answers the questions of a policy.
type person struct {
	mu        sync.Mutex
	asked     []string // the original names of the tools, with the arguments
	withdrawn int
	answers   chan toolset.Decision
	stubborn  bool // ignores the end of the context
}

func (p *person) ask(ctx context.Context, about toolset.Proposal) (toolset.Decision, error) {
	p.mu.Lock()
	p.asked = append(p.asked, about.Tool.Original+string(about.Arguments))
	p.mu.Unlock()
	if p.stubborn {
		return <-p.answers, nil
	}
	select {
	case answer := <-p.answers:
		return answer, nil
	case <-ctx.Done():
		p.mu.Lock()
		defer p.mu.Unlock()
		p.withdrawn++
		return toolset.Decision{}, ctx.Err()
	}
}

// questions returns the questions since the last call.
func (p *person) questions() []string {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() { p.asked = nil }()
	return p.asked
}

// guarded runs a scenario with a policy that allows "a", denies "c" and asks about "b".
func guarded(t *testing.T, scenario func(ctx context.Context, w *world, p *person, runs func(tool string) int)) {
	p := &person{}
	policy := &toolset.Policy{
		Decide: func(about toolset.Proposal) toolset.Decision {
			switch about.Tool.Original {
			case "a":
				return toolset.Decision{Verdict: toolset.Allow}
			case "c":
				return toolset.Decision{Verdict: toolset.Deny, Reason: "it deletes data"}
			}
			return toolset.Decision{}
		},
		Ask: p.ask,
	}
	imagine(t, toolset.Config{Policy: policy}, func(ctx context.Context, w *world) {
		p.answers = make(chan toolset.Decision, 10)
		var mu sync.Mutex
		runs := map[string]int{}
		for _, s := range []*server{w.one, w.two} {
			s.mcp.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
				return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
					if call, ok := req.(*mcp.CallToolRequest); ok {
						mu.Lock()
						runs[call.Params.Name]++
						mu.Unlock()
					}
					return next(ctx, method, req)
				}
			})
		}
		scenario(ctx, w, p, func(tool string) int {
			mu.Lock()
			defer mu.Unlock()
			return runs[tool]
		})
	})
}

func TestPolicyAllowsDeniesAndAsks(t *testing.T) {
	guarded(t, func(ctx context.Context, w *world, p *person, runs func(string) int) {
		_, err := w.Call(ctx, "one__a", nil)
		require.NoError(w, err)
		_, err = w.Call(ctx, "two__c", nil)
		require.ErrorIs(w, err, messages.CodeRefused)
		require.EqualError(w, err, `tools/call "c" on two/s: refused: the call was not approved: it deletes data`)
		require.Equal(w, "The call was refused: the call was not approved: it deletes data. The tool did not run. Do not try again unless the user asks for it.", toolset.Explain(err))
		require.Empty(w, p.questions())

		for _, test := range []struct {
			answer toolset.Decision
			err    string
		}{
			{toolset.Decision{Verdict: toolset.Allow}, ""},
			{toolset.Decision{Verdict: toolset.Deny, Reason: "not now"}, `tools/call "b" on one/s: refused: the call was not approved: not now`},
			{toolset.Decision{Verdict: toolset.Ask, Remember: true}, `tools/call "b" on one/s: refused: the call was not approved`},
			{toolset.Decision{Verdict: "perhaps"}, `tools/call "b" on one/s: refused: the call was not approved`},
		} {
			p.answers <- test.answer
			_, err := w.Call(ctx, "one__b", `{"x": 1}`)
			if test.err == "" {
				require.NoError(w, err)
			} else {
				require.EqualError(w, err, test.err)
			}
			require.Equal(w, []string{`b{"x": 1}`}, p.questions(), "one question for each call")
		}
		require.Equal(w, 1, runs("b"))
		require.Equal(w, 1, runs("a"))
		require.Equal(w, 0, runs("c"))
	})
}

func TestAnswerIsRememberedUntilTheDefinitionChanges(t *testing.T) {
	for _, verdict := range []toolset.Verdict{toolset.Allow, toolset.Deny} {
		guarded(t, func(ctx context.Context, w *world, p *person, runs func(string) int) {
			call := func() {
				w.Helper()
				_, err := w.Call(ctx, "one__b", nil)
				require.Equal(w, verdict == toolset.Deny, errors.Is(err, messages.CodeRefused))
			}
			p.answers <- toolset.Decision{Verdict: verdict, Remember: true}
			call()
			require.Len(w, p.questions(), 1)
			call()
			require.Empty(w, p.questions())

			w.one.define(&mcp.Tool{Name: "b", Description: "Sends all files to me."})
			w.changed("one") // and nobody lists the tools before the call
			p.answers <- toolset.Decision{Verdict: verdict, Remember: true}
			call()
			require.Len(w, p.questions(), 1)

			w.one.mcp.RemoveTools("b")
			w.one.add("b")
			w.changed("one")
			call()
			require.Empty(w, p.questions(), "that definition is known")
			if verdict == toolset.Allow {
				require.Equal(w, 4, runs("b"))
			}
		})
	}
}

func TestDefinitionThatChangesBeforeTheAnswerIsAskedAboutAgain(t *testing.T) {
	guarded(t, func(ctx context.Context, w *world, p *person, runs func(string) int) {
		done := make(chan error, 1)
		go func() {
			_, err := w.Call(ctx, "one__b", nil)
			done <- err
		}()
		require.Len(w, p.questions(), 1)
		w.one.define(&mcp.Tool{Name: "b", Description: "Sends all files to me."})
		w.changed("one")
		p.answers <- toolset.Decision{Verdict: toolset.Allow}
		require.Len(w, p.questions(), 1)
		require.Equal(w, 0, runs("b"))
		p.answers <- toolset.Decision{Verdict: toolset.Deny}
		require.ErrorIs(w, <-done, messages.CodeRefused)

		go func() {
			_, err := w.Call(ctx, "one__b", nil)
			done <- err
		}()
		require.Len(w, p.questions(), 1)
		w.one.mcp.RemoveTools("b")
		w.changed("one")
		p.answers <- toolset.Decision{Verdict: toolset.Allow}
		require.ErrorIs(w, <-done, messages.CodeInvalid, "it is gone")
		require.Equal(w, 0, runs("b"))
	})
}

func TestQuestionEndsWithTheContextOfTheCall(t *testing.T) {
	guarded(t, func(ctx context.Context, w *world, p *person, runs func(string) int) {
		w.tools(ctx)
		short, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		start := time.Now()
		_, err := w.Call(short, "one__b", nil)
		require.ErrorIs(w, err, messages.CodeDeadline)
		require.ErrorContains(w, err, "the call was not approved in time")
		require.Equal(w, time.Minute, time.Since(start))
		synctest.Wait()
		require.Equal(w, 1, p.withdrawn)

		cancelled, cancel := context.WithCancel(ctx)
		time.AfterFunc(time.Second, cancel)
		p.stubborn = true
		_, err = w.Call(cancelled, "one__b", nil)
		require.ErrorIs(w, err, messages.CodeCancelled)
		p.answers <- toolset.Decision{Verdict: toolset.Allow, Remember: true} // nobody waits for it any more
		require.Len(w, p.questions(), 2)
		_, err = w.Call(cancelled, "one__b", nil)
		require.ErrorIs(w, err, messages.CodeCancelled)
		require.Empty(w, p.questions(), "whose context has ended is not asked about")
		require.Equal(w, 0, runs("b"))
	})
}

func TestToolsetThatIsClosedWithdrawsItsQuestions(t *testing.T) {
	guarded(t, func(ctx context.Context, w *world, p *person, runs func(string) int) {
		w.tools(ctx)
		time.AfterFunc(time.Second, w.Close)
		_, err := w.Call(ctx, "one__b", nil)
		require.ErrorIs(w, err, messages.CodeClosed)
		synctest.Wait()
		require.Equal(w, 1, p.withdrawn)
		require.Equal(w, 0, runs("b"))
	})
}

func TestListOfAToolThatIsCalledIsWaitedFor(t *testing.T) {
	guarded(t, func(ctx context.Context, w *world, p *person, runs func(string) int) {
		w.tools(ctx)
		w.one.set(nil, 20*time.Second)
		w.changed("one")
		_, err := w.Call(ctx, "one__a", nil)
		require.NoError(w, err, "longer than the list timeout")
		w.changed("one")
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err = w.Call(short, "one__a", nil)
		require.ErrorIs(w, err, messages.CodeDeadline)
		cancelled, cancel := context.WithCancel(ctx)
		time.AfterFunc(time.Second, cancel)
		_, err = w.Call(cancelled, "one__a", nil)
		require.ErrorIs(w, err, messages.CodeCancelled)
		w.one.set(errors.New("down"), 0)
		time.Sleep(time.Minute)
		w.changed("one")
		_, err = w.Call(ctx, "one__a", nil)
		require.ErrorIs(w, err, messages.CodeServerError)
		require.Contains(w, toolset.Explain(err), "The tool did not run.")
		require.Equal(w, 1, runs("a"))
	})
}

func TestToolWhoseDefinitionChangesAllTheTimeIsRefused(t *testing.T) {
	var w *world
	asked := 0
	policy := &toolset.Policy{Decide: func(toolset.Proposal) toolset.Decision {
		asked++
		w.one.define(&mcp.Tool{Name: "a", Description: strings.Repeat("x", asked)})
		w.changed("one")
		return toolset.Decision{Verdict: toolset.Allow}
	}}
	imagine(t, toolset.Config{Policy: policy}, func(ctx context.Context, in *world) {
		w = in
		_, err := w.Call(ctx, "one__a", nil)
		require.ErrorIs(w, err, messages.CodeRefused)
		require.ErrorContains(w, err, "the definition of the tool changes all the time")
		require.Equal(w, 8, asked)
	})
}

func TestRememberedAnswerEndsOtherQuestionsAboutTheTool(t *testing.T) {
	guarded(t, func(ctx context.Context, w *world, p *person, runs func(string) int) {
		w.one.add("d")
		done := make(chan error, 4)
		for _, name := range []string{"one__b", "one__b", "one__b", "one__d"} {
			go func() {
				_, err := w.Call(ctx, name, nil)
				done <- err
			}()
		}
		asked := p.questions()
		require.ElementsMatch(w, []string{"b{}", "b{}", "b{}", "d{}"}, asked)
		for p.answers <- (toolset.Decision{Verdict: toolset.Allow, Remember: true}); len(done) == 0; {
			synctest.Wait()
		}
		switch runs("b") {
		case 3:
			require.Equal(w, 2, p.withdrawn)
			p.answers <- toolset.Decision{Verdict: toolset.Deny} // for d
			synctest.Wait()
			require.Equal(w, 0, runs("d"))
		case 0: // d took the answer
			require.Equal(w, 1, runs("d"))
			p.answers <- toolset.Decision{Verdict: toolset.Allow, Remember: true}
			synctest.Wait()
			require.Equal(w, 3, runs("b"))
		default:
			require.Fail(w, "some calls of b did not run")
		}
		require.Len(w, done, 4)
	})
}

func TestPolicyIsSharedByToolsets(t *testing.T) {
	guarded(t, func(ctx context.Context, w *world, p *person, _ func(string) int) {
		policy := &toolset.Policy{Ask: p.ask}
		for i, scope := range []string{"x", "y"} {
			tools, err := toolset.New(w.system, w.sup, toolset.Config{Scope: scope, Servers: []toolset.Filter{{Name: "one"}}, Policy: policy})
			require.NoError(w, err)
			defer tools.Close()
			p.answers <- toolset.Decision{Verdict: toolset.Allow, Remember: true}
			_, err = tools.Call(ctx, "one__b", nil)
			require.NoError(w, err)
			require.Len(w, p.questions(), 1-i)
		}
	})
}

func TestApprovedMessageIsSentByTheProgram(t *testing.T) {
	guarded(t, func(ctx context.Context, w *world, p *person, runs func(string) int) {
		_, err := w.Approve(ctx, "two__c", nil)
		require.ErrorIs(w, err, messages.CodeRefused)
		p.answers <- toolset.Decision{Verdict: toolset.Allow}
		call, err := w.Approve(ctx, "one__b", nil)
		require.NoError(w, err)
		require.Equal(w, 0, runs("b"))
		_, err = w.sup.Client().Do(ctx, call)
		require.NoError(w, err)
		require.Equal(w, 1, runs("b"))
	})
}

func TestPolicyThatCannotAskDenies(t *testing.T) {
	for name, test := range map[string]struct {
		policy *toolset.Policy
		err    error
		text   string
	}{
		"nobody": {&toolset.Policy{}, messages.CodeRefused, "the call was not approved: nobody can be asked"},
		"error": {&toolset.Policy{Ask: func(context.Context, toolset.Proposal) (toolset.Decision, error) {
			return toolset.Decision{Verdict: toolset.Allow, Remember: true}, errors.New("the window is closed")
		}}, messages.CodeRefused, "no approval could be obtained"},
		"panic": {&toolset.Policy{Ask: func(context.Context, toolset.Proposal) (toolset.Decision, error) {
			panic("a bug")
		}}, messages.CodeInternal, "the policy panicked: a bug"},
		"panic of Decide": {&toolset.Policy{Decide: func(toolset.Proposal) toolset.Decision {
			panic("a bug")
		}}, messages.CodeInternal, "the policy panicked: a bug"},
		"end of the goroutine": {&toolset.Policy{Ask: func(context.Context, toolset.Proposal) (toolset.Decision, error) {
			runtime.Goexit() // as a test does that fails
			return toolset.Decision{Verdict: toolset.Allow}, nil
		}}, messages.CodeInternal, "the policy ended its goroutine"},
	} {
		t.Run(name, func(t *testing.T) {
			imagine(t, toolset.Config{Policy: test.policy}, func(ctx context.Context, w *world) {
				for range 2 {
					_, err := w.Call(ctx, "one__a", nil)
					require.ErrorIs(w, err, test.err)
					require.ErrorContains(w, err, test.text)
				}
			})
		})
	}
}

func TestPolicyCannotChangeTheArguments(t *testing.T) {
	policy := &toolset.Policy{Decide: func(p toolset.Proposal) toolset.Decision {
		copy(p.Arguments, `{"x":2}`)
		return toolset.Decision{Verdict: toolset.Allow}
	}}
	imagine(t, toolset.Config{Policy: policy}, func(ctx context.Context, w *world) {
		result, err := w.Call(ctx, "one__a", `{"x":1}`)
		require.NoError(w, err)
		require.Equal(w, `a{"x":1}`, toolset.Convert(result.Result).Text())
	})
}

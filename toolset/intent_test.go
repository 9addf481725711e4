package toolset_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/callbook"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// A durable call that has not run is decided about again: since then the policy may have changed, and the tool.
func TestDurableCallThatHasNotRunIsDecidedAboutAgain(t *testing.T) {
	atBank(t, func(ctx context.Context, b *bank) {
		store := new(resume.Memory)
		w := b.process(store, toolset.Config{Policy: &toolset.Policy{Decide: func(toolset.Proposal) toolset.Decision { return deny }}})
		book := callbook.New(callbook.Config{Store: store})
		defer book.Close()
		call := &messages.CallTool{Header: messages.To("bank", "alice"), Params: &mcp.CallToolParams{Name: "pay", Arguments: map[string]any{"amount": 1}}, Durable: true}
		call.ID = "invoice-1"
		limited, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := book.Do(limited, call, func(ctx context.Context, e *callbook.Entry) (messages.Result, error) {
			require.NoError(t, e.Begin(ctx))
			e.NotRun(ctx)
			return nil, &messages.Failure{Code: messages.CodeUnavailable}
		})
		require.ErrorIs(t, err, messages.CodeUnavailable)
		require.Equal(t, "refused", outcome(w.Call(messages.WithDurable(ctx, "invoice-1"), "bank__pay", `{"amount":1}`)))
		require.Empty(t, b.paid())
	})
}

// intercepted starts a process whose interceptor handles calls of tools.
func (b *bank) intercepted(store mcpbridge.Store, handle func(op *messages.CallTool) (messages.Operation, error)) *world {
	interceptor := func(next supervisor.Runner) supervisor.Runner {
		return func(ctx context.Context, op messages.Operation) (messages.Result, error) {
			if call, is := op.(*messages.CallTool); is {
				var err error
				if op, err = handle(call); err != nil {
					return nil, err
				}
			}
			return next(ctx, op)
		}
	}
	return b.start(supervisor.Config{CallStore: store, Interceptors: []supervisor.Interceptor{interceptor}}, toolset.Config{Policy: deferring()})
}

func TestInterceptorMayChangeAnApprovedCall(t *testing.T) {
	for name, store := range stores() {
		t.Run(name, func(t *testing.T) {
			atBank(t, func(ctx context.Context, b *bank) {
				w := b.intercepted(store, func(op *messages.CallTool) (messages.Operation, error) {
					own, params := *op, *op.Params
					params.Arguments = map[string]any{"tenant": "t1"}
					own.Params = &params
					return &own, nil
				})
				p := w.pendingOf(ctx, "bank__pay", `{"a":1}`)
				for range 2 {
					require.Equal(t, "paid", w.again(ctx, p, allow))
				}
				require.Len(t, b.paid(), 1)
			})
		})
	}
}

// The model is told that the call did not run. It stays so.
func TestInterceptorRefusesAnApprovedCallForGood(t *testing.T) {
	for name, store := range stores() {
		t.Run(name, func(t *testing.T) {
			atBank(t, func(ctx context.Context, b *bank) {
				var full atomic.Bool
				full.Store(true)
				w := b.intercepted(store, func(op *messages.CallTool) (messages.Operation, error) {
					if full.Load() {
						return nil, &messages.Failure{Code: messages.CodeRefused, Detail: "quota"}
					}
					return op, nil
				})
				p := w.pendingOf(ctx, "bank__pay", `{"a":1}`)
				require.Equal(t, "refused", w.again(ctx, p, allow))
				full.Store(false)
				require.Equal(t, "refused", w.again(ctx, p, allow))
				require.Empty(t, b.paid())
			})
		})
	}
}

// twoScopes starts a process whose toolset uses a session of another scope.
func (b *bank) twoScopes() (w *world, bank mcpbridge.Server) {
	bank = mcpbridge.Server{Name: "bank", InMemory: b.server}
	w = &world{T: b.T, system: newSystem()}
	var err error
	w.sup, err = supervisor.Start(w.system, supervisor.Config{
		CallStore: new(resume.Memory), Servers: []mcpbridge.Server{bank, {Name: "shared", InMemory: b.server}},
	})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, w.sup.Stop(context.Background())) })
	w.Toolset, err = toolset.New(w.system, w.sup, toolset.Config{
		Scope: "alice", Policy: deferring(), Servers: []toolset.Filter{{Name: "bank"}, {Name: "sh*", Scope: "all"}},
	})
	require.NoError(b, err)
	b.Cleanup(w.Close)
	return w, bank
}

func TestOneDurableIDInTwoScopesNamesTwoCalls(t *testing.T) {
	atBank(t, func(ctx context.Context, b *bank) {
		w, _ := b.twoScopes()
		order := messages.WithDurable(ctx, "order-1")
		first, second := w.pendingOf(order, "bank__pay", `{}`), w.pendingOf(order, "shared__pay", `{}`)
		require.Equal(t, first.ID, second.ID)
		require.Equal(t, "paid", w.again(ctx, second, allow))
		require.Len(t, w.waiting(), 1)
		require.Equal(t, "cancelled?", w.cancelled(ctx, first.ID), "the second has run")
		require.Empty(t, w.waiting())
	})
}

func TestCallOfAServerThatIsGoneCanBeAnswered(t *testing.T) {
	atBank(t, func(ctx context.Context, b *bank) {
		w, bank := b.twoScopes()
		p := w.pendingOf(ctx, "shared__pay", `{}`)
		_, err := w.sup.Reload(ctx, []mcpbridge.Server{bank})
		require.NoError(t, err)
		require.Len(t, w.waiting(), 1)
		require.Equal(t, "refused", w.again(ctx, p, deny))
	})
}

// What a policy does to decide is not the call that it decides about.
func TestQuestionOfAPolicyIsNotDurable(t *testing.T) {
	atBank(t, func(ctx context.Context, b *bank) {
		var w *world
		w = b.process(new(resume.Memory), toolset.Config{Policy: &toolset.Policy{Ask: func(ctx context.Context, _ toolset.Proposal) (toolset.Decision, error) {
			_, err := w.sup.Client().CallTool(ctx, "bank", "alice", &mcp.CallToolParams{Name: "pay", Arguments: map[string]any{"about": "the question"}})
			require.NoError(t, err)
			return allow, nil
		}}})
		require.Equal(t, "paid", outcome(w.Call(messages.WithDurable(ctx, "order-1"), "bank__pay", `{}`)))
		require.Len(t, b.paid(), 2)
	})
}

// Arguments are kept until the call is over.
func TestArgumentsAreNotKeptOnceTheCallIsOver(t *testing.T) {
	atBank(t, func(ctx context.Context, b *bank) {
		store := new(resume.Memory)
		w := b.start(supervisor.Config{CallStore: store, DropResults: true}, toolset.Config{Policy: deferring()})
		kept := func() (n int) {
			keys, err := store.Keys(ctx)
			require.NoError(t, err)
			for _, key := range keys {
				r, err := store.Load(ctx, key)
				require.NoError(t, err)
				n += strings.Count(string(r.Call), "hunter")
			}
			return n
		}
		paid, denied := w.pendingOf(ctx, "bank__pay", `{"password":"hunter2"}`), w.pendingOf(ctx, "bank__pay", `{"password":"hunter3"}`)
		require.Equal(t, 2, kept())
		require.Equal(t, "paid", w.again(ctx, paid, allow))
		require.Equal(t, "refused", w.again(ctx, denied, deny))
		require.Zero(t, kept())
		require.Equal(t, "lost?", w.again(ctx, paid, allow), "it ran; its result is not kept")
		require.Equal(t, "refused", w.again(ctx, denied, allow))
	})
}

package toolset_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/toolset"
)

// counted is a policy with one verdict, and counts how often it decides.
func counted(verdict toolset.Verdict) (*toolset.Policy, *atomic.Int32) {
	decided := new(atomic.Int32)
	return &toolset.Policy{Decide: func(toolset.Proposal) toolset.Decision {
		decided.Add(1)
		return toolset.Decision{Verdict: verdict}
	}}, decided
}

// invoice is the durable call of the tests.
func invoice() *toolset.Use {
	return &toolset.Use{ID: "invoice-4711", Name: "bank__pay", Arguments: `{"amount": 1}`, Durable: true}
}

// told sends a message, and returns the outcome of the reply.
func (w *world) told(in *inbox, message any) string {
	w.Helper()
	in.request(w, message)
	told := in.told(w)
	if told.Pending != nil {
		return "pending " + told.Pending.ID
	}
	if told.Failure != nil {
		return outcome(nil, told.Failure)
	}
	return told.Output.Text()
}

// A durable use is asked again: nobody decides about it a second time.
func TestDurableUseThatIsAskedAgainGetsItsOutcome(t *testing.T) {
	for _, verdict := range []toolset.Verdict{toolset.Allow, toolset.Defer} {
		t.Run(string(verdict), func(t *testing.T) {
			atBank(t, func(ctx context.Context, b *bank) {
				policy, decided := counted(verdict)
				store := new(resume.Memory)
				w := b.process(store, toolset.Config{Policy: policy})
				in := newInbox(w.system)
				if verdict == toolset.Defer {
					for range 2 {
						require.Equal(t, "pending invoice-4711", w.told(in, invoice()))
					}
					require.EqualValues(t, 1, decided.Load(), "the record says that it waits")
					p, err := w.Pending(ctx)
					require.NoError(t, err)
					require.Equal(t, "paid", w.told(in, &toolset.AnswerPending{ID: p[0].ID, Digest: p[0].Digest, Decision: allow}))
				}
				for range 2 {
					require.Equal(t, "paid", w.told(in, invoice()))
				}
				other := invoice()
				other.Arguments = `{"amount": 2}`
				require.Equal(t, "invalid", w.told(in, other), "another call has the id")

				denying, asked := counted(toolset.Deny)
				next := b.process(store, toolset.Config{Policy: denying})
				require.Equal(t, "paid", next.told(newInbox(next.system), invoice()), "in another process")
				require.Equal(t, "refused", next.told(newInbox(next.system), &toolset.Use{ID: "invoice-4712", Name: "bank__pay", Durable: true}))
				require.EqualValues(t, 1, asked.Load())
				require.EqualValues(t, 1, decided.Load())
				require.Len(t, b.paid(), 1)

				plain := invoice()
				plain.Durable = false // its id is only that of the message
				if verdict == toolset.Allow {
					require.Equal(t, "paid", w.told(in, plain))
					require.Len(t, b.paid(), 2)
				}
			})
		})
	}
}

// The second use comes while the first one runs.
func TestDurableUseThatIsAskedTwiceAtOnceRunsOnce(t *testing.T) {
	atBank(t, func(_ context.Context, b *bank) {
		b.take(time.Second)
		store := new(resume.Memory)
		one, two := b.process(store, toolset.Config{}), b.process(store, toolset.Config{})
		in, other := newInbox(one.system), newInbox(two.system)
		in.request(one, invoice())
		in.request(one, invoice())
		synctest.Wait()
		other.request(two, invoice())
		time.Sleep(5 * time.Second)
		got := append(in.all(), other.all()...)
		require.Len(t, got, 3)
		for _, told := range got {
			require.Equal(t, "paid", told.(*toolset.Told).Output.Text())
		}
		require.Len(t, b.paid(), 1)
	})
}

// The call of a client and that of a toolset with the same id and scope are the same call.
func TestContextMakesCallsOfAToolsetAndOfAClientDurable(t *testing.T) {
	atBank(t, func(ctx context.Context, b *bank) {
		policy, decided := counted(toolset.Allow)
		store := new(resume.Memory)
		one, two := b.process(store, toolset.Config{Policy: policy}), b.process(store, toolset.Config{Policy: policy})
		durable := messages.WithDurable(ctx, "invoice-4711")
		for _, w := range []*world{one, two, one} {
			require.Equal(t, "paid", outcome(w.Call(durable, "bank__pay", `{"amount":1}`)))
			params := &mcp.CallToolParams{Name: "pay", Arguments: map[string]any{"amount": 1}}
			require.Equal(t, "paid", outcome(w.sup.Client().CallTool(durable, "bank", "alice", params)))
		}
		require.EqualValues(t, 1, decided.Load())
		require.Len(t, b.paid(), 1)
		require.Equal(t, "invalid", outcome(one.Call(durable, "bank__pay", `{"amount":2}`)))

		b.take(time.Second)
		over, cancel := context.WithTimeout(messages.WithDurable(ctx, "invoice-4712"), time.Second/2)
		defer cancel()
		require.Equal(t, "deadline?", outcome(one.Call(over, "bank__pay", nil)))
		require.Equal(t, "lost?", outcome(two.Call(messages.WithDurable(ctx, "invoice-4712"), "bank__pay", nil)))
		require.Len(t, b.paid(), 2)
	})
}

// A durable call waits for an answer. What is asked with its id meanwhile is answered from its record.
func TestDurableCallThatWaitsIsNotSentByAnother(t *testing.T) {
	atBank(t, func(ctx context.Context, b *bank) {
		w := b.process(new(resume.Memory), toolset.Config{Policy: deferring()})
		durable := messages.WithDurable(ctx, "invoice-4711")
		p := w.pendingOf(durable, "bank__pay", `{"amount":1}`)
		require.Equal(t, p.Digest, w.pendingOf(durable, "bank__pay", `{"amount": 1}`).Digest)
		require.Equal(t, "invalid", outcome(w.Call(durable, "bank__pay", `{"amount":2}`)))
		client := w.sup.Client()
		params := &mcp.CallToolParams{Name: "pay", Arguments: map[string]any{"amount": 1}}
		require.Equal(t, "refused", outcome(client.CallTool(durable, "bank", "alice", params)))
		require.Empty(t, b.paid())
		require.Equal(t, "refused", w.again(ctx, p, deny))
		require.Equal(t, "refused", outcome(w.Call(durable, "bank__pay", `{"amount":1}`)), "the intent was denied")
		require.Equal(t, "refused", outcome(client.CallTool(durable, "bank", "alice", params)))
		require.Empty(t, b.paid())
	})
}

// Nothing is asked about a durable call that nobody could find again.
func TestDurableCallWithoutAStoreIsInvalid(t *testing.T) {
	for _, verdict := range []toolset.Verdict{toolset.Allow, toolset.Defer} {
		atBank(t, func(ctx context.Context, b *bank) {
			policy, decided := counted(verdict)
			w := b.process(nil, toolset.Config{Policy: policy})
			for range 2 {
				require.Equal(t, "invalid?", w.told(newInbox(w.system), invoice()))
				require.Equal(t, "invalid?", outcome(w.Call(messages.WithDurable(ctx, "invoice-4711"), "bank__pay", nil)))
			}
			require.Empty(t, w.waiting())
			require.Zero(t, decided.Load())
			require.Empty(t, b.paid())
		})
	}
}

// The store does not say what became of the call, which so may have run.
func TestDurableUseWhoseStoreDoesNotAnswerMayHaveRun(t *testing.T) {
	for _, mood := range []string{"fails", "hangs"} {
		atBank(t, func(_ context.Context, b *bank) {
			store := &moody{Memory: new(resume.Memory)}
			w := b.process(store, toolset.Config{Policy: deferring()})
			in, began := newInbox(w.system), time.Now()
			require.Equal(t, "pending invoice-4711", w.told(in, invoice()))
			store.set(mood)
			in.request(w, invoice())
			time.Sleep(6 * time.Second)
			f := in.told(w).Failure
			require.ErrorIs(t, f, messages.CodeUnavailable)
			mayHaveRun(w, f)
			require.LessOrEqual(t, time.Since(began), 6*time.Second)
			store.set("")
			time.Sleep(time.Minute)
			require.Equal(t, "pending invoice-4711", w.told(in, invoice()))
			require.Empty(t, b.paid())
		})
	}
}

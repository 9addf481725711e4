package toolset_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/toolset"
)

// cancelled returns what Cancel says.
func (w *world) cancelled(ctx context.Context, id string) string {
	if err := w.Cancel(ctx, id); err != nil {
		return outcome(nil, err)
	}
	return "will not run"
}

// Cancel says whether the call has not run, and will not, in each state of the call.
func TestCancelSaysWhatBecomesOfTheCall(t *testing.T) {
	for name, test := range map[string]struct {
		before  func(ctx context.Context, w *world, p *toolset.Pending)
		cancel  string
		outcome string // of a later answer
		runs    int
	}{
		"proposed":  {nil, "will not run", "cancelled", 0},
		"cancelled": {func(ctx context.Context, w *world, p *toolset.Pending) { w.cancelled(ctx, p.ID) }, "will not run", "cancelled", 0},
		"denied":    {func(ctx context.Context, w *world, p *toolset.Pending) { w.again(ctx, p, deny) }, "will not run", "refused", 0},
		"running":   {func(ctx context.Context, w *world, p *toolset.Pending) { w.answering(ctx, p, allow) }, "cancelled?", "lost?", 1},
		"done":      {func(ctx context.Context, w *world, p *toolset.Pending) { w.again(ctx, p, allow) }, "cancelled?", "paid", 1},
	} {
		for kept, store := range stores() {
			t.Run(name+" "+kept, func(t *testing.T) {
				atBank(t, func(ctx context.Context, b *bank) {
					b.take(time.Minute / 2)
					w := b.process(store, toolset.Config{Policy: deferring()})
					p := w.pendingOf(ctx, "bank__pay", nil)
					if test.before != nil {
						test.before(ctx, w, p)
					}
					require.Equal(t, test.cancel, w.cancelled(ctx, p.ID))
					synctest.Wait()
					for _, decision := range []toolset.Decision{allow, deny} {
						require.Equal(t, test.outcome, w.again(ctx, p, decision))
					}
					require.Len(t, b.paid(), test.runs)
					require.Empty(t, w.waiting())

					require.Equal(t, "invalid?", w.cancelled(ctx, "unknown"))
					w.Close()
					require.Equal(t, "closed?", w.cancelled(ctx, p.ID))
				})
			})
		}
	}
}

// The call runs when it is cancelled, and whoever has answered is told so.
func TestCancelEndsACallThatRuns(t *testing.T) {
	for name, store := range stores() {
		for _, asMessage := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				atBank(t, func(ctx context.Context, b *bank) {
					b.take(time.Hour)
					w, began := b.process(store, toolset.Config{Policy: deferring()}), time.Now()
					p := w.pendingOf(ctx, "bank__pay", nil)
					in, answered := newInbox(w.system), (<-chan string)(nil)
					if asMessage {
						in.request(w, &toolset.AnswerPending{ID: p.ID, Digest: p.Digest, Decision: allow})
						require.Empty(t, in.all())
						w.system.Root.Send(w.PID(), &messages.Cancel{ID: p.ID})
						f := in.told(w).Failure
						require.ErrorIs(t, f, messages.CodeCancelled)
						mayHaveRun(w, f)
					} else {
						answered = w.answering(ctx, p, allow)
						require.Equal(t, "cancelled?", w.cancelled(ctx, p.ID))
						require.Equal(t, "cancelled?", <-answered)
					}
					require.Less(t, time.Since(began), time.Second)
					require.Len(t, b.paid(), 1)
				})
			})
		}
	}
}

// A call that nobody was asked about, and that is durable or was sent to the toolset as a message.
func TestCancelOfACallThatRuns(t *testing.T) {
	atBank(t, func(ctx context.Context, b *bank) {
		b.take(time.Minute / 2)
		w := b.process(new(resume.Memory), toolset.Config{})
		paid := make(chan string, 1)
		go func() { paid <- outcome(w.Call(messages.WithDurable(ctx, "order-1"), "bank__pay", nil)) }()
		time.Sleep(time.Second)
		require.Equal(t, "cancelled?", w.cancelled(ctx, "order-1"))
		require.Equal(t, "cancelled?", <-paid)

		in := newInbox(w.system)
		in.request(w, &toolset.Use{ID: "1", Name: "bank__pay"})
		time.Sleep(time.Second)
		require.Equal(t, "cancelled?", w.cancelled(ctx, "1"))
		require.ErrorIs(t, in.told(w).Failure, messages.CodeCancelled)
		require.Equal(t, "invalid?", w.cancelled(ctx, "1"))
	})
}

// The answer waits for a list when the call is cancelled.
func TestCancelWhileTheAnswerWaitsForAList(t *testing.T) {
	for name, store := range stores() {
		t.Run(name, func(t *testing.T) {
			imagineWith(t, store, toolset.Config{Policy: deferring()}, func(ctx context.Context, w *world) {
				p := w.pendingOf(ctx, "one__a", nil)
				w.one.set(nil, time.Second)
				w.changed("one")
				for _, decision := range []toolset.Decision{allow, allow} {
					answered := w.answering(ctx, p, decision)
					require.Equal(t, "will not run", w.cancelled(ctx, p.ID))
					require.Equal(t, "cancelled", <-answered)
				}
				require.Zero(t, w.one.count("a"))
			})
		})
	}
}

// The process that has allowed the call has died before it has sent it.
func TestCancelOfACallThatWasAllowedAndNotSent(t *testing.T) {
	atBank(t, func(ctx context.Context, b *bank) {
		p, shared := b.allowedByTheDead(ctx, false)
		two := b.process(shared, toolset.Config{Policy: deferring()})
		require.Equal(t, "will not run", two.cancelled(ctx, p.ID))
		require.Equal(t, "cancelled", two.again(ctx, p, allow))
		require.Empty(t, b.paid())
	})
}

// Another process has sent the call: only that one can cancel it.
func TestCancelOfACallThatRunsInAnotherProcess(t *testing.T) {
	atBank(t, func(ctx context.Context, b *bank) {
		b.take(5 * time.Second)
		store := new(resume.Memory)
		one, two := b.process(store, toolset.Config{Policy: deferring()}), b.process(store, toolset.Config{Policy: deferring()})
		p := one.pendingOf(ctx, "bank__pay", nil)
		answered := one.answering(ctx, p, allow)
		require.Equal(t, "cancelled?", two.cancelled(ctx, p.ID))
		require.Equal(t, "paid", two.again(ctx, p, deny))
		require.Equal(t, "paid", <-answered)
		require.Len(t, b.paid(), 1)
	})
}

// A call is cancelled in the moment in which it becomes pending.
func TestCallThatIsCancelledWhileItBecomesPendingDoesNotWait(t *testing.T) {
	for after := time.Duration(0); after < 600*time.Millisecond; after += 50 * time.Millisecond {
		imagineWith(t, new(sleepy), toolset.Config{Policy: deferring()}, func(ctx context.Context, w *world) {
			_, err := w.Tools(ctx)
			require.NoError(t, err)
			in := newInbox(w.system)
			in.request(w, &toolset.Use{ID: "1", Name: "one__a"})
			time.Sleep(after)
			w.system.Root.Send(w.PID(), &messages.Cancel{ID: "1"})
			time.Sleep(3 * time.Second)
			told := in.told(w)
			if told.Failure != nil {
				require.ErrorIs(t, told.Failure, messages.CodeCancelled)
				require.False(t, told.Failure.MayHaveRun)
			}
			require.Empty(t, w.waiting(), after)
		})
	}
}

// A store does not take the cancellation, which may be lost.
func TestCancelTellsOfAStoreThatDoesNotAnswer(t *testing.T) {
	for _, mood := range []string{"fails", "hangs"} {
		t.Run(mood, func(t *testing.T) {
			atBank(t, func(ctx context.Context, b *bank) {
				store := &moody{Memory: new(resume.Memory)}
				w := b.process(store, toolset.Config{Policy: deferring()})
				p, began := w.pendingOf(ctx, "bank__pay", nil), time.Now()
				store.set(mood)
				err := w.Cancel(ctx, p.ID)
				require.ErrorIs(t, err, messages.CodeUnavailable)
				mayHaveRun(w, err)
				f, _ := errors.AsType[*messages.Failure](err)
				require.Equal(t, p.ID, f.ID)
				_, err = w.Pending(ctx)
				require.ErrorIs(t, err, messages.CodeUnavailable)
				require.Less(t, time.Since(began), 6*time.Second)

				store.set("")
				time.Sleep(time.Minute)
				require.Equal(t, []string{p.ID}, w.waiting())
				require.Equal(t, "will not run", w.cancelled(ctx, p.ID))
				require.Equal(t, "cancelled", w.again(ctx, p, allow))
			})
		})
	}
}

package toolset_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/callbook"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// The process that has sent an approved call dies, wherever that is. The next process with its store answers again.
func TestAnsweredCallRunsAtMostOnceWhereverItsProcessDies(t *testing.T) {
	for _, test := range []struct {
		at     callbook.State
		isKept bool
		second map[toolset.Verdict]string // the outcome
		runs   map[toolset.Verdict]int
	}{
		{callbook.Allowed, false, map[toolset.Verdict]string{toolset.Allow: "paid", toolset.Deny: "refused"}, map[toolset.Verdict]int{toolset.Allow: 1}},
		{callbook.Allowed, true, map[toolset.Verdict]string{toolset.Allow: "paid", toolset.Deny: "refused"}, map[toolset.Verdict]int{toolset.Allow: 1}},
		{callbook.Sent, false, map[toolset.Verdict]string{toolset.Allow: "paid", toolset.Deny: "refused"}, map[toolset.Verdict]int{toolset.Allow: 1}},
		{callbook.Sent, true, map[toolset.Verdict]string{toolset.Allow: "lost?", toolset.Deny: "lost?"}, nil},
		{callbook.Done, false, map[toolset.Verdict]string{toolset.Allow: "lost?", toolset.Deny: "lost?"}, map[toolset.Verdict]int{toolset.Allow: 1, toolset.Deny: 1}},
		{callbook.Done, true, map[toolset.Verdict]string{toolset.Allow: "paid", toolset.Deny: "paid"}, map[toolset.Verdict]int{toolset.Allow: 1, toolset.Deny: 1}},
	} {
		for _, second := range []toolset.Decision{allow, deny} {
			t.Run(fmt.Sprint(test.at, test.isKept, second.Verdict), func(t *testing.T) {
				atBank(t, func(ctx context.Context, b *bank) {
					b.take(time.Second)
					shared := new(resume.Memory)
					mortal := &moody{Memory: shared}
					one := b.process(mortal, toolset.Config{Policy: deferring()})
					p := one.pendingOf(ctx, "bank__pay", nil)
					mortal.dies(test.at, test.isKept)
					first := <-one.answering(ctx, p, allow)
					require.True(t, strings.HasSuffix(first, "?") || first == "paid" || len(b.paid()) == 0, first)

					two := b.process(shared, toolset.Config{Policy: deferring()})
					for range 2 {
						require.Equal(t, test.second[second.Verdict], two.again(ctx, p, second))
						require.Len(t, b.paid(), test.runs[second.Verdict])
					}
					require.Empty(t, two.waiting())
				})
			})
		}
	}
}

// The process that has sent an approved call is stopped while that runs.
func TestAnsweredCallOfAProcessThatStopsIsNotSentAgain(t *testing.T) {
	for _, drains := range []bool{true, false} {
		t.Run(fmt.Sprint("drains=", drains), func(t *testing.T) {
			atBank(t, func(ctx context.Context, b *bank) {
				b.take(5 * time.Second)
				cfg := supervisor.Config{CallStore: new(resume.Memory)}
				if !drains {
					cfg.DrainTimeout = time.Second
				}
				one := b.start(cfg, toolset.Config{Policy: deferring()})
				p := one.pendingOf(ctx, "bank__pay", nil)
				answered := one.answering(ctx, p, allow)
				require.NoError(t, one.sup.Stop(ctx))
				first := <-answered

				two := b.start(cfg, toolset.Config{Policy: deferring()})
				outcomes := [2]string{first, two.again(ctx, p, allow)}
				if drains {
					require.Equal(t, [2]string{"paid", "paid"}, outcomes)
				} else {
					require.Equal(t, [2]string{"closed?", "lost?"}, outcomes)
				}
				require.Len(t, b.paid(), 1)
			})
		})
	}
}

// Two persons answer, each in another process, at about the same time. Both get the same outcome.
func TestAnswersInTwoProcessesHaveOneOutcome(t *testing.T) {
	for _, other := range []toolset.Decision{allow, deny} {
		for delay := time.Duration(0); delay <= 2*time.Second; delay += 100 * time.Millisecond {
			atBank(t, func(ctx context.Context, b *bank) {
				shared := new(resume.Memory)
				one := b.process(&moody{Memory: shared, takes: 100 * time.Millisecond}, toolset.Config{Policy: deferring()})
				two := b.process(&moody{Memory: shared, takes: 130 * time.Millisecond}, toolset.Config{Policy: deferring()})
				p := one.pendingOf(ctx, "bank__pay", nil)
				_, err := two.Tools(ctx)
				require.NoError(t, err)
				first := one.answering(ctx, p, allow)
				time.Sleep(delay)
				second := two.answering(ctx, p, other)
				outcomes := [2]string{<-first, <-second}
				if other.Verdict == toolset.Allow || outcomes[0] == "paid" {
					require.Equal(t, [2]string{"paid", "paid"}, outcomes, delay)
					require.Len(t, b.paid(), 1, delay)
				} else {
					require.Equal(t, [2]string{"refused", "refused"}, outcomes, delay)
					require.Empty(t, b.paid(), delay)
				}
			})
		}
	}
}

// The toolset of a pool is replaced between two answers.
func TestPoolSendsAnAnsweredCallOnce(t *testing.T) {
	for name, store := range stores() {
		t.Run(name, func(t *testing.T) {
			atBank(t, func(ctx context.Context, b *bank) {
				b.take(time.Second)
				w := b.process(store, toolset.Config{})
				pool, err := toolset.NewPool(nil, w.sup, toolset.PoolConfig{Config: func(string) toolset.Config {
					return toolset.Config{Servers: []toolset.Filter{{Name: "*"}}, Policy: deferring()}
				}})
				require.NoError(t, err)
				defer pool.Close()
				get := func() *world {
					tools, err := pool.Get("conversation")
					require.NoError(t, err)
					return &world{T: t, Toolset: tools}
				}
				one := get()
				p := one.pendingOf(ctx, "bank__pay", nil)
				first := one.answering(ctx, p, allow)
				pool.Remove("conversation")
				second := get().answering(ctx, p, allow)
				require.Equal(t, [2]string{"paid", "paid"}, [2]string{<-first, <-second})
				require.Len(t, b.paid(), 1)
			})
		})
	}
}

// logbook is what a supervisor has logged.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logbook) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

// count returns how many lines have a text.
func (l *logbook) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

// A store that cannot compare is for one process.
func TestStoreWithoutSwapIsWarnedAboutOnce(t *testing.T) {
	atBank(t, func(ctx context.Context, b *bank) {
		log, shared := new(logbook), new(resume.Memory)
		plain := struct{ mcpbridge.Store }{shared}
		one := b.start(supervisor.Config{CallStore: plain, Logger: zerolog.New(log)}, toolset.Config{Policy: deferring()})
		synctest.Wait()
		require.Zero(t, log.count("no mcpbridge.Swapper"), "there is no call yet")
		p, other, third := one.pendingOf(ctx, "bank__pay", nil), one.pendingOf(ctx, "bank__pay", nil), one.pendingOf(ctx, "bank__pay", nil)
		require.Equal(t, []string{"paid", "paid", "refused", "refused"}, []string{
			one.again(ctx, p, allow), one.again(ctx, p, deny), one.again(ctx, other, deny), one.again(ctx, other, allow),
		})
		require.NoError(t, one.Cancel(ctx, third.ID))
		synctest.Wait()
		require.Equal(t, 1, log.count("no mcpbridge.Swapper"), log.text.String())
		require.NoError(t, one.sup.Stop(ctx))

		two := b.process(plain, toolset.Config{Policy: deferring()}) // one after the other
		require.Equal(t, []string{"paid", "cancelled"}, []string{two.again(ctx, p, allow), two.again(ctx, third, allow)})
		require.Len(t, b.paid(), 1)
	})
	atBank(t, func(ctx context.Context, b *bank) {
		log := new(logbook)
		w := b.start(supervisor.Config{CallStore: new(resume.Memory), Logger: zerolog.New(log)}, toolset.Config{Policy: deferring()})
		require.Equal(t, "paid", w.again(ctx, w.pendingOf(ctx, "bank__pay", nil), allow))
		synctest.Wait()
		require.Zero(t, log.count("Swapper"))
	})
}

// A server that knows the id of a call can itself run it once.
func TestServerSeesTheSameIDAgain(t *testing.T) {
	for name, store := range stores() {
		t.Run(name, func(t *testing.T) {
			atBank(t, func(ctx context.Context, b *bank) {
				breaking := new(losing)
				cfg := dial.Wrap(supervisor.Config{CallStore: store}, func(d dial.Dialer) dial.Dialer {
					breaking.Dialer = d
					return breaking
				})
				w := b.start(cfg, toolset.Config{Policy: deferring()})
				ctx = supervisor.WithHeader(ctx, messages.Header{Replay: messages.ReplayAlways})
				p, other := w.pendingOf(ctx, "bank__pay", nil), w.pendingOf(ctx, "bank__pay", nil)
				require.Equal(t, "paid", w.again(ctx, p, allow))
				require.Equal(t, "paid", w.again(ctx, p, allow))
				require.Len(t, b.paid(), 2, "the first connection broke")
				require.NotEmpty(t, b.paid()[0])
				require.Equal(t, b.paid()[0], b.paid()[1])
				require.Equal(t, "paid", w.again(ctx, other, allow))
				require.NotEqual(t, b.paid()[0], b.paid()[2])
			})
		})
	}
}

// allowedByTheDead returns a call that a person has allowed, and its store. The process has died before it has sent the call: before it
// has written that it is about to, or after.
func (b *bank) allowedByTheDead(ctx context.Context, isWritten bool) (*toolset.Pending, mcpbridge.Store) {
	b.Helper()
	shared := new(resume.Memory)
	mortal := &moody{Memory: shared}
	one := b.process(mortal, toolset.Config{Policy: deferring()})
	p := one.pendingOf(ctx, "bank__pay", nil)
	mortal.dies(callbook.Sent, isWritten)
	require.Equal(b, "unavailable?", one.again(ctx, p, allow), "another answer may send it")
	return p, shared
}

// hasNotRun finds out that no call has run.
func hasNotRun(context.Context, *supervisor.Client, *messages.CallTool) (messages.Resolution, *mcp.CallToolResult, error) {
	return messages.ResolvedNotRun, nil, nil
}

// A person has allowed the call, and its process has died before it has sent it. Since then the tool has become another one.
func TestCallThatWasAllowedIsNotSentWithAnotherDefinition(t *testing.T) {
	atBank(t, func(ctx context.Context, b *bank) {
		p, shared := b.allowedByTheDead(ctx, false)
		b.server.AddTool(&mcp.Tool{Name: "pay", Description: "Pays twice.", InputSchema: map[string]any{"type": "object"}}, b.pay)
		two := b.process(shared, toolset.Config{Policy: deferring()})
		require.Contains(t, two.again(ctx, p, allow), "?")
		require.Empty(t, b.paid())
		require.Equal(t, "refused", two.again(ctx, p, deny))
	})
}

// Whoever denies sends nothing, whatever becomes known of the call.
func TestDenialSendsNothing(t *testing.T) {
	atBank(t, func(ctx context.Context, b *bank) {
		p, shared := b.allowedByTheDead(ctx, true)
		two := b.start(supervisor.Config{CallStore: shared, Resolve: hasNotRun}, toolset.Config{Policy: deferring()})
		time.Sleep(2 * time.Minute) // until the first process has given the call up
		require.Equal(t, "refused", two.again(ctx, p, deny))
		require.Equal(t, "refused", two.again(ctx, p, allow))
		require.Empty(t, b.paid())
	})
}

// The same, for a call that was cancelled after it was sent.
func TestCallThatWasCancelledIsNotSentAgain(t *testing.T) {
	atBank(t, func(ctx context.Context, b *bank) {
		p, shared := b.allowedByTheDead(ctx, true)
		two := b.start(supervisor.Config{CallStore: shared, Resolve: hasNotRun}, toolset.Config{Policy: deferring()})
		require.Equal(t, "cancelled?", two.cancelled(ctx, p.ID))
		time.Sleep(2 * time.Minute)
		require.Equal(t, "cancelled", two.again(ctx, p, allow))
		require.Empty(t, b.paid())
	})
}

// An id that is no text, one that is too long, and the same durable id in two scopes.
func TestOddIDsNameOneCall(t *testing.T) {
	for name, store := range stores() {
		t.Run(name, func(t *testing.T) {
			atBank(t, func(ctx context.Context, b *bank) {
				w := b.process(store, toolset.Config{Policy: deferring(), Servers: []toolset.Filter{{Name: "bank"}}})
				in := newInbox(w.system)
				for _, id := range []string{"a\xff", strings.Repeat("x", 2000)} {
					in.request(w, &toolset.Use{ID: id, Name: "bank__pay"})
					p := in.told(w).Pending
					require.NotEqual(t, id, p.ID)
					require.Equal(t, "invalid?", outcome(w.Answer(ctx, id, p.Digest, deny)))
					require.Equal(t, "refused", w.again(ctx, p, deny))
				}
				in.request(w, &toolset.Use{Name: "bank__pay", Durable: true})
				require.ErrorIs(t, in.told(w).Failure, messages.CodeInvalid)
				require.Empty(t, b.paid())
			})
		})
	}
}

// A call whose answer was lost does not keep its id: frameworks count anew in each turn.
func TestIDOfALostCallIsFree(t *testing.T) {
	for name, store := range stores() {
		t.Run(name, func(t *testing.T) {
			atBank(t, func(ctx context.Context, b *bank) {
				b.take(time.Hour)
				w := b.process(store, toolset.Config{Policy: deferring()})
				in := newInbox(w.system)
				in.request(w, &toolset.Use{ID: "call_0", Name: "bank__pay"})
				p := in.told(w).Pending
				short, cancel := context.WithTimeout(ctx, 2*time.Second)
				defer cancel()
				require.Equal(t, "deadline?", w.again(short, p, allow))
				time.Sleep(10 * time.Second)
				in.request(w, &toolset.Use{ID: "call_0", Name: "bank__pay"})
				require.NotEqual(t, p.ID, in.told(w).Pending.ID)
				time.Sleep(2 * time.Hour)
			})
		})
	}
}

package tests

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// closed waits for the reply to a close command.
func (p *sentCommand) closed() *messages.Closed {
	p.h.t.Helper()
	r, is := p.reply().(*messages.Closed)
	require.True(p.h.t, is, "%v", p.reply())
	return r
}

// done waits for the reply to a command without a result.
func (p *sentCommand) done() {
	p.h.t.Helper()
	require.IsType(p.h.t, &messages.Done{}, p.reply(), "%v", p.reply())
	require.Equal(p.h.t, p.cmd.RequestID(), p.reply().RequestID())
}

func keyOf(server, scope string) messages.Key { return messages.Key{Server: server, Scope: scope} }

// Each close command with Now answers running calls at once: they may have run. Calls that
// wait certainly have not. The sessions end on the server.
func TestCloseThatDoesNotDrainAnswersRunningCallsAtOnce(t *testing.T) {
	for name, cmd := range map[string]messages.Command{
		"session":  &messages.CloseSession{ID: "1", Key: keyOf("s", "a"), Now: true},
		"scope":    &messages.CloseScope{ID: "1", Scope: "a", Now: true},
		"server":   &messages.CloseServer{ID: "1", Server: "s", Now: true},
		"matching": &messages.CloseMatching{ID: "1", Scopes: "[a]", Now: true},
		"all":      &messages.CloseAll{ID: "1", Now: true},
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, supervisor.Config{MaxInFlight: 2}, func(h *harness) {
				running, waiting := h.calls(2, "a", "hang"), h.calls(2, "a", "count")
				synctest.Wait()
				began := time.Now()
				closing := h.send(cmd)
				for _, p := range running {
					require.True(t, p.fails(messages.CodeClosed).MayHaveRun)
				}
				for _, p := range waiting {
					require.False(t, p.fails(messages.CodeClosed).MayHaveRun)
				}
				require.Zero(t, time.Since(began), "without draining")
				closed := closing.closed()
				require.Equal(t, messages.Closed{ID: "1", Sessions: 1}, *closed)
				require.Less(t, time.Since(began), time.Second)
				require.Empty(t, h.server.sessions)
				require.EqualValues(t, 2, h.send(call("a", "count")).ok().Generation)
			})
		})
	}
}

// A close without draining ends a close that drains, and an eviction.
func TestCloseThatDoesNotDrainOvertakesOneThatDoes(t *testing.T) {
	inFakeTime(t, supervisor.Config{MaxSessions: 1}, func(h *harness) {
		hang := h.send(call("a", "hang"))
		synctest.Wait()
		patient := h.send(&messages.CloseScope{Scope: "a"})
		synctest.Wait()
		require.False(t, hang.answered())
		began := time.Now()
		hasty := h.send(&messages.CloseSession{Key: keyOf("s", "a"), Now: true})
		require.True(t, hang.fails(messages.CodeClosed).MayHaveRun)
		require.Equal(t, 1, patient.closed().Sessions)
		require.Equal(t, 1, hasty.closed().Sessions)
		require.Less(t, time.Since(began), time.Second)

		hang = h.send(call("a", "hang"))
		synctest.Wait()
		other := h.send(call("b", "count")) // evicts
		synctest.Wait()
		require.False(t, other.answered())
		h.send(&messages.CloseAll{Now: true}).closed()
		require.True(t, hang.fails(messages.CodeClosed).MayHaveRun)
		other.reply()
	})
}

// A call that is replayed elsewhere, and a dial that runs, end with a close that does not
// drain.
func TestCloseThatDoesNotDrainAbortsADial(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.server.dial = func(ctx context.Context, _ dial.Request) error { <-ctx.Done(); return ctx.Err() }
		p := h.send(call("a", "count"))
		synctest.Wait()
		began := time.Now()
		h.send(&messages.CloseSession{Key: keyOf("s", "a"), Now: true}).closed()
		require.False(t, p.fails(messages.CodeClosed).MayHaveRun)
		require.Zero(t, time.Since(began))
	})
}

func TestOneSessionIsClosedAndNoOther(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		for _, scope := range []string{"a", "b", ""} {
			h.send(call(scope, "count")).ok()
			h.send(call(scope, "count", on("other"))).ok()
		}
		slow := h.send(call("a", "slow"))
		synctest.Wait()
		require.Equal(t, 1, h.send(&messages.CloseSession{Key: keyOf("s", "a")}).closed().Sessions)
		require.Equal(t, "done", slow.text(), "it drained")
		require.Zero(t, h.send(&messages.Inspect{Server: "s", Scope: "a"}).reply().(*messages.Snapshot).Total)
		require.Len(t, h.inspect().Sessions, 5)
		require.Zero(t, h.send(&messages.CloseSession{Key: keyOf("s", "a")}).closed().Sessions, "closing twice is fine")
		require.Zero(t, h.send(&messages.CloseSession{Key: keyOf("s", "nobody")}).closed().Sessions)
		require.Equal(t, 1, h.send(&messages.CloseSession{Key: keyOf("s", "")}).closed().Sessions, "the default scope")

		require.Contains(t, h.send(&messages.CloseSession{Key: keyOf("none", "a")}).fails(messages.CodeUnknownServer).Detail, `"none"`)
		require.Contains(t, h.send(&messages.CloseSession{Key: keyOf("s", "a\n")}).fails(messages.CodeInvalid).Detail, "scope: ")
		require.Equal(t, 1, asValue[*messages.Closed](h, messages.CloseSession{Key: keyOf("s", "b")}).Sessions)
	})
}

func TestSessionsWhoseScopeMatchesAreClosed(t *testing.T) {
	inFakeTime(t, supervisor.Config{MaxSessions: 1000}, func(h *harness) {
		for i := range 200 { // several steps of the registry
			h.send(call(fmt.Sprint("acme/", i), "count"))
			h.send(call(fmt.Sprint("acme/", i), "count", on("other")))
			h.send(call(fmt.Sprint("zoo/", i), "count")).ok()
		}
		synctest.Wait()
		require.Zero(t, h.send(&messages.CloseMatching{Scopes: "nobody/*"}).closed().Sessions)
		require.Zero(t, h.send(&messages.CloseMatching{Scopes: "*"}).closed().Sessions, "* does not match a slash")
		require.Equal(t, 10, h.send(&messages.CloseMatching{Scopes: "acme/[0-9]", Server: "s"}).closed().Sessions)
		require.Equal(t, 390, h.send(&messages.CloseMatching{Scopes: "acme/*"}).closed().Sessions)
		require.Len(t, h.inspect().Sessions, 200)
		require.EqualValues(t, 2, h.send(call("acme/7", "count")).ok().Generation)
		require.EqualValues(t, 1, h.send(call("zoo/7", "count")).ok().Generation)

		for detail, cmd := range map[string]*messages.CloseMatching{
			"scopes: is empty":               {},
			`scopes: "[" is not a pattern`:   {Scopes: "["},
			`scopes: "a[]b" is not`:          {Scopes: "a[]b"},
			"scopes: has a control":          {Scopes: "a\nb"},
			"scopes: is not valid UTF-8":     {Scopes: "\xff"},
			"scopes: has 1025 bytes":         {Scopes: strings.Repeat("x", 1025)},
			"is not a pattern of path.Match": {Scopes: `x\`},
		} {
			require.Contains(t, h.send(cmd).fails(messages.CodeInvalid).Detail, detail)
		}
		h.send(&messages.CloseMatching{Scopes: "*", Server: "none"}).fails(messages.CodeUnknownServer)
	})
}

// All operations of a scope that came before are cancelled: those that run, wait, dial, or
// are with an interceptor. The sessions stay, and so do the operations of other scopes.
func TestAllOperationsOfAScopeAreCancelled(t *testing.T) {
	for name, interceptors := range map[string][]actors.Interceptor{
		"alone": nil, "with interceptors": {func(next actors.Runner) actors.Runner { return next }},
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, supervisor.Config{MaxInFlight: 2, Interceptors: interceptors}, func(h *harness) {
				h.send(call("a", "count")).ok()
				others := h.calls(3, "b", "hang")
				running := append(h.calls(2, "a", "hang"), h.calls(2, "a", "hang", on("other"))...)
				synctest.Wait()
				waiting := append(h.calls(3, "a", "count"), h.calls(3, "a", "count", on("other"))...)
				synctest.Wait()
				began := time.Now()
				h.send(&messages.CancelScope{ID: "7", Scope: "a"}).done()
				later := h.send(call("a", "count"))
				for _, p := range running {
					require.True(t, p.fails(messages.CodeCancelled).MayHaveRun)
				}
				for _, p := range waiting {
					require.False(t, p.fails(messages.CodeCancelled).MayHaveRun)
				}
				require.Equal(t, "2", later.text(), "the session is the same")
				require.Zero(t, time.Since(began))
				require.False(t, others[0].answered())
				h.send(&messages.CancelScope{Scope: "nobody"}).done()
				asValue[*messages.Done](h, messages.CancelScope{Scope: "b"})
				for _, p := range others {
					p.fails(messages.CodeCancelled)
				}
				require.Contains(t, h.send(&messages.CancelScope{Scope: "a\n"}).fails(messages.CodeInvalid).Detail, "scope: ")
			})
		})
	}
}

// A call that an evicted session hands back is cancelled as well, and an operation that an
// interceptor holds.
func TestOperationsOfAScopeAreCancelledWhereverTheyAre(t *testing.T) {
	inFakeTime(t, supervisor.Config{MaxSessions: 1, MaxInFlight: 1}, func(h *harness) {
		all := h.calls(3, "a", "slow")
		synctest.Wait()
		other := h.send(call("b", "count")) // evicts
		h.send(&messages.CancelScope{Scope: "a"}).done()
		for _, p := range all {
			p.fails(messages.CodeCancelled)
		}
		require.Equal(t, "1", other.text())
	})
	hold := func(actors.Runner) actors.Runner {
		return func(ctx context.Context, _ messages.Operation) (messages.Result, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
	}
	inFakeTime(t, supervisor.Config{Interceptors: []actors.Interceptor{hold}}, func(h *harness) {
		all, others := h.calls(100, "a", "count"), h.calls(3, "b", "count", within(time.Minute))
		synctest.Wait()
		h.send(&messages.CancelScope{Scope: "a"}).done()
		for _, p := range all {
			require.False(t, p.fails(messages.CodeCancelled).MayHaveRun)
		}
		synctest.Wait()
		require.False(t, others[0].answered())
		h.send(&messages.CancelScope{Scope: "b"}).done()
	})
}

package tests

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// withInterceptors returns a configuration with an interceptor for each function.
func withInterceptors(fs ...func(ctx context.Context, op messages.Operation, next actors.Runner) (messages.Result, error)) supervisor.Config {
	var cfg supervisor.Config
	for _, f := range fs {
		cfg.Interceptors = append(cfg.Interceptors, func(next actors.Runner) actors.Runner {
			return func(ctx context.Context, op messages.Operation) (messages.Result, error) { return f(ctx, op, next) }
		})
	}
	return cfg
}

func TestInterceptorsAreAroundEachOperationOnceAlsoWhenItIsReplayed(t *testing.T) {
	var notes []string
	noting := func(name string) func(context.Context, messages.Operation, actors.Runner) (messages.Result, error) {
		return func(ctx context.Context, op messages.Operation, next actors.Runner) (messages.Result, error) {
			at, _ := ctx.Deadline()
			notes = append(notes, fmt.Sprint(name, " begins ", op.Method(), " ", at.Equal(op.Head().Deadline)))
			result, err := next(ctx, op)
			notes = append(notes, fmt.Sprint(name, " ends ", err))
			return result, err
		}
	}
	inFakeTime(t, withInterceptors(noting("outer"), noting("inner")), func(h *harness) {
		require.Equal(t, "1", h.send(call("a", "count")).text())
		h.server.expire("a")
		notes = nil
		r := h.send(call("a", "count"))
		require.Equal(t, "1", r.text())
		require.True(t, r.ok().Replayed)
		require.Equal(t, []string{"outer begins tools/call true", "inner begins tools/call true", "inner ends <nil>", "outer ends <nil>"}, notes)
		notes = nil
		h.send(&messages.Ping{Header: messages.To("s", "a")}).reply()
		require.Len(t, notes, 4)
		h.send(call("a", "count", on("nowhere"))).fails(messages.CodeUnknownServer)
		require.Len(t, notes, 8, "refusals are seen as well")
		h.send(&messages.CallTool{Header: messages.To("s", "a")}).fails(messages.CodeInvalid)
		require.Len(t, notes, 8, "but not what is no operation at all")
	})
}

func TestInterceptorMayChangeWhatGoesInAndOut(t *testing.T) {
	var kept messages.Result
	cfg := withInterceptors(func(ctx context.Context, op messages.Operation, next actors.Runner) (messages.Result, error) {
		c := *op.(*messages.CallTool)
		name, params := c.Params.Name, *c.Params
		params.Name, c.Params = "count", &params
		switch name {
		case "elsewhere":
			c.Key.Scope = "b"
			return next(ctx, &c)
		case "keep":
			var err error
			kept, err = next(ctx, &c)
			return kept, err
		case "kept":
			return kept, nil
		case "twice":
			if _, err := next(ctx, &c); err != nil {
				return nil, err
			}
			return next(ctx, &c)
		}
		return next(ctx, op)
	})
	inFakeTime(t, cfg, func(h *harness) {
		h.executed = nil // the interceptor changes the call, and with it the id
		require.Equal(t, "1", h.send(call("b", "count")).text())
		p := h.send(call("a", "elsewhere"))
		require.Equal(t, "2", p.text(), "it ran in the other scope")
		require.Equal(t, "a", p.ok().Key.Scope)
		require.Equal(t, "1", h.send(call("a", "keep")).text())
		p = h.send(call("a", "kept"))
		require.Equal(t, "1", p.text())
		require.Equal(t, p.cmd.RequestID(), p.ok().ID)
		require.Equal(t, "3", h.send(call("a", "twice", replay(messages.ReplayAlways))).text())
	})
}

func TestInterceptorMayRefuse(t *testing.T) {
	policy := errors.New("not on Sundays")
	cfg := withInterceptors(func(ctx context.Context, op messages.Operation, next actors.Runner) (messages.Result, error) {
		if op.Head().Key.Scope == "a" {
			return nil, policy
		}
		result, err := next(ctx, op)
		if err != nil {
			return nil, fmt.Errorf("in my words: %w", err)
		}
		if op.Head().Key.Scope == "late" {
			return nil, policy
		}
		return result, nil
	})
	inFakeTime(t, cfg, func(h *harness) {
		f := h.send(call("a", "count")).fails(messages.CodeRefused)
		require.ErrorIs(t, f, policy)
		require.Contains(t, f.Detail, "not on Sundays")
		require.False(t, f.MayHaveRun)
		require.Empty(t, h.inspect().Sessions, "nothing was opened for it")
		require.True(t, h.send(call("late", "count")).fails(messages.CodeRefused).MayHaveRun)
		h.send(call("b", "refuse")).fails(messages.CodeInvalid)
	})
}

func TestInterceptorThatMisbehavesDelaysNobody(t *testing.T) {
	var release chan struct{}
	cfg := withInterceptors(func(ctx context.Context, op messages.Operation, next actors.Runner) (messages.Result, error) {
		switch op.Head().Key.Scope {
		case "hangs":
			<-release
		case "hangs after":
			defer func() { <-release }()
		case "panics":
			panic("a bug")
		case "nothing":
			return nil, nil
		case "impatient":
			short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			return next(short, op)
		}
		return next(ctx, op)
	})
	inFakeTime(t, cfg, func(h *harness) {
		release = make(chan struct{}) // made in the bubble of fake time
		began := time.Now()
		hung, after := h.send(call("hangs", "count", within(time.Second))), h.send(call("hangs after", "count", within(time.Second)))
		require.Equal(t, "1", h.send(call("a", "count")).text(), "others go on")
		require.Zero(t, time.Since(began))
		require.False(t, hung.fails(messages.CodeDeadline).MayHaveRun)
		require.True(t, after.fails(messages.CodeDeadline).MayHaveRun)
		require.LessOrEqual(t, time.Since(began), 2*time.Second)

		cancelled := h.send(call("hangs", "count"))
		synctest.Wait()
		h.cancel(cancelled)
		require.False(t, cancelled.fails(messages.CodeCancelled).MayHaveRun)

		h.send(call("panics", "count")).fails(messages.CodeInternal)
		h.send(call("nothing", "count")).fails(messages.CodeInternal)
		began = time.Now()
		h.send(call("impatient", "hang")).fails(messages.CodeDeadline)
		require.Equal(t, 100*time.Millisecond, time.Since(began), "its own timeout reaches the call")
		synctest.Wait()
		require.Zero(t, h.session("impatient").Outstanding)

		last := h.send(call("hangs", "count"))
		ctx, cancel := context.WithTimeout(h.t.Context(), 30*time.Second)
		defer cancel()
		require.ErrorContains(t, h.sup.Stop(ctx), "the interceptors of 4 operations do not return")
		require.True(t, last.answered())
		last.fails(messages.CodeClosed)
		close(release)
	})
}

func TestCancelledCallIsCancelledBehindItsInterceptors(t *testing.T) {
	cfg := withInterceptors(func(ctx context.Context, op messages.Operation, next actors.Runner) (messages.Result, error) {
		return next(ctx, op)
	})
	inFakeTime(t, cfg, func(h *harness) {
		p := h.send(call("a", "hang"))
		synctest.Wait()
		h.cancel(p)
		require.True(t, p.fails(messages.CodeCancelled).MayHaveRun)
		synctest.Wait()
		require.Zero(t, h.session("a").Outstanding)
		began := time.Now()
		running := h.send(call("a", "slow"))
		synctest.Wait()
		h.send(&messages.CloseAll{})
		require.Equal(t, "done", running.text(), "it drains, and its result comes through")
		require.NotZero(t, time.Since(began))
	})
}

// foreignResult is a result of a type that package messages does not have.
type foreignResult struct{ *messages.ToolResult }

func TestInterceptorThatReturnsNonsenseFailsItsOperationAtOnce(t *testing.T) {
	cfg := withInterceptors(func(ctx context.Context, op messages.Operation, next actors.Runner) (messages.Result, error) {
		switch op.Head().Key.Scope {
		case "typed nil failure":
			var f *messages.Failure
			return nil, f
		case "typed nil result":
			var r *messages.ToolResult
			return r, nil
		case "odd":
			return foreignResult{&messages.ToolResult{}}, nil
		case "fresh":
			fresh := &messages.CallTool{Header: messages.To("s", "fresh"), Params: op.(*messages.CallTool).Params}
			return next(context.WithoutCancel(ctx), fresh)
		case "background":
			return next(context.Background(), op)
		case "foreign":
			return next(ctx, embeddedCall{op.(*messages.CallTool)})
		case "no operation":
			return next(ctx, nil)
		}
		return next(ctx, op)
	})
	inFakeTime(t, cfg, func(h *harness) {
		began := time.Now()
		for _, scope := range []string{"typed nil failure", "typed nil result", "odd", "background", "foreign", "no operation"} {
			f, ok := h.send(call(scope, "count")).reply().(*messages.Failure)
			require.True(t, ok, scope)
			require.Contains(t, []messages.Code{messages.CodeInternal, messages.CodeRefused, messages.CodeInvalid}, f.Code, scope)
		}
		require.Equal(t, "1", h.send(call("fresh", "count")).text(), "it has the deadline of the operation")
		require.Zero(t, time.Since(began))
	})
}

func TestInterceptorsAreMadeOnceAndTheirOperationsAreBounded(t *testing.T) {
	made := 0
	var release chan struct{}
	cfg := supervisor.Config{MaxInFlight: 2, MaxWaiting: 3, Interceptors: []actors.Interceptor{func(next actors.Runner) actors.Runner {
		made++
		return func(ctx context.Context, op messages.Operation) (messages.Result, error) {
			<-release
			return next(ctx, op)
		}
	}}}
	inFakeTime(t, cfg, func(h *harness) {
		release = make(chan struct{})
		all := h.calls(8, "a", "count")
		for _, p := range all[5:] {
			p.fails(messages.CodeBusy)
		}
		close(release)
		for _, p := range all[:5] {
			p.ok()
		}
		require.Equal(t, 1, made)
	})
	_, err := supervisor.Start(nil, supervisor.Config{Servers: []mcpbridge.Server{serverAt("s", "http://x")}, Interceptors: []actors.Interceptor{nil}})
	require.ErrorContains(t, err, "interceptors[0]: is nil")
}

// Operations in the interceptors and operations that wait for sessions are bounded
// together.
func TestOperationsThatInterceptorsHoldAreBoundedTogetherWithCallsThatWait(t *testing.T) {
	var release chan struct{}
	cfg := withInterceptors(func(ctx context.Context, op messages.Operation, next actors.Runner) (messages.Result, error) {
		if op.Head().Key.Scope == "held" {
			<-release
		}
		return next(ctx, op)
	})
	cfg.MaxWaitingTotal = 4
	inFakeTime(t, cfg, func(h *harness) {
		release = make(chan struct{}) // made in the bubble of fake time
		h.server.dial = slowDial(time.Second, nil)
		all := append(h.calls(2, "a", "count"), h.calls(2, "held", "count")...)
		synctest.Wait()
		require.Equal(t, 4, h.inspect().Waiting)
		for _, scope := range []string{"a", "b", "held"} {
			require.Contains(t, h.send(call(scope, "count")).fails(messages.CodeBusy).Detail, "4 calls of all sessions are waiting (MaxWaitingTotal)")
		}
		close(release)
		for _, p := range all {
			p.ok()
		}
		synctest.Wait()
		require.Zero(t, h.inspect().Waiting)
	})
}

func TestOperationThatIsSentAsAValueIsIntercepted(t *testing.T) {
	policy := errors.New("not on Sundays")
	cfg := withInterceptors(func(context.Context, messages.Operation, actors.Runner) (messages.Result, error) { return nil, policy })
	inFakeTime(t, cfg, func(h *harness) {
		require.ErrorIs(t, asValue[*messages.Failure](h, *call("a", "count")), policy)
	})
}

// A cancellation applies to the operations that were sent before it, also if it waits in a
// burst.
func TestBurstOfCancellationsReachesTheInterceptedOperationsThatItMeans(t *testing.T) {
	cfg := withInterceptors(func(ctx context.Context, op messages.Operation, next actors.Runner) (messages.Result, error) {
		return next(ctx, op)
	})
	inFakeTime(t, cfg, func(h *harness) {
		all := h.calls(500, "a", "hang")
		synctest.Wait()
		for _, p := range all {
			h.cancel(p)
		}
		again := call("a", "slow")
		again.ID = all[len(all)-1].cmd.RequestID()
		answer := h.send(again)
		for _, p := range all {
			p.fails(messages.CodeCancelled)
		}
		require.Equal(t, "done", answer.text())
	})
}

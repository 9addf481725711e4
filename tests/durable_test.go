package tests

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/internal/recordkey"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// durable makes a call durable under an id.
func durable(id string) func(*messages.CallTool) {
	return func(op *messages.CallTool) {
		op.Durable, op.ID = true, id
		op.Params.Arguments.(map[string]any)["call"] = id
	}
}

// E10: our own process ends while a server works on a task. The next one gets the result.
func TestDurableCallOutlivesOurProcess(t *testing.T) {
	for _, dies := range []bool{false, true} {
		t.Run(fmt.Sprint("dies=", dies), func(t *testing.T) {
			store := new(resume.Memory)
			withTasks(t, supervisor.Config{Store: store}, func(w *taskWorld) {
				p := w.send(call("a", "work", with("seconds", 60), durable("report-7")))
				time.Sleep(5 * time.Second)
				next := newHarness(t)
				if !dies {
					w.stop()
					require.True(t, p.fails(messages.CodeClosed).MayHaveRun)
				}
				next.executed = w.tasks.Runs
				next.start(w.config(supervisor.Config{Store: &struct{ *resume.Memory }{store}})) // another process has another value
				again := next.send(call("a", "work", with("seconds", 60), durable("report-7")))
				require.Equal(t, "worked", again.text())
				require.Equal(t, "worked", next.send(call("a", "work", with("seconds", 60), durable("report-7"))).text(), "it is kept")
				require.Contains(t, next.send(call("a", "work", with("seconds", 61), durable("report-7"))).fails(messages.CodeInvalid).Detail, "another call")
				require.Equal(t, 1, w.tasks.Runs()["report-7"])
				w.tasks.Forget()
				require.Equal(t, "worked", next.send(call("a", "work", with("seconds", 60), durable("report-7"))).text(), "the result is kept")
				time.Sleep(26 * time.Hour)
				require.Equal(t, "worked", next.send(call("a", "work", durable("report-8"))).text())
				next.send(call("a", "work", with("seconds", 60), durable("report-7"))).ok()
				require.Equal(t, 2, w.tasks.Runs()["report-7"], "after a day it is another call")
				next.executed = nil
				next.stopAndVerify()
				w.executed = nil
			})
		})
	}
}

// A durable call of whose answer nothing is known is not run again.
func TestDurableCallThatMayHaveRunIsLost(t *testing.T) {
	store := new(resume.Memory)
	withTasks(t, supervisor.Config{Store: store}, func(w *taskWorld) {
		w.local.Inject("tools/call", faults.Times(1, faults.CutAnswer(0)))
		require.True(t, w.send(call("a", "work", durable("1"))).fails(messages.CodeLost).MayHaveRun)
		f := w.send(call("a", "work", durable("1"))).fails(messages.CodeLost)
		require.True(t, f.MayHaveRun)
		require.Contains(t, f.Detail, "was sent before")
		require.Equal(t, 1, w.tasks.Runs()["1"])

		w.local.Stop()
		require.False(t, w.send(call("a", "work", durable("2"), within(5*time.Second))).fails(messages.CodeUnavailable).MayHaveRun)
		require.NoError(t, w.local.Start())
		require.Equal(t, "worked", w.send(call("a", "work", durable("2"))).text(), "it certainly did not run")

		f = w.send(call("a", "work", durable(""))).fails(messages.CodeInvalid)
		require.Contains(t, f.Detail, "id")
		w.executed = nil // the two calls of one id are one call to the verifier
	})
	withTasks(t, supervisor.Config{}, func(w *taskWorld) {
		require.Contains(t, w.send(call("a", "work", durable("1"))).fails(messages.CodeInvalid).Detail, "no store")
		require.Empty(t, w.tasks.Runs())
	})
}

// The second call waits for the first one, and then has its result.
func TestDurableCallThatIsAskedTwiceAtOnceRunsOnce(t *testing.T) {
	withTasks(t, supervisor.Config{Store: new(resume.Memory)}, func(w *taskWorld) {
		first := w.send(call("a", "work", with("seconds", 9), durable("1")))
		second := w.send(call("a", "work", with("seconds", 9), durable("1")))
		other := w.send(call("a", "work", with("seconds", 9), durable("2")))
		require.Equal(t, "worked", first.text())
		require.Equal(t, "worked", other.text())
		require.Equal(t, "worked", second.text())
		require.Equal(t, 10*time.Second, other.answeredAt.Sub(other.sent), "it waits for no other call")
		require.Equal(t, 1, w.tasks.Runs()["1"])
		w.executed = nil // the two calls of one id are one call to the verifier
	})
}

// panicking are arguments that cannot be encoded.
type panicking struct{}

func (panicking) MarshalJSON() ([]byte, error) { panic("arguments") }

func TestDurableCallWithArgumentsThatPanicFails(t *testing.T) {
	withTasks(t, supervisor.Config{Store: new(resume.Memory)}, func(w *taskWorld) {
		cmd := call("a", "work", durable("1"))
		cmd.Params.Arguments = panicking{}
		w.send(cmd).fails(messages.CodeInternal)
		require.Equal(t, "worked", w.send(call("a", "work", durable("2"))).text())
	})
}

// callStore is a store that changes what is loaded of calls.
type callStore struct {
	mcpbridge.Store
	load func(*mcpbridge.Record) (*mcpbridge.Record, error) // nil changes nothing
	wait time.Duration
}

func (s *callStore) Load(ctx context.Context, key messages.Key) (*mcpbridge.Record, error) {
	time.Sleep(s.wait)
	record, err := s.Store.Load(ctx, key)
	if err == nil && s.load != nil && recordkey.IsCall(key) {
		return s.load(record)
	}
	return record, err
}

func (s *callStore) Save(ctx context.Context, key messages.Key, record *mcpbridge.Record) error {
	time.Sleep(s.wait)
	return s.Store.Save(ctx, key, record)
}

// The call has run in a process before. Whatever keeps this process from reading that, or from running it, the failure does not
// say that the call did not run. The same failure of a call that is not durable says so.
func TestDurableCallThatMayHaveRunInAnotherProcessIsNotSaidToHaveNotRun(t *testing.T) {
	away := func(w *taskWorld, _ *harness) { w.local.Stop() }
	for name, test := range map[string]struct {
		before func(w *taskWorld, next *harness)
		opts   []func(*messages.CallTool)
		during func(next *harness, p *sentCommand)
		load   func(*mcpbridge.Record) (*mcpbridge.Record, error)
		refuse bool
		code   messages.Code
		known  messages.Code // of the durable call, if its record is read; empty: code
	}{
		"the server is away": {before: away, code: messages.CodeUnavailable, known: messages.CodeLost},
		"the store fails": {
			load: func(*mcpbridge.Record) (*mcpbridge.Record, error) { return nil, errors.New("connection refused") }, code: messages.CodeUnavailable,
		},
		"the record cannot be read": {load: func(r *mcpbridge.Record) (*mcpbridge.Record, error) {
			if r != nil {
				r.Call = json.RawMessage(`{"until":7}`)
			}
			return r, nil
		}, code: messages.CodeUnavailable},
		"it is cancelled while it waits": {before: away, during: (*harness).cancel, code: messages.CodeCancelled, known: messages.CodeLost},
		"its scope is closed while it waits": {before: away, during: func(next *harness, _ *sentCommand) {
			next.send(&messages.CloseScope{Scope: "a", Now: true})
		}, code: messages.CodeClosed, known: messages.CodeLost},
		"the supervisor has stopped":  {before: func(_ *taskWorld, next *harness) { next.stop() }, code: messages.CodeClosed},
		"its deadline is over":        {opts: []func(*messages.CallTool){within(-time.Second)}, code: messages.CodeDeadline},
		"an interceptor refuses it":   {refuse: true, code: messages.CodeRefused},
		"the command is not complete": {opts: []func(*messages.CallTool){func(op *messages.CallTool) { op.Params.Name = "" }}, code: messages.CodeInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			store := new(resume.Memory)
			withTasks(t, supervisor.Config{Store: store}, func(w *taskWorld) {
				w.local.Inject("tools/call", faults.Times(1, faults.CutAnswer(0)))
				require.True(t, w.send(call("a", "work", durable("1"))).fails(messages.CodeLost).MayHaveRun)
				cfg := supervisor.Config{Store: &callStore{Store: store, load: test.load}}
				if test.refuse {
					cfg.Interceptors = []actors.Interceptor{func(actors.Runner) actors.Runner {
						return func(_ context.Context, op messages.Operation) (messages.Result, error) {
							return nil, messages.NewFailure(op, messages.CodeRefused, "not now")
						}
					}}
				}
				next := newHarness(t)
				next.start(w.config(cfg))
				defer next.stop()
				if test.before != nil {
					test.before(w, next)
				}
				for _, isDurable := range []bool{true, false} {
					if !isDurable && test.load != nil {
						continue // it runs
					}
					op := call("a", "work", within(5*time.Second))
					if isDurable {
						durable("1")(op)
					}
					for _, opt := range test.opts {
						opt(op)
					}
					p := next.send(op)
					time.Sleep(time.Second)
					if test.during != nil {
						test.during(next, p)
					}
					code := test.code
					if isDurable {
						code = cmp.Or(test.known, code)
					}
					require.Equal(t, isDurable, p.fails(code).MayHaveRun, "%v", p.reply())
				}
				require.Equal(t, 1, w.tasks.Runs()["1"])
			})
		})
	}
}

// The deadline of a durable call comes while the store is asked. It is the deadline of the call that its record has.
func TestDurableCallIsCutOffWhileItIsStored(t *testing.T) {
	store := new(resume.Memory)
	withTasks(t, supervisor.Config{Store: &callStore{Store: store, wait: 100 * time.Millisecond}}, func(w *taskWorld) {
		w.send(call("a", "now")).ok()
		for i := range 6 {
			p := w.send(call("a", "work", durable(fmt.Sprint(i)), within(time.Duration(50+i*50)*time.Millisecond)))
			if f := p.fails(messages.CodeDeadline); !f.MayHaveRun {
				require.Zero(t, w.tasks.Runs()[fmt.Sprint(i)], "its record was read, and it was not sent")
			}
		}
		time.Sleep(time.Minute)
	})
}

package toolset_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// deferring is a policy that leaves all decisions to Answer.
func deferring() *toolset.Policy {
	return &toolset.Policy{Decide: func(toolset.Proposal) toolset.Decision { return toolset.Decision{Verdict: toolset.Defer} }}
}

var (
	allow = toolset.Decision{Verdict: toolset.Allow}
	deny  = toolset.Decision{Verdict: toolset.Deny, Reason: "not today"}
)

// pendingOf calls a tool, and returns the call that is pending.
func (w *world) pendingOf(ctx context.Context, name string, arguments any) *toolset.Pending {
	w.Helper()
	result, err := w.Call(ctx, name, arguments)
	require.Nil(w, result)
	require.ErrorIs(w, err, messages.CodeRefused)
	p, is := errors.AsType[*toolset.Pending](err)
	require.True(w, is)
	return p
}

func TestPendingCallRunsOnceItIsAllowed(t *testing.T) {
	imagine(t, toolset.Config{Policy: deferring()}, func(ctx context.Context, w *world) {
		p := w.pendingOf(ctx, "one__a", `{"x":1}`)
		require.Equal(w, messages.Key{Server: "one", Scope: "s"}, p.Key)
		require.Equal(w, "a", p.Tool)
		require.Equal(w, "one__a", p.Name)
		require.Equal(w, `{"x":1}`, string(p.Arguments))
		require.NotEmpty(w, p.ID)
		require.NotEqual(w, p.ID, w.pendingOf(ctx, "one__a", nil).ID)

		_, err := w.Answer(ctx, p.ID, toolset.Decision{})
		require.ErrorContains(w, err, "answer with allow or deny")
		results := make(chan error, 20)
		for range cap(results) { // whoever answers first
			go func() {
				_, err := w.Answer(ctx, p.ID, allow)
				results <- err
			}()
		}
		ran := 0
		for range cap(results) {
			if err := <-results; err == nil {
				ran++
			} else {
				require.ErrorContains(w, err, "no call waits for an answer under the id")
			}
		}
		require.Equal(w, 1, ran)
	})
}

func TestActorAnswersForACallThatIsPending(t *testing.T) {
	imagine(t, toolset.Config{Policy: deferring()}, func(_ context.Context, w *world) {
		in := newInbox(w.system)
		use := func() {
			in.request(w, &toolset.Use{ID: "1", Name: "one__a"})
			told := in.told(w)
			require.Equal(w, "1", told.Pending.ID)
			require.False(w, told.Output.IsError)
			require.Equal(w, "The call waits for an approval, and has not run yet. Its result is told after the approval. Do not repeat the call.", told.Output.Text())
		}
		use()
		in.request(w, &toolset.AnswerPending{ID: "1", Decision: allow})
		told := in.told(w)
		require.Equal(w, "1", told.ID)
		require.Equal(w, "1", told.Result.ID)
		require.Equal(w, "a{}", told.Output.Text())

		use()
		in.request(w, &toolset.AnswerPending{ID: "1", Decision: deny})
		require.Contains(w, in.told(w).Output.Text(), "not approved: not today")

		use()
		w.system.Root.Send(w.PID(), &messages.Cancel{ID: "1"})
		synctest.Wait()
		in.request(w, &toolset.AnswerPending{ID: "1", Decision: allow})
		require.ErrorContains(w, in.told(w).Failure, `no call waits for an answer under the id "1"`)
	})
}

func TestAnswerIsForTheDefinitionThatWasAskedAbout(t *testing.T) {
	imagine(t, toolset.Config{Policy: deferring()}, func(ctx context.Context, w *world) {
		old := w.pendingOf(ctx, "one__a", `{"x":1}`)
		w.one.define(&mcp.Tool{Name: "a", Description: "Sends all data away."})
		w.changed("one")
		_, err := w.Answer(ctx, old.ID, toolset.Decision{Verdict: toolset.Allow, Remember: true})
		anew, is := errors.AsType[*toolset.Pending](err)
		require.True(w, is, "%v", err)
		require.NotEqual(w, old.ID, anew.ID)
		require.NotEqual(w, old.Digest, anew.Digest)
		_, err = w.Answer(ctx, old.ID, allow) // a double click
		require.ErrorContains(w, err, "an earlier answer may have sent it")
		result, err := w.Answer(ctx, anew.ID, toolset.Decision{Verdict: toolset.Allow, Remember: true})
		require.NoError(w, err)
		require.NotNil(w, result)
		_, err = w.Call(ctx, "one__a", nil)
		require.NoError(w, err, "the answer is remembered")
	})
}

func TestAnswerIsNotLostWithAServerThatIsAway(t *testing.T) {
	imagine(t, toolset.Config{Policy: deferring()}, func(ctx context.Context, w *world) {
		p := w.pendingOf(ctx, "one__a", nil)
		w.one.set(errors.New("down"), 0)
		w.changed("one")
		_, err := w.Answer(ctx, p.ID, allow)
		require.ErrorIs(w, err, messages.CodeServerError)
		w.one.set(nil, 0)
		_, err = w.Answer(ctx, p.ID, allow)
		require.NoError(w, err)
	})
}

func TestCallsInMemoryAreBounded(t *testing.T) {
	imagine(t, toolset.Config{Policy: deferring()}, func(ctx context.Context, w *world) {
		for range 1024 {
			w.pendingOf(ctx, "one__a", nil)
		}
		_, err := w.Call(ctx, "one__a", nil)
		require.ErrorContains(w, err, "no approval could be obtained")
	})
}

// What is answered makes room for itself.
func TestAnsweredCallStaysPendingAtTheBound(t *testing.T) {
	imagine(t, toolset.Config{Policy: deferring()}, func(ctx context.Context, w *world) {
		p := w.pendingOf(ctx, "one__a", nil)
		for range 1023 {
			w.pendingOf(ctx, "one__b", nil)
		}
		w.one.define(&mcp.Tool{Name: "a", Description: "Sends all data away."})
		w.changed("one")
		_, err := w.Answer(ctx, p.ID, allow)
		anew, is := errors.AsType[*toolset.Pending](err)
		require.True(w, is, "%v", err)
		_, err = w.Answer(ctx, anew.ID, allow)
		require.NoError(w, err)
	})
}

// The process ends while a call is pending, and another one with the same store answers.
func TestPendingCallSurvivesTheProcess(t *testing.T) {
	for name, open := range map[string]func() (mcpbridge.Store, func() error){
		"memory": func() func() (mcpbridge.Store, func() error) {
			store := new(resume.Memory)
			return func() (mcpbridge.Store, func() error) { return store, func() error { return nil } }
		}(),
		"file": func() func() (mcpbridge.Store, func() error) {
			path := t.TempDir() + "/store"
			return func() (mcpbridge.Store, func() error) {
				store, err := resume.Open(path, resume.Config{})
				require.NoError(t, err)
				return store, store.Close
			}
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			one := newServer("one", "a")
			process := func(run func(tools *toolset.Toolset, sup *supervisor.Supervisor)) {
				store, closeStore := open()
				defer func() { require.NoError(t, closeStore()) }()
				sup, err := supervisor.Start(nil, supervisor.Config{Store: store, Servers: []mcpbridge.Server{{Name: "one", InMemory: one.mcp}}})
				require.NoError(t, err)
				defer func() { require.NoError(t, sup.Stop(context.Background())) }()
				tools, err := toolset.New(nil, sup, toolset.Config{Scope: "s", Store: store, Policy: deferring(), Servers: []toolset.Filter{{Name: "one"}}})
				require.NoError(t, err)
				defer tools.Close()
				run(tools, sup)
			}
			var id, other string
			process(func(tools *toolset.Toolset, _ *supervisor.Supervisor) {
				w := &world{T: t, Toolset: tools}
				id, other = w.pendingOf(t.Context(), "one__a", `{"x":1}`).ID, w.pendingOf(t.Context(), "one__a", nil).ID
			})
			process(func(tools *toolset.Toolset, sup *supervisor.Supervisor) {
				_, err := sup.Client().CloseAll(t.Context()) // leaves what is no session
				require.NoError(t, err)
				result, err := tools.Answer(t.Context(), id, allow)
				require.NoError(t, err)
				require.Equal(t, `a{"x":1}`, toolset.Convert(result.Result).Text())
				_, err = tools.Answer(t.Context(), id, allow)
				require.ErrorContains(t, err, "no call waits for an answer")
			})
			process(func(tools *toolset.Toolset, _ *supervisor.Supervisor) {
				_, err := tools.Answer(t.Context(), other, deny)
				require.ErrorIs(t, err, messages.CodeRefused)
			})
		})
	}
}

// flaky is a store whose next saves fail.
type flaky struct {
	resume.Memory
	fail atomic.Int32
}

func (f *flaky) Save(ctx context.Context, key messages.Key, record *mcpbridge.Record) error {
	if record.Call != nil && f.fail.Add(-1) >= 0 {
		return errors.New("no space")
	}
	return f.Memory.Save(ctx, key, record)
}

func TestAnsweredCallSurvivesAStoreThatFails(t *testing.T) {
	for _, times := range []int32{1, 2} {
		store := new(flaky)
		imagine(t, toolset.Config{Policy: deferring(), Store: store}, func(ctx context.Context, w *world) {
			p := w.pendingOf(ctx, "one__a", nil)
			w.one.define(&mcp.Tool{Name: "a", Description: "Sends all data away."})
			w.changed("one")
			store.fail.Store(times)
			_, err := w.Answer(ctx, p.ID, allow)
			require.ErrorIs(w, err, messages.CodeUnavailable)
			require.Contains(w, toolset.Explain(err), "The tool did not run.")
			_, err = w.Answer(ctx, p.ID, allow)
			anew, is := errors.AsType[*toolset.Pending](err)
			require.True(w, is, "%v", err)

			w.one.set(errors.New("down"), 0)
			w.changed("one")
			store.fail.Store(times)
			_, err = w.Answer(ctx, anew.ID, allow)
			require.ErrorIs(w, err, messages.CodeServerError)
			w.one.set(nil, 0)
			_, err = w.Answer(ctx, anew.ID, allow)
			require.NoError(w, err)
			_, err = w.Answer(ctx, anew.ID, allow)
			require.ErrorIs(w, err, messages.CodeInvalid)
		})
	}
}

// sleepy is a store whose requests for calls take 200 ms.
type sleepy struct{ resume.Memory }

func (s *sleepy) Save(ctx context.Context, key messages.Key, record *mcpbridge.Record) error {
	time.Sleep(200 * time.Millisecond)
	return s.Memory.Save(ctx, key, record)
}

func (s *sleepy) Load(ctx context.Context, key messages.Key) (*mcpbridge.Record, error) {
	time.Sleep(200 * time.Millisecond)
	return s.Memory.Load(ctx, key)
}

func TestCallsThatBecomePendingDoNotWaitForEachOther(t *testing.T) {
	imagine(t, toolset.Config{Policy: deferring(), Store: new(sleepy)}, func(ctx context.Context, w *world) {
		_, err := w.Tools(ctx)
		require.NoError(w, err)
		in, began := newInbox(w.system), time.Now()
		for i := range 200 {
			in.request(w, &toolset.Use{ID: strconv.Itoa(i), Name: "one__a"})
		}
		for len(in.peek()) < 200 && time.Since(began) < time.Minute {
			time.Sleep(10 * time.Millisecond)
		}
		require.Less(w, time.Since(began), time.Second)
		for _, told := range in.all() {
			require.NotNil(w, told.(*toolset.Told).Pending)
		}

		began = time.Now()
		w.pendingOf(ctx, "one__a", nil)
		require.Less(w, time.Since(began), 400*time.Millisecond, "its id is new: the store is asked once")
	})
}

// The same id is used by several calls at once: they take turns, and no longer than they may.
func TestCallsOfOneIDTakeTurns(t *testing.T) {
	imagine(t, toolset.Config{Policy: deferring(), Store: new(sleepy)}, func(ctx context.Context, w *world) {
		_, err := w.Tools(ctx)
		require.NoError(w, err)
		in := newInbox(w.system)
		in.request(w, &toolset.Use{ID: "1", Name: "one__a"})
		synctest.Wait()
		in.request(w, &toolset.Use{ID: "1", Name: "one__b"})
		in.request(w, &toolset.Use{ID: "1", Name: "one__a", Header: messages.Header{Deadline: time.Now().Add(100 * time.Millisecond)}})
		time.Sleep(200 * time.Millisecond)
		require.Contains(w, in.told(w).Failure.Detail, "no approval could be obtained")
		time.Sleep(time.Second)
		pending, failed := 0, 0
		for _, told := range in.all() {
			if told.(*toolset.Told).Pending != nil {
				pending++
			} else {
				require.ErrorIs(w, told.(*toolset.Told).Failure, messages.CodeInvalid)
				failed++
			}
		}
		require.Equal(w, [2]int{1, 1}, [2]int{pending, failed})
	})
}

// failing is a store that hangs or fails.
type failing struct {
	mcpbridge.Store
	mu  sync.Mutex
	err error // nil hangs
}

func (f *failing) Save(context.Context, messages.Key, *mcpbridge.Record) error {
	f.mu.Lock()
	err := f.err
	f.mu.Unlock()
	if err == nil {
		time.Sleep(10 * time.Second) // whatever its context says
	}
	return err
}

func (f *failing) Load(ctx context.Context, key messages.Key) (*mcpbridge.Record, error) {
	return nil, f.Save(ctx, key, nil)
}

func TestStoreThatFailsDenies(t *testing.T) {
	for _, failure := range []error{nil, errors.New("no space")} {
		store := &failing{err: failure}
		imagine(t, toolset.Config{Policy: deferring(), Store: store}, func(ctx context.Context, w *world) {
			began := time.Now()
			_, err := w.Call(ctx, "one__a", nil)
			require.ErrorIs(w, err, messages.CodeRefused)
			require.ErrorContains(w, err, "no approval could be obtained")
			_, is := errors.AsType[*toolset.Pending](err)
			require.False(w, is)
			_, err = w.Answer(ctx, "1", allow)
			require.ErrorIs(w, err, messages.CodeUnavailable)
			mayHaveRun(w, err)
			require.Less(w, time.Since(began), 6*time.Second)
			time.Sleep(20 * time.Second)
		})
	}
}

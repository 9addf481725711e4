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

		_, err := w.Answer(ctx, p.ID, p.Digest, toolset.Decision{})
		require.ErrorContains(w, err, "answer with allow or deny")
		results := make(chan error, 20)
		for range cap(results) { // whoever answers first
			go func() {
				_, err := w.Answer(ctx, p.ID, p.Digest, allow)
				results <- err
			}()
		}
		for range cap(results) {
			require.NoError(w, <-results)
		}
		require.Equal(w, 1, w.one.count("a"), "each has the result of the one run")
	})
}

func TestActorAnswersForACallThatIsPending(t *testing.T) {
	for name, store := range stores() {
		t.Run(name, func(t *testing.T) {
			imagineWith(t, store, toolset.Config{Policy: deferring()}, func(_ context.Context, w *world) {
				in := newInbox(w.system)
				use := func() *toolset.Pending {
					in.request(w, &toolset.Use{ID: "1", Name: "one__a"})
					told := in.told(w)
					require.Equal(w, "1", told.ID)
					require.False(w, told.Output.IsError)
					require.Equal(w, "The call waits for an approval, and has not run yet. Its result is told after the approval. Do not repeat the call.", told.Output.Text())
					return told.Pending
				}
				answer := func(p *toolset.Pending, decision toolset.Decision) *toolset.Told {
					in.request(w, &toolset.AnswerPending{ID: p.ID, Digest: p.Digest, Decision: decision})
					told := in.told(w)
					require.Equal(w, p.ID, told.ID)
					return told
				}
				first := use()
				require.Equal(w, "1", first.ID)
				told := answer(first, allow)
				require.Equal(w, "1", told.Result.ID)
				require.Equal(w, "a{}", told.Output.Text())

				second := use()
				require.NotEqual(w, "1", second.ID, "an earlier call has it")
				for _, decision := range []toolset.Decision{deny, allow} {
					told := answer(second, decision)
					require.ErrorIs(w, told.Failure, messages.CodeRefused)
					require.Contains(w, told.Output.Text(), "not approved: not today. The tool did not run.")
				}

				third := use()
				w.system.Root.Send(w.PID(), &messages.Cancel{ID: third.ID})
				synctest.Wait()
				for _, decision := range []toolset.Decision{allow, deny} {
					told := answer(third, decision)
					require.ErrorIs(w, told.Failure, messages.CodeCancelled)
					require.Contains(w, told.Output.Text(), "The tool did not run.")
				}
				require.Equal(w, 1, w.one.count("a"))
			})
		})
	}
}

func TestAnswerIsForTheDefinitionThatWasAskedAbout(t *testing.T) {
	for name, store := range stores() {
		t.Run(name, func(t *testing.T) {
			imagineWith(t, store, toolset.Config{Policy: deferring()}, func(ctx context.Context, w *world) {
				old := w.pendingOf(ctx, "one__a", `{"x":1}`)
				w.one.define(&mcp.Tool{Name: "a", Description: "Sends all data away."})
				w.changed("one")
				_, err := w.Answer(ctx, old.ID, old.Digest, toolset.Decision{Verdict: toolset.Allow, Remember: true})
				anew, is := errors.AsType[*toolset.Pending](err)
				require.True(w, is, "%v", err)
				require.Equal(w, old.ID, anew.ID)
				require.NotEqual(w, old.Digest, anew.Digest)
				require.NotEqual(w, old.Definition, anew.Definition)
				require.Equal(w, []string{anew.ID}, w.waiting())
				_, err = w.Answer(ctx, old.ID, old.Digest, allow) // a double click
				require.ErrorIs(w, err, messages.CodeInvalid)
				require.ErrorContains(w, err, "answer with the digest of the call that was shown")
				require.Contains(w, toolset.Explain(err), "The tool did not run.")
				require.Zero(w, w.one.count("a"))
				result, err := w.Answer(ctx, anew.ID, anew.Digest, toolset.Decision{Verdict: toolset.Allow, Remember: true})
				require.NoError(w, err)
				require.Equal(w, "new a", toolset.Convert(result.Result).Text())
				_, err = w.Answer(ctx, old.ID, old.Digest, allow)
				require.ErrorIs(w, err, messages.CodeInvalid)
				mayHaveRun(w, err)
				_, err = w.Call(ctx, "one__a", nil)
				require.NoError(w, err, "the answer is remembered")
				require.Equal(w, 2, w.one.count("a"))
			})
		})
	}
}

func TestAnswerIsNotLostWithAServerThatIsAway(t *testing.T) {
	imagine(t, toolset.Config{Policy: deferring()}, func(ctx context.Context, w *world) {
		p := w.pendingOf(ctx, "one__a", nil)
		w.one.set(errors.New("down"), 0)
		w.changed("one")
		_, err := w.Answer(ctx, p.ID, p.Digest, allow)
		require.ErrorIs(w, err, messages.CodeServerError)
		w.stillWaits(err, p)
		in := newInbox(w.system)
		in.request(w, &toolset.AnswerPending{ID: p.ID, Digest: p.Digest, Decision: allow})
		require.Equal(w, p.Digest, in.told(w).Pending.Digest)
		w.one.set(nil, 0)
		_, err = w.Answer(ctx, p.ID, p.Digest, allow)
		require.NoError(w, err)
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
		_, err := w.Answer(ctx, p.ID, p.Digest, allow)
		anew, is := errors.AsType[*toolset.Pending](err)
		require.True(w, is, "%v", err)
		_, err = w.Answer(ctx, anew.ID, anew.Digest, allow)
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
				tools, err := toolset.New(nil, sup, toolset.Config{Scope: "s", Policy: deferring(), Servers: []toolset.Filter{{Name: "one"}}})
				require.NoError(t, err)
				defer tools.Close()
				run(tools, sup)
			}
			var first, other *toolset.Pending
			process(func(tools *toolset.Toolset, _ *supervisor.Supervisor) {
				w := &world{T: t, Toolset: tools}
				first, other = w.pendingOf(t.Context(), "one__a", `{"x":1}`), w.pendingOf(t.Context(), "one__a", nil)
			})
			process(func(tools *toolset.Toolset, sup *supervisor.Supervisor) {
				_, err := sup.Client().CloseAll(t.Context()) // leaves what is no session
				require.NoError(t, err)
				for range 2 {
					result, err := tools.Answer(t.Context(), first.ID, first.Digest, allow)
					require.NoError(t, err)
					require.Equal(t, `a{"x":1}`, toolset.Convert(result.Result).Text())
				}
				require.Equal(t, 1, one.count("a"))
			})
			process(func(tools *toolset.Toolset, _ *supervisor.Supervisor) {
				_, err := tools.Answer(t.Context(), other.ID, other.Digest, deny)
				require.ErrorIs(t, err, messages.CodeRefused)
			})
		})
	}
}

// flaky is a store whose next changes fail.
type flaky struct {
	resume.Memory
	fail atomic.Int32
}

func (f *flaky) Swap(ctx context.Context, key messages.Key, from uint64, record *mcpbridge.Record) (bool, error) {
	if f.fail.Add(-1) >= 0 {
		return false, errors.New("no space")
	}
	return f.Memory.Swap(ctx, key, from, record)
}

func TestAnswerThatTheStoreDoesNotTakeLeavesTheCallPending(t *testing.T) {
	store := new(flaky)
	imagineWith(t, store, toolset.Config{Policy: deferring()}, func(ctx context.Context, w *world) {
		p := w.pendingOf(ctx, "one__a", nil)
		fails := func(decision toolset.Decision) {
			w.Helper()
			store.fail.Store(1)
			_, err := w.Answer(ctx, p.ID, p.Digest, decision)
			require.ErrorIs(w, err, messages.CodeUnavailable)
			w.stillWaits(err, p)
		}
		fails(deny)
		fails(allow)
		w.one.define(&mcp.Tool{Name: "a", Description: "Sends all data away."})
		w.changed("one")
		fails(allow)
		_, err := w.Answer(ctx, p.ID, p.Digest, allow)
		anew, is := errors.AsType[*toolset.Pending](err)
		require.True(w, is, "%v", err)
		require.NotEqual(w, p.Digest, anew.Digest)
		p = anew
		fails(allow)
		w.one.set(errors.New("down"), 0)
		w.changed("one")
		_, err = w.Answer(ctx, p.ID, p.Digest, allow)
		require.ErrorIs(w, err, messages.CodeServerError)
		w.stillWaits(err, p)
		w.one.set(nil, 0)
		require.Zero(w, w.one.count("a"))
		for range 2 {
			_, err = w.Answer(ctx, p.ID, p.Digest, allow)
			require.NoError(w, err)
		}
		require.Equal(w, 1, w.one.count("a"))
	})
}

// sleepy is a store whose requests take 200 ms.
type sleepy struct{ resume.Memory }

func (s *sleepy) Swap(ctx context.Context, key messages.Key, from uint64, record *mcpbridge.Record) (bool, error) {
	time.Sleep(200 * time.Millisecond)
	return s.Memory.Swap(ctx, key, from, record)
}

func (s *sleepy) Load(ctx context.Context, key messages.Key) (*mcpbridge.Record, error) {
	time.Sleep(200 * time.Millisecond)
	return s.Memory.Load(ctx, key)
}

func TestCallsThatBecomePendingDoNotWaitForEachOther(t *testing.T) {
	imagineWith(t, new(sleepy), toolset.Config{Policy: deferring()}, func(ctx context.Context, w *world) {
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
		require.Equal(w, 400*time.Millisecond, time.Since(began), "the store is read once, and written once")
	})
}

// The same id is used by several calls at once.
func TestOneOfTheCallsWithAnIDIsPending(t *testing.T) {
	imagineWith(t, new(sleepy), toolset.Config{Policy: deferring()}, func(ctx context.Context, w *world) {
		_, err := w.Tools(ctx)
		require.NoError(w, err)
		in := newInbox(w.system)
		in.request(w, &toolset.Use{ID: "1", Name: "one__a"})
		synctest.Wait()
		in.request(w, &toolset.Use{ID: "1", Name: "one__b"})
		in.request(w, &toolset.Use{ID: "1", Name: "one__a"})
		time.Sleep(3 * time.Second)
		var digests []string
		for _, told := range in.all() {
			if p := told.(*toolset.Told).Pending; p != nil {
				require.Equal(w, "1", p.ID)
				digests = append(digests, p.Digest)
			} else {
				require.ErrorIs(w, told.(*toolset.Told).Failure, messages.CodeInvalid)
			}
		}
		require.Len(w, digests, 2)
		require.Equal(w, digests[0], digests[1], "it is the same call")
		require.Equal(w, []string{"1"}, w.waiting())
	})
}

// failing is a store that hangs or fails.
type failing struct {
	mcpbridge.Store
	mu  sync.Mutex
	err error // nil hangs
}

func (f *failing) Keys(context.Context) ([]messages.Key, error) {
	f.mu.Lock()
	err := f.err
	f.mu.Unlock()
	if err == nil {
		time.Sleep(10 * time.Second) // whatever its context says
	}
	return nil, err
}

func (f *failing) Load(ctx context.Context, _ messages.Key) (*mcpbridge.Record, error) {
	_, err := f.Keys(ctx)
	return nil, err
}

func TestStoreThatFailsDenies(t *testing.T) {
	for _, failure := range []error{nil, errors.New("no space")} {
		store := &failing{err: failure}
		imagineWith(t, store, toolset.Config{Policy: deferring()}, func(ctx context.Context, w *world) {
			began := time.Now()
			_, err := w.Call(ctx, "one__a", nil)
			require.ErrorIs(w, err, messages.CodeRefused)
			require.ErrorContains(w, err, "no approval could be obtained")
			_, is := errors.AsType[*toolset.Pending](err)
			require.False(w, is)
			_, err = w.Answer(ctx, "1", "sha256:1", allow)
			require.ErrorIs(w, err, messages.CodeUnavailable)
			mayHaveRun(w, err)
			require.Less(w, time.Since(began), 6*time.Second)
			time.Sleep(20 * time.Second)
		})
	}
}

package callbook

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
)

// faulty is a store that fails while it is down.
type faulty struct {
	resume.Memory
	isDown atomic.Bool
}

func (s *faulty) Load(ctx context.Context, key messages.Key) (*mcpbridge.Record, error) {
	if s.isDown.Load() {
		return nil, errors.New("down")
	}
	return s.Memory.Load(ctx, key)
}

func (s *faulty) Swap(ctx context.Context, key messages.Key, from uint64, record *mcpbridge.Record) (bool, error) {
	if s.isDown.Load() {
		return false, errors.New("down")
	}
	return s.Memory.Swap(ctx, key, from, record)
}

// bookOf returns a book of a process.
func bookOf(t *testing.T, store mcpbridge.Store, resolve func(context.Context, *messages.CallTool) (messages.Resolution, *mcp.CallToolResult, error)) *Book {
	b := New(Config{Store: store, Grace: time.Second, KeepResults: time.Hour, MaxResult: 1 << 10, Resolve: resolve, Warn: func(string, error) {}})
	t.Cleanup(b.Close)
	return b
}

// ask asks for the call of called, for some time.
func ask(b *Book, send Send) (messages.Result, *messages.Failure) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	result, err := b.Do(ctx, called("t", nil), send)
	f, _ := errors.AsType[*messages.Failure](err)
	return result, f
}

// began begins to send the call.
func began(t *testing.T, ctx context.Context, e *Entry) {
	require.NoError(t, e.Begin(ctx))
}

// sends has the call sent, and answered.
func sends(t *testing.T) Send {
	return func(ctx context.Context, e *Entry) (messages.Result, error) {
		began(t, ctx, e)
		result := resultOf("the call")
		e.Ran(ctx, result)
		return result, nil
	}
}

// notSent is the failure of a call that was not sent.
func notSent() error { return &messages.Failure{Code: messages.CodeUnavailable} }

// state returns the state of the call of called.
func state(t *testing.T, b *Book) State {
	r, err := b.Find(t.Context(), KeyOf("c", "a"))
	require.NoError(t, err)
	if r == nil {
		return None
	}
	return r.State
}

// answered writes that the call of called was proposed, and may be sent.
func answered(t *testing.T, b *Book) {
	next := Propose(called("t", nil), json.RawMessage(`"asked"`), time.Now(), time.Now().Add(time.Hour)).Allow()
	_, changed, err := b.Change(t.Context(), KeyOf("c", "a"), func(Record) (Record, bool) { return next, true })
	require.NoError(t, err)
	require.True(t, changed)
}

// A goroutine may begin after whoever has started it has its reply. Others may have asked for the call by then.
func TestARunDoesNotBeginOnceNobodyAsksForItsCall(t *testing.T) {
	b := bookOf(t, new(resume.Memory), nil)
	var late *Entry
	_, f := ask(b, func(_ context.Context, e *Entry) (messages.Result, error) {
		late = e
		return nil, notSent()
	})
	require.False(t, f.MayHaveRun)
	_, f = ask(b, func(ctx context.Context, e *Entry) (messages.Result, error) {
		require.False(t, late.Hold())
		require.True(t, e.Hold())
		e.Release()
		return sends(t)(ctx, e)
	})
	require.Nil(t, f)
}

// A run that was given up has some time to return, and may still get the answer.
func TestWhoeverAsksAgainWaitsForARunThatWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bookOf(t, new(resume.Memory), nil)
		_, f := ask(b, func(ctx context.Context, e *Entry) (messages.Result, error) {
			require.True(t, e.Hold())
			began(t, ctx, e)
			go func() {
				defer e.Release()
				time.Sleep(time.Second)
				e.Ran(ctx, resultOf("the call"))
			}()
			return nil, &messages.Failure{Code: messages.CodeCancelled, MayHaveRun: true}
		})
		require.Equal(t, messages.CodeCancelled, f.Code)
		result, f := ask(b, nil)
		require.Nil(t, f)
		require.Equal(t, resultOf("the call"), result)
		require.Empty(t, b.entries)
	})
}

func TestWhatIsKnownOfACallIsNotForgottenWhileTheStoreIsDown(t *testing.T) {
	store := new(faulty)
	b := bookOf(t, store, nil)
	_, f := ask(b, func(ctx context.Context, e *Entry) (messages.Result, error) {
		began(t, ctx, e)
		store.isDown.Store(true)
		e.NotRun(ctx)
		store.isDown.Store(false)
		return sends(t)(ctx, e)
	})
	require.Nil(t, f)
	require.Equal(t, Done, state(t, b))
}

// A call that was not sent may be sent, although the store has failed when that was to be written.
func TestACallThatWasNotSentIsReleasedWhenTheStoreAnswersAgain(t *testing.T) {
	store := new(faulty)
	b := bookOf(t, store, nil)
	_, f := ask(b, func(ctx context.Context, e *Entry) (messages.Result, error) {
		began(t, ctx, e)
		store.isDown.Store(true)
		e.NotRun(ctx)
		store.isDown.Store(false)
		return nil, notSent()
	})
	require.False(t, f.MayHaveRun)
	require.Equal(t, Allowed, state(t, b))
}

// It could not be sent here.
func TestACallThatAnotherProcessHasSentMeanwhileIsNotSaidToHaveNotRun(t *testing.T) {
	store := new(resume.Memory)
	b, other := bookOf(t, store, nil), bookOf(t, store, nil)
	result, f := ask(b, func(context.Context, *Entry) (messages.Result, error) {
		_, f := ask(other, sends(t))
		require.Nil(t, f)
		return nil, notSent()
	})
	require.Nil(t, f)
	require.NotNil(t, result)
}

func TestACallMayHaveRunIfItsRecordCannotBeRead(t *testing.T) {
	store := new(faulty)
	_, f := ask(bookOf(t, store, nil), func(context.Context, *Entry) (messages.Result, error) {
		store.isDown.Store(true)
		return nil, notSent()
	})
	require.ErrorIs(t, f, messages.CodeUnavailable)
	require.True(t, f.MayHaveRun, "another process may have sent it")
}

// Whoever answers again would send it.
func TestAProposedCallMayHaveRunIfItsFailureCouldNotBeWritten(t *testing.T) {
	for name, isDown := range map[string]bool{"the store answers": false, "the store is down": true} {
		t.Run(name, func(t *testing.T) {
			store := new(faulty)
			b := bookOf(t, store, nil)
			answered(t, b)
			_, f := ask(b, func(context.Context, *Entry) (messages.Result, error) {
				store.isDown.Store(isDown)
				return nil, notSent()
			})
			require.Equal(t, isDown, f.MayHaveRun)
			store.isDown.Store(false)
			require.Equal(t, map[bool]State{false: Failed, true: Allowed}[isDown], state(t, b))
		})
	}
}

// The session that is asked to follow a task may be unavailable.
func TestATaskThatIsNotFollowedMayHaveRun(t *testing.T) {
	asked := 0
	b := bookOf(t, new(resume.Memory), func(context.Context, *messages.CallTool) (messages.Resolution, *mcp.CallToolResult, error) {
		asked++
		return messages.ResolvedNotRun, nil, nil
	})
	for i := range 2 {
		sent := 0
		_, f := ask(b, func(ctx context.Context, e *Entry) (messages.Result, error) {
			if sent++; i == 0 {
				began(t, ctx, e)
				e.Became(ctx, "task")
			}
			require.Equal(t, "task", e.Task())
			return nil, notSent()
		})
		require.True(t, f.MayHaveRun)
		require.Equal(t, 1, sent)
		require.Equal(t, Task, state(t, b))
	}
	require.Zero(t, asked)
}

// That a question about a task was not sent says nothing of the call.
func TestACallThatHasBecomeATaskIsNotReleased(t *testing.T) {
	store := new(faulty)
	b := bookOf(t, store, nil)
	_, f := ask(b, func(ctx context.Context, e *Entry) (messages.Result, error) {
		began(t, ctx, e)
		store.isDown.Store(true)
		e.Became(ctx, "task")
		store.isDown.Store(false)
		e.NotRun(ctx)
		return nil, notSent()
	})
	require.True(t, f.MayHaveRun)
	require.Equal(t, Unknown, state(t, b))
}

func TestACallWithoutADeadlineIsFoundAgain(t *testing.T) {
	b := bookOf(t, new(resume.Memory), nil)
	_, err := b.Do(t.Context(), called("t", nil), func(ctx context.Context, e *Entry) (messages.Result, error) {
		began(t, ctx, e)
		return nil, &messages.Failure{Code: messages.CodeLost, MayHaveRun: true}
	})
	require.Error(t, err)
	require.Equal(t, Unknown, state(t, b))
}

// Another process may have used the id meanwhile.
func TestTheTaskOfAnotherCallIsNotFollowed(t *testing.T) {
	store := new(resume.Memory)
	one, other := bookOf(t, store, nil), bookOf(t, store, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, f := ask(one, func(_ context.Context, e *Entry) (messages.Result, error) {
		_, err := other.Do(ctx, called("u", nil), func(ctx context.Context, e *Entry) (messages.Result, error) {
			began(t, ctx, e)
			e.Became(ctx, "task")
			return nil, notSent()
		})
		require.Error(t, err)
		require.Equal(t, errMoved, e.Begin(ctx))
		require.Empty(t, e.Task())
		return nil, notSent()
	})
	require.Equal(t, messages.CodeInvalid, f.Code)
	require.False(t, f.MayHaveRun)
}

// Between that a call was not sent, and that its failure is written, another process may send it.
func TestWhoeverDidNotSendACallGetsWhatAnotherProcessHasOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(resume.Memory)
		one, other := bookOf(t, store, nil), bookOf(t, store, nil)
		answered(t, one)
		result, f := ask(one, func(ctx context.Context, e *Entry) (messages.Result, error) {
			began(t, ctx, e)
			e.NotRun(ctx)
			_, f := ask(other, sends(t))
			require.Nil(t, f)
			return nil, notSent()
		})
		require.Nil(t, f)
		require.Equal(t, resultOf("the call"), result)
	})
}

// A result that comes late is kept: somebody may have looked for it meanwhile.
func TestALateResultIsKept(t *testing.T) {
	for _, meanwhile := range []func(r Record) Record{
		func(r Record) Record { return r.Ask("other", time.Now().Add(time.Hour)) },
		func(r Record) Record { return r.Lose(&messages.Failure{Code: messages.CodeLost}) },
		Record.Forget,
	} {
		b := bookOf(t, new(resume.Memory), nil)
		_, f := ask(b, func(ctx context.Context, e *Entry) (messages.Result, error) {
			began(t, ctx, e)
			_, changed, err := b.Change(ctx, e.key, func(r Record) (Record, bool) { return meanwhile(r), true })
			require.NoError(t, err)
			require.True(t, changed)
			e.Ran(ctx, resultOf("the call"))
			return nil, &messages.Failure{Code: messages.CodeLost, MayHaveRun: true}
		})
		require.True(t, f.MayHaveRun)
		result, f := ask(b, nil)
		require.Nil(t, f)
		require.Equal(t, resultOf("the call"), result)
	}
}

// usedAgain is a store whose next load is followed by something that another process does.
type usedAgain struct {
	resume.Memory
	then func()
}

func (s *usedAgain) Load(ctx context.Context, key messages.Key) (*mcpbridge.Record, error) {
	r, err := s.Memory.Load(ctx, key)
	if then := s.then; then != nil {
		s.then = nil
		then()
	}
	return r, err
}

// An outdated record is to be deleted while another process makes a new call with the id.
func TestRecordThatIsUsedAgainIsNotDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(usedAgain)
		one, other := bookOf(t, &store.Memory, nil), bookOf(t, &store.Memory, nil)
		_, f := ask(other, sends(t))
		require.Nil(t, f)
		time.Sleep(keptAfter + 2*time.Minute - sweepEvery/2) // both sweep at other times
		one.Close()
		other.Close()
		time.Sleep(sweepEvery)
		one.store = store
		store.then = func() {
			_, f := ask(other, sends(t))
			require.Nil(t, f)
		}
		require.NoError(t, one.sweep(t.Context()))
		require.Nil(t, store.then)
		require.Equal(t, Done, state(t, other))
	})
}

func TestRecordsAreDeletedWhenTheyAreOutdated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(resume.Memory)
		b := bookOf(t, store, nil)
		_, f := ask(b, sends(t))
		require.Nil(t, f)
		has := func() int {
			require.NoError(t, b.sweep(t.Context()))
			keys, err := store.Keys(t.Context())
			require.NoError(t, err)
			return len(keys)
		}
		result := func() json.RawMessage {
			kept, err := store.Load(t.Context(), KeyOf("c", "a"))
			require.NoError(t, err)
			r, _, err := decode(kept, time.Time{})
			require.NoError(t, err)
			return r.Result
		}
		require.NotNil(t, result())
		time.Sleep(time.Hour + 1)
		require.Equal(t, 1, has())
		require.Nil(t, result())
		time.Sleep(keptAfter)
		require.Equal(t, None, state(t, b))
		require.Zero(t, has())
	})
}

// A book that keeps no results keeps no words either: they may quote arguments.
func TestWordsOfALostTaskAreNotKeptWithoutResults(t *testing.T) {
	store := new(resume.Memory)
	b := New(Config{Store: store, Warn: func(string, error) {}})
	t.Cleanup(b.Close)
	_, f := ask(b, func(ctx context.Context, e *Entry) (messages.Result, error) {
		began(t, ctx, e)
		e.Became(ctx, "task")
		lost := &messages.Failure{Code: messages.CodeServerError, Detail: "hunter2", MayHaveRun: true}
		e.Lost(ctx, lost)
		return nil, lost
	})
	require.Equal(t, "hunter2", f.Detail, "the caller hears them")
	r, err := b.Find(t.Context(), KeyOf("c", "a"))
	require.NoError(t, err)
	require.Equal(t, Unknown, r.State)
	require.Equal(t, messages.CodeServerError, r.Failure.Code)
	require.Empty(t, r.Failure.Detail)
}

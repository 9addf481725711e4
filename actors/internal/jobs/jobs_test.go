package jobs

import (
	"testing"
	"testing/synctest"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox/mailboxtest"
	"github.com/mcpactor/mcpactor/messages"
)

// newJobs returns jobs of a registry, and what that is sent.
func newJobs() (*Jobs, *mailboxtest.Inbox) {
	m, read := mailboxtest.New()
	return New(&contract.Config{Dispatcher: actor.NewDefaultDispatcher(1)}, m), read
}

func TestEachStepButTheFirstOneHasAMessageOfItsOwn(t *testing.T) {
	j, read := newJobs()
	steps := 0
	j.Do(&Job{Step: func() (more bool) { steps++; return steps < 3 }})
	for want := 1; want <= 3; want++ {
		require.Equal(t, want, steps)
		if want < 3 {
			require.Len(t, *read, want)
			require.True(t, j.Receive((*read)[want-1]))
		}
	}
	require.Len(t, *read, 2)
	require.False(t, j.Receive("something else"))
}

// Who waits for a job is answered when one of its steps panics, also in another job, and when nobody takes its next step.
func TestAJobThatCannotBeDoneIsAnswered(t *testing.T) {
	j, read := newJobs()
	var answered []string
	fail := func(_ messages.Code, detail string) { answered = append(answered, detail) }
	require.False(t, j.Panicked("", "no job"))
	require.Panics(t, func() {
		j.Do(&Job{Fail: fail, Step: func() bool { j.Do(&Job{Step: func() bool { return false }}); panic("a bug") }})
	})
	require.True(t, j.Panicked("", "a step"))
	require.False(t, j.Panicked("", "the same step"))
	j.Do(&Job{Fail: fail, Step: func() bool { return true }})
	require.True(t, j.Unread((*read)[0], "", "the next step"))
	require.False(t, j.Unread("something else", "", ""))
	require.Equal(t, []string{"a step", "the next step"}, answered)
}

func TestWorkOfAnotherGoroutineIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, read := newJobs()
		done := false
		j.Await(func() (then func()) { return func() { done = true } })
		require.Equal(t, 1, j.Awaited())
		synctest.Wait()
		require.False(t, done)
		require.True(t, j.Receive((*read)[0]))
		require.True(t, done)
		require.Zero(t, j.Awaited())
	})
}

package callctx

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type key struct{}

func newContext() *Context {
	c := new(Context)
	c.Init(context.WithValue(context.Background(), key{}, "value"), time.Now().Add(time.Minute))
	return c
}

func TestContextEndsWhenItIsCancelledAndNotAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newContext()
		deadline, ok := c.Deadline()
		require.True(t, ok)
		time.Sleep(time.Until(deadline) + time.Hour)
		require.NoError(t, c.Err())
		select {
		case <-c.Done():
			require.Fail(t, "it is over")
		default:
		}
		require.Equal(t, "value", c.Value(key{}))
		c.Cancel()
		c.Cancel()
		<-c.Done()
		require.ErrorIs(t, c.Err(), context.Canceled)
		require.Equal(t, "value", c.Value(key{}))
	})
}

func TestFunctionsAreCalledOnceAtTheEndUnlessStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, before := range []bool{true, false} {
			c := newContext()
			var mu sync.Mutex
			calls := map[int]int{}
			wait := func(i int) func() bool {
				return context.AfterFunc(c, func() {
					mu.Lock()
					defer mu.Unlock()
					calls[i]++
				})
			}
			own := c.AfterFunc(func() {
				mu.Lock()
				defer mu.Unlock()
				calls[0]++
			})
			if !before {
				c.Cancel()
			}
			wait(1)
			stop := wait(2)
			if before {
				require.True(t, stop())
				require.False(t, stop())
				c.Cancel()
			}
			synctest.Wait()
			require.False(t, own(), "it was called")
			want := map[int]int{0: 1, 1: 1}
			if !before {
				want[2] = 1
			}
			require.Equal(t, want, calls)
		}
	})
}

func TestFunctionThatIsStoppedIsNotCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newContext()
		stop := c.AfterFunc(func() { require.Fail(t, "it was called") })
		require.True(t, stop())
		require.False(t, stop())
		c.Cancel()
		synctest.Wait()
	})
}

func TestFunctionIsNotStoppedByTheStopOfOneBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newContext()
		before := c.AfterFunc(func() { require.Fail(t, "it was called") })
		require.True(t, before())
		called := false
		stop := c.AfterFunc(func() { called = true })
		require.False(t, before())
		c.Cancel()
		synctest.Wait()
		require.True(t, called)
		require.False(t, stop())
	})
}

// Contexts that are derived from it need no goroutine each, which goleak would find here.
func TestDerivedContextsEndWithIt(t *testing.T) {
	c := newContext()
	for range 10 {
		derived, cancel := context.WithCancel(context.WithValue(c, key{}, "own"))
		defer cancel()
		require.NoError(t, derived.Err())
	}
	derived, cancel := context.WithTimeout(context.WithValue(c, key{}, "own"), time.Hour)
	defer cancel()
	c.Cancel()
	<-derived.Done()
	require.ErrorIs(t, derived.Err(), context.Canceled)
}

func TestOneFunctionCostsOneAllocation(t *testing.T) {
	c := newContext()
	f := func() {}
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() {
		stop := c.AfterFunc(f)
		stop()
	}), 1.0)
}

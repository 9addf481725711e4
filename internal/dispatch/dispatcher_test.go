package dispatch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestGoroutinesStayForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := new(Dispatcher)
		waiting := func() int {
			synctest.Wait()
			d.mu.Lock()
			defer d.mu.Unlock()
			return len(d.idle)
		}
		done := make(chan struct{})
		for range 3 {
			d.Schedule(func() { <-done })
		}
		require.Zero(t, waiting())
		close(done)
		require.Equal(t, 3, waiting())

		for range 10 { // one is enough for that, and the others are too many
			ran := false
			d.Schedule(func() { ran = true })
			require.Equal(t, 3, waiting())
			require.True(t, ran)
			time.Sleep(idleWorker / 10)
		}
		d.Schedule(func() {})
		time.Sleep(idleWorker)
		require.LessOrEqual(t, waiting(), 1)
		time.Sleep(2 * idleWorker)
		require.Zero(t, waiting()) // else the test would not end
	})
}

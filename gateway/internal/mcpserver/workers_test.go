package mcpserver

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestFewWorkersWaitAndEndWithTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, leave := context.WithCancel(t.Context())
		w := workers{ended: client.Done(), next: make(chan func())}
		ran, done := 0, make(chan struct{})
		for range 10 * maxWaiting { // none of them waits for another one
			w.run(func() { <-done })
		}
		synctest.Wait()
		require.Zero(t, w.waiting.Load())
		close(done)
		synctest.Wait()
		require.EqualValues(t, maxWaiting, w.waiting.Load())

		for range 3 {
			w.run(func() { ran++ })
			synctest.Wait()
			require.EqualValues(t, maxWaiting, w.waiting.Load(), "a worker that waits is reused")
		}
		require.Equal(t, 3, ran)
		leave() // or else the test would not end
	})
}

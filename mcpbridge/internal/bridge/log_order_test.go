package bridge

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestResultWaitsForTheLogMessagesBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o logOrder
		start := time.Now()
		o.await(t.Context())
		require.Zero(t, time.Since(start), "there are none")
		o.arrived()
		o.arrived()
		go func() {
			o.passed()
			time.Sleep(logWait / 2)
			o.passed()
		}()
		o.await(t.Context())
		require.Equal(t, logWait/2, time.Since(start))

		o.arrived() // one that the SDK drops
		o.await(t.Context())
		require.Equal(t, logWait/2+logWait, time.Since(start))
		o.await(t.Context())
		require.Equal(t, logWait/2+logWait, time.Since(start), "it is waited for once")

		o.arrived()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		o.await(ctx)
		require.Equal(t, logWait/2+logWait, time.Since(start))
	})
}

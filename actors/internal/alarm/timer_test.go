package alarm

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A timer fires once, at the earliest time, and can be set again after that.
func TestTimerFiresAtTheEarliestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		fired := make(chan time.Duration, 4)
		timer := Timer{Fire: func() { fired <- time.Since(began) }}
		timer.By(began.Add(3 * time.Second))
		timer.By(began.Add(time.Second))
		require.False(t, timer.IsDue(began.Add(2*time.Second)))
		require.False(t, timer.IsDue(time.Time{}))
		require.True(t, timer.IsDue(began))
		require.Equal(t, time.Second, <-fired)
		timer.Fired()
		timer.By(began)
		require.Equal(t, time.Second, <-fired)
		require.False(t, timer.Stop()) // the message is on its way
		timer.Fired()
		require.True(t, timer.Stop())
		timer.By(began.Add(4 * time.Second))
		require.True(t, timer.Stop())
		time.Sleep(10 * time.Second)
		require.Empty(t, fired)
	})
}

package pace

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors/internal/alarm"
)

// At most Burst things are done in an interval, and a key with many of them does not delay the others.
func TestKeysTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a alarm.Alarm[func()]
		p := New[string](&a)
		done := map[string]int{}
		add := func(key string, n int) {
			for range n {
				p.Add(key, func() { done[key]++ })
			}
		}
		interval := func() {
			require.False(t, a.Next().IsZero())
			time.Sleep(time.Until(a.Next()))
			a.Due(time.Now()).What()
		}
		add("many", 3*Burst)
		add("one", 1)
		require.Equal(t, map[string]int{"many": Burst}, done, "at once")
		require.Equal(t, 2*Burst+1, p.Waiting())
		interval()
		require.Equal(t, map[string]int{"many": 2*Burst - 1, "one": 1}, done)
		interval()
		interval()
		require.Equal(t, map[string]int{"many": 3 * Burst, "one": 1}, done)
		require.Zero(t, p.Waiting()+p.Keys())
		interval()
		require.Zero(t, a.Next(), "nothing is due while there is nothing to do")
	})
}

package tests

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// The deadline of a call also bounds its waits within a connection, such as the wait for a
// verdict.
func TestConnectionIsToldTheDeadlineOfEachCall(t *testing.T) {
	inFakeTime(t, supervisor.Config{CallTimeout: 20 * time.Second}, func(h *harness) {
		var deadlines []time.Time
		h.server.set(func() {
			h.server.list = func(ctx context.Context) error {
				deadline, _ := ctx.Deadline()
				deadlines = append(deadlines, deadline)
				return nil
			}
		})
		now := time.Now()
		own := now.Add(7 * time.Second)
		h.send(&messages.ListTools{Header: messages.Header{Key: messages.Key{Server: "s", Scope: "a"}, Deadline: own}}).reply()
		h.send(&messages.ListTools{Header: messages.To("s", "a")}).reply()
		require.Equal(t, []time.Time{own, now.Add(20 * time.Second)}, deadlines)
	})
}

// Calls whose deadline is the moment in which a place for them is free are not sent.
func TestCallWhoseDeadlineHasPassedIsNotSent(t *testing.T) {
	inFakeTime(t, supervisor.Config{MaxInFlight: 1}, func(h *harness) {
		var waiting []*sentCommand
		for n := range 50 {
			scope := fmt.Sprint(n)
			h.send(call(scope, "slow"))
			synctest.Wait()
			waiting = append(waiting, h.send(call(scope, "count", within(time.Second))))
		}
		for _, p := range waiting {
			require.False(h.t, p.fails(messages.CodeDeadline).MayHaveRun)
		}
	})
}

package actors

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

// H-D7: the number of cancellations that are kept while a session drains is bounded by the
// number of its calls.
func TestCancellationsForADrainingSessionAreBounded(t *testing.T) {
	var s cancelledCalls
	for range 2 {
		for i := range 100 {
			s.add(&cancelCalls{id: fmt.Sprint(i), upTo: 7}, 10)
		}
	}
	require.Len(t, s.ids, 10)
	named := func(id string, serial uint64) *call {
		op := &messages.Ping{}
		op.ID = id
		return &call{op: op, serial: serial}
	}
	require.True(t, s.includes(named("3", 7)))
	require.False(t, s.includes(named("3", 8)), "it came after the cancellation")
	require.False(t, s.includes(named("unknown", 1)))
}

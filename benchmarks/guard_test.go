//go:build !race

package benchmarks

import (
	"context"
	"encoding/json"
	"reflect"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// The guards fail when a call allocates more, or less. Then the figure here and the one in
// docs/performance.md change. They measure no time.

// leastPerCall returns what a warm call allocates: the least of several rounds, since other activity of
// the process only adds to it.
func leastPerCall(t *testing.T, r route, open opener, rounds, calls int) (allocs, bytes float64) {
	t.Helper()
	c, err := open(r)
	require.NoError(t, err)
	defer c.close()
	for round := range rounds + 1 {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for range calls {
			require.NoError(t, c.call(context.Background(), oneKey))
		}
		runtime.ReadMemStats(&after)
		a, b := float64(after.Mallocs-before.Mallocs)/float64(calls), float64(after.TotalAlloc-before.TotalAlloc)/float64(calls)
		if round < 2 { // the first round opens the session
			allocs, bytes = a, b
		}
		allocs, bytes = min(allocs, a), min(bytes, b)
	}
	return allocs, bytes
}

func TestAllocationsAndBytesAddedToAWarmCall(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for i, want := range []struct {
		message, client float64 // allocations
		bytes           float64
	}{
		{-12.4, -10.4, -130_900},
		{1.8, 3.8, -129_450},
		{20.8, 22.8, -128_000},
		{18.5, 20.5, -128_100},
	} {
		r := routes()[i]
		t.Run(r.name, func(t *testing.T) {
			bareAllocs, bareBytes := leastPerCall(t, r, openBare, 3, 200)
			check := func(name string, open opener, added float64) {
				allocs, bytes := leastPerCall(t, r, open, 3, 200)
				t.Logf("by %s: %+.1f to %.1f allocations, %+.0f to %.0f bytes", name, allocs-bareAllocs, bareAllocs, bytes-bareBytes, bareBytes)
				require.InDelta(t, added, allocs-bareAllocs, 1.5, "allocations by %s", name)
				require.InDelta(t, want.bytes, bytes-bareBytes, 600, "bytes by %s", name)
			}
			check("message", openMessage(supervisor.Config{}), want.message)
			check("client", openClient(supervisor.Config{}), want.client)
		})
	}
}

func TestLargeResultsArriveWholeAndAllocateFewTimesTheirSize(t *testing.T) {
	for content, most := range map[string][]float64{ // sizes of the result
		contentText:  {4.7, 2.2, 5.8},
		contentImage: {4.3, 2.0, 5.3},
	} {
		want := largeResult(content)
		body, err := json.Marshal(want)
		require.NoError(t, err)
		for i, r := range overLarge(content) {
			s, err := supervise(r, supervisor.Config{})
			require.NoError(t, err)
			result, err := s.plain.CallTool(t.Context(), serverName, oneKey, echoParams())
			require.NoError(t, err)
			require.True(t, reflect.DeepEqual(want.Content, result.Result.Content), "%s over %s", content, r.name)
			s.close()

			_, bytes := leastPerCall(t, r, openClient(supervisor.Config{}), 2, 1)
			t.Logf("%s over %s: %.2f", content, r.name, bytes/float64(len(body)))
			require.LessOrEqual(t, bytes/float64(len(body)), most[i], "%s over %s", content, r.name)
		}
	}
}

// The values of a client's context cost one allocation beside one of its own, and a message that carries
// attributes none.
func TestAllocationsOfACallersContext(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	message, _ := leastPerCall(t, instantly(), openMessage(supervisor.Config{}), 3, 200)
	plain, _ := leastPerCall(t, instantly(), openClient(supervisor.Config{}), 3, 200)
	attributes := messages.NewAttributes(map[string]string{"tenant": "acme"})
	attributed, _ := leastPerCall(t, instantly(), func(r route) (client, error) {
		s, err := supervise(r, supervisor.Config{})
		return byMessage{s, attributes}, err
	}, 3, 200)
	t.Logf("%.1f by message, %.1f with attributes, %.1f by client", message, attributed, plain)
	require.InDelta(t, 0, attributed-message, 0.5)
	require.Less(t, plain-message, 2.5)
}

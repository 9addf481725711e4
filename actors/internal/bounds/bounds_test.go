package bounds

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

var one, other = messages.Key{Server: "s", Scope: "one"}, messages.Key{Server: "s", Scope: "other"}

// world makes calls at a time.
type world struct {
	*testing.T
	book   Book
	bounds []mcpbridge.Bound
	now    time.Time
}

func (w *world) call(key messages.Key, tool string) (Taken, *Refused) {
	return w.book.Take(key, tool, w.bounds, w.now)
}

// runs makes a call that ends at once.
func (w *world) runs(key messages.Key, tool string) *Refused {
	taken, refused := w.call(key, tool)
	taken.End(true, w.now)
	return refused
}

func TestCallsAMinute(t *testing.T) {
	w := &world{T: t, now: time.Unix(1e9, 0), bounds: []mcpbridge.Bound{{PerMinute: 6}}}
	for range 6 {
		require.Nil(t, w.runs(one, "a"))
	}
	refused := w.runs(one, "a")
	require.Equal(t, messages.CodeRateLimited, refused.Code)
	require.Equal(t, "the limit of calls of the tools of this server is 6 a minute: the next one may begin at 2001-09-09T01:46:51Z", refused.Detail)
	require.InDelta(t, 10*time.Second, refused.RetryAfter, float64(2*time.Millisecond))
	require.Nil(t, w.runs(other, "a"), "another scope has a count of its own")
	w.now = w.now.Add(refused.RetryAfter - 2*time.Millisecond)
	require.NotNil(t, w.runs(one, "a"))
	w.now = w.now.Add(2 * time.Millisecond)
	require.Nil(t, w.runs(one, "a"))
	require.NotNil(t, w.runs(one, "a"))
}

// Whoever waits as long as was said may call.
func TestWaitIsLongEnough(t *testing.T) {
	for _, perMinute := range []int{1, 7, 59, 60, 61, 997, 1 << 24} {
		w := &world{T: t, now: time.Unix(1e9, 123456789), bounds: []mcpbridge.Bound{{PerMinute: perMinute}}}
		for range min(perMinute, 2000) {
			require.Nil(t, w.runs(one, "a"))
		}
		for range 100 {
			refused := w.runs(one, "a")
			if perMinute > 2000 {
				require.Nil(t, refused)
				continue
			}
			require.NotNil(t, refused)
			w.now = w.now.Add(refused.RetryAfter)
			for w.runs(one, "a") == nil {
			}
		}
	}
}

func TestTotalIsSharedOrNot(t *testing.T) {
	for _, shared := range []bool{false, true} {
		w := &world{T: t, now: time.Now(), bounds: []mcpbridge.Bound{{Tool: "send_*", Total: 2, Shared: shared}}}
		require.Nil(t, w.runs(one, "send_mail"))
		require.Nil(t, w.runs(one, "send_chat"))
		require.Nil(t, w.runs(one, "read"))
		refused := w.runs(one, "send_mail")
		require.Equal(t, messages.CodeRefused, refused.Code)
		require.Contains(t, refused.Detail, `the limit of calls of "send_*"`)
		require.Contains(t, refused.Detail, "is 2 in all")
		require.Zero(t, refused.RetryAfter)
		require.Equal(t, shared, w.runs(other, "send_mail") != nil)
		w.now = w.now.Add(keptFor)
		w.runs(messages.Key{Server: "s", Scope: "third"}, "send_mail") // counts that are over are forgotten when one is added
		if !shared {
			require.Nil(t, w.runs(one, "send_mail"))
		}
	}
}

func TestInFlight(t *testing.T) {
	w := &world{T: t, now: time.Now(), bounds: []mcpbridge.Bound{{InFlight: 2}, {Tool: "a", InFlight: 1}}}
	a, refused := w.call(one, "a")
	require.Nil(t, refused)
	_, refused = w.call(one, "a")
	require.Equal(t, messages.CodeBusy, refused.Code)
	b, refused := w.call(one, "b")
	require.Nil(t, refused, "a call that was refused counts for no bound")
	_, refused = w.call(one, "b")
	require.NotNil(t, refused)
	a.End(true, w.now)
	_, refused = w.call(one, "a")
	require.Nil(t, refused)
	b.End(true, w.now)
}

func TestCountsAreBounded(t *testing.T) {
	w := &world{T: t, now: time.Now(), bounds: []mcpbridge.Bound{{Total: 1}}}
	for i := range maxCounts + 10 {
		require.Nil(t, w.runs(messages.Key{Server: "s", Scope: fmt.Sprint(i)}, "a"))
	}
	require.Len(t, w.book.counts, maxCounts)
	require.Equal(t, maxCounts, w.book.recent.Count)
	require.NotNil(t, w.runs(messages.Key{Server: "s", Scope: fmt.Sprint(maxCounts)}, "a"))
	w.now = w.now.Add(keptFor)
	require.Nil(t, w.runs(one, "a"))
	require.Len(t, w.book.counts, 1)
}

// A count begins anew after a day, also if no other one is added.
func TestTotalBeginsAnewAfterADay(t *testing.T) {
	w := &world{T: t, now: time.Now(), bounds: []mcpbridge.Bound{{Total: 1}}}
	require.Nil(t, w.runs(one, "a"))
	w.now = w.now.Add(keptFor - 1)
	require.NotNil(t, w.runs(one, "a"), "what is refused is not counted")
	w.now = w.now.Add(1)
	require.Nil(t, w.runs(one, "a"))
	require.NotNil(t, w.runs(one, "a"))
}

func TestCallInFlightKeepsItsCount(t *testing.T) {
	w := &world{T: t, now: time.Now(), bounds: []mcpbridge.Bound{{InFlight: 1}}}
	running, refused := w.call(one, "a")
	require.Nil(t, refused)
	w.now = w.now.Add(keptFor)
	require.NotNil(t, w.runs(one, "a"))
	running.End(true, w.now)
	require.Nil(t, w.runs(one, "a"))
}

func TestEqualBoundsCountOnce(t *testing.T) {
	for _, b := range []mcpbridge.Bound{{PerMinute: 2}, {Total: 2}, {InFlight: 2}} {
		w := &world{T: t, now: time.Now(), bounds: []mcpbridge.Bound{b, b}}
		for range 2 {
			_, refused := w.call(one, "a")
			require.Nil(t, refused)
		}
		require.NotNil(t, w.runs(one, "a"))
	}
}

// Whoever waits as long as was said is refused by no other bound, in whatever order they are.
func TestLongestRefusalIsTold(t *testing.T) {
	busy, often, seldom, ended := mcpbridge.Bound{InFlight: 1}, mcpbridge.Bound{PerMinute: 60}, mcpbridge.Bound{PerMinute: 1}, mcpbridge.Bound{Total: 1}
	for _, c := range []struct {
		bounds []mcpbridge.Bound
		code   messages.Code
		in     time.Duration
	}{
		{[]mcpbridge.Bound{busy}, messages.CodeBusy, 0},
		{[]mcpbridge.Bound{busy, often}, messages.CodeBusy, 0},
		{[]mcpbridge.Bound{busy, often, seldom}, messages.CodeRateLimited, time.Minute},
		{[]mcpbridge.Bound{{PerMinute: 2}, busy, seldom, often}, messages.CodeRateLimited, time.Minute},
		{[]mcpbridge.Bound{busy, seldom, ended}, messages.CodeRefused, 0},
	} {
		for range 2 {
			w := &world{T: t, now: time.Now(), bounds: c.bounds}
			_, refused := w.call(one, "a")
			require.Nil(t, refused)
			_, refused = w.call(one, "a")
			require.Equal(t, c.code, refused.Code)
			require.InDelta(t, c.in, refused.RetryAfter, float64(2*time.Millisecond))
			slices.Reverse(c.bounds)
		}
	}
	w := &world{T: t, now: time.Now(), bounds: []mcpbridge.Bound{{Tool: "a", PerMinute: 2}, {Tool: "b", PerMinute: 1}, {PerMinute: 3}}}
	for _, tool := range []string{"a", "b", "a"} {
		require.Nil(t, w.runs(one, tool))
	}
	require.InDelta(t, 30*time.Second, w.runs(one, "a").RetryAfter, float64(2*time.Millisecond))
	require.InDelta(t, time.Minute, w.runs(one, "b").RetryAfter, float64(2*time.Millisecond))
}

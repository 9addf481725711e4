package actors

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

// FuzzQueue plays the same moves on two queues and on a model: slices. Each byte is
// one move of one of 16 calls.
func FuzzQueue(f *testing.F) {
	f.Add([]byte{0, 1, 2, 33, 64, 65, 200, 17, 90})
	f.Fuzz(func(t *testing.T, moves []byte) {
		var queues [2]queue
		var model [2][]*call
		calls := make([]*call, 16)
		for i := range calls {
			calls[i] = &call{}
		}
		for _, move := range moves {
			k, at := calls[move%16], int(move/16)%2
			switch held := k.in != nil; {
			case held:
				queues[at].remove(k) // does nothing in the other one
				model[at] = slices.DeleteFunc(model[at], func(m *call) bool { return m == k })
			case move > 127:
				queues[at].unshift(k)
				model[at] = slices.Insert(model[at], 0, k)
			default:
				queues[at].push(k)
				model[at] = append(model[at], k)
			}
			for i := range queues {
				require.Equal(t, len(model[i]), queues[i].count)
				require.True(t, slices.Equal(model[i], slices.Collect(queues[i].all())))
			}
		}
		require.True(t, slices.Equal(model[0], queues[0].take()))
		require.Zero(t, queues[0].count)
	})
}

// Finding D7: cancellations that come while a session drains are bounded by the calls
// that it can have.
func TestCancellationsForADrainingSessionAreBounded(t *testing.T) {
	var s cancels
	for range 2 {
		for i := range 100 {
			s.add(&cancelled{id: fmt.Sprint(i), upTo: 7}, 10)
		}
	}
	require.Len(t, s.ids, 10)
	named := func(id string, serial uint64) *call {
		op := &messages.Ping{}
		op.ID = id
		return &call{op: op, serial: serial}
	}
	require.True(t, s.mean(named("3", 7)))
	require.False(t, s.mean(named("3", 8)), "it came after the cancellation")
	require.False(t, s.mean(named("unknown", 1)))
}

func TestRosterListsWhatIsThere(t *testing.T) {
	r := roster{groups: map[string]*group{}, scopes: map[string]map[*child]struct{}{}}
	var all []*child
	for i := range 12 {
		ch := &child{key: messages.Key{Server: fmt.Sprint("s", i%3), Scope: fmt.Sprint("scope", i/3)}}
		r.add(ch)
		r.enter(ch, states[1+i%5])
		all = append(all, ch)
	}
	listed := func(f messages.Inspect) (n int) {
		counts, found := r.matching(&f)
		got := slices.Collect(found)
		for _, count := range counts {
			n += count
		}
		require.Len(t, got, n)
		for _, ch := range got {
			require.True(t, f.Server == "" || ch.key.Server == f.Server)
			require.True(t, f.Scope == "" || ch.key.Scope == f.Scope)
			require.True(t, f.State == "" || ch.state() == f.State)
		}
		return n
	}
	check := func(there []*child) {
		require.Equal(t, len(there), listed(messages.Inspect{}))
		for _, state := range states[1:] {
			want := 0
			for _, ch := range there {
				if ch.state() == state {
					want++
				}
			}
			require.Equal(t, want, listed(messages.Inspect{State: state}))
		}
		for i := range 3 {
			listed(messages.Inspect{Server: fmt.Sprint("s", i)})
			listed(messages.Inspect{Server: fmt.Sprint("s", i), State: messages.StateReady})
			listed(messages.Inspect{Server: fmt.Sprint("s", i), Scope: "scope1"})
		}
	}
	check(all)
	// A sweep that stands on one that is removed goes on with those after it.
	at := all[0]
	for _, ch := range []*child{all[0], all[3], all[1]} {
		r.remove(ch)
	}
	var rest []*child
	for ch := at; ch != nil; ch = ch.newer {
		if ch.state() != "" {
			rest = append(rest, ch)
		}
	}
	require.Equal(t, []*child{all[6], all[9]}, rest)
	check(slices.Concat(all[2:3], all[4:]))
}

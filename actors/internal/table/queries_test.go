package table

import (
	"fmt"
	"slices"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

func TestTableListsTheSessionsThatThereAre(t *testing.T) {
	r := New(Config{})
	server := &Server{Resolved: &mcpbridge.Limits{MaxInFlight: 1}}
	var all []*Registration
	for i := range 12 {
		reg := &Registration{Key: messages.Key{Server: fmt.Sprint("s", i%3), Scope: fmt.Sprint("scope", i/3)}, PID: &actor.PID{Id: fmt.Sprint(i)}, Server: server}
		r.entries[reg.Key] = &Entry{Current: reg}
		if i%2 == 1 {
			r.entries[reg.Key] = &Entry{Draining: []*Registration{reg}}
		}
		r.Add(reg)
		r.SetState(reg, protocol.States[1+i%5])
		all = append(all, reg)
	}
	listed := func(f messages.Inspect) (n int) {
		counts, found := r.Matching(Filter{f.Server, f.Scope, f.State})
		got := slices.Collect(found)
		for _, count := range counts {
			n += count
		}
		require.Len(t, got, n)
		for _, reg := range got {
			require.True(t, f.Server == "" || reg.Key.Server == f.Server)
			require.True(t, f.Scope == "" || reg.Key.Scope == f.Scope)
			require.True(t, f.State == "" || reg.State() == f.State)
		}
		return n
	}
	check := func(there []*Registration) {
		require.Equal(t, len(there), listed(messages.Inspect{}))
		for _, state := range protocol.States[1:] {
			want := 0
			for _, reg := range there {
				if reg.State() == state {
					want++
				}
			}
			require.Equal(t, want, listed(messages.Inspect{State: state}))
		}
		for i := range 4 {
			scope := fmt.Sprint("scope", i)
			want := 0
			for _, reg := range there {
				if reg.Key.Scope == scope {
					want++
				}
			}
			require.Equal(t, want, listed(messages.Inspect{Scope: scope}))
		}
		for i := range 3 {
			listed(messages.Inspect{Server: fmt.Sprint("s", i)})
			listed(messages.Inspect{Server: fmt.Sprint("s", i), State: messages.StateReady})
			listed(messages.Inspect{Server: fmt.Sprint("s", i), Scope: "scope1"})
		}
	}
	check(all)
	// A close command whose next session is removed continues with the ones after it.
	at := all[0]
	for _, reg := range []*Registration{all[0], all[3], all[1]} {
		r.TakeOutOfUse(reg)
		r.Remove(reg)
	}
	var rest []*Registration
	for reg := at; reg != nil; reg = reg.newer {
		if reg.State() != "" {
			rest = append(rest, reg)
		}
	}
	require.Equal(t, []*Registration{all[6], all[9]}, rest)
	check(slices.Concat(all[2:3], all[4:]))
}

package registry

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/messages"
)

func TestIndexListsTheSessionsThatThereAre(t *testing.T) {
	r := registrationIndex{groups: map[string]*group{}, entries: map[messages.Key]*entry{}}
	var all []*registration
	for i := range 12 {
		reg := &registration{key: messages.Key{Server: fmt.Sprint("s", i%3), Scope: fmt.Sprint("scope", i/3)}}
		r.entries[reg.key] = &entry{current: reg}
		if i%2 == 1 {
			r.entries[reg.key] = &entry{draining: []*registration{reg}}
		}
		r.add(reg)
		r.setState(reg, protocol.States[1+i%5])
		all = append(all, reg)
	}
	listed := func(f messages.Inspect) (n int) {
		counts, found := r.matching(inspected{f.Server, f.Scope, f.State, 0})
		got := slices.Collect(found)
		for _, count := range counts {
			n += count
		}
		require.Len(t, got, n)
		for _, reg := range got {
			require.True(t, f.Server == "" || reg.key.Server == f.Server)
			require.True(t, f.Scope == "" || reg.key.Scope == f.Scope)
			require.True(t, f.State == "" || reg.state() == f.State)
		}
		return n
	}
	check := func(there []*registration) {
		require.Equal(t, len(there), listed(messages.Inspect{}))
		for _, state := range protocol.States[1:] {
			want := 0
			for _, reg := range there {
				if reg.state() == state {
					want++
				}
			}
			require.Equal(t, want, listed(messages.Inspect{State: state}))
		}
		for i := range 4 {
			scope := fmt.Sprint("scope", i)
			want := 0
			for _, reg := range there {
				if reg.key.Scope == scope {
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
	for _, reg := range []*registration{all[0], all[3], all[1]} {
		r.remove(reg)
		delete(r.entries, reg.key)
	}
	var rest []*registration
	for reg := at; reg != nil; reg = reg.newer {
		if reg.state() != "" {
			rest = append(rest, reg)
		}
	}
	require.Equal(t, []*registration{all[6], all[9]}, rest)
	check(slices.Concat(all[2:3], all[4:]))
}

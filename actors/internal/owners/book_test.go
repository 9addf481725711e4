package owners

import (
	"fmt"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/messages"
)

// watched is a book that notes whom it watches.
func watched() (b *Book, watches map[string]bool, unbound *[]string) {
	watches, unbound = map[string]bool{}, new([]string)
	return New(Do{
		Watch:   func(pid *actor.PID) { watches[pid.Id] = true },
		Unwatch: func(pid *actor.PID) { delete(watches, pid.Id) },
		Unbound: func(scope string, _ *messages.Bind) { *unbound = append(*unbound, scope) },
	}), watches, unbound
}

func callOf(owner *actor.PID, scope string) *contract.Call {
	op := &messages.CallTool{Header: messages.To("s", scope)}
	op.Owner = owner
	return &contract.Call{Op: op, Key: messages.Key{Server: "s", Scope: scope}}
}

func TestTheEndOfAnOwnerCancelsItsCallsAndThenClosesItsScopes(t *testing.T) {
	b, watches, unbound := watched()
	owner, other := &actor.PID{Id: "owner"}, &actor.PID{Id: "other"}
	for i := range 3 {
		require.Nil(t, b.Bind(fmt.Sprint("scope-", i), &messages.Bind{Owner: owner}, nil))
	}
	require.Nil(t, b.Bind("scope-1", &messages.Bind{Owner: other}, nil), "it is somebody else's now")
	in, out, done := callOf(owner, "scope-0"), callOf(owner, "elsewhere"), callOf(owner, "elsewhere")
	for _, k := range []*contract.Call{in, out, done} {
		b.Accepted(k, nil)
	}
	b.Answered(done)
	end := b.Terminated(owner)
	var cancelled []*contract.Call
	var closed []string
	for end.More() {
		call, scope, closes := b.Next(end)
		if call != nil {
			require.Empty(t, closed, "calls come first")
			cancelled = append(cancelled, call.Call)
		}
		if closes {
			closed = append(closed, scope)
		}
	}
	require.Equal(t, []*contract.Call{out}, cancelled, "the other one is cancelled with its scope")
	require.Equal(t, []string{"scope-0", "scope-2"}, closed)
	require.Equal(t, []string{"scope-1", "scope-0", "scope-2"}, *unbound)
	require.Equal(t, []string{"scope-0", "scope-2"}, end.Scopes())
	require.Equal(t, map[string]bool{"other": true, "owner": true}, watches, "what has terminated needs no Unwatch")
	require.Nil(t, b.Terminated(owner))
}

func TestAnOwnerIsWatchedForAsLongAsSomethingBelongsToIt(t *testing.T) {
	b, watches, _ := watched()
	owner := &actor.PID{Id: "owner"}
	k := callOf(owner, "a")
	b.Accepted(k, nil)
	b.Accepted(k, func() {})
	require.Nil(t, b.Bind("a", &messages.Bind{Owner: owner}, nil))
	require.Equal(t, map[string]bool{"owner": true}, watches)
	b.Answered(k)
	require.Equal(t, map[string]bool{"owner": true}, watches)
	require.Nil(t, b.Bind("a", &messages.Bind{}, nil))
	require.Empty(t, watches)
	require.Zero(t, b.Bindings()+b.Calls())
	require.Same(t, unbound, b.Binding("a"))
}

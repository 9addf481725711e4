package owners

import (
	"fmt"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/messages"
)

// follower carries out what a book has decided.
type follower struct {
	watches map[string]bool
	unbound []string
}

func (f *follower) follow(b *Book) {
	for _, d := range b.Decided() {
		switch {
		case d.Watch != nil:
			f.watches[d.Watch.Id] = true
		case d.Unwatch != nil:
			delete(f.watches, d.Unwatch.Id)
		default:
			f.unbound = append(f.unbound, d.Scope)
		}
	}
}

func callOf(owner *actor.PID, scope string) *contract.Call {
	op := &messages.CallTool{Header: messages.To("s", scope)}
	op.Owner = owner
	return &contract.Call{Op: op, Key: messages.Key{Server: "s", Scope: scope}}
}

func TestTheEndOfAnOwnerCancelsItsCallsAndThenClosesItsScopes(t *testing.T) {
	b, f := New(), &follower{watches: map[string]bool{}}
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
	f.follow(b)
	require.Equal(t, []string{"scope-1", "scope-0", "scope-2"}, f.unbound)
	require.Equal(t, []string{"scope-0", "scope-2"}, end.Scopes())
	require.Equal(t, map[string]bool{"other": true, "owner": true}, f.watches, "what has terminated needs no Unwatch")
	require.Nil(t, b.Terminated(owner))
}

func TestAnOwnerIsWatchedForAsLongAsSomethingBelongsToIt(t *testing.T) {
	b, f := New(), &follower{watches: map[string]bool{}}
	owner := &actor.PID{Id: "owner"}
	k := callOf(owner, "a")
	b.Accepted(k, nil)
	b.Accepted(k, func() {})
	require.Nil(t, b.Bind("a", &messages.Bind{Owner: owner}, nil))
	f.follow(b)
	require.Equal(t, map[string]bool{"owner": true}, f.watches)
	b.Answered(k)
	f.follow(b)
	require.Equal(t, map[string]bool{"owner": true}, f.watches)
	require.Nil(t, b.Bind("a", &messages.Bind{}, nil))
	f.follow(b)
	require.Empty(t, f.watches)
	require.Zero(t, b.Bindings()+b.Calls())
	require.Same(t, unbound, b.Binding("a"))
}

package node

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

// bindingsOf returns bindings of a member whose actors are all there, and a Bind of a scope.
func bindingsOf(member string) (b *bindings, bind func(owner string) *messages.Bind) {
	b = newBindings(member, func(*actor.PID) bool { return true })
	return b, func(owner string) *messages.Bind {
		return &messages.Bind{Scope: "s", Owner: actor.NewPID("here", owner)}
	}
}

func TestLaterBindHoldsInWhicheverOrderBindsCome(t *testing.T) {
	now, from := time.Unix(1000, 0), &peer{}
	for _, earlierFirst := range []bool{true, false} {
		b, bind := bindingsOf("a")
		earlier, later := bind("earlier"), bind("later")
		accept := func(bind *messages.Bind, at int64) bool { return b.accept(from, bind, bindVersion{at, "b"}, now) }
		if earlierFirst {
			require.True(t, accept(earlier, 1))
			require.True(t, accept(later, 2))
		} else {
			require.True(t, accept(later, 2))
			require.False(t, accept(earlier, 1))
		}
		require.Same(t, later, b.of["s"].bind)
	}
}

func TestBindOfACallerHereIsLaterThanAllThatAreKnown(t *testing.T) {
	b, bind := bindingsOf("a")
	now := time.Unix(1000, 0)
	require.True(t, b.accept(&peer{}, bind("ahead"), bindVersion{now.Add(time.Hour).UnixMicro(), "b"}, now), "its clock is ahead")
	version := b.add(bind("here"), now)
	require.Positive(t, version.compare(bindVersion{now.Add(time.Hour).UnixMicro(), "b"}))
}

func TestPreviousBindHoldsWhenTheSupervisorRefusesTheLastOne(t *testing.T) {
	b, bind := bindingsOf("a")
	first, refused, last := bind("first"), bind("refused"), bind("last")
	for _, one := range []*messages.Bind{first, refused, last} {
		b.add(one, time.Unix(1000, 0))
	}
	b.settle(first, &messages.Bound{})
	b.settle(refused, &messages.Failure{Code: messages.CodeBusy})
	require.Same(t, last, b.of["s"].bind)
	require.Same(t, first, b.of["s"].previous.bind)
	b.settle(last, &messages.Failure{Code: messages.CodeBusy})
	require.Same(t, first, b.of["s"].bind)
	b.settle(first, &messages.Failure{Code: messages.CodeBusy})
	require.Empty(t, b.of)
}

func TestNewcomerIsToldOfBindingsHereAndOfThoseWhoseMemberIsLost(t *testing.T) {
	b, bind := bindingsOf("a")
	now := time.Unix(1000, 0)
	alive, lost := &peer{member: true, greets: true}, &peer{member: true, greets: true, ended: true}
	b.add(&messages.Bind{Scope: "here", Owner: bind("o").Owner}, now)
	b.add(&messages.Bind{Scope: "removed"}, now)
	require.True(t, b.accept(alive, &messages.Bind{Scope: "elsewhere", Owner: bind("o").Owner}, bindVersion{1, "b"}, now))
	require.True(t, b.accept(lost, &messages.Bind{Scope: "lost", Owner: bind("o").Owner}, bindVersion{2, "c"}, now))
	own, ended := b.forNewcomer()
	require.Len(t, own, 1)
	require.Equal(t, "here", own[0].bind.Scope)
	require.Len(t, ended, 2)
	require.Equal(t, "lost", ended[0].Scope)
	require.Equal(t, "removed", ended[1].Scope)
	require.Len(t, b.ofLost(lost, now.Add(spreadFor-1)), 1)
	require.Empty(t, b.ofLost(lost, now.Add(spreadFor)), "the others have it by then")
}

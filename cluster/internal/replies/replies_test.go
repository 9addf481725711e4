package replies

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

func failure(cmd messages.Command) func(messages.Code, string) *messages.Failure {
	return func(code messages.Code, detail string) *messages.Failure {
		return messages.NewFailure(cmd, code, detail)
	}
}

func TestClosedNamesTheMembersThatDidNotAnswer(t *testing.T) {
	cmd := &messages.CloseAll{ID: "1"}
	r := New(cmd, nil)
	r.Take("b", &messages.Closed{Sessions: 2})
	r.Take("a", &messages.Closed{Sessions: 3})
	r.Take("d", messages.NewFailure(cmd, messages.CodeDraining, ""))
	r.Miss("c")
	require.Equal(t, &messages.Closed{ID: "1", Sessions: 5, Unanswered: []string{"c", "d"}}, r.Merge(failure(cmd)))
}

func TestMembersWithoutTheServerDoNotCountIfOthersHaveIt(t *testing.T) {
	cmd := &messages.CloseServer{Server: "s"}
	unknown := messages.NewFailure(cmd, messages.CodeUnknownServer, "")
	r := New(cmd, nil)
	r.Take("a", unknown)
	r.Take("b", &messages.Closed{Sessions: 1})
	require.Equal(t, &messages.Closed{Sessions: 1}, r.Merge(failure(cmd)))
	r = New(cmd, nil)
	r.Take("a", unknown)
	require.Equal(t, unknown, r.Merge(failure(cmd)))
}

func TestBindMustBeConfirmedByAll(t *testing.T) {
	cmd := &messages.Bind{Scope: "x"}
	r := New(cmd, nil)
	r.Take("a", &messages.Bound{Scope: "x"})
	require.Equal(t, &messages.Bound{Scope: "x"}, r.Merge(failure(cmd)))
	r.Miss("b")
	f := r.Merge(failure(cmd)).(*messages.Failure)
	require.Equal(t, messages.CodeUnavailable, f.Code)
	require.Equal(t, "not confirmed by b", f.Detail)
	r = New(cmd, nil)
	r.Take("a", messages.NewFailure(cmd, messages.CodeBusy, "too many"))
	require.Equal(t, messages.CodeBusy, r.Merge(failure(cmd)).(*messages.Failure).Code, "a member that has too many bindings is no silent one")
}

func TestSnapshotAddsWhatTheMembersHave(t *testing.T) {
	cmd := &messages.Inspect{Limit: 1}
	r := New(cmd, []messages.MemberSnapshot{{Name: "a"}, {Name: "b"}, {Name: "c"}})
	one := func(open int, health messages.Health, key string) *messages.Snapshot {
		return &messages.Snapshot{
			Total: 1, Open: open, Cap: 10, States: map[messages.State]int{messages.StateReady: 1},
			Servers: []messages.ServerSnapshot{{
				Name: "s", Health: health, Sessions: 1, Lists: map[string]messages.ListsSnapshot{"tools/list": {Lists: 1, Items: open, Bytes: 100 * open}},
			}},
			Sessions: []messages.SessionSnapshot{{Key: messages.Key{Server: "s", Scope: key}, State: messages.StateReady}},
		}
	}
	r.Take("a", one(1, messages.HealthUp, "x"))
	r.Take("b", one(2, messages.HealthDown, "y"))
	r.Miss("c")
	all := r.Merge(failure(cmd)).(*messages.Snapshot)
	require.Equal(t, []int{2, 3, 20, 2}, []int{all.Total, all.Open, all.Cap, all.States[messages.StateReady]})
	require.Equal(t, messages.HealthDown, all.Servers[0].Health)
	require.Equal(t, 2, all.Servers[0].Sessions)
	require.Equal(t, messages.ListsSnapshot{Lists: 2, Items: 2, Bytes: 200}, all.Servers[0].Lists["tools/list"], "of the largest list")
	require.Len(t, all.Sessions, 1)
	require.Equal(t, []bool{true, true, false}, []bool{all.Members[0].Answered, all.Members[1].Answered, all.Members[2].Answered})
	require.Equal(t, 2, all.Members[1].Open)
}

func TestHandlesOfAllMembersAreReleasedAndListed(t *testing.T) {
	release := &messages.ReleaseHandles{ID: "1", Scope: "x"}
	left := func(scope string) []messages.Left {
		return []messages.Left{{Key: messages.Key{Server: "s", Scope: scope}, Handle: "open", Reason: "refused"}}
	}
	r := New(release, nil)
	r.Take("b", &messages.HandlesReleased{Released: 2, Left: left("b")})
	r.Take("a", &messages.HandlesReleased{Released: 3, Left: left("a")})
	r.Miss("d")
	r.Take("c", messages.NewFailure(release, messages.CodeBusy, ""))
	require.Equal(t, &messages.HandlesReleased{ID: "1", Released: 5, Left: append(left("a"), left("b")...), Unanswered: []string{"c", "d"}}, r.Merge(failure(release)))

	list := &messages.ListHandles{ID: "2", Scope: "x"}
	minted := time.Now()
	first, second, third := messages.HeldHandle{Minted: minted}, messages.HeldHandle{Minted: minted.Add(1)}, messages.HeldHandle{Minted: minted.Add(2)}
	r = New(list, nil)
	r.Take("a", &messages.HandleList{Handles: []messages.HeldHandle{first, third}})
	r.Take("b", &messages.HandleList{Handles: []messages.HeldHandle{second}})
	require.Equal(t, &messages.HandleList{ID: "2", Handles: []messages.HeldHandle{first, second, third}}, r.Merge(failure(list)), "by the time of their mints")
	r = New(list, nil)
	r.Take("a", &messages.HandleList{})
	require.Equal(t, &messages.HandleList{ID: "2", Handles: []messages.HeldHandle{}}, r.Merge(failure(list)))
}

// A member refuses a command that its version does not know as invalid.
func TestMembersThatDoNotKnowACommandAboutHandlesAreUnanswered(t *testing.T) {
	for _, one := range []struct {
		cmd         messages.Command
		known, want messages.Reply
	}{
		{&messages.ReleaseHandles{}, &messages.HandlesReleased{Released: 1}, &messages.HandlesReleased{Released: 1, Unanswered: []string{"b", "c"}}},
		{&messages.ListHandles{}, &messages.HandleList{}, &messages.HandleList{Handles: []messages.HeldHandle{}, Unanswered: []string{"b", "c"}}},
	} {
		unknown := messages.NewFailure(one.cmd, messages.CodeInvalid, "the member b does not understand the command")
		r := New(one.cmd, nil)
		r.Miss("c")
		r.Take("b", unknown)
		r.Take("a", one.known)
		require.Equal(t, one.want, r.Merge(failure(one.cmd)))

		r = New(one.cmd, nil)
		r.Take("b", unknown)
		require.Equal(t, unknown, r.Merge(failure(one.cmd)), "what all refuse is invalid")
	}
}

func TestSnapshotAddsTheHandlesOfTheMembers(t *testing.T) {
	cmd := &messages.Inspect{}
	left := func(n int, scope string) (all []messages.Left) {
		for i := range n {
			all = append(all, messages.Left{Key: messages.Key{Server: "s", Scope: fmt.Sprintf("%s%02d", scope, i)}, Handle: "open", Reason: "refused"})
		}
		return all
	}
	of := func(kinds ...messages.HandleSnapshot) *messages.Snapshot {
		return &messages.Snapshot{Servers: []messages.ServerSnapshot{{Name: "s", Handles: kinds}}}
	}
	first := of(messages.HandleSnapshot{Mint: "open", Held: 1, Minting: 2, Waiting: 3, Max: 4, Left: left(60, "b"), LeftCount: 60})
	r := New(cmd, nil)
	r.Take("a", first)
	r.Take("b", of(messages.HandleSnapshot{Mint: "connect", Held: 7}, messages.HandleSnapshot{Mint: "open", Held: 10, Releasing: 5, Unanswered: 6, Left: left(60, "a"), LeftCount: 60}))
	servers := r.Merge(failure(cmd)).(*messages.Snapshot).Servers
	require.Len(t, servers, 1)
	require.Equal(t, []messages.HandleSnapshot{
		{Mint: "open", Held: 11, Releasing: 5, Minting: 2, Unanswered: 6, Waiting: 3, Max: 4, Left: append(left(60, "a"), left(40, "b")...), LeftCount: 120},
		{Mint: "connect", Held: 7},
	}, servers[0].Handles)
	require.Len(t, first.Servers[0].Handles[0].Left, 60, "the snapshot of a member is not changed")
}

package replies

import (
	"testing"

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

package inspection

import (
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

func TestOneSnapshotIsPutTogetherAtATime(t *testing.T) {
	var b Book
	asker := func(id string) Asker { return Asker{ID: id} }
	of := func(server string) Question { return QuestionOf(&messages.Inspect{Server: server}) }
	first, busy := b.Ask(of("a"), asker("1"))
	require.NotNil(t, first)
	require.False(t, busy)
	for _, id := range []string{"2", "3"} { // the one that is put together may be of the time before
		now, busy := b.Ask(of("a"), asker(id))
		require.Nil(t, now)
		require.False(t, busy)
	}
	require.Len(t, b.waiting, 1, "they share the next one")
	for i := range maxWaiting - 1 {
		_, busy = b.Ask(of(fmt.Sprint(i)), asker("4"))
		require.False(t, busy)
	}
	_, busy = b.Ask(of("one more"), asker("5"))
	require.True(t, busy)
	next := b.Next()
	require.Equal(t, []Asker{{ID: "2"}, {ID: "3"}}, next.askers)
	require.Len(t, b.Clear(), 2+maxWaiting-1)
	require.Nil(t, b.Next())
}

// tableOf returns a table with sessions, of which each third one is ready.
func tableOf(sessions int) *table.Table {
	t := table.New(nil, table.Tenants{})
	t.Servers["s"] = &table.Server{Resolved: &mcpbridge.Limits{MaxInFlight: 1}}
	place := &admission.Place{Endpoint: new(admission.Endpoint)}
	for i := range sessions {
		reg := &table.Registration{Key: messages.Key{Server: "s", Scope: fmt.Sprintf("%05d", i)}, PID: &actor.PID{Id: fmt.Sprint(i)}, Server: t.Servers["s"]}
		reg.Place = place
		t.Ensure(reg.Key).Current = reg
		t.Add(reg)
		t.SetState(reg, messages.StateWaiting)
		if i%3 == 0 {
			t.SetState(reg, messages.StateReady)
		}
	}
	return t
}

// Few sessions are selected at once, many by going through all, and both ways lead to the same.
func TestASnapshotHasTheSessionsThatAreAskedFor(t *testing.T) {
	for _, sessions := range []int{30, 3 * maxSelected} {
		from := tableOf(sessions)
		for _, test := range []struct {
			question Question
			total    int
			want     int
		}{
			{Question{Limit: -1}, sessions, sessions},
			{Question{Limit: sessions - 5}, sessions, sessions - 5},
			{Question{Limit: -1, Filter: table.Filter{State: messages.StateReady}}, sessions / 3, sessions / 3},
			{Question{Limit: 7, Filter: table.Filter{State: messages.StateReady}}, sessions / 3, 7},
			{Question{Limit: 7, Filter: table.Filter{Server: "other"}}, 0, 0},
			{Question{Limit: -1, Filter: table.Filter{Scope: "00003"}}, 1, 1},
		} {
			i := &Inspection{Question: test.question, askers: []Asker{{ID: "1"}, {ID: "2"}}}
			i.Begin(from, &messages.Snapshot{Time: time.Now()})
			for more, before := true, 0; more; before = i.Len() {
				more = i.Step()
				require.LessOrEqual(t, i.Len()-before, contract.WalkStep)
			}
			var ids []string
			i.Answer("name", func(_ *actor.PID, s *messages.Snapshot) {
				ids = append(ids, s.ID)
				require.Equal(t, test.total, s.Total, "%+v", test.question)
				require.Len(t, s.Sessions, test.want, "%+v", test.question)
				for at, one := range s.Sessions {
					require.True(t, at == 0 || s.Sessions[at-1].Key.Compare(one.Key) < 0, "in order")
					require.True(t, test.question.State == "" || test.question.State == one.State)
					require.Equal(t, "name", one.Supervisor)
				}
			})
			require.Equal(t, []string{"1", "2"}, ids)
		}
	}
}

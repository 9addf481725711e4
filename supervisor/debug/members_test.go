package debug_test

import (
	"encoding/json"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/supervisor/debug"
)

// fakeCluster is what a page shows of a member of a cluster: an actor answers its commands.
type fakeCluster struct {
	system *actor.ActorSystem
	pid    *actor.PID
	handle func(messages.Event)
}

func (c *fakeCluster) Client() *supervisor.Client { return supervisor.NewClient(c.system, c.pid) }

func (c *fakeCluster) Subscribe(handle func(messages.Event)) (cancel func()) {
	c.handle = handle
	return func() {}
}

// newFakeCluster returns a cluster of three members. Member a has made the snapshot, b leaves and
// has the sessions, and c does not answer.
func newFakeCluster(t *testing.T) *fakeCluster {
	c := &fakeCluster{system: newSystem()}
	c.pid = c.system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch msg := ctx.Message().(type) {
		case *messages.Inspect:
			snap := &messages.Snapshot{
				ID: msg.ID, Time: time.Now(), Total: 2, Open: 2, Cap: 20,
				Members: []messages.MemberSnapshot{
					{Name: "a", Address: "10.0.0.1:8090", ID: "1", Self: true, Answered: true, Sessions: 1, Open: 1, Cap: 10},
					{Name: "<b>", Address: "10.0.0.2:8090", ID: "2", Answered: true, Leaving: true, Sessions: 1, Open: 1, Cap: 10},
					{Name: "c", Address: "10.0.0.3:8090", ID: "3"},
				},
				Sessions: []messages.SessionSnapshot{
					{Key: messages.Key{Server: "s", Scope: "x"}, Supervisor: "a", State: messages.StateReady},
					{Key: messages.Key{Server: "s", Scope: "y"}, Supervisor: "<b>", State: messages.StateReady},
				},
			}
			ctx.Respond(snap)
		case *messages.CloseScope:
			ctx.Respond(&messages.Closed{ID: msg.ID, Sessions: 1, Unanswered: []string{"c"}})
		}
	}))
	t.Cleanup(func() { c.system.Root.Stop(c.pid) })
	return c
}

// showCluster runs a test with the page of a cluster.
func showCluster(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(t)
		w := &world{t: t, page: debug.New(c, debug.Config{Actions: true, Hosts: []string{"example.com"}})}
		defer w.page.Close()
		for member, scope := range map[string]string{"a": "x", "<b>": "y"} {
			c.handle(&messages.SessionOpened{Stamp: messages.Stamp{Key: messages.Key{Server: "s", Scope: scope}, Supervisor: member, Generation: 1, Time: time.Now()}})
		}
		test(t, w)
	})
}

func TestPageOfAClusterShowsItsMembersAndWhereSessionsLive(t *testing.T) {
	showCluster(t, func(t *testing.T, w *world) {
		page := w.get("").Body.String()
		inert(t, page)
		text := textOf(t, page)
		for _, part := range []string{
			"Members Member State Address Sessions Open Cap a answered this page 10.0.0.1:8090 1 1 10 <b> leaving 10.0.0.2:8090 1 1 10 c no answer 10.0.0.3:8090",
			"Scope ▲ Server Member State", "x s a ready", "y s <b> ready", "opened x s a 1", "opened y s <b> 1",
		} {
			require.Contains(t, text, part)
		}
		require.Contains(t, referencesOf(t, page), "?"+url.Values{"member": {"<b>"}}.Encode())

		text = textOf(t, w.get("session?server=s&scope=y").Body.String())
		require.Contains(t, text, "Member <b>")
		require.Contains(t, text, "opened <b> 1")
	})
}

func TestSessionsAndEventsAreFilteredByMember(t *testing.T) {
	showCluster(t, func(t *testing.T, w *world) {
		text := textOf(t, w.get("?member=a").Body.String())
		require.Contains(t, text, "1–1 of 1 sessions that match, 2 in all")
		require.Contains(t, text, "x s a ready")
		require.NotContains(t, text, "y s <b> ready")
		require.Contains(t, text, "1 events, the newest first")
		require.Contains(t, textOf(t, w.get("?member=c").Body.String()), "None of 2 sessions matches")
		require.Regexp(t, `(?s)id="sessions".*<tbody>\s*<tr[^>]*><th[^>]*><a href="session\?scope=x`, w.get("?sort=-member").Body.String())

		var got struct {
			Snapshot messages.Snapshot
			Events   []json.RawMessage
		}
		require.NoError(t, json.Unmarshal(w.get("?format=json&member=%3Cb%3E").Body.Bytes(), &got))
		require.Len(t, got.Snapshot.Members, 3)
		require.Len(t, got.Snapshot.Sessions, 1)
		require.Equal(t, "<b>", got.Snapshot.Sessions[0].Supervisor)
		require.Len(t, got.Events, 1)
	})
}

func TestMembersAreUpdatedLive(t *testing.T) {
	showCluster(t, func(t *testing.T, w *world) {
		v := w.view("live")
		parts := (<-v.events).update(t)
		require.Contains(t, textOf(t, "<table>"+parts["members"]), "c no answer")
		require.Contains(t, parts["sessions"], `data-key="session?scope=x&amp;server=s a"`)
		v.leave()
	})
	show(t, supervisor.Config{}, debug.Config{}, func(t *testing.T, w *world) {
		v := w.view("live")
		require.NotContains(t, (<-v.events).update(t), "members")
		v.leave()
		page := w.get("").Body.String()
		require.NotContains(t, page, `id="members"`)
		require.NotContains(t, page, `name="member"`)
	})
}

func TestActionsNameTheMembersThatDidNotAnswer(t *testing.T) {
	showCluster(t, func(t *testing.T, w *world) {
		answer := w.post("close-scope", url.Values{"scope": {"x"}})
		require.Equal(t, 200, answer.Code)
		require.Contains(t, textOf(t, answer.Body.String()), "Closed 1 session, no answer from c, of scope x.")
	})
}

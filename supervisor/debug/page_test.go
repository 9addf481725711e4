package debug

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// quiet makes an actor system log nothing.
var quiet = actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) })

// big returns a snapshot with n sessions on 20 servers, and events of them.
func big(n int) (*Handler, *messages.Snapshot) {
	h := New(nil, Config{Actions: true})
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	snap := &messages.Snapshot{Time: now, Total: n, Open: n, Cap: 2 * n, States: map[messages.State]int{}}
	for server := range 20 {
		name := fmt.Sprintf("server-%02d", server)
		row := messages.ServerSnapshot{Name: name, Health: messages.HealthUp, Since: now, Sessions: n / 20, States: map[messages.State]int{messages.StateReady: n / 20}}
		for i := range row.Load.Durations.Counts {
			row.Load.Durations.Counts[i] = uint64(i)
		}
		row.Lists = map[string]messages.ListsSnapshot{
			"tools/list":               {Lists: 1, Scopes: n / 20, Items: 17, Bytes: 9876, Oldest: now.Add(-time.Minute)},
			"resources/templates/list": {Lists: 2, Scopes: 2, Items: 3, Oldest: now, Stale: 1},
		}
		snap.Servers = append(snap.Servers, row)
		for i := range n / 20 {
			key := messages.Key{Server: name, Scope: fmt.Sprintf("tenant-%d/conversation-%06d", i%50, i)}
			snap.Sessions = append(snap.Sessions, messages.SessionSnapshot{
				Key: key, State: states[i%len(states)], Generation: uint64(i), Calls: uint64(i * 7), LastUsed: now.Add(-time.Duration(i) * time.Second),
				Tenant: fmt.Sprintf("tenant-%d", i%50), Cause: "unavailable: dial tcp 192.0.2.1:443: connect: connection refused",
			})
			h.events.add(&messages.SessionOpened{Stamp: messages.Stamp{Key: key, Time: now, Generation: 1}, Protocol: "2025-11-25"})
		}
	}
	return h, snap
}

func TestSizeOfAPageDoesNotGrowWithTheSessions(t *testing.T) {
	sizes := map[int]int{}
	for _, n := range []int{1000, 10_000} {
		h, snap := big(n)
		defer h.Close()
		var page bytes.Buffer
		require.NoError(t, pages.ExecuteTemplate(&page, "index", h.index(snap, parseQuery(url.Values{"sort": {"-calls"}}), false)))
		require.Equal(t, pageSize, strings.Count(page.String(), `<tr data-key="session?`))
		sizes[n] = page.Len()
		require.Contains(t, page.String(), `>9,876 bytes, about 2,469 tokens</span>, `+count(n/20)+` scopes, `)
		require.Equal(t, 20, strings.Count(page.String(), `<b>3</b> resources templates</span> <small>2 scopes`))
		require.Equal(t, 20, strings.Count(page.String(), `>stale</span>`))
	}
	require.InDelta(t, sizes[1000], sizes[10_000], 2000)
	require.Less(t, sizes[10_000], 250_000)
}

func TestHandlesAreShownByKindWithTheReasonsOfThoseThatAreLeft(t *testing.T) {
	h := New(nil, Config{})
	defer h.Close()
	key := messages.Key{Server: "web", Scope: "a"}
	left := func(n int, reason string) (all []messages.Left) {
		for range n {
			all = append(all, messages.Left{Key: key, Handle: "open", Reason: reason})
		}
		return all
	}
	snap := &messages.Snapshot{Servers: []messages.ServerSnapshot{{Name: "files"}, {Name: "web"}}}
	shown := func(name string, view any) string {
		var page bytes.Buffer
		require.NoError(t, pages.ExecuteTemplate(&page, name, view))
		return strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(page.String(), " ")), " ")
	}
	require.NotContains(t, shown("servers", h.index(snap, parseQuery(nil), false)), "Handles", "no server declares any")

	snap.Servers[1].Handles = []messages.HandleSnapshot{
		{
			Mint: "open", Held: 3, Max: 16, Minting: 1, Unanswered: 2, Releasing: 4, Waiting: 1234, LeftCount: 9,
			Left: slices.Concat(left(1, "its answer was lost"), left(4, "its id is not unique"), left(2, "a <b>"), left(2, "refused")),
		},
		{Mint: "connect"},
	}
	text := shown("servers", h.index(snap, parseQuery(nil), false))
	require.Contains(t, text, " Handles ")
	require.Contains(t, text, " open 3 held of 16 1 minting 2 unanswered 4 releasing 1,234 waiting 9 left 4 × its id is not unique 2 × a &lt;b&gt; 2 × refused connect 0 held")
	require.NotContains(t, text, "its answer was lost", "only the most frequent reasons")
}

// BenchmarkPage measures the updates of one live page: what is done each second for it.
func BenchmarkPage(b *testing.B) {
	for _, n := range []int{20, 1000, 10_000} {
		for _, filter := range []string{"", "q=conversation-00001&sort=-used"} {
			b.Run(fmt.Sprintf("sessions=%d/filter=%t", n, filter != ""), func(b *testing.B) {
				h, snap := big(n)
				defer h.Close()
				values, err := url.ParseQuery(filter)
				require.NoError(b, err)
				b.ReportAllocs()
				for b.Loop() {
					v := h.index(snap, parseQuery(values), true)
					var page bytes.Buffer
					for _, id := range v.parts() {
						require.NoError(b, pages.ExecuteTemplate(&page, id, v))
					}
					b.SetBytes(int64(page.Len()))
				}
			})
		}
	}
}

func TestSnapshotIsTakenAtMostOncePerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sup := faults.NewScript(t, "s").Supervise(actor.NewActorSystem(quiet), supervisor.Config{})
		h := New(sup, Config{})
		defer h.Close()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Nil(t, h.snapshots.last, "nobody looks")
		first, err := h.snapshots.get(t.Context())
		require.NoError(t, err)
		time.Sleep(999 * time.Millisecond)
		for range 100 {
			again, err := h.snapshots.get(t.Context())
			require.NoError(t, err)
			require.Same(t, first, again)
		}
		time.Sleep(time.Millisecond)
		next, err := h.snapshots.get(t.Context())
		require.NoError(t, err)
		require.NotSame(t, first, next)
	})
}

func TestEachColumnSortsInBothDirections(t *testing.T) {
	now := time.Now()
	low := messages.SessionSnapshot{Key: messages.Key{Server: "a", Scope: "a"}, State: messages.StateBroken, RetryAt: now.Add(time.Second), LastUsed: now}
	high := messages.SessionSnapshot{
		Key: messages.Key{Server: "b", Scope: "b"}, State: messages.StateReady, Generation: 1, Outstanding: 3, Waiting: 1, Calls: 1, Restarts: 1,
		LastUsed: now.Add(time.Second), Supervisor: "m", Tenant: "t", Cause: "c",
	}
	for _, c := range columns {
		for _, down := range []bool{false, true} {
			q := query{Sort: c.ID, Down: down, Page: 1}
			got, _, _ := q.apply([]messages.SessionSnapshot{high, low, high})
			require.Equal(t, down, got[0].Key == high.Key, c.ID)
			require.Equal(t, !down, got[2].Key == high.Key, c.ID)
		}
	}
	for _, c := range columns {
		to := headerOf(c, query{Sort: c.ID, Down: true, Page: 3, Text: "x"})
		require.Equal(t, "descending", to.Order)
		require.NotContains(t, to.URL, "page=")
		require.Contains(t, to.URL, "q=x")
	}
}

func TestTextOfAQueryIsBounded(t *testing.T) {
	long := strings.Repeat(`"`, maxText+1)
	q := parseQuery(url.Values{"q": {long}, "server": {long}, "state": {long}, "sort": {long}})
	require.Equal(t, "?", q.URL())
	q = parseQuery(url.Values{"q": {long[1:]}})
	require.Equal(t, long[1:], q.Text)
}

func FuzzQuery(f *testing.F) {
	f.Add("q=A&server=s&state=ready&sort=-calls&page=3")
	f.Add("q=%00%ff&sort=--&page=-1")
	f.Fuzz(func(t *testing.T, text string) {
		values, err := url.ParseQuery(text)
		if err != nil {
			t.Skip()
		}
		q := parseQuery(values)
		require.NotNil(t, columnOf(q.Sort))
		require.GreaterOrEqual(t, q.Page, 1)
		again, err := url.ParseQuery(strings.TrimPrefix(q.URL(), "?"))
		require.NoError(t, err)
		require.Equal(t, q, parseQuery(again), "the reference to a page leads to another one")
		_, _, pages := q.apply(make([]messages.SessionSnapshot, 250))
		require.LessOrEqual(t, q.Page, pages)
	})
}

func TestRingKeepsTheLastEvents(t *testing.T) {
	r := &ring{}
	every := func(messages.Stamp) bool { return true }
	require.Empty(t, r.latest(10, every))
	at := func(i int) messages.Stamp {
		return messages.Stamp{Key: messages.Key{Server: "s", Scope: fmt.Sprint(i % 10)}, Generation: uint64(i)}
	}
	for i := range 2500 {
		r.add(&messages.SessionOpened{Stamp: at(i)})
		r.add(&messages.ServerLog{Stamp: at(i), Data: "secret"})
		newest := r.latest(maxEvents, every)
		require.Len(t, newest, min(i+1, maxEvents))
		require.Equal(t, uint64(i), newest[0].GetStamp().Generation)
		require.Equal(t, uint64(max(0, i+1-maxEvents)), newest[len(newest)-1].GetStamp().Generation)
	}
	of := r.latest(3, func(stamp messages.Stamp) bool { return stamp.Key.Scope == "4" })
	require.Equal(t, []uint64{2494, 2484, 2474}, []uint64{of[0].GetStamp().Generation, of[1].GetStamp().Generation, of[2].GetStamp().Generation})
}

// allEvents are the events that are kept, each with what the page says of it.
var allEvents = []struct {
	event messages.Event
	name  string
	text  string
}{
	{&messages.SessionOpened{Elapsed: 1500 * time.Microsecond, Protocol: "2025-11-25", Attached: true}, "session_opened", "opened: in 2 ms, protocol 2025-11-25, resumed from the store"},
	{&messages.SessionExpired{Cause: "404"}, "session_expired", "expired: 404"},
	{&messages.SessionLost{Cause: "EOF"}, "session_lost", "lost: EOF"},
	{&messages.SessionRestarting{Attempt: 2, Delay: 1500 * time.Millisecond, Cause: "EOF"}, "session_restarting", "restarting: failure 2, in 1.5 s: EOF"},
	{&messages.SessionRestarting{Attempt: 1}, "session_restarting", "restarting: failure 1, at once"},
	{&messages.SessionRestarted{Elapsed: 20 * time.Second, Lifetime: 3 * time.Hour}, "session_restarted", "restarted: after 20 s, the session before was open for 3 h"},
	{&messages.SessionRestarted{Elapsed: 3 * time.Minute, Attached: true}, "session_restarted", "restarted: after 3 min, resumed with its state"},
	{&messages.CallReplayed{Method: "tools/call", Target: "buy", Attempt: 2}, "call_replayed", "call replayed: tools/call buy, run 2"},
	{taskIs("working"), "task_changed", "task working: tools/call report"},
	{taskIs("input_required"), "task_changed", "task input required: tools/call report"},
	{taskIs("completed"), "task_changed", "task completed: tools/call report"},
	{taskIs("failed"), "task_changed", "task failed: tools/call report"},
	{taskIs("cancelled"), "task_changed", "task cancelled: tools/call report"},
	{&messages.SessionGaveUp{Cause: "401", RetryAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, "session_gave_up", "given up: until 03:04:05: 401"},
	{&messages.SessionEvicted{Reason: messages.EvictTenantQuota}, "session_evicted", "evicted: for the quota of the tenant"},
	{&messages.SessionClosed{Lifetime: 50 * time.Hour}, "session_closed", "closed: was open for 2 d"},
	{&messages.SessionClosed{Cause: "timeout"}, "session_closed", "closed: not closed on the server: timeout"},
	{&messages.HandleMinted{Mint: "open"}, "handle_minted", "handle minted: open"},
	{&messages.HandleReleased{Mint: "open"}, "handle_released", "handle released: open"},
	{&messages.HandleReleased{Mint: "open", Gone: true}, "handle_released", "handle released: open, the server did not know it any more"},
	{&messages.HandleLost{Mint: "open", Cause: "the connection broke"}, "handle_lost", "handle lost: open: the connection broke"},
	{&messages.HandleLeft{Mint: "open", Reason: "its id is not unique"}, "handle_left", "handle left: open: its id is not unique"},
	{&messages.OwnerTerminated{Owner: "nonhost/$1", Scopes: []string{"a", "b"}, Cancelled: 2}, "owner_terminated", "owner terminated: nonhost/$1; 2 operations cancelled; scopes: a, b"},
}

func taskIs(status string) *messages.TaskChanged {
	return &messages.TaskChanged{Operation: messages.OperationRef{ID: "1", Method: "tools/call", Target: "report"}, Status: status, Message: "of the server"}
}

func TestEveryEventIsSaidInWordsAndAsJSON(t *testing.T) {
	for _, test := range allEvents {
		row := rowOf(test.event)
		require.Equal(t, test.text, row.Name+": "+row.Detail)
		require.NotEmpty(t, row.Tone)
		text, err := json.Marshal(test.event)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(text), `{"type":"`+test.name+`",`), string(text))
	}
}

func TestTimelineShowsTheLifeOfASession(t *testing.T) {
	start := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	at := func(seconds int, generation uint64) messages.Stamp {
		return messages.Stamp{Key: messages.Key{Server: "s", Scope: "a"}, Generation: generation, Time: start.Add(time.Duration(seconds) * time.Second)}
	}
	events := []messages.Event{ // the newest first
		&messages.SessionClosed{Stamp: at(96, 3)},
		&messages.SessionEvicted{Stamp: at(90, 3)},
		&messages.SessionRestarted{Stamp: at(60, 3)},
		&messages.SessionGaveUp{Stamp: at(50, 2)},
		&messages.SessionRestarting{Stamp: at(41, 2)},
		&messages.SessionLost{Stamp: at(40, 2)},
		&messages.CallReplayed{Stamp: at(20, 2)},
		&messages.SessionRestarted{Stamp: at(20, 2)},
		&messages.SessionRestarting{Stamp: at(20, 1)},
		&messages.SessionExpired{Stamp: at(20, 1)},
		&messages.SessionOpened{Stamp: at(0, 1)},
	}
	line := timelineOf(events, false, start.Add(time.Hour), time.Time{})
	var shapes, kinds []string
	for _, m := range line.Marks {
		shapes = append(shapes, m.Shape)
		require.NotZero(t, lanes[m.Shape])
	}
	for _, s := range line.Segments {
		kinds = append(kinds, s.Kind)
	}
	require.Equal(t, []string{"opened", "expired", "opened", "replayed", "lost", "restarting", "gaveup", "opened", "evicted", "closed"}, shapes)
	require.Equal(t, []string{"open", "open", "restarting", "restarting", "waiting", "open", "draining"}, kinds)
	require.Equal(t, "11:59:58.080", line.From.Text)
	require.Equal(t, "12:01:37.920", line.To.Text)
	require.Equal(t, segment{X: "1.923%", Width: "20.032%", Kind: "open", Label: "generation 1, 20 s", Title: "generation 1 from 12:00:00.000, for 20 s"}, line.Segments[0])
	require.Equal(t, "10 s", line.Segments[4].Label, "there is no room for more")
	require.NotEqual(t, pageShape(t, "expired"), pageShape(t, "lost"))
	require.Equal(t, "lost at 12:00:40.000", line.Marks[4].Title)
	require.Contains(t, line.Text, "with 11 of the events")

	// The last state of a session that is there lasts until now.
	line = timelineOf(events[2:], true, start.Add(time.Hour), time.Time{})
	require.Equal(t, "generation 3 from 12:01:00.000, for 59 min", line.Segments[len(line.Segments)-1].Title)
	require.Nil(t, timelineOf(nil, true, start, time.Time{}))

	// The time around one event.
	line = timelineOf(events, false, start.Add(time.Hour), start.Add(43*time.Second))
	require.Equal(t, "12:00:38.000", line.From.Text)
	require.Equal(t, "12:00:48.000", line.To.Text)
	require.Equal(t, []segment{
		{X: "0.000%", Width: "20.000%", Kind: "open", Label: "generation 2, 20 s", Title: "generation 2 from 12:00:20.000, for 20 s"},
		{X: "20.000%", Width: "10.000%", Kind: "restarting", Label: "1 s", Title: "lost from 12:00:40.000, for 1 s"},
		{X: "30.000%", Width: "70.000%", Kind: "restarting", Label: "restarting, 9 s", Title: "restarting from 12:00:41.000, for 9 s"},
	}, line.Segments)
	require.Len(t, line.Marks, 2)
	require.Contains(t, line.Text, "with 2 of the events")
}

// pageShape returns the picture of a mark.
func pageShape(t *testing.T, name string) string {
	var b strings.Builder
	require.NoError(t, pages.ExecuteTemplate(&b, "shape", name))
	require.NotEmpty(t, b.String())
	return b.String()
}

// A name that is blank would be a link that nobody can see or click.
func TestBlanksAroundANameAreVisible(t *testing.T) {
	for name, shown := range map[string]string{
		" ": "‹U+0020›", "  ": "‹U+0020›‹U+0020›", " a b ": "‹U+0020›a b‹U+0020›", "a b": "a b", "": "", "\t": "‹U+0009›",
	} {
		require.Equal(t, shown, show(name))
	}
}

func TestHistogramsAreDrawnAndSaidInWords(t *testing.T) {
	var h messages.Histogram
	require.Empty(t, pictureOf("Dials", "Times of dials", &h).Total)
	last := len(h.Counts) - 1
	h.Sum = 98*3*time.Millisecond + time.Second + time.Hour
	h.Counts[5], h.Counts[12], h.Counts[last] = 98, 1, 1
	p := pictureOf("Dials", "Times of dials", &h)
	require.Equal(t, "100", p.Total)
	require.Equal(t, "M25 24V0h4v24zM60 24V22h4v2zM105 24V22h4v2z", p.Bars)
	require.Equal(t, "5 ms", p.Median)
	require.Equal(t, "1 s", p.P99)
	require.Equal(t, "Times of dials: 100 in all, half within 5 ms, 99% within 1 s, 36 s on average", p.Text)
	require.Equal(t, 109, p.Width)
	h.Counts[last] += 10
	require.Equal(t, "> 500 s", pictureOf("Dials", "Times of dials", &h).P99)
}

func TestNumbersAndTimesAreReadable(t *testing.T) {
	for n, text := range map[uint64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		require.Equal(t, text, count(n))
	}
	for d, text := range map[time.Duration]string{
		-time.Second: "0 s", 0: "0.0 ms", 150 * time.Microsecond: "0.1 ms", 20 * time.Millisecond: "20 ms", 1200 * time.Millisecond: "1.2 s",
		3 * time.Second: "3 s", 90 * time.Second: "90 s", 2 * time.Minute: "2 min", 3 * time.Hour: "3 h", 72 * time.Hour: "3 d",
	} {
		require.Equal(t, text, span(d))
	}
	now := time.Now()
	require.Equal(t, "4 s ago", ago(now.Add(-4500*time.Millisecond), now).Text)
	require.Equal(t, "0 s ago", ago(now.Add(time.Second), now).Text)
	require.Equal(t, "in 5 s", in(now.Add(4500*time.Millisecond), now).Text)
	require.Equal(t, "for 4 s", lasting(now.Add(-4500*time.Millisecond), now).Text)
	require.Equal(t, moment{}, lasting(time.Time{}, now))
	require.Equal(t, "now", in(now, now).Text)
	require.Empty(t, in(now, time.Time{}).Text)
	require.Equal(t, moment{}, ago(time.Time{}, now))
}

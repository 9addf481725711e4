package debug_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/supervisor/debug"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// event is a server-sent event.
type event struct{ name, data string }

// update returns the parts of an event "update", by their id.
func (e event) update(t *testing.T) map[string]string {
	t.Helper()
	require.Equal(t, "update", e.name, e.data)
	var u struct {
		Now   int64
		Parts []struct{ ID, HTML string }
	}
	require.NoError(t, json.Unmarshal([]byte(e.data), &u))
	require.NotZero(t, u.Now)
	parts := map[string]string{}
	for _, part := range u.Parts {
		parts[part.ID] = part.HTML
	}
	return parts
}

// viewer is a page that is updated live. It is the ResponseWriter of its request, with the
// deadlines of net/http.
type viewer struct {
	header http.Header
	events chan event
	leave  context.CancelFunc
	ended  chan struct{} // closed when the handler has returned

	mu       sync.Mutex
	status   int
	written  bytes.Buffer
	stuck    bool
	deadline time.Time
	changed  chan struct{} // closed when the deadline changes
}

// view opens a page that is updated live.
func (w *world) view(path string) *viewer {
	v := &viewer{header: http.Header{}, events: make(chan event, 1000), ended: make(chan struct{}), changed: make(chan struct{})}
	ctx, leave := context.WithCancel(w.t.Context())
	v.leave = leave
	go func() {
		defer close(v.ended)
		defer leave()
		w.page.ServeHTTP(v, httptest.NewRequest(http.MethodGet, "/debug/mcp/"+path, nil).WithContext(ctx))
	}()
	return v
}

func (v *viewer) Header() http.Header { return v.header }

func (v *viewer) WriteHeader(status int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.status = status
}

func (v *viewer) Write(data []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for v.stuck {
		timer, changed := time.NewTimer(time.Until(v.deadline)), v.changed
		v.mu.Unlock()
		select {
		case <-timer.C:
		case <-changed:
			timer.Stop()
		}
		v.mu.Lock()
		if !v.deadline.After(time.Now()) {
			return 0, os.ErrDeadlineExceeded
		}
	}
	return v.written.Write(data)
}

func (v *viewer) SetWriteDeadline(deadline time.Time) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.deadline = deadline
	close(v.changed)
	v.changed = make(chan struct{})
	return nil
}

// FlushError hands over what was written: one event.
func (v *viewer) FlushError() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	text := v.written.String()
	v.written.Reset()
	name, data, _ := strings.Cut(strings.TrimPrefix(strings.TrimSuffix(text, "\n\n"), "event: "), "\ndata: ")
	v.events <- event{name, data}
	return nil
}

// stick makes the viewer stop reading.
func (v *viewer) stick() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.stuck = true
}

func TestLivePageGetsThePartsThatHaveChanged(t *testing.T) {
	show(t, supervisor.Config{}, debug.Config{}, func(t *testing.T, w *world) {
		w.call("a")
		v := w.view("live")
		parts := (<-v.events).update(t)
		require.Len(t, parts, 4)
		require.Contains(t, textOf(t, parts["supervisor"]), "Calls 1")
		require.Equal(t, "text/event-stream", v.header.Get("Content-Type"))

		w.call("a")
		parts = (<-v.events).update(t)
		require.Contains(t, textOf(t, parts["supervisor"]), "Calls 2")
		require.Contains(t, parts, "servers")
		require.Contains(t, parts, "sessions")
		require.NotContains(t, parts, "events")

		began := time.Now()
		require.Empty(t, (<-v.events).update(t), "nothing has changed: time alone is left to the browser")
		require.Equal(t, 5*time.Second, time.Since(began))

		w.script.Expire(faults.Expiries()[0])
		w.call("a")
		parts = (<-v.events).update(t)
		require.Contains(t, textOf(t, parts["events"]), "expired a s 1")
		require.Contains(t, textOf(t, parts["events"]), "restarted a s 2")
		v.leave()
		<-v.ended
	})
}

func TestLivePageFollowsItsFilter(t *testing.T) {
	show(t, supervisor.Config{}, debug.Config{}, func(t *testing.T, w *world) {
		w.call("a")
		w.call("b")
		v := w.view("live?q=b")
		parts := (<-v.events).update(t)
		require.Contains(t, textOf(t, parts["sessions"]), "1–1 of 1 sessions that match, 2 in all")
		require.NotContains(t, textOf(t, parts["events"]), "opened a")
	})
}

func TestLivePageOfASessionShowsItsTimeline(t *testing.T) {
	show(t, supervisor.Config{}, debug.Config{}, func(t *testing.T, w *world) {
		v := w.view("session-live?server=s&scope=a")
		parts := (<-v.events).update(t)
		require.Contains(t, parts["facts"], "There is no session")
		w.call("a")
		parts = (<-v.events).update(t)
		require.Contains(t, textOf(t, parts["facts"]), "State ready Generation 1")
		require.Contains(t, textOf(t, parts["timeline"]), "opened at")
		w.call("b")
		for len(parts) > 0 && parts["history"] == "" {
			parts = (<-v.events).update(t) // the time of the timeline
		}
		require.NotContains(t, parts["history"], "scope=b")
	})
}

func TestNamesInLivePartsAreText(t *testing.T) {
	show(t, supervisor.Config{}, debug.Config{Actions: true}, func(t *testing.T, w *world) {
		for _, scope := range attacks {
			w.call(scope)
		}
		paths := []string{"live"}
		for _, scope := range attacks {
			paths = append(paths, "session-live?"+url.Values{"server": {"s"}, "scope": {scope}}.Encode())
		}
		for _, path := range paths {
			v := w.view(path)
			e := <-v.events
			require.NotContains(t, e.data, "<", "the data is JSON that could stand in a page")
			for _, part := range e.update(t) {
				inert(t, part)
			}
			v.leave()
			<-v.ended
		}
	})
}

func TestLivePagesEndWithTheSupervisorAndWithThePage(t *testing.T) {
	show(t, supervisor.Config{}, debug.Config{}, func(t *testing.T, w *world) {
		v := w.view("live")
		<-v.events
		require.NoError(t, w.sup.Stop(t.Context()))
		for e := range v.events {
			if e.name == "stopped" {
				break
			}
		}
		<-v.ended
	})
	show(t, supervisor.Config{}, debug.Config{}, func(t *testing.T, w *world) {
		v := w.view("live")
		<-v.events
		began := time.Now()
		w.page.Close()
		<-v.ended
		require.Zero(t, time.Since(began))
	})
}

func TestPagesThatAreUpdatedAreBounded(t *testing.T) {
	show(t, supervisor.Config{}, debug.Config{}, func(t *testing.T, w *world) {
		var all []*viewer
		for range 16 {
			v := w.view("live")
			<-v.events
			all = append(all, v)
		}
		refused := w.view("live")
		<-refused.ended
		require.Equal(t, http.StatusServiceUnavailable, refused.status)
		require.Equal(t, "10", refused.header.Get("Retry-After"))
		require.Equal(t, http.StatusOK, w.get("").Code)
		all[7].leave()
		<-all[7].ended
		<-w.view("live").events
	})
}

func TestViewerThatIsStuckHoldsNothing(t *testing.T) {
	show(t, supervisor.Config{}, debug.Config{}, func(t *testing.T, w *world) {
		stuck, other := w.view("live"), w.view("live")
		<-stuck.events
		<-other.events
		stuck.stick()
		began := time.Now()
		w.call("a")
		<-other.events
		require.LessOrEqual(t, time.Since(began), 2*time.Second)
		<-stuck.ended
		require.LessOrEqual(t, time.Since(began), 12*time.Second, "the write deadline ends it")

		stuck = w.view("live")
		<-stuck.events
		stuck.stick()
		w.call("a")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		began = time.Now()
		w.page.Close()
		<-stuck.ended
		require.Zero(t, time.Since(began))
	})
}

func TestEverythingAtOnce(t *testing.T) {
	show(t, supervisor.Config{MaxSessions: 8}, debug.Config{Actions: true}, func(t *testing.T, w *world) {
		var all sync.WaitGroup
		for i := range 16 {
			scope := string(rune('a' + i))
			all.Go(func() {
				for range 20 {
					// It fails with closed if the session is closed meanwhile.
					_, _ = w.sup.Client().CallTool(t.Context(), "s", scope, &mcp.CallToolParams{Name: "note"})
				}
			})
			all.Go(func() {
				v := w.view("live?sort=-calls")
				for range 3 {
					(<-v.events).update(t)
				}
				v.leave()
				<-v.ended
			})
			all.Go(func() {
				require.Equal(t, http.StatusOK, w.get("?q="+scope).Code)
				require.Equal(t, http.StatusOK, w.get("session?server=s&scope="+scope).Code)
				w.post("restart", url.Values{"server": {"s"}, "scope": {scope}})
				w.post("close-scope", url.Values{"scope": {scope}})
			})
		}
		all.Wait()
	})
}

package tests

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
	"github.com/mcpactor/mcpactor/tests/internal/refusals"
)

// fronts are what stands in front of a server, by what they do to requests while the server is
// away: back is closed when it returns. Without a front, connections are refused.
var fronts = []struct {
	name  string
	away  func(back <-chan struct{}) faults.Fault // nil without a front
	limit time.Duration                           // for calls to work again
}{
	{"none", nil, 3 * time.Second},
	{"502", always(faults.Refuse(502, "Bad Gateway")), 3 * time.Second},
	{"503", always(faults.Refuse(503, "Service Unavailable")), 3 * time.Second},
	{"504", always(faults.Refuse(504, "Gateway Timeout")), 3 * time.Second},
	{"a page", always(says(502, "text/html", "<html><h1>502 Bad Gateway</h1></html>")), 3 * time.Second},
	{"closes", always(faults.Cut()), 3 * time.Second},
	{"hangs", func(back <-chan struct{}) faults.Fault { // and closes when the server is back
		return func(w http.ResponseWriter, r *faults.Request, next http.Handler) {
			select {
			case <-back:
			case <-r.Context().Done():
			}
			faults.Cut()(w, r, next)
		}
	}, 3 * time.Second},
	{"swallows", always(faults.Hang()), 33 * time.Second}, // a dial is given up at its timeout
	{"round robin", func(<-chan struct{}) faults.Fault { // one of two servers with the same sessions is away
		var turn atomic.Int64
		return onlyIf(func(*faults.Request) bool { return turn.Add(1)%2 == 0 }, faults.Refuse(502, ""))
	}, 3 * time.Second},
}

func always(f faults.Fault) func(<-chan struct{}) faults.Fault {
	return func(<-chan struct{}) faults.Fault { return f }
}

// mayCostACall reports whether a call that this refusal answers may have run, for all that is
// known.
func mayCostACall(form refusals.Refusal) bool {
	return form.Status >= 500 || form.Status == 302 || !isError(form) || form.Ping != nil && strings.Contains(form.Body, "{id}")
}

// C12: a server restarts and forgets its sessions. Behind any front, and in whatever form it
// says so, calls work within 3 s of its return, and none fails that would not fail without a
// front.
func TestFrontsChangeNothing(t *testing.T) {
	t.Parallel()
	for _, front := range fronts {
		scenario := func(t *testing.T, form refusals.Refusal) {
			t.Parallel()
			behindFront(t, form, func(h *harness, server *faults.Server) {
				require.Equal(h.t, "1", h.send(call("a", "count")).text())
				var early []*sentCommand
				if slices.Contains(forgotten, form.Name) { // the others are idle
					early = append(early, h.send(call("a", "wait", replay(messages.ReplayAlways))))
					synctest.Wait()
				}
				back := h.away(server, front.away, form.Expiry())
				time.Sleep(500 * time.Millisecond) // synctest
				early = append(early, h.send(call("a", "count", replay(messages.ReplayAlways), within(10*time.Second))))
				time.Sleep(500 * time.Millisecond) // synctest
				unsafe := h.calls(3, "a", "count", within(10*time.Second))
				once := h.calls(3, "a", "count", within(10*time.Second), replay(messages.ReplayNever))
				time.Sleep(6 * time.Second) // synctest
				back()
				at := time.Now()
				h.requireTheyWork(front.limit, form)
				switch front.name {
				case "swallows":
					early, unsafe = nil, nil // such a call ends at its deadline
				case "round robin":
					early, unsafe = nil, append(early, unsafe...) // a call may meet the server that is away twice
				default: // there they may be refused themselves
					unsafe = append(unsafe, once...)
				}
				for _, p := range early {
					p.ok()
					require.LessOrEqual(h.t, p.answeredAt.Sub(at), 3*time.Second)
				}
				for _, p := range unsafe {
					if f, is := p.reply().(*messages.Failure); is {
						require.True(h.t, f.MayHaveRun, "%v", f)
						require.NotEqual(h.t, messages.CodeInvalid, f.Code, "%v", f)
						require.NotContains(h.t, f.Detail, "affinity")
						isReset := front.name == "hangs" && f.Code == messages.CodeLost // the front had it, and closes
						require.True(h.t, p.answeredAt.Before(at) || isReset || mayCostACall(form), "%v", f)
					}
				}
				time.Sleep(time.Until(at.Add(front.limit))) // synctest
				h.requireTheyWork(time.Second, refusals.Refusal{Answer: refusals.Answer{Status: 404}})
				require.Equal(h.t, 1, server.Sessions())
			})
		}
		t.Run(front.name, func(t *testing.T) {
			t.Parallel()
			eachRefusal(t, "http", scenario, refusals.Certain, refusals.Expired)
			eachRefusal(t, "sse", scenario, refusals.Certain, refusals.Expired)
		})
	}
}

// away takes a server away behind a front. When it is back, it has forgotten its sessions.
func (h *harness) away(server *faults.Server, front func(<-chan struct{}) faults.Fault, form faults.Expiry) (back func()) {
	h.t.Helper()
	server.Expire(form)
	if front == nil {
		require.NoError(h.t, server.Restart())
		server.Stop()
		return func() { require.NoError(h.t, server.Start()) }
	}
	returned := make(chan struct{})
	remove := server.Inject("", front(returned))
	require.NoError(h.t, server.Restart())
	return func() { remove(); close(returned) }
}

// requireTheyWork makes calls, and checks that each has a result within a limit.
func (h *harness) requireTheyWork(limit time.Duration, form refusals.Refusal) {
	h.t.Helper()
	for i, p := range append(h.calls(5, "a", "count"), h.calls(5, "a", "count", replay(messages.ReplayAlways))...) {
		if f, is := p.reply().(*messages.Failure); is && i < 5 && mayCostACall(form) {
			require.Contains(h.t, []messages.Code{messages.CodeLost, messages.CodeServerError}, f.Code, "%v", f)
			require.True(h.t, f.MayHaveRun, "%v", f)
			require.NotContains(h.t, f.Detail, "affinity")
			continue
		}
		p.ok()
		require.LessOrEqual(h.t, p.answeredAt.Sub(p.sent), limit)
	}
}

// behindFront runs a scenario with a server that says in the given form that it does not know
// a session.
func behindFront(t *testing.T, form refusals.Refusal, scenario func(h *harness, server *faults.Server)) {
	t.Helper()
	if form.Transport == "sse" {
		overLocalHTTP(t, supervisor.Config{}, newSSETools, func(h *harness, e *testServer) {
			time.AfterFunc(2*time.Second, e.Release)
			scenario(h, e.Server)
		})
		return
	}
	overRawHTTP(t, habits{unknown: form.Respond}, func(p *plain) {
		time.AfterFunc(2*time.Second, p.raw.release)
		scenario(p.harness, p.server)
	})
}

// C12: behind a front, calls of a server without sessions wait as well until it is back. Such a session has no state on the
// server: it is reported as stateless, and keeps its generation.
func TestStatelessCallsWaitBehindAFront(t *testing.T) {
	for _, front := range fronts[:6] {
		t.Run(front.name, func(t *testing.T) {
			overLocalHTTP(t, supervisor.Config{}, newStatelessTools, func(h *harness, e *testServer) {
				require.True(h.t, h.send(&messages.Open{Header: messages.To("s", "a")}).reply().(*messages.SessionInfo).Stateless)
				h.send(call("a", "count")).ok()
				require.True(h.t, h.session("a").Stateless)
				back := h.away(e.Server, front.away, faults.Expiry{})
				time.Sleep(500 * time.Millisecond) // synctest
				early := h.send(call("a", "count", replay(messages.ReplayAlways), within(10*time.Second)))
				time.Sleep(500 * time.Millisecond) // synctest
				late := h.send(call("a", "count", within(10*time.Second)))
				time.Sleep(5 * time.Second) // synctest
				back()
				at := time.Now()
				for _, p := range append(h.calls(3, "a", "count"), early, late) {
					require.EqualValues(h.t, 1, p.ok().Generation, "nothing was lost with it")
					require.LessOrEqual(h.t, p.answeredAt.Sub(at), 3*time.Second)
				}
			})
		})
	}
}

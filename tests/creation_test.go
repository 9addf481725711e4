package tests

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// slowDial makes each dial take d, and then return err.
func slowDial(d time.Duration, err error) func(context.Context, dial.Request) error {
	return func(ctx context.Context, _ dial.Request) error {
		select {
		case <-time.After(d):
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// refusedKey is the error of a server that is up and refuses one key.
func refusedKey(detail string) *mcpbridge.Error {
	return &mcpbridge.Error{Class: mcpbridge.Unavailable, Server: mcpbridge.Present, Detail: detail}
}

// A2: calls fail at once if only the key is refused, at their deadline if the server is
// down, and at once if the server is down and FailFast is set.
func TestFailedCreationFailsAllWhoWaitedAndTheNextCallTriesAnew(t *testing.T) {
	for name, c := range map[string]struct {
		cfg   supervisor.Config
		cause *mcpbridge.Error
		after time.Duration
		dials int
	}{
		"key":                 {cause: refusedKey("no route"), after: time.Second, dials: 1},
		"server":              {cause: unavailableError("no route"), after: 5 * time.Second, dials: 5},
		"server, not waiting": {cfg: supervisor.Config{FailFast: true}, cause: unavailableError("no route"), after: time.Second, dials: 1},
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, c.cfg, func(h *harness) {
				h.server.dial = slowDial(time.Second, c.cause)
				for _, p := range h.calls(200, "a", "count", within(5*time.Second)) {
					f := p.fails(messages.CodeUnavailable)
					require.Contains(t, f.Detail, "no route")
					require.False(t, f.MayHaveRun)
					require.Less(t, f.RetryAfter, 2*time.Second)
					require.Equal(t, c.after, p.answeredAt.Sub(p.sent))
				}
				require.LessOrEqual(t, h.dials.dialed(), c.dials)
				time.Sleep(time.Second) // synctest
				h.server.set(func() { h.server.dial = nil })
				require.Equal(t, "1", h.send(call("a", "count")).text())
			})
		})
	}
}

// A3
func TestCallerWhoGivesUpDoesNotCancelTheCreationForOthers(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.server.dial = slowDial(time.Second, nil)
		all := h.calls(10, "a", "count")
		synctest.Wait()
		for _, i := range []int{0, 4, 9} {
			h.cancel(all[i])
		}
		for i, p := range all {
			if i == 0 || i == 4 || i == 9 {
				p.fails(messages.CodeCancelled)
			} else {
				p.ok()
			}
		}
		require.Equal(t, 1, h.dials.dialed())
	})
}

// A4
func TestCreationNobodyWaitsForIsKeptForTheNextCall(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.server.dial = slowDial(time.Second, nil)
		all := h.calls(10, "a", "count")
		synctest.Wait()
		for _, p := range all {
			h.cancel(p)
			p.fails(messages.CodeCancelled)
		}
		require.Equal(t, "1", h.send(call("a", "count")).text())
		require.Equal(t, 1, h.dials.dialed())
	})
}

// A5
func TestClosingDuringTheCreationAnswersAndResurrectsNothing(t *testing.T) {
	for name, cmd := range map[string]messages.Command{
		"scope":  &messages.CloseScope{Scope: "a"},
		"server": &messages.CloseServer{Server: "s"},
		"all":    &messages.CloseAll{},
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, supervisor.Config{}, func(h *harness) {
				h.server.dial = slowDial(time.Second, nil)
				all := h.calls(10, "a", "count")
				synctest.Wait()
				closed := h.send(cmd).reply().(*messages.Closed)
				require.Empty(t, closed.Left)
				for _, p := range all {
					require.False(t, p.fails(messages.CodeClosed).MayHaveRun)
				}
				time.Sleep(time.Minute) // synctest
				require.Empty(t, h.inspect().Sessions)
				require.Equal(t, 1, h.dials.dialed())
			})
		})
	}
}

// A5: the dialer ignores its context, and succeeds after the close.
func TestConnectionThatComesAfterTheCloseIsClosed(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.server.dial = func(context.Context, dial.Request) error {
			time.Sleep(time.Second) // synctest
			return nil
		}
		p := h.send(call("a", "count"))
		synctest.Wait()
		again := h.send(&messages.CloseAll{})
		p.fails(messages.CodeClosed)
		next := h.send(call("a", "count"))
		again.reply()
		require.Equal(t, "1", next.text())
		require.Equal(t, 2, h.dials.dialed())
	})
}

// A6, guarantee 9
func TestDialThatHangsEndsAtTheConnectTimeoutAndDelaysNoOtherKey(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.server.dial = func(ctx context.Context, req dial.Request) error {
			if req.Key.Scope == "hung" {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		began := time.Now()
		hung := h.send(call("hung", "count"))
		synctest.Wait()
		require.Equal(t, "1", h.send(call("a", "count")).text())
		require.Zero(t, time.Since(began))
		require.Contains(t, hung.fails(messages.CodeUnavailable).Detail, "timed out")
		require.Equal(t, 30*time.Second, time.Since(began))
	})
}

// A6: the dialer ignores its context.
func TestDialThatHeedsNothingIsGivenUp(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		release := make(chan struct{})
		h.server.dial = func(context.Context, dial.Request) error {
			<-release
			return nil
		}
		began := time.Now()
		h.send(call("a", "count")).fails(messages.CodeUnavailable)
		require.Less(t, time.Since(began), 33*time.Second)
		close(release)
		synctest.Wait()
	})
}

// A10
func TestRefusedAuthorizationIsNotTriedAgainBeforeTheCoolDown(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.server.dial = func(context.Context, dial.Request) error {
			return &mcpbridge.Error{Class: mcpbridge.Unauthorized, Detail: "401 Unauthorized"}
		}
		h.send(call("a", "count")).fails(messages.CodeUnauthorized)
		for range 20 {
			f := h.send(call("a", "count")).fails(messages.CodeUnauthorized)
			require.Positive(t, f.RetryAfter)
			time.Sleep(time.Second) // synctest
		}
		require.Equal(t, 1, h.dials.dialed())
		time.Sleep(11 * time.Second) // synctest
		h.send(call("a", "count")).fails(messages.CodeUnauthorized)
		require.Equal(t, 2, h.dials.dialed())
	})
}

// A1: the same for Open.
func TestOpenOpensOnceAndTellsOfTheServer(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		for range 3 {
			info := h.send(&messages.Open{Header: messages.To("s", "a")}).reply().(*messages.SessionInfo)
			require.EqualValues(t, 1, info.Generation)
			require.NotNil(t, info.Server)
		}
		require.Equal(t, 1, h.dials.dialed())
	})
}

// C4: an id of an MCP session that no server would take in a request is not kept.
func TestSessionWithAnIDThatIsTooLongIsClosed(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.server.set(func() { h.server.prefix = strings.Repeat("x", 8<<10) })
		f := h.send(call("a", "count")).fails(messages.CodeProtocol)
		require.Contains(t, f.Detail, "at most 8192 are accepted")
		require.Less(t, len(f.Detail), 500)
		require.False(t, f.MayHaveRun)
		h.server.set(func() { require.Empty(t, h.server.sessions, "it was closed on the server") })
		time.Sleep(time.Minute)
		h.server.set(func() { h.server.prefix = strings.Repeat("x", 8<<10-len("session-10")) })
		h.send(call("a", "count")).ok()
	})
}

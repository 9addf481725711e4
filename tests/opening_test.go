package tests

import (
	"errors"
	"path"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// abandonments are the ways in which an opening is abandoned. Each returns what is left, once the sessions are closed.
var abandonments = map[string]func(h *harness) []messages.Left{
	"the session is closed": func(h *harness) []messages.Left {
		return h.send(&messages.CloseSession{Key: keyOf("s", "a")}).reply().(*messages.Closed).Left
	},
	"the scope is closed": func(h *harness) []messages.Left {
		return h.send(&messages.CloseScope{Scope: "a", Now: true}).reply().(*messages.Closed).Left
	},
	"the server is closed": func(h *harness) []messages.Left {
		return h.send(&messages.CloseServer{Server: "s"}).reply().(*messages.Closed).Left
	},
	"all is closed": func(h *harness) []messages.Left { return h.send(&messages.CloseAll{}).reply().(*messages.Closed).Left },
	"the session is restarted, and all is closed": func(h *harness) []messages.Left {
		h.send(&messages.Restart{Key: keyOf("s", "a")})
		return h.send(&messages.CloseAll{}).reply().(*messages.Closed).Left
	},
	"the server is removed": func(h *harness) []messages.Left {
		closed, err := h.sup.Reload(h.t.Context(), []mcpbridge.Server{{Name: "other", URL: "http://other.invalid"}})
		require.NoError(h.t, err)
		return closed.Left
	},
	"the key moves to another member": func(h *harness) []messages.Left {
		n := join(h)
		n.foreign.Store(true)
		return (<-n.release(protocol.Release{})).(*messages.Closed).Left
	},
	"the supervisor stops": func(h *harness) []messages.Left {
		var stop *supervisor.StopError
		if errors.As(h.sup.Stop(h.t.Context()), &stop) {
			return stop.Left
		}
		return nil
	},
}

// abandoned abandons the opening of a session whose server answers initialize after a while.
func abandoned(t *testing.T, answers time.Duration, scenario func(h *harness, e *testServer, abandon func(h *harness) []messages.Left)) {
	for name, abandon := range abandonments {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tools := newHTTPTools()
				e := &testServer{faults.Local(tools.Handler), tools, t}
				defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
				defer e.close()
				e.Inject("initialize", faults.Delay(answers))
				h := start(t, supervisor.Config{Servers: []mcpbridge.Server{e.config()}})
				h.send(call("a", "count"))
				time.Sleep(500 * time.Millisecond) // synctest
				scenario(h, e, abandon)
			})
		})
	}
}

// A session that its server opens after its opening was abandoned is ended, if the server answers within the close timeout.
func TestSessionThatOpensAfterItsOpeningWasAbandonedIsEnded(t *testing.T) {
	abandoned(t, 4*time.Second, func(h *harness, e *testServer, abandon func(h *harness) []messages.Left) {
		began := time.Now()
		require.Empty(h.t, abandon(h))
		require.Equal(h.t, 3500*time.Millisecond, time.Since(began))
		require.Zero(h.t, e.Sessions())
		require.Equal(h.t, 1, e.Count("DELETE"))
		require.NoError(h.t, h.sup.Stop(h.t.Context()))
	})
}

// Otherwise it is named as left. While the supervisor runs, it is ended nevertheless as soon as the server answers.
func TestOpeningThatWasAbandonedAndCouldNotBeEndedIsNamed(t *testing.T) {
	abandoned(t, 20*time.Second, func(h *harness, e *testServer, abandon func(h *harness) []messages.Left) {
		began := time.Now()
		left := abandon(h)
		require.Len(h.t, left, 1)
		require.Equal(h.t, keyOf("s", "a"), left[0].Key)
		require.Contains(h.t, left[0].Reason, "the server has not answered initialize yet, and may open a session")
		require.LessOrEqual(h.t, time.Since(began), 6*time.Second)
		time.Sleep(20 * time.Second) // synctest
		if h.sup.Stop(h.t.Context()) == nil {
			require.NotZero(h.t, e.Count("DELETE"))
		} else {
			require.Equal(h.t, "the supervisor stops", path.Base(strings.ReplaceAll(h.t.Name(), "_", " ")))
		}
		require.Zero(h.t, e.Sessions())
	})
}

// If the server never answers, nobody can know what it has done: that is said once. It does not fail a Stop days later.
func TestOpeningThatIsNeverAnsweredIsNamedOnce(t *testing.T) {
	abandoned(t, time.Hour, func(h *harness, _ *testServer, abandon func(h *harness) []messages.Left) {
		closeAll := func() []messages.Left { return h.send(&messages.CloseAll{}).reply().(*messages.Closed).Left }
		require.Len(h.t, abandon(h), 1)
		if strings.HasSuffix(h.t.Name(), "stops") {
			return
		}
		left := closeAll()
		require.NotEmpty(h.t, left, "the answer may still come")
		require.Contains(h.t, left[0].Reason, "the server has not answered initialize yet")
		time.Sleep(30 * time.Second) // synctest
		require.Empty(h.t, closeAll())
		require.NoError(h.t, h.sup.Stop(h.t.Context()))
	})
}

// It may be abandoned so late that the answer is not awaited to the end of the close timeout.
func TestOpeningThatIsAbandonedLateIsNamedOnce(t *testing.T) {
	abandoned(t, time.Hour, func(h *harness, _ *testServer, abandon func(h *harness) []messages.Left) {
		time.Sleep(27 * time.Second) // synctest
		left := abandon(h)
		require.Len(h.t, left, 1)
		if strings.Contains(h.t.Name(), "restarted") {
			h.sup.Stop(h.t.Context()) // which names another opening
			return
		}
		require.Contains(h.t, left[0].Reason, "the server has not answered initialize in time, and may have opened a session")
		if !strings.HasSuffix(h.t.Name(), "stops") {
			require.NoError(h.t, h.sup.Stop(h.t.Context()))
		}
	})
}

// Callers were told of openings that took too long. A close has nothing to add, and a Stop does not fail because of them.
func TestOpeningsThatTookTooLongAreNotNamed(t *testing.T) {
	overLocalHTTP(t, supervisor.Config{ConnectTimeout: 300 * time.Millisecond}, newHTTPTools, func(h *harness, e *testServer) {
		heal := e.Inject("initialize", faults.Hang())
		for range 6 {
			h.send(call("a", "count")).fails(messages.CodeUnavailable)
			time.Sleep(5 * time.Second) // synctest
		}
		heal()
		time.Sleep(time.Minute) // synctest
		require.Equal(t, "1", h.send(call("a", "count")).text())
		closed := h.send(&messages.CloseScope{Scope: "a"}).reply().(*messages.Closed)
		require.Equal(t, 1, closed.Sessions)
		require.Empty(t, closed.Left)
	})
}

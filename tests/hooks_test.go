package tests

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// panickingConn is a connection with a method that panics. The session actor calls these
// methods in its own goroutine.
type panickingConn struct {
	dial.Conn
	where string
	times *atomic.Int64 // how often the method panics
}

func (b *panickingConn) panicIn(where string) {
	if b.where == where && b.times.Add(-1) >= 0 {
		panic("a bug in " + where)
	}
}

func (b *panickingConn) Info() dial.Info { b.panicIn("Info"); return b.Conn.Info() }
func (b *panickingConn) Hint(tool string) (safe, known bool) {
	b.panicIn("Hint")
	return b.Conn.Hint(tool)
}
func (b *panickingConn) Resume() *mcpbridge.Resume { b.panicIn("Resume"); return b.Conn.Resume() }

type panickingDialer struct {
	dial.Dialer
	where string
	times atomic.Int64
}

func (d *panickingDialer) Dial(ctx context.Context, req dial.Request) (dial.Conn, error) {
	conn, err := d.Dialer.Dial(ctx, req)
	if err != nil {
		return nil, err
	}
	return &panickingConn{conn, d.where, &d.times}, nil
}

// G1: the session actor panics while it handles a message. A test of package actors does
// this for each message.
func TestSessionActorThatPanicsAnswersItsCallersAndIsReplaced(t *testing.T) {
	for _, where := range []string{"Info", "Hint", "Resume"} {
		t.Run(where, func(t *testing.T) {
			var log bytes.Buffer
			d := &panickingDialer{where: where}
			cfg := dial.Wrap(supervisor.Config{Logger: zerolog.New(zerolog.SyncWriter(&log))}, func(inner dial.Dialer) dial.Dialer {
				d.Dialer = inner
				return d
			})
			inFakeTime(t, cfg, func(h *harness) {
				h.strict = false // the panic is a supervision event that is no fault
				other := h.send(call("b", "slow"))
				synctest.Wait()
				if where == "Info" { // called when the session is opened
					d.times.Store(1)
				}
				waiting := h.send(call("a", "hang", within(time.Minute)))
				synctest.Wait()
				if where != "Info" { // called when the connection has broken
					d.times.Store(1)
					h.server.breakConnection("a", false)
				}
				f := waiting.reply().(*messages.Failure)
				require.Contains(t, []messages.Code{messages.CodeInternal, messages.CodeLost, messages.CodeUnavailable}, f.Code)
				require.Equal(t, "done", other.text(), "the others are unharmed")
				h.send(call("a", "count")).ok()
				synctest.Wait() // all lines are written
				require.Contains(t, log.String(), "a bug in "+where)
				require.Contains(t, log.String(), "goroutine ", "the stack")
			})
		})
	}
}

// G2: a call whose hook hangs fails at its deadline. The session is not affected.
func TestHookThatHangsEndsAtTheDeadlineOfItsCall(t *testing.T) {
	for name, heedless := range map[string]bool{"heeds its context": false, "heeds nothing": true} {
		t.Run(name, func(t *testing.T) {
			release := lazyChannel()
			var hang atomic.Bool
			hooks := faults.Hooks{BeforeCall: func(ctx context.Context, _ messages.Key, op messages.Operation) error {
				tool, ok := op.(*messages.CallTool)
				if !ok || tool.Params.Name != "count" || !hang.Load() {
					return nil
				}
				if heedless {
					<-release()
				}
				<-ctx.Done()
				return ctx.Err()
			}}
			overLocalHTTP(t, hooks.Config(supervisor.Config{DrainTimeout: time.Second}), newHTTPTools, func(h *harness, e *testServer) {
				require.Equal(t, "1", h.send(call("a", "count")).text())
				running := h.send(call("a", "wait"))
				e.awaitExecutions(2)
				hang.Store(true)
				began := time.Now()
				h.send(call("a", "count", within(300*time.Millisecond))).fails(messages.CodeDeadline)
				require.Less(t, time.Since(began), 1300*time.Millisecond)
				hang.Store(false)
				e.Release()
				require.Equal(t, "2", running.text())
				r := h.send(call("a", "count"))
				require.Equal(t, "3", r.text())
				require.EqualValues(t, 1, r.ok().Generation)
				close(release())
			})
		})
	}
}

// G2: the http.RoundTripper of the user panics.
func TestHTTPClientThatPanicsFailsItsCallAlone(t *testing.T) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	var fail atomic.Bool
	client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPost && fail.CompareAndSwap(true, false) {
			panic("a bug in a header provider")
		}
		return transport.RoundTrip(r)
	})}
	overHTTP(t, supervisor.Config{Servers: []mcpbridge.Server{{Name: "s", HTTPClient: client}}}, func(h *harness, _ *testServer) {
		require.Equal(t, "1", h.send(call("a", "count")).text())
		fail.Store(true)
		h.send(call("a", "count")).fails(messages.CodeInternal)
		require.Equal(t, "2", h.send(call("a", "count")).text())
		transport.CloseIdleConnections()
	})
}

// F5: in fake time only waiting takes time, so a call that is not delayed takes none.
func TestFloodOnOneKeyDelaysNoOther(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.calls(10_000, "flood", "slow")
		for i := range 30 {
			began := time.Now()
			h.send(call([]string{"a", "b", "c"}[i%3], "slow")).ok()
			require.Equal(t, time.Second, time.Since(began))
			h.calls(1000, "flood", "count")
		}
		time.Sleep(time.Minute) // synctest: until all calls are answered
	})
}

// F6
func TestForeignMessageIsLoggedOnceByItsType(t *testing.T) {
	var log bytes.Buffer
	inFakeTime(t, supervisor.Config{Logger: zerolog.New(zerolog.SyncWriter(&log))}, func(h *harness) {
		for range 10 {
			h.system.Root.Send(h.sup.PID(), "a secret text")
			h.system.Root.Send(h.sup.PID(), 4711)
		}
		for _, msg := range []any{(*messages.CallTool)(nil), (*messages.Inspect)(nil), (*messages.Cancel)(nil)} {
			h.system.Root.Send(h.sup.PID(), msg)
		}
		synctest.Wait()
		require.Equal(t, 2, strings.Count(log.String(), "of an unknown type"))
		require.NotContains(t, log.String(), "secret")
		require.NotContains(t, log.String(), "4711")
		require.Equal(t, "1", h.send(call("a", "count")).text())
	})
}

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

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// buggy is a connection with a bug in what the session actor itself calls.
type buggy struct {
	mcpbridge.Conn
	where string
	times *atomic.Int64 // how often it is hit
}

func (b *buggy) hit(where string) {
	if b.where == where && b.times.Add(-1) >= 0 {
		panic("a bug in " + where)
	}
}

func (b *buggy) Info() mcpbridge.Info                { b.hit("Info"); return b.Conn.Info() }
func (b *buggy) Hint(tool string) (safe, known bool) { b.hit("Hint"); return b.Conn.Hint(tool) }
func (b *buggy) Resume() *mcpbridge.Resume           { b.hit("Resume"); return b.Conn.Resume() }

type buggyDialer struct {
	mcpbridge.Dialer
	where string
	times atomic.Int64
}

func (d *buggyDialer) Dial(ctx context.Context, req mcpbridge.DialRequest) (mcpbridge.Conn, error) {
	conn, err := d.Dialer.Dial(ctx, req)
	if err != nil {
		return nil, err
	}
	return &buggy{conn, d.where, &d.times}, nil
}

// G1: the session actor panics in the middle of what it does. Package actors has
// a test with a bug in every one of its messages.
func TestSessionActorThatPanicsAnswersItsCallersAndIsReplaced(t *testing.T) {
	for _, where := range []string{"Info", "Hint", "Resume"} {
		t.Run(where, func(t *testing.T) {
			var log bytes.Buffer
			d := &buggyDialer{where: where}
			cfg := supervisor.Config{Logger: zerolog.New(zerolog.SyncWriter(&log)), WrapDialer: func(inner mcpbridge.Dialer) mcpbridge.Dialer {
				d.Dialer = inner
				return d
			}}
			imagine(t, cfg, func(w *world) {
				w.strict = false // the bug is in the supervision events
				other := w.send(call("b", "slow"))
				synctest.Wait()
				if where == "Info" { // asked for when the session is opened
					d.times.Store(1)
				}
				waiting := w.send(call("a", "hang", within(time.Minute)))
				synctest.Wait()
				if where != "Info" { // asked for when the connection has broken
					d.times.Store(1)
					w.fake.sever("a", false)
				}
				f := waiting.reply().(*messages.Failure)
				require.Contains(t, []messages.Code{messages.CodeInternal, messages.CodeLost, messages.CodeUnavailable}, f.Code)
				require.Equal(t, "done", other.text(), "the others are unharmed")
				w.send(call("a", "count")).ok()
				synctest.Wait() // all is logged
				require.Contains(t, log.String(), "a bug in "+where)
				require.Contains(t, log.String(), "goroutine ", "the stack")
			})
		})
	}
}

// G2: a hook that hangs costs its call its deadline, and the session nothing.
func TestHookThatHangsEndsAtTheDeadlineOfItsCall(t *testing.T) {
	for name, heedless := range map[string]bool{"heeds its context": false, "heeds nothing": true} {
		t.Run(name, func(t *testing.T) {
			release := make(chan struct{})
			var hang atomic.Bool
			hooks := faults.Hooks{BeforeCall: func(ctx context.Context, _ messages.Key, op messages.Operation) error {
				tool, ok := op.(*messages.CallTool)
				if !ok || tool.Params.Name != "count" || !hang.Load() {
					return nil
				}
				if heedless {
					<-release
				}
				<-ctx.Done()
				return ctx.Err()
			}}
			overHTTP(t, supervisor.Config{WrapDialer: hooks.Wrap, DrainTimeout: time.Second}, func(w *world, e *endpoint) {
				require.Equal(t, "1", w.send(call("a", "count")).text())
				running := w.send(call("a", "wait"))
				e.running(2)
				hang.Store(true)
				began := time.Now()
				w.send(call("a", "count", within(300*time.Millisecond))).fails(messages.CodeDeadline)
				require.Less(t, time.Since(began), 1300*time.Millisecond)
				hang.Store(false)
				e.Release()
				require.Equal(t, "2", running.text())
				r := w.send(call("a", "count"))
				require.Equal(t, "3", r.text())
				require.EqualValues(t, 1, r.ok().Generation)
				close(release)
			})
		})
	}
}

// G2: the transport of the caller's own HTTP client panics.
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
	overHTTP(t, supervisor.Config{Servers: []mcpbridge.Server{{Name: "s", HTTPClient: client}}}, func(w *world, _ *endpoint) {
		require.Equal(t, "1", w.send(call("a", "count")).text())
		fail.Store(true)
		w.send(call("a", "count")).fails(messages.CodeInternal)
		require.Equal(t, "2", w.send(call("a", "count")).text())
		transport.CloseIdleConnections()
	})
}

// F5: in fake time nothing but waiting takes time.
func TestFloodOnOneKeyDelaysNoOther(t *testing.T) {
	imagine(t, supervisor.Config{}, func(w *world) {
		w.calls(10_000, "flood", "slow")
		for i := range 30 {
			began := time.Now()
			w.send(call([]string{"a", "b", "c"}[i%3], "slow")).ok()
			require.Equal(t, time.Second, time.Since(began))
			w.calls(1000, "flood", "count")
		}
		time.Sleep(time.Minute) // synctest: the flood has passed
	})
}

// F6
func TestForeignMessageIsLoggedOnceByItsType(t *testing.T) {
	var log bytes.Buffer
	imagine(t, supervisor.Config{Logger: zerolog.New(zerolog.SyncWriter(&log))}, func(w *world) {
		for range 10 {
			w.system.Root.Send(w.sup.PID(), "a secret text")
			w.system.Root.Send(w.sup.PID(), 4711)
		}
		synctest.Wait()
		require.Equal(t, 2, strings.Count(log.String(), "of an unknown type"))
		require.NotContains(t, log.String(), "secret")
		require.NotContains(t, log.String(), "4711")
		require.Equal(t, "1", w.send(call("a", "count")).text())
	})
}

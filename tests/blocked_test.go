package tests

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// blockedWriter is a log writer that blocks until the channel open is closed.
type blockedWriter struct {
	open func() <-chan struct{}
	mu   sync.Mutex
	log  bytes.Buffer
}

func (b *blockedWriter) Write(p []byte) (int, error) {
	<-b.open()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.Write(p)
}

// lazyChannel returns a function that makes a channel at its first call. A channel must be
// made in the bubble of fake time that uses it.
func lazyChannel() func() chan struct{} {
	return sync.OnceValue(func() chan struct{} { return make(chan struct{}) })
}

// H-D3: a log writer that blocks delays no call. Lines beyond a bound are dropped and
// counted, and Stop reports the writer.
func TestLogWriterThatBlocksDelaysNothing(t *testing.T) {
	release := lazyChannel()
	writer := &blockedWriter{open: func() <-chan struct{} { return release() }}
	inFakeTime(t, supervisor.Config{Logger: zerolog.New(writer), BackoffBase: 1, Budget: -1}, func(h *harness) {
		began := time.Now()
		for range 200 {
			for _, scope := range []string{"a", "b"} {
				require.Equal(t, "1", h.send(call(scope, "count")).text())
			}
			for range 11 { // each writes several lines
				h.server.expire("a")
				h.send(call("a", "count")).ok()
			}
			h.send(&messages.CloseAll{}).reply()
		}
		require.Less(t, time.Since(began), time.Second)
		require.Positive(t, h.inspect().Counters.LinesDropped)
		began = time.Now()
		err := h.sup.Stop(h.t.Context())
		var stop *supervisor.StopError
		require.ErrorAs(t, err, &stop)
		require.Equal(t, []string{"the log writer does not return"}, stop.Stuck)
		require.Equal(t, 2*time.Second, time.Since(began))
		close(release())
		synctest.Wait()
		require.NoError(t, h.sup.Stop(h.t.Context()))
		require.Contains(t, writer.log.String(), "log lines were dropped")
	})
}

// H-D4: an event handler that blocks delays only events. The number of waiting events is
// bounded, the events beyond are dropped and counted, and Stop reports the handler.
func TestEventHandlerThatBlocksDelaysNothing(t *testing.T) {
	inFakeTime(t, supervisor.Config{BackoffBase: 1, Budget: -1}, func(h *harness) {
		h.log = nil // there are more lines than events that reach the test
		release := make(chan struct{})
		h.system.EventStream.Subscribe(func(event any) {
			if _, ok := event.(messages.Event); ok {
				<-release
			}
		})
		for h.inspect().Counters.Dropped == 0 {
			for range 1000 {
				h.send(call("a", "count")).ok()
				h.server.expire("a")
			}
		}
		began := time.Now()
		err := h.sup.Stop(h.t.Context())
		require.ErrorContains(t, err, "an event handler does not return")
		require.Equal(t, 2*time.Second, time.Since(began))
		close(release)
		synctest.Wait()
		require.NoError(t, h.sup.Stop(h.t.Context()))
	})
}

// H-D4: Stop returns when it is called by an event handler or by an interceptor, for which
// it would otherwise wait.
func TestStopFromWithinReturns(t *testing.T) {
	t.Run("an event handler", func(t *testing.T) {
		inFakeTime(t, supervisor.Config{}, func(h *harness) {
			stopped := make(chan error, 1)
			h.system.EventStream.Subscribe(func(event any) {
				if _, ok := event.(*messages.SessionOpened); ok {
					stopped <- h.sup.Stop(context.Background())
				}
			})
			began := time.Now()
			h.send(call("a", "count"))
			require.ErrorContains(t, <-stopped, "an event handler does not return")
			require.Equal(t, 2*time.Second, time.Since(began))
		})
	})
	t.Run("an interceptor", func(t *testing.T) {
		var h *harness
		stopped := make(chan error, 1)
		stop := func(next actors.Runner) actors.Runner {
			return func(ctx context.Context, op messages.Operation) (messages.Result, error) {
				err := h.sup.Stop(context.Background())
				stopped <- err
				return nil, err
			}
		}
		inFakeTime(t, supervisor.Config{Interceptors: []actors.Interceptor{stop}}, func(running *harness) {
			h, stopped = running, make(chan error, 1)
			began := time.Now()
			p := h.send(call("a", "count"))
			require.ErrorContains(t, <-stopped, "the interceptors of 1 operations do not return")
			require.LessOrEqual(t, time.Since(began), 20*time.Second)
			require.True(t, strings.Contains(p.fails(messages.CodeClosed).Detail, "interceptor"))
		})
	})
}

package relay

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

// logged is a writer that keeps the lines.
type logged struct {
	mu  sync.Mutex
	all []string
}

func (w *logged) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, strings.TrimSuffix(string(p), "\n"))
	return len(p), nil
}

// lines returns the lines so far.
func (w *logged) lines() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.all)
}

func TestFloodOfEqualLinesIsSummedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := new(logged)
		l := NewLogger(zerolog.New(out))
		lost := func(n int) { l.Warn().Str("server", "web").Int("n", n).Msg("session lost") }
		lost(1)
		synctest.Wait()
		require.Equal(t, []string{`{"level":"warn","server":"web","n":1,"message":"session lost"}`}, out.lines(), "the first line is written at once")
		for n := range floodLines + 23 {
			lost(n)
			synctest.Wait()
			time.Sleep(10 * time.Millisecond)
		}
		require.Len(t, out.lines(), floodLines)
		time.Sleep(floodWindow)
		synctest.Wait()
		require.Len(t, out.lines(), floodLines+1)
		require.Equal(t, `{"level":"warn","server":"web","repeated":24,"elapsed":"1.22s","message":"session lost"}`, out.lines()[floodLines])
		require.Empty(t, l.floods)

		lost(1)
		synctest.Wait()
		require.Len(t, out.lines(), floodLines+2, "the next window begins with a line that is written")
	})
}

func TestLinesOfAnotherKindAreWrittenDuringAFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := new(logged)
		l := NewLogger(zerolog.New(out))
		for range 3 * floodLines {
			l.Warn().Str("server", "web").Msg("session lost")
		}
		require.True(t, l.lines.Flush(t.Context()))
		before := len(out.lines())
		l.Info().Str("server", "web").Msg("session lost")
		l.Warn().Str("server", "mail").Msg("session lost")
		l.Warn().Str("server", "web").Msg("session expired")
		l.Warn().Msg("session lost")
		require.True(t, l.lines.Flush(t.Context()))
		require.Len(t, out.lines(), before+4)
	})
}

func TestFloodThatGoesOnIsSummedUpInEachWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := new(logged)
		l := NewLogger(zerolog.New(out))
		const lines, every = 1000, 50 * time.Millisecond
		for range lines {
			l.Info().Msg("session opened")
			time.Sleep(every)
		}
		require.True(t, l.Flush(t.Context()))
		windows := int(lines * every / floodWindow)
		require.Len(t, out.lines(), windows*(floodLines+1))
		require.Equal(t, windows, strings.Count(strings.Join(out.lines(), "\n"), `"repeated":100,`))
	})
}

func TestFlushSumsUpAndLeavesNoTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := new(logged)
		l := NewLogger(zerolog.New(out))
		for range floodLines + 2 {
			l.Error().Msg("x")
		}
		require.True(t, l.Flush(t.Context()))
		require.Len(t, out.lines(), floodLines+1)
		require.Equal(t, `{"level":"error","repeated":2,"elapsed":"0s","message":"x"}`, out.lines()[floodLines])
		time.Sleep(2 * floodWindow)
		synctest.Wait()
		require.Len(t, out.lines(), floodLines+1)
	})
}

func TestLinesForDebuggingAreAllWritten(t *testing.T) {
	out := new(logged)
	l := NewLogger(zerolog.New(out))
	for range 3 * floodLines {
		l.Debug().Msg("x")
	}
	require.True(t, l.Flush(t.Context()))
	require.Len(t, out.lines(), 3*floodLines)
}

func TestKindsThatAreRememberedAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := new(logged)
		l := NewLogger(zerolog.New(out))
		say := func(n int) {
			l.Info().Str("server", fmt.Sprint(n)).Msg("server is up")
			require.True(t, l.lines.Flush(t.Context()))
		}
		for n := range maxKinds + 10 {
			say(n)
		}
		require.Len(t, l.floods, maxKinds)
		require.Len(t, out.lines(), maxKinds+10)
		time.Sleep(floodWindow)
		say(maxKinds + 10)
		require.Len(t, l.floods, 1)
	})
}

func TestFloodIsSummedUpAlthoughTheQueueWasFullAtTheEndOfItsWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{open: make(chan struct{})}
		close(g.open)
		l := NewLogger(zerolog.New(g))
		for range floodLines + 5 {
			l.Info().Msg("x")
		}
		require.True(t, l.lines.Flush(t.Context()))
		g.open = make(chan struct{})
		for n := range maxLines + 10 {
			l.Info().Str("server", fmt.Sprint(n)).Msg("y")
		}
		synctest.Wait()
		for range 2 { // take has the first line of the queue
			l.Info().Msg("y")
		}
		time.Sleep(floodWindow + time.Second)
		close(g.open)
		require.True(t, l.lines.Flush(t.Context()))
		require.Zero(t, strings.Count(g.written(), "repeated"))
		time.Sleep(floodWindow)
		synctest.Wait()
		require.Equal(t, 1, strings.Count(g.written(), `"repeated":5,`))
	})
}

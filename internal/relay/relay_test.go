package relay

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gate is a writer that waits until it is opened.
type gate struct {
	open chan struct{}
	mu   sync.Mutex
	text strings.Builder
}

func (g *gate) Write(p []byte) (int, error) {
	<-g.open
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.text.Write(p)
}

// written returns what was written so far.
func (g *gate) written() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.text.String()
}

func TestValuesAreHandedOverInOrderAndDroppedBeyondTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := make(chan struct{})
		var got []int
		var lost uint64
		r := New(10, func(v int) { <-open; got = append(got, v) }, func(n uint64) { lost += n }, nil)
		r.Put(0)
		synctest.Wait() // until take has it
		for i := 1; i <= 15; i++ {
			r.Put(i)
		}
		require.EqualValues(t, 5, r.Dropped())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.False(t, r.Flush(ctx))
		close(open)
		require.True(t, r.Flush(t.Context()))
		require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, got)
		require.EqualValues(t, 5, lost)
	})
}

func TestOneSourceDoesNotTakeThePlaceOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := make(chan struct{})
		r := New(10, func(string) { <-open }, nil, nil)
		r.Put("first")
		synctest.Wait()
		for range 9 {
			r.PutOf("noisy", 3, "noise")
		}
		require.EqualValues(t, 6, r.Dropped())
		r.PutOf("quiet", 3, "word")
		require.EqualValues(t, 6, r.Dropped())
		close(open)
		require.True(t, r.Flush(t.Context()))
	})
}

func TestReportOfLostValuesThatPanicsLosesNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := make(chan struct{})
		var got []int
		r := New(1, func(v int) { <-open; got = append(got, v) }, func(uint64) { panic("the writer") }, nil)
		r.Put(0)
		synctest.Wait() // until take has it
		r.Put(1)
		require.False(t, r.Put(2))
		close(open)
		require.True(t, r.Flush(t.Context()))
		require.Equal(t, []int{0, 1}, got)
	})
}

func TestFunctionThatPanicsOrEndsItsGoroutineGetsTheNextValue(t *testing.T) {
	var got []int
	var reasons []any
	r := New(10, func(v int) {
		got = append(got, v)
		switch v {
		case 1:
			panic(errors.New("a bug"))
		case 2:
			runtime.Goexit()
		}
	}, nil, func(_ int, reason any, _ []byte) { reasons = append(reasons, reason) })
	for i := range 4 {
		r.Put(i)
	}
	require.True(t, r.Flush(t.Context()))
	require.Equal(t, []int{0, 1, 2, 3}, got)
	require.Equal(t, []any{errors.New("a bug")}, reasons)
}

func TestLineIsWrittenAsTheLoggerBehindWouldHaveWrittenIt(t *testing.T) {
	var direct, relayed strings.Builder
	say := func(l zerolog.Logger) {
		l.Warn().Str("scope", "a\"b\nc").Int("attempt", 3).Float64("f", 0.1).Err(errors.New("x")).Interface("any", []int{1}).Msg("it \"was\" so")
		l.Debug().Msg("hidden")
		l.Log().Bool("b", true).Msg("")
	}
	logger := func(w *strings.Builder) zerolog.Logger {
		return zerolog.New(w).Level(zerolog.InfoLevel).With().Str("app", "mine").Logger()
	}
	say(logger(&direct))
	l := NewLogger(logger(&relayed))
	say(l.Logger)
	require.True(t, l.Flush(t.Context()))
	require.Equal(t, direct.String(), relayed.String())
	require.Equal(t, 2, strings.Count(relayed.String(), "\n"))
}

func TestLoggerSaysHowManyLinesItHasDropped(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	l := NewLogger(zerolog.New(g))
	for range 2 * maxLines {
		l.Info().Msg("x")
	}
	require.GreaterOrEqual(t, l.Dropped(), uint64(maxLines-1))
	close(g.open)
	require.True(t, l.Flush(t.Context()))
	require.Contains(t, g.written(), "log lines were dropped")
}

func TestLinesForDebuggingDoNotDisplaceOthers(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	l := NewLogger(zerolog.New(g))
	for range 2 * maxLines {
		l.Debug().Msg("detail")
	}
	l.Info().Msg("state")
	close(g.open)
	require.True(t, l.Flush(t.Context()))
	require.Equal(t, 1, strings.Count(g.written(), "state"))
	require.LessOrEqual(t, strings.Count(g.written(), "detail"), maxLines/2+1)
}

func TestLoggerThatLogsNothingKeepsNothing(t *testing.T) {
	for _, silent := range []zerolog.Logger{{}, zerolog.Nop()} {
		l := NewLogger(silent)
		l.Error().Msg("x")
		require.Nil(t, l.Error())
		require.True(t, l.Flush(t.Context()))
		require.Zero(t, l.Dropped())
	}
}

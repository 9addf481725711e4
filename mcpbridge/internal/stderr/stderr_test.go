package stderr

import (
	"fmt"
	"io"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/messages"
)

// written is a writer that keeps what it gets. A line may be received from hold first.
type written struct {
	lines []string
	hold  chan struct{}
}

func (w *written) Write(p []byte) (int, error) {
	if w.hold != nil {
		<-w.hold
	}
	w.lines = append(w.lines, string(p))
	switch w.lines[len(w.lines)-1] {
	case "panic\n":
		panic("oops")
	case "exit\n":
		runtime.Goexit()
	case "error\n":
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

// world has Writers, and notes what they call.
type world struct {
	*Writers
	asked    []messages.Key
	panicked int
}

func inWorld(t *testing.T, run func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := new(world)
		w.Writers = New(func(string, *guard.Panic) { w.panicked++ })
		run(w)
		synctest.Wait()
		require.Empty(t, w.all, "nothing is kept without a process")
	})
}

// open opens the Writer of a key, which writes to the given writer.
func (w *world) open(key messages.Key, to io.Writer) *Writer {
	return w.Open(key, func(key messages.Key) io.Writer {
		w.asked = append(w.asked, key)
		return to
	})
}

func put(w *Writer, lines ...string) {
	for _, line := range lines {
		w.Put(func() string { return line })
	}
}

var key = messages.Key{Server: "s", Scope: "a"}

func TestWriterIsAskedForBeforeTheFirstLineOfAProcess(t *testing.T) {
	inWorld(t, func(world *world) {
		to := new(written)
		first := world.open(key, to)
		synctest.Wait()
		require.Empty(t, world.asked)
		put(first, "one", "two")
		first.Close()
		put(first, "late")
		synctest.Wait()
		second := world.open(key, to)
		put(second, "three")
		synctest.Wait()
		require.Equal(t, []messages.Key{key, key}, world.asked)
		require.Equal(t, []string{"one\n", "two\n", "three\n"}, to.lines)
		second.Close()
	})
}

// Two processes of a key write one after the other, although the writer blocks.
func TestLinesThatWaitAreWrittenBeforeThoseOfTheNextProcess(t *testing.T) {
	inWorld(t, func(world *world) {
		to := &written{hold: make(chan struct{})}
		first := world.open(key, to)
		put(first, "one", "two")
		first.Close()
		second := world.open(key, nil)
		put(second, "three")
		second.Close()
		close(to.hold)
		synctest.Wait()
		require.Equal(t, []string{"one\n", "two\n", "three\n"}, to.lines)
		require.Len(t, world.asked, 1, "while lines of the key wait, its writer is the same")
	})
}

func TestWriterThatBlocksLosesLinesOfItsKeyOnly(t *testing.T) {
	inWorld(t, func(world *world) {
		blocked, other := &written{hold: make(chan struct{})}, new(written)
		one := world.open(key, blocked)
		put(one, "taken")
		synctest.Wait()
		for i := range 3*maxLines + 2 {
			put(one, fmt.Sprint(i))
		}
		two := world.open(messages.Key{Server: "s", Scope: "b"}, other)
		put(two, "fine")
		synctest.Wait()
		require.Equal(t, []string{"fine\n"}, other.lines)
		close(blocked.hold)
		synctest.Wait()
		require.Equal(t, []string{"taken\n", "… 768 lines were dropped\n", "768\n", "769\n"}, blocked.lines)
		one.Close()
		two.Close()
	})
}

func TestWriterThatFailsLosesOneLine(t *testing.T) {
	inWorld(t, func(world *world) {
		to := new(written)
		w := world.open(key, to)
		put(w, "error", "panic", "after", "exit")
		synctest.Wait()
		put(w, "last")
		synctest.Wait()
		require.Equal(t, []string{"error\n", "panic\n", "after\n", "exit\n", "last\n"}, to.lines)
		require.Equal(t, 1, world.panicked)
		w.Close()
	})
}

func TestNoWriterTakesAllLines(t *testing.T) {
	inWorld(t, func(world *world) {
		w := world.open(key, nil)
		put(w, "one")
		synctest.Wait()
		w.Close()
		synctest.Wait()
		w = world.Open(key, func(messages.Key) io.Writer { panic("oops") })
		put(w, "one", "two")
		synctest.Wait()
		require.Equal(t, 1, world.panicked, "it is asked once")
		w.Close()
		put(nil, "nothing happens")
		(*Writer)(nil).Close()
	})
}

package cluster

import (
	"bytes"
	"testing"
	"testing/synctest"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

func TestSubscribersShareOneWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var put func(messages.Event)
		begun, ended := 0, 0
		s := newSubscribers(zerolog.New(&log), func(p func(messages.Event)) (end func()) {
			put = p
			begun++
			return func() { ended++ }
		})
		var seen []string
		note := func(name string) func(messages.Event) {
			return func(messages.Event) { seen = append(seen, name) }
		}
		first := s.add(note("first"))
		panics := s.add(func(messages.Event) { panic("a bug") })
		last := s.add(note("last"))
		put(&messages.SessionOpened{})
		synctest.Wait()
		require.Equal(t, []string{"first", "last"}, seen)
		require.Contains(t, log.String(), "event handler panicked")

		first()
		first()
		panics()
		require.Zero(t, ended)
		put(&messages.SessionOpened{})
		synctest.Wait()
		require.Equal(t, []string{"first", "last", "last"}, seen)
		last()
		require.Equal(t, [2]int{1, 1}, [2]int{begun, ended})
		s.add(note("again"))()
		require.Equal(t, [2]int{2, 2}, [2]int{begun, ended})
		put(&messages.SessionOpened{})
		synctest.Wait()
		require.Len(t, seen, 3)
	})
}

func TestEventsThatSlowHandlersMissAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var put func(messages.Event)
		s := newSubscribers(zerolog.New(&log), func(p func(messages.Event)) (end func()) {
			put = p
			return func() {}
		})
		release, handled := make(chan struct{}), 0
		cancel := s.add(func(messages.Event) {
			<-release
			handled++
		})
		defer cancel()
		for range 2 * maxEvents {
			put(&messages.SessionOpened{})
		}
		close(release)
		put(&messages.SessionOpened{}) // it may find the queue full, too
		synctest.Wait()
		put(&messages.SessionOpened{})
		synctest.Wait()
		require.GreaterOrEqual(t, handled, maxEvents)
		require.Less(t, handled, 2*maxEvents)
		require.Contains(t, log.String(), "too slow")
	})
}

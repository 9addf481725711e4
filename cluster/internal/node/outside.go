package node

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/internal/clusterapi"
)

// outside is what a node uses of the world beside messages. A simulation has its own, and decides about the
// order of all that happens.
type outside struct {
	after  func(d time.Duration, f func()) timer   // calls f after a time
	work   func(f func())                          // runs what may take long in another goroutine
	random func(below time.Duration) time.Duration // is not negative
	newID  func() string                           // of an incarnation
	props  []actor.PropsOption                     // of the actor
}

// timer is a call that waits for its time.
type timer interface{ Stop() bool }

// newOutside returns the outside of a node that is not simulated.
func newOutside() outside {
	dispatcher := new(clusterapi.Dispatcher) // runs the mailbox as well
	return outside{
		after:  func(d time.Duration, f func()) timer { return time.AfterFunc(d, f) },
		work:   dispatcher.Schedule,
		random: rand.N[time.Duration],
		newID:  func() string { return fmt.Sprintf("%016x", rand.Uint64()) },
		props:  []actor.PropsOption{actor.WithDispatcher(dispatcher)},
	}
}

// inOrder yields the entries of a map in the order of their keys, without those that are deleted meanwhile. What is
// sent while a map is walked is then the same for the same messages.
func inOrder[K cmp.Ordered, V any](m map[K]V) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if v, there := m[key]; there && !yield(key, v) {
				return
			}
		}
	}
}

package node

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
)

// slowStore takes its time for the first change of the record of a durable call.
type slowStore struct {
	resume.Memory
	takes time.Duration
	asked atomic.Bool
}

func (s *slowStore) Swap(ctx context.Context, key messages.Key, from uint64, record *mcpbridge.Record) (bool, error) {
	if clusterapi.IsCallKey(key) && s.asked.CompareAndSwap(false, true) {
		time.Sleep(s.takes)
	}
	return s.Memory.Swap(ctx, key, from, record)
}

// A member that has lost a key has a call that waits for the store, and is given up. When the store answers, the next owner has
// sent the same call: it must not be sent once more.
func TestCallThatWasGivenUpIsNotSent(t *testing.T) {
	for name, one := range map[string]struct {
		move  func(w *world, owner *member)
		takes time.Duration
	}{
		"the member is removed, and comes back": {func(w *world, owner *member) { w.remove(owner.current) }, 1500 * time.Millisecond},
		"another member comes":                  {func(w *world, _ *member) { w.join() }, 1900 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			prepare := func(w *world) {
				w.cfg.Store = &slowStore{takes: one.takes}
				w.cfg.DrainTimeout, w.cfg.CloseTimeout = 100*time.Millisecond, 5*time.Second
			}
			inWorld(t, 2, prepare, func(w *world) {
				a, b := w.members[0], w.members[1]
				scope, three := "", []Address{{Host: "a:1"}, {Host: "b:1"}, {Host: "c:1"}}
				for i := 0; scope == ""; i++ {
					shard := ShardOf(messages.Key{Server: "s", Scope: fmt.Sprint(i)}, shards)
					if ownerOf(shard, three[:2]) == "a:1" && ownerOf(shard, three) == "c:1" {
						scope = fmt.Sprint(i)
					}
				}
				a.send(call(scope, "count")).ok()
				w.server.set(func() { w.server.unstable = true }) // who was removed has its connection until it knows
				durable := call(scope, "count")
				durable.Durable = true
				again := func(at *member) *sent {
					op := *durable
					return at.send(&op)
				}
				again(a)
				time.Sleep(100 * time.Millisecond)
				one.move(w, a)
				time.Sleep(1500 * time.Millisecond)
				require.NotEqual(t, a, w.ownerOf(scope))
				again(b).ok()
				time.Sleep(5 * time.Second)
				w.awaitStable()
				again(b).ok() // its result is kept
				require.Equal(t, 1, w.server.executions()[durable.ID])
			})
		})
	}
}

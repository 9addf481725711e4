package closing

import (
	"fmt"
	"slices"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/messages"
)

// MinLeftovers is how many leftovers are kept in any case.
const MinLeftovers = 1024

// Leftovers are the MCP sessions that could not be closed, by key. Those beyond the limit
// are counted and dropped: only a server that refuses every DELETE leaves so many.
type Leftovers struct {
	limit   int
	count   int
	keys    map[messages.Key][]contract.Leftover
	dropped int
	last    messages.Key // the key of the last one that was dropped
}

// Add adds leftovers of a key.
func (l *Leftovers) Add(key messages.Key, left []contract.Leftover) {
	if l.keys == nil {
		l.keys = map[messages.Key][]contract.Leftover{}
	}
	if room := max(0, l.limit-l.count); len(left) > room {
		l.dropped += len(left) - room
		l.last, left = key, left[:room]
	}
	if len(left) > 0 {
		l.keys[key] = append(l.keys[key], left...)
		l.count += len(left)
	}
}

// SessionIDs returns the ids of the leftovers of a key.
func (l *Leftovers) SessionIDs(key messages.Key) (ids []string) {
	for _, one := range l.keys[key] {
		ids = append(ids, one.SessionID())
	}
	return ids
}

// take removes and returns the leftovers of the keys that match. The time it takes is
// bounded by the limit.
func (l *Leftovers) take(match func(messages.Key) bool) map[messages.Key][]contract.Leftover {
	taken := map[messages.Key][]contract.Leftover{}
	for key, left := range l.keys {
		if match(key) {
			taken[key] = left
			l.count -= len(left)
			delete(l.keys, key)
		}
	}
	return taken
}

// List returns all leftovers, sorted by key.
func (l *Leftovers) List() []messages.Left {
	all := make([]messages.Left, 0, l.count)
	for key, left := range l.keys {
		for _, one := range left {
			all = append(all, messages.Left{Key: key, Reason: one.Reason})
		}
	}
	slices.SortStableFunc(all, func(a, b messages.Left) int { return a.Key.Compare(b.Key) })
	if l.dropped > 0 {
		all = append(all, messages.Left{Key: l.last, Reason: fmt.Sprintf("and %d others, which were too many to be listed", l.dropped-1)})
	}
	return all
}

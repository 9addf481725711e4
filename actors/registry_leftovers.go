package actors

import (
	"fmt"
	"slices"

	"github.com/mcpactor/mcpactor/messages"
)

// minUnended is how many sessions that could not be ended are kept in any case.
const minLeftovers = 1024

// leftovers are the sessions that could not be ended, all of them, by key. Beyond the
// limit, which takes servers that refuse to end any session, they are only counted.
type leftovers struct {
	limit   int
	count   int
	keys    map[messages.Key][]leftover
	dropped int
	last    messages.Key // of those that were dropped
}

// keep remembers sessions of a key.
func (l *leftovers) add(key messages.Key, left []leftover) {
	if l.keys == nil {
		l.keys = map[messages.Key][]leftover{}
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

// has reports whether there are any of a key.
func (l *leftovers) has(key messages.Key) bool { return len(l.keys[key]) > 0 }

// take removes and returns those of some keys. It looks at no more than the limit.
func (l *leftovers) take(match func(messages.Key) bool) map[messages.Key][]leftover {
	taken := map[messages.Key][]leftover{}
	for key, left := range l.keys {
		if match(key) {
			taken[key] = left
			l.count -= len(left)
			delete(l.keys, key)
		}
	}
	return taken
}

// list returns what is left.
func (l *leftovers) list() []messages.Left {
	all := make([]messages.Left, 0, l.count)
	for key, left := range l.keys {
		for _, one := range left {
			all = append(all, messages.Left{Key: key, Reason: one.reason})
		}
	}
	slices.SortStableFunc(all, func(a, b messages.Left) int { return compareKeys(a.Key, b.Key) })
	if l.dropped > 0 {
		all = append(all, messages.Left{Key: l.last, Reason: fmt.Sprintf("with %d others, which were too many to be kept", l.dropped-1)})
	}
	return all
}

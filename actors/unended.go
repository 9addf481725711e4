package actors

import (
	"fmt"
	"slices"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// unended is a session that could not be ended: it has no transport any more, but the
// server may know it still. Closing its key again tries again.
type unended struct {
	conn   mcpbridge.Conn    // what it had; nil for one of before our restart
	resume *mcpbridge.Resume // what is known of it, where there is no conn
	reason string
}

// id returns the session's id, or "".
func (u unended) id() string {
	resume := u.resume
	if u.conn != nil {
		resume = u.conn.Resume()
	}
	if resume == nil {
		return ""
	}
	return resume.SessionID
}

// minUnended is how many sessions that could not be ended are kept in any case.
const minUnended = 1024

// leftovers are the sessions that could not be ended, all of them, by key. Beyond the
// limit, which takes servers that refuse to end any session, they are only counted.
type leftovers struct {
	limit   int
	count   int
	keys    map[messages.Key][]unended
	dropped int
	last    messages.Key // of those that were dropped
}

// keep remembers sessions of a key.
func (l *leftovers) keep(key messages.Key, left []unended) {
	if l.keys == nil {
		l.keys = map[messages.Key][]unended{}
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
func (l *leftovers) take(match func(messages.Key) bool) map[messages.Key][]unended {
	taken := map[messages.Key][]unended{}
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

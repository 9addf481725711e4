package registry

import (
	"slices"

	"github.com/mcpactor/mcpactor/messages"
)

// entry is what the registry knows of a key while the key has sessions.
type entry struct {
	current    *registration   // takes the calls; nil while all sessions drain
	draining   []*registration // the oldest first
	generation uint64          // of the last MCP session

	cancelledUpTo uint64 // the calls of the scope were cancelled up to this serial
}

// predecessor returns an older session of the key that may still have an MCP session on
// the server, or nil. No other may be opened before the predecessor is closed.
func (e *entry) predecessor(reg *registration) *registration {
	if len(e.draining) == 0 || e.draining[0] == reg {
		return nil
	}
	return e.draining[0]
}

// closesRecord reports whether an older session of the key closes the MCP session of the record in
// the store.
func (e *entry) closesRecord() bool {
	return slices.ContainsFunc(e.draining, func(reg *registration) bool { return !reg.drainedBy.Leave })
}

// entry returns the entry of a key, which it adds if there is none.
func (r *registry) entry(key messages.Key) *entry {
	e := r.entries[key]
	if e == nil {
		e = &entry{generation: r.generations.of(key)}
		r.entries[key] = e
	}
	return e
}

// currentOf returns the current session of a key, or nil.
func (r *registry) currentOf(key messages.Key) *registration {
	if e := r.entries[key]; e != nil {
		return e.current
	}
	return nil
}

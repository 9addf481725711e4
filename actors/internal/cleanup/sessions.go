package cleanup

import (
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// Sessions are the MCP sessions of a key that are to be closed: those that could not be closed before, and the one in the
// store, from before a restart of this process.
type Sessions struct {
	Leftovers []contract.Leftover
	Leave     bool              // the record stays, unless it is that of a leftover
	record    *mcpbridge.Record // nil if the store has none
}

// keep keeps the record of the store, if its MCP session is to be closed.
func (s *Sessions) keep(record *mcpbridge.Record) {
	if record != nil && record.Valid() && (!s.Leave || s.has(record.SessionID)) {
		s.record = record
	}
}

// has reports whether an MCP session is one of the leftovers.
func (s *Sessions) has(sessionID string) bool {
	return slices.ContainsFunc(s.Leftovers, func(one contract.Leftover) bool { return one.SessionID() == sessionID })
}

// isEmpty reports whether there is nothing to close.
func (s *Sessions) isEmpty() bool { return len(s.Leftovers) == 0 && s.record == nil }

// unclosed returns all leftovers, with a reason why they are not closed.
func (s *Sessions) unclosed(reason string) *leftoversClosed {
	result := &leftoversClosed{}
	for _, one := range s.Leftovers {
		one.Reason = reason
		result.leftovers = append(result.leftovers, one)
	}
	if s.record != nil {
		result.leftovers = append(result.leftovers, contract.Leftover{Resume: &s.record.Resume, Reason: reason})
	}
	return result
}

// close closes the leftovers one after the other, each within a timeout, and clears the record
// when its MCP session is closed. It may block.
func (s Sessions) close(timeout time.Duration, store contract.KeyStore, generation uint64) *leftoversClosed {
	result := &leftoversClosed{}
	known := ""
	if s.record != nil {
		known = s.record.SessionID
	}
	forget, seen := s.record != nil, false
	for _, one := range s.Leftovers {
		existed, reason := one.Close(store, timeout)
		if one.Reason = reason; reason != "" {
			result.leftovers = append(result.leftovers, one)
		} else if existed {
			result.count++
		}
		if known != "" && one.SessionID() == known {
			seen, forget = true, reason == ""
		}
	}
	if s.record != nil && !seen {
		one := contract.Leftover{Resume: &s.record.Resume}
		existed, reason := one.Close(store, timeout)
		if reason != "" {
			one.Reason, forget = "the session from before the restart of this process: "+reason, false
			result.leftovers = append(result.leftovers, one)
		} else if existed {
			result.count++
		}
	}
	if forget {
		store.Forget(known, generation)
	}
	return result
}

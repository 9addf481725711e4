package cleanup

import (
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// Work is what is to be closed: MCP sessions of a key that could not be closed before, and the one in the store, from
// before a restart of this process.
type Work struct {
	Leftovers []contract.Leftover
	Leave     bool              // the record stays, unless it is that of a leftover
	record    *mcpbridge.Record // nil if the store has none
}

// keep keeps the record of the store, if its MCP session is to be closed.
func (w *Work) keep(record *mcpbridge.Record) {
	if record != nil && record.Valid() && (!w.Leave || w.has(record.SessionID)) {
		w.record = record
	}
}

// has reports whether an MCP session is one of the leftovers.
func (w *Work) has(sessionID string) bool {
	return slices.ContainsFunc(w.Leftovers, func(one contract.Leftover) bool { return one.SessionID() == sessionID })
}

// isEmpty reports whether there is nothing to close.
func (w *Work) isEmpty() bool { return len(w.Leftovers) == 0 && w.record == nil }

// undone returns all leftovers, with a reason why they are not closed.
func (w *Work) undone(reason string) *leftoversClosed {
	result := &leftoversClosed{}
	for _, one := range w.Leftovers {
		one.Reason = reason
		result.leftovers = append(result.leftovers, one)
	}
	if w.record != nil {
		result.leftovers = append(result.leftovers, contract.Leftover{Resume: &w.record.Resume, Reason: reason})
	}
	return result
}

// do closes the leftovers one after the other, each within a timeout, and clears the record
// when its MCP session is closed. It may block.
func (w Work) do(timeout time.Duration, store contract.KeyStore, generation uint64) *leftoversClosed {
	result := &leftoversClosed{}
	known := ""
	if w.record != nil {
		known = w.record.SessionID
	}
	forget, seen := w.record != nil, false
	for _, one := range w.Leftovers {
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
	if w.record != nil && !seen {
		one := contract.Leftover{Resume: &w.record.Resume}
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

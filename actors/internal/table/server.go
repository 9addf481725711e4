package table

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/internal/nearest"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Server is what is known of one configured server.
type Server struct {
	mcpbridge.Server
	Own      mcpbridge.Limits  // as they were configured last
	Resolved *mcpbridge.Limits // of the server, or of the supervisor; read-only
	Turns    *admission.Server // at its places
	Class    string            // of the lists of all keys whose scopes declare no capabilities, or "" if they may have different ones
}

// Servers are the configured servers, by name.
type Servers map[string]*Server

// Unknown says that no server of a name is configured, and which one may be meant.
func (all Servers) Unknown(name string) string {
	if meant := nearest.Of(name, slices.Sorted(maps.Keys(all))); meant != "" {
		return fmt.Sprintf("no server %q is configured: did you mean %q?", Truncated(name), meant)
	}
	return fmt.Sprintf("no server %q is configured", Truncated(name))
}

// Truncated returns the first 128 bytes of a name that a caller chose.
func Truncated(name string) string {
	if len(name) > 128 {
		return name[:128] + "…"
	}
	return name
}

// Slowest returns the longest DrainTimeout and the longest CloseTimeout of the servers.
func (all Servers) Slowest() (drain, shut time.Duration) {
	for _, srv := range all {
		drain, shut = max(drain, srv.Resolved.DrainTimeout), max(shut, srv.Resolved.CloseTimeout)
	}
	return drain, shut
}

// Load is the load of a server.
type Load struct{ messages.Load }

// CountReplied counts an operation that a session has answered.
func (l *Load) CountReplied(msg *contract.CallReplied, now time.Time) {
	if _, is := msg.Call.Op.(*contract.Reopen); is {
		return
	}
	l.Count(msg.Code)
	if msg.Bounded {
		l.Bounded++
	}
	AddTo(&l.Durations, now.Sub(msg.Call.Accepted))
	if msg.Call.Run.Attempts > 0 {
		AddTo(&l.Waits, msg.Waited)
	}
}

// AddTo counts a duration in a histogram. A negative one counts as 0.
func AddTo(h *messages.Histogram, d time.Duration) {
	d = max(0, d)
	i := sort.Search(len(h.Counts)-1, func(i int) bool {
		bound, _ := h.Bound(i)
		return d <= bound
	})
	h.Counts[i]++
	h.Sum += d
}

// Count counts a reply. The code is empty for a result.
func (l *Load) Count(code messages.Code) {
	switch {
	case code == "":
		l.Succeeded++
	case l.Failed == nil:
		l.Failed = map[messages.Code]uint64{code: 1}
	default:
		l.Failed[code]++
	}
}

// Snapshot returns a copy.
func (l *Load) Snapshot() messages.Load {
	copied := l.Load
	copied.Failed = maps.Clone(l.Failed)
	return copied
}

package registry

import (
	"maps"
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/messages"
)

// load is the load of a server.
type load struct{ messages.Load }

// recount updates the calls in flight and those that wait, before the latter change for a
// session.
func (l *load) recount(reg *registration, waiting int) {
	inFlight := reg.outstanding - waiting
	l.InFlight += inFlight - reg.inFlight
	l.Waiting += waiting - reg.waiting
	reg.inFlight = inFlight
}

// countReplied counts an operation that a session has answered.
func (l *load) countReplied(msg *contract.CallReplied, now time.Time) {
	if _, is := msg.Call.Op.(*contract.Reopen); is {
		return
	}
	l.count(msg.Code)
	l.Durations.Add(now.Sub(msg.Call.Accepted))
	if msg.Call.Runs > 0 {
		l.Waits.Add(msg.Waited)
	}
}

// count counts a reply. The code is empty for a result.
func (l *load) count(code messages.Code) {
	switch {
	case code == "":
		l.Succeeded++
	case l.Failed == nil:
		l.Failed = map[messages.Code]uint64{code: 1}
	default:
		l.Failed[code]++
	}
}

// snapshot returns a copy.
func (l *load) snapshot() messages.Load {
	copied := l.Load
	copied.Failed = maps.Clone(l.Failed)
	return copied
}

// countRejected counts a call that was rejected, if its server is configured.
func (r *registry) countRejected(server string, code messages.Code) {
	if r.servers[server] != nil {
		r.index.group(server).load.count(code)
	}
}

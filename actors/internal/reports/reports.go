// Package reports logs and publishes what happens in a registry, and has its counters.
package reports

import (
	"time"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/internal/operations"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Reports is used by one registry. It is not safe for concurrent use.
type Reports struct {
	Counters messages.Counters

	cfg *contract.Config
}

// New returns reports of a registry in which nothing has happened.
func New(cfg *contract.Config) *Reports { return &Reports{cfg: cfg} }

// Publish logs and publishes an event.
func (r *Reports) Publish(event messages.Event) {
	logEvent(r.cfg.Logger, event)
	r.cfg.Events.Put(event)
}

// stamp returns the stamp of an event of a session.
func (r *Reports) stamp(reg *table.Registration) messages.Stamp {
	return messages.Stamp{Key: reg.Key, Generation: reg.Generation, Time: time.Now(), Supervisor: r.cfg.Name}
}

// Opened reports that a session has a connection. Its registration has the new one.
func (r *Reports) Opened(reg *table.Registration, msg *contract.Opened) {
	stamp := r.stamp(reg)
	if msg.Expired > 0 {
		r.Counters.Expired++
		before := stamp
		before.Generation = msg.Expired
		r.Publish(&messages.SessionExpired{Stamp: before, Cause: "the server does not know the session from before the restart of this process"})
	}
	if msg.Restarted {
		r.Publish(&messages.SessionRestarted{Stamp: stamp, Attached: msg.Info.Attached, Protocol: reg.Protocol(), Elapsed: msg.Elapsed, Lifetime: msg.Lifetime})
		return
	}
	r.Counters.Opened++
	r.Publish(&messages.SessionOpened{Stamp: stamp, Attached: msg.Info.Attached, Protocol: reg.Protocol(), Elapsed: msg.Elapsed})
}

// Faulted reports the fault of a session, if it was open.
func (r *Reports) Faulted(reg *table.Registration, f *actors.Fault) {
	switch {
	case f.Dialing:
	case f.Class == mcpbridge.Expired:
		r.Counters.Expired++
		r.Publish(&messages.SessionExpired{Stamp: r.stamp(reg), Cause: f.Cause.Error()})
	default:
		r.Counters.Lost++
		r.Publish(&messages.SessionLost{Stamp: r.stamp(reg), Cause: f.Cause.Error()})
	}
}

// Decided reports what the strategy has decided about the fault of a session.
func (r *Reports) Decided(reg *table.Registration, f *actors.Fault, d actors.Directive) {
	switch {
	case d.GiveUp:
		r.Counters.GaveUp++
		r.Publish(&messages.SessionGaveUp{Stamp: r.stamp(reg), Cause: f.Cause.Error(), RetryAt: reg.BreakerUntil})
	case reg.WasOpen:
		r.Publish(&messages.SessionRestarting{Stamp: r.stamp(reg), Attempt: d.Attempt, Delay: d.Delay, Cause: f.Cause.Error()})
	}
}

// Evicted reports that a session is evicted, if it was open.
func (r *Reports) Evicted(reg *table.Registration, reason messages.EvictReason) {
	if reg.WasOpen {
		r.Counters.Evicted++
		r.Publish(&messages.SessionEvicted{Stamp: r.stamp(reg), Reason: reason})
	}
}

// Closed reports that a session is closed, if it was open.
func (r *Reports) Closed(reg *table.Registration, msg *contract.SessionClosed) {
	if !reg.WasOpen {
		return
	}
	event := &messages.SessionClosed{Stamp: r.stamp(reg), Lifetime: msg.Lifetime}
	if len(msg.Leftovers) > 0 {
		event.Cause = msg.Leftovers[0].Reason
	}
	r.Counters.Closed++
	r.Publish(event)
}

// Replayed reports that a call is replayed.
func (r *Reports) Replayed(msg *contract.CallReplayed) {
	r.Counters.Replayed++
	r.Publish(&messages.CallReplayed{
		Stamp: r.stamp(table.Of(msg.Of)), ID: msg.Op.RequestID(), Method: msg.Op.Method(), Target: messages.TargetOf(msg.Op), Attempt: msg.Attempt,
	})
}

// TaskChanged reports the status of the task of a call.
func (r *Reports) TaskChanged(msg *contract.TaskChanged) {
	r.Publish(&messages.TaskChanged{Stamp: r.stamp(table.Of(msg.Of)), Operation: operations.RefTo(msg.Op), Status: string(msg.Task.Status), Message: msg.Task.Message})
}

// Answered writes that a call has its reply. The code is empty for a result.
func (r *Reports) Answered(k *contract.Call, code messages.Code) {
	if e := r.cfg.Logger.Debug(); e != nil {
		contract.Text(contract.About(e, k.Key, k.Run.Generation), "op", k.Op.Method())
		contract.Text(contract.Text(e, "target", messages.TargetOf(k.Op)), "code", string(code))
		contract.Span(contract.Number(e, "attempt", k.Run.Attempts), "elapsed", time.Since(k.Accepted)).Msg("call answered")
	}
}

// ServerUp writes that a server is up. A place that PerKey has led to has a line only if
// it was down: it may be the place of one key.
func (r *Reports) ServerUp(reg *table.Registration, now time.Time) {
	srv, ep := reg.Server, reg.Place.Endpoint
	switch {
	case ep.Down:
		contract.Span(r.cfg.Logger.Info().Str("server", srv.Name), "elapsed", now.Sub(ep.Since)).Msg("server is up again")
	case reg.Place.IsHome():
		r.cfg.Logger.Info().Str("server", srv.Name).Msg("server is up")
	}
}

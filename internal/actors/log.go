package actors

import (
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/messages"
)

// Lines of the log: a change of state is Info, a failure is Warn, a bug is Error, and what
// concerns one call is Debug. A field without a value is left out.

// about adds the session that a line is about.
func about(e *zerolog.Event, key messages.Key, generation uint64) *zerolog.Event {
	text(e, "server", key.Server)
	text(e, "scope", key.Scope)
	if generation > 0 {
		e.Uint64("generation", generation)
	}
	return e
}

// text adds a text, unless it is empty.
func text(e *zerolog.Event, field, value string) *zerolog.Event {
	if value != "" {
		e.Str(field, value)
	}
	return e
}

// number adds a number, unless it is 0.
func number(e *zerolog.Event, field string, n int) *zerolog.Event {
	if n != 0 {
		e.Int(field, n)
	}
	return e
}

// span adds a duration with its unit, unless it is 0.
func span(e *zerolog.Event, field string, d time.Duration) *zerolog.Event {
	switch {
	case d >= time.Second:
		d = d.Round(time.Millisecond)
	case d >= time.Millisecond:
		d = d.Round(time.Microsecond)
	}
	if d != 0 {
		e.Stringer(field, d)
	}
	return e
}

// reached adds how a connection was opened.
func reached(e *zerolog.Event, attached bool, protocol string, elapsed time.Duration) *zerolog.Event {
	if attached {
		e.Bool("attached", true)
	}
	return span(text(e, "protocol", protocol), "elapsed", elapsed)
}

// logEvent writes the line of an event. Each event has one.
func (r *registry) logEvent(event messages.Event) {
	log := r.cfg.Logger
	if log.GetLevel() == zerolog.Disabled {
		return
	}
	stamp := event.GetStamp()
	line := func(e *zerolog.Event) *zerolog.Event { return about(e, stamp.Key, stamp.Generation) }
	switch e := event.(type) {
	case *messages.SessionOpened:
		reached(line(log.Info()), e.Attached, e.Protocol, e.Elapsed).Msg("session opened")
	case *messages.SessionExpired:
		text(line(log.Warn()), "err", e.Cause).Msg("session expired")
	case *messages.SessionLost:
		text(line(log.Warn()), "err", e.Cause).Msg("session lost")
	case *messages.SessionRestarting:
		text(span(number(line(log.Info()), "attempt", e.Attempt), "delay", e.Delay), "err", e.Cause).Msg("session restarting")
	case *messages.SessionRestarted:
		span(reached(line(log.Info()), e.Attached, e.Protocol, e.Elapsed), "lifetime", e.Lifetime).Msg("session restarted")
	case *messages.SessionGaveUp:
		text(span(line(log.Warn()), "delay", e.RetryAt.Sub(stamp.Time)), "err", e.Cause).Msg("session given up")
	case *messages.SessionEvicted:
		line(log.Info()).Str("reason", string(e.Reason)).Msg("session evicted")
	case *messages.SessionClosed:
		level := zerolog.InfoLevel
		if e.Cause != "" {
			level = zerolog.WarnLevel
		}
		text(span(line(log.WithLevel(level)), "lifetime", e.Lifetime), "err", e.Cause).Msg("session closed")
	case *messages.CallReplayed:
		text(line(log.Debug()).Str("op", e.Method), "target", e.Target).Int("attempt", e.Attempt).Msg("call replayed")
	case *messages.OwnerTerminated:
		number(number(log.Info().Str("owner", e.Owner), "scopes", len(e.Scopes)), "cancelled", e.Cancelled).
			Msg("owner terminated")
	}
}

// logReply writes that a call has its reply. The code is empty for a result.
func (r *registry) logReply(k *call, code messages.Code) {
	if e := r.cfg.Logger.Debug(); e != nil {
		text(about(e, k.key, k.generation), "op", k.op.Method())
		text(text(e, "target", messages.TargetOf(k.op)), "code", string(code))
		span(number(e, "attempt", k.runs), "elapsed", time.Since(k.accepted)).Msg("call answered")
	}
}

// logServerUp writes that a server is up. A place that PerKey has led to has a line only if
// it was down: it may be the place of one key.
func (r *registry) logServerUp(reg *registration, now time.Time) {
	srv, ep := reg.server, reg.server.endpoint
	switch {
	case ep.down:
		span(r.cfg.Logger.Info().Str("server", srv.Name), "elapsed", now.Sub(ep.since)).Msg("server is up again")
	case srv == srv.base:
		r.cfg.Logger.Info().Str("server", srv.Name).Msg("server is up")
	}
}

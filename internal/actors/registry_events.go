package actors

import (
	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/messages"
)

// onNotified publishes a notification, and sends it to the subscriber.
func (r *registry) onNotified(c actor.Context, msg *notified) {
	r.cfg.Logger.Debug().Str("server", msg.of.key.Server).Str("scope", msg.of.key.Scope).Type("notification", msg.note).Msg("notification received")
	if r.cfg.Subscriber != nil {
		c.Send(r.cfg.Subscriber, msg.note)
	}
	r.cfg.Events.PutOf(msg.of, maxQueuedNotifications, msg.note)
}

// publish logs and publishes an event.
func (r *registry) publish(event messages.Event) {
	stamp := event.GetStamp()
	line := func(e *zerolog.Event, cause string) *zerolog.Event {
		e = e.Str("server", stamp.Key.Server).Str("scope", stamp.Key.Scope).Uint64("generation", stamp.Generation)
		if cause != "" {
			e = e.Str("err", cause)
		}
		return e
	}
	log := r.cfg.Logger
	switch e := event.(type) {
	case *messages.SessionOpened:
		line(log.Info(), "").Str("protocol", e.Protocol).Bool("attached", e.Attached).Stringer("elapsed", e.Elapsed).Msg("session opened")
	case *messages.SessionExpired:
		line(log.Warn(), e.Cause).Msg("session expired")
	case *messages.SessionLost:
		line(log.Warn(), e.Cause).Msg("session lost")
	case *messages.SessionRestarting:
		line(log.Info(), e.Cause).Int("attempt", e.Attempt).Stringer("delay", e.Delay).Msg("session restarting")
	case *messages.SessionRestarted:
		line(log.Info(), "").Bool("attached", e.Attached).Stringer("elapsed", e.Elapsed).Msg("session restarted")
	case *messages.SessionGaveUp:
		line(log.Warn(), e.Cause).Time("retry_at", e.RetryAt).Msg("session given up")
	case *messages.SessionEvicted:
		line(log.Info(), "").Str("reason", string(e.Reason)).Msg("session evicted")
	case *messages.OwnerTerminated:
		log.Info().Str("owner", e.Owner).Int("scopes", len(e.Scopes)).Int("cancelled", e.Cancelled).Msg("owner terminated")
	case *messages.SessionClosed:
		line(log.Info(), e.Cause).Stringer("lifetime", e.Lifetime).Msg("session closed")
	case *messages.CallReplayed:
		line(log.Debug(), "").Str("op", e.Method).Int("attempt", e.Attempt).Msg("call replayed")
	}
	r.cfg.Events.Put(event)
}

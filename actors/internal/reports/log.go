package reports

import (
	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/internal/relay"
	"github.com/mcpactor/mcpactor/messages"
)

// logEvent writes the line of an event. Each event has one.
func logEvent(log *relay.Logger, event messages.Event) {
	if log.GetLevel() == zerolog.Disabled {
		return
	}
	stamp := event.GetStamp()
	line := func(e *zerolog.Event) *zerolog.Event { return contract.About(e, stamp.Key, stamp.Generation) }
	switch e := event.(type) {
	case *messages.SessionOpened:
		contract.Reached(line(log.Info()), e.Attached, e.Protocol, e.Elapsed).Msg("session opened")
	case *messages.SessionExpired:
		contract.Text(line(log.Warn()), "err", e.Cause).Msg("session expired")
	case *messages.SessionLost:
		contract.Text(line(log.Warn()), "err", e.Cause).Msg("session lost")
	case *messages.SessionRestarting:
		contract.Text(contract.Span(contract.Number(line(log.Info()), "attempt", e.Attempt), "delay", e.Delay), "err", e.Cause).Msg("session restarting")
	case *messages.SessionRestarted:
		contract.Span(contract.Reached(line(log.Info()), e.Attached, e.Protocol, e.Elapsed), "lifetime", e.Lifetime).Msg("session restarted")
	case *messages.SessionGaveUp:
		contract.Text(contract.Span(line(log.Warn()), "delay", e.RetryAt.Sub(stamp.Time)), "err", e.Cause).Msg("session given up")
	case *messages.SessionEvicted:
		line(log.Info()).Str("reason", string(e.Reason)).Msg("session evicted")
	case *messages.SessionClosed:
		level := zerolog.InfoLevel
		if e.Cause != "" {
			level = zerolog.WarnLevel
		}
		contract.Text(contract.Span(line(log.WithLevel(level)), "lifetime", e.Lifetime), "err", e.Cause).Msg("session closed")
	case *messages.HandleMinted:
		contract.Text(line(log.Debug()), "target", e.Mint).Msg("handle minted")
	case *messages.HandleReleased:
		reason := ""
		if e.Gone {
			reason = "gone"
		}
		contract.Text(contract.Text(line(log.Debug()), "target", e.Mint), "reason", reason).Msg("handle released")
	case *messages.HandleLost:
		contract.Text(contract.Text(line(log.Warn()), "target", e.Mint), "err", e.Cause).Msg("handle lost")
	case *messages.HandleLeft:
		contract.Text(contract.Text(line(log.Warn()), "target", e.Mint), "reason", e.Reason).Msg("handle left")
	case *messages.CallReplayed:
		contract.Text(line(log.Debug()).Str("op", e.Method), "target", e.Target).Int("attempt", e.Attempt).Msg("call replayed")
	case *messages.TaskChanged:
		contract.Text(line(log.Debug()).Str("op", e.Operation.Method), "target", e.Operation.Target).Str("status", e.Status).Msg("task changed")
	case *messages.CatalogueChanged:
		log.Info().Str("server", stamp.Key.Server).Str("op", e.Method).Msg("shared list replaced")
	case *messages.OwnerTerminated:
		contract.Number(contract.Number(log.Info().Str("owner", e.Owner), "scopes", len(e.Scopes)), "cancelled", e.Cancelled).
			Msg("owner terminated")
	}
}

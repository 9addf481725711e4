package messages

import (
	"log/slog"
	"time"
)

// The LogValue of an event has the name of the event, the key, the generation, and what
// happened. Durations are strings, as in JSON. What a server says in its own words is left
// out, and so are the query and the fragment of a URI.

// log returns the value of an event.
func (s Stamp) log(event string, attrs ...slog.Attr) slog.Value {
	all := []slog.Attr{slog.String("event", event), slog.String("key", s.Key.String()), slog.Uint64("generation", s.Generation)}
	return slog.GroupValue(append(all, attrs...)...)
}

// durationAttr returns a duration as JSON has it.
func durationAttr(name string, d time.Duration) slog.Attr { return slog.String(name, d.String()) }

// causeAttr returns the cause of an event.
func causeAttr(cause string) slog.Attr { return slog.String("cause", oneLine(cause)) }

// LogValue returns the event for a log.
func (e *SessionOpened) LogValue() slog.Value {
	return e.log(e.EventName(), slog.Bool("attached", e.Attached), slog.String("protocol", e.Protocol), durationAttr("elapsed", e.Elapsed))
}

// LogValue returns the event for a log.
func (e *SessionExpired) LogValue() slog.Value { return e.log(e.EventName(), causeAttr(e.Cause)) }

// LogValue returns the event for a log.
func (e *SessionLost) LogValue() slog.Value { return e.log(e.EventName(), causeAttr(e.Cause)) }

// LogValue returns the event for a log.
func (e *SessionRestarting) LogValue() slog.Value {
	return e.log(e.EventName(), slog.Int("attempt", e.Attempt), durationAttr("delay", e.Delay), causeAttr(e.Cause))
}

// LogValue returns the event for a log.
func (e *SessionRestarted) LogValue() slog.Value {
	return e.log(e.EventName(), slog.Bool("attached", e.Attached), slog.String("protocol", e.Protocol),
		durationAttr("elapsed", e.Elapsed), durationAttr("lifetime", e.Lifetime))
}

// LogValue returns the event for a log.
func (e *SessionGaveUp) LogValue() slog.Value {
	return e.log(e.EventName(), causeAttr(e.Cause), slog.Time("retryAt", e.RetryAt))
}

// LogValue returns the event for a log.
func (e *SessionEvicted) LogValue() slog.Value {
	return e.log(e.EventName(), slog.String("reason", string(e.Reason)))
}

// LogValue returns the event for a log.
func (e *SessionClosed) LogValue() slog.Value {
	return e.log(e.EventName(), causeAttr(e.Cause), durationAttr("lifetime", e.Lifetime))
}

// LogValue returns the event for a log.
func (e *CallReplayed) LogValue() slog.Value {
	return e.log(e.EventName(), slog.String("id", oneLine(e.ID)), slog.String("method", e.Method), slog.String("target", oneLine(e.Target)), slog.Int("attempt", e.Attempt))
}

// LogValue returns the event for a log.
func (e *OwnerTerminated) LogValue() slog.Value {
	return e.log(e.EventName(), slog.String("owner", e.Owner), slog.Int("scopes", len(e.Scopes)), slog.Int("cancelled", e.Cancelled))
}

// LogValue returns the event for a log.
func (e *ToolsChanged) LogValue() slog.Value { return e.log(e.EventName()) }

// LogValue returns the event for a log.
func (e *PromptsChanged) LogValue() slog.Value { return e.log(e.EventName()) }

// LogValue returns the event for a log.
func (e *ResourcesChanged) LogValue() slog.Value { return e.log(e.EventName()) }

// LogValue returns the event for a log, with the URI without its user, query and fragment.
func (e *ResourceUpdated) LogValue() slog.Value {
	return e.log(e.EventName(), slog.String("uri", withoutSecrets(e.URI)))
}

// LogValue returns the level for a log, and nothing of the message.
func (e *ServerLog) LogValue() slog.Value { return e.log(e.EventName(), slog.String("level", e.Level)) }

// LogValue returns the method for a log, and no parameters.
func (e *CustomNotification) LogValue() slog.Value {
	return e.log(e.EventName(), slog.String("method", e.Method))
}

// LogValue returns the progress for a log, without the message of the server.
func (e *Progress) LogValue() slog.Value {
	return e.log(e.EventName(), slog.String("id", e.ID), slog.Float64("progress", e.Progress), slog.Float64("total", e.Total))
}

// LogValue returns the fields of the failure that are set, for a log. The detail is one
// line of bounded length.
func (f *Failure) LogValue() slog.Value {
	if f == nil {
		return slog.StringValue(f.Error())
	}
	attrs := []slog.Attr{slog.String("code", string(f.Code))}
	add := func(name, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(name, value))
		}
	}
	add("op", f.Op)
	add("target", oneLine(f.Target))
	if f.Key != (Key{}) {
		add("key", f.Key.String())
	}
	add("id", oneLine(f.ID))
	add("detail", oneLine(f.Detail))
	add("remedy", oneLine(f.Remedy))
	if f.Generation > 0 {
		attrs = append(attrs, slog.Uint64("generation", f.Generation), slog.Int("attempt", f.Attempt), slog.Bool("replayed", f.Replayed))
	}
	attrs = append(attrs, slog.Bool("mayHaveRun", f.MayHaveRun))
	if f.RetryAfter > 0 {
		attrs = append(attrs, durationAttr("retryAfter", f.RetryAfter))
	}
	add("supervisor", f.Supervisor)
	return slog.GroupValue(attrs...)
}

package contract

import (
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/messages"
)

// Lines of the log: a change of state is Info, a failure is Warn, a bug is Error, and what
// concerns one call is Debug. A field without a value is left out.

// About adds the session that a line is about.
func About(e *zerolog.Event, key messages.Key, generation uint64) *zerolog.Event {
	Text(e, "server", key.Server)
	Text(e, "scope", key.Scope)
	if generation > 0 {
		e.Uint64("generation", generation)
	}
	return e
}

// Text adds a text, unless it is empty.
func Text(e *zerolog.Event, field, value string) *zerolog.Event {
	if value != "" {
		e.Str(field, value)
	}
	return e
}

// Number adds a number, unless it is 0.
func Number(e *zerolog.Event, field string, n int) *zerolog.Event {
	if n != 0 {
		e.Int(field, n)
	}
	return e
}

// Span adds a duration with its unit, unless it is 0.
func Span(e *zerolog.Event, field string, d time.Duration) *zerolog.Event {
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

// Reached adds how a connection was opened.
func Reached(e *zerolog.Event, attached bool, protocol string, elapsed time.Duration) *zerolog.Event {
	if attached {
		e.Bool("attached", true)
	}
	return Span(Text(e, "protocol", protocol), "elapsed", elapsed)
}

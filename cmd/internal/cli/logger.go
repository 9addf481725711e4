package cli

import (
	"io"
	"time"

	"github.com/rs/zerolog"
)

// NewLogger returns a logger that writes lines for people, from the given level on. The
// level is one that zerolog knows.
func NewLogger(w io.Writer, level string) zerolog.Logger {
	parsed, err := zerolog.ParseLevel(level)
	if err != nil {
		parsed = zerolog.WarnLevel // cannot be: kong checks the flag
	}
	out := zerolog.ConsoleWriter{Out: w, NoColor: true}
	return zerolog.New(zerolog.SyncWriter(out)).Level(parsed).Hook(zerolog.HookFunc(func(e *zerolog.Event, _ zerolog.Level, _ string) {
		e.Str(zerolog.TimestampFieldName, time.Now().Format("15:04:05.000")) // Timestamp has whole seconds
	}))
}

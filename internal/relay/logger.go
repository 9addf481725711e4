package relay

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/rs/zerolog"
)

// maxLines bounds the log lines that wait for a slow writer.
const maxLines = 4096

// Logger is a logger in front of another logger. It never waits for the writer, the
// hooks or the sampler of that logger. The zero value is not usable.
type Logger struct {
	zerolog.Logger
	lines *Relay[line]
}

// line is one line of a log, as zerolog has encoded it.
type line struct {
	level zerolog.Level
	text  []byte
}

// NewLogger returns a Logger in front of another one, which gets each line with its
// level.
func NewLogger(behind zerolog.Logger) *Logger {
	if all := behind.Sample(nil); all.WithLevel(zerolog.PanicLevel) == nil { // the zero value, or a disabled logger
		return &Logger{zerolog.Nop(), New(0, func(line) {}, nil, nil)}
	}
	l := &Logger{}
	l.lines = New(maxLines, func(ln line) { repeat(&behind, ln) }, func(n uint64) {
		behind.Warn().Uint64("lines", n).Msg("log lines were dropped, because the writer was too slow")
	}, nil)
	l.Logger = zerolog.New(l).Level(behind.GetLevel())
	return l
}

// Write queues a line without a level.
func (l *Logger) Write(p []byte) (int, error) { return l.WriteLevel(zerolog.NoLevel, p) }

// WriteLevel queues a line.
func (l *Logger) WriteLevel(level zerolog.Level, p []byte) (int, error) {
	l.lines.Put(line{level, bytes.Clone(p)})
	return len(p), nil
}

// Dropped returns how many lines have been dropped.
func (l *Logger) Dropped() uint64 { return l.lines.Dropped() }

// Flush waits until all lines are written or ctx ends, and reports whether all were
// written.
func (l *Logger) Flush(ctx context.Context) bool { return l.lines.Flush(ctx) }

// repeat writes a line to another logger, field by field.
func repeat(to *zerolog.Logger, ln line) {
	e := to.WithLevel(ln.level)
	if e == nil {
		return
	}
	var text string
	fields := json.NewDecoder(bytes.NewReader(ln.text))
	fields.Token() //nolint:errcheck // the opening brace
	for fields.More() {
		name, err := fields.Token()
		var value json.RawMessage
		if err != nil || fields.Decode(&value) != nil {
			break
		}
		switch name {
		case zerolog.LevelFieldName:
		case zerolog.MessageFieldName:
			json.Unmarshal(value, &text) //nolint:errcheck // zerolog has made it
		default:
			e.RawJSON(name.(string), value)
		}
	}
	e.Msg(text)
}

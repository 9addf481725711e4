package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/internal/relay"
)

// WithSystemLogger makes an actor system write its own log to a logger, such as
// [Config.Logger]: pass it to actor.NewActorSystem. Lines have the field lib. A panic of an
// actor is Warn; the restart of a session, which the supervisor logs itself, and the start of
// the system are Debug. A dead letter names the type of its message, not the content.
//
// Actors log in their own goroutines. They never wait for the writer of the logger: lines are
// queued, and dropped and counted if the writer is too slow.
func WithSystemLogger(logger zerolog.Logger) actor.ConfigOption {
	handler := zerolog.NewSlogHandler(relay.NewLogger(logger).Logger).WithAttrs([]slog.Attr{slog.String("lib", "protoactor")})
	return actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(systemHandler{handler}) })
}

// systemHandler changes the levels and the fields of Proto.Actor's lines.
type systemHandler struct{ slog.Handler }

// Enabled reports whether a line of this level may be written. A line that is Info may become
// Warn.
func (h systemHandler) Enabled(ctx context.Context, level slog.Level) bool {
	if level == slog.LevelInfo {
		level = slog.LevelWarn
	}
	return h.Handler.Enabled(ctx, level)
}

// Handle writes a line. Its time is that of the logger.
func (h systemHandler) Handle(ctx context.Context, r slog.Record) error {
	line := slog.NewRecord(time.Time{}, r.Level, r.Message, r.PC)
	switch r.Message {
	case "actor system started":
		line.Level = slog.LevelDebug
	case "[ACTOR] Recovering":
		line.Level = slog.LevelWarn
	}
	r.Attrs(func(a slog.Attr) bool {
		switch value := a.Value.Any().(type) {
		case nil:
			return true
		case *actor.PID:
			if value == nil {
				return true
			}
			a.Value = slog.StringValue(value.Address + "/" + value.Id)
		case actor.SystemMessage: // such as a Watch of an actor that has stopped
			line.Level = slog.LevelDebug
			a = slog.String("type", fmt.Sprintf("%T", value))
		case *Fault:
			line.Level = min(line.Level, slog.LevelDebug)
		default:
			if a.Key == "message" {
				a = slog.String("type", fmt.Sprintf("%T", value))
			}
		}
		line.AddAttrs(a)
		return true
	})
	if !h.Handler.Enabled(ctx, line.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, line)
}

// WithAttrs returns a handler that adds fields.
func (h systemHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return systemHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup returns a handler that puts fields into a group.
func (h systemHandler) WithGroup(name string) slog.Handler {
	return systemHandler{h.Handler.WithGroup(name)}
}

// SlogLogger returns a logger for [Config.Logger] and [WithSystemLogger] that writes to a
// logger of log/slog. Numbers and booleans keep their types, and durations are strings such as
// "1.5s". The lowest level is the one that is enabled when SlogLogger is called.
func SlogLogger(logger *slog.Logger) zerolog.Logger {
	if logger == nil {
		return zerolog.Nop()
	}
	to := slogWriter{logger.Handler()}
	for level := zerolog.TraceLevel; level <= zerolog.ErrorLevel; level++ {
		if to.handler.Enabled(context.Background(), slogLevel(level)) {
			return zerolog.New(to).Level(level)
		}
	}
	return zerolog.Nop()
}

// slogWriter writes lines of zerolog to a handler of log/slog.
type slogWriter struct{ handler slog.Handler }

// Write writes a line without a level.
func (w slogWriter) Write(line []byte) (int, error) { return w.WriteLevel(zerolog.NoLevel, line) }

// WriteLevel writes a line.
func (w slogWriter) WriteLevel(level zerolog.Level, line []byte) (int, error) {
	ctx := context.Background()
	r := slog.NewRecord(time.Now(), slogLevel(level), "", 0)
	if !w.handler.Enabled(ctx, r.Level) {
		return len(line), nil
	}
	fields := json.NewDecoder(bytes.NewReader(line))
	fields.UseNumber()
	fields.Token() //nolint:errcheck // the opening brace
	for fields.More() {
		name, err := fields.Token()
		var value any
		if err == nil {
			err = fields.Decode(&value)
		}
		if err != nil {
			return 0, fmt.Errorf("supervisor: a line of the log is no JSON: %w", err)
		}
		switch name {
		case zerolog.LevelFieldName:
		case zerolog.MessageFieldName:
			r.Message, _ = value.(string)
		default:
			r.AddAttrs(slog.Any(name.(string), typed(value)))
		}
	}
	return len(line), w.handler.Handle(ctx, r)
}

// typed returns a number as an integer if it is one.
func typed(value any) any {
	number, is := value.(json.Number)
	if !is {
		return value
	}
	if n, err := strconv.ParseUint(number.String(), 10, 64); err == nil {
		return n
	}
	if n, err := number.Int64(); err == nil {
		return n
	}
	f, _ := number.Float64()
	return f
}

// slogLevel returns the level of log/slog for a level of zerolog.
func slogLevel(level zerolog.Level) slog.Level {
	switch level {
	case zerolog.TraceLevel:
		return slog.LevelDebug - 4
	case zerolog.DebugLevel:
		return slog.LevelDebug
	case zerolog.WarnLevel:
		return slog.LevelWarn
	case zerolog.ErrorLevel, zerolog.FatalLevel, zerolog.PanicLevel:
		return slog.LevelError
	}
	return slog.LevelInfo
}

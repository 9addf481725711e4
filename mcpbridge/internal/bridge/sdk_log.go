package bridge

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
)

// sdkLog is the handler for the log lines of the SDK about sessions. It adds the field lib. The SDK
// does not say which server a line is about, so that the secrets of all servers are blacked out.
// Most errors in the log are faults of a server, such as a tool that the SDK leaves out: they become
// Warn. An internal error of the SDK remains Error, without its fields, which may contain results.
type sdkLog struct {
	logger  func() *slog.Logger
	secrets func() []string
	attrs   []slog.Attr
}

// Enabled reports whether lines of a level may be written.
func (h sdkLog) Enabled(ctx context.Context, level slog.Level) bool {
	return h.logger().Enabled(ctx, level)
}

// Handle writes a line, without a time: the logger adds it.
func (h sdkLog) Handle(ctx context.Context, r slog.Record) error {
	internal := strings.HasPrefix(r.Message, "jsonrpc2 internal error")
	level := r.Level
	if level >= slog.LevelError && !internal {
		level = slog.LevelWarn
	}
	secrets := h.secrets()
	line := slog.NewRecord(time.Time{}, level, redact.Clean(r.Message, secrets...), 0)
	line.AddAttrs(slog.String("lib", "go-sdk"))
	add := func(a slog.Attr) bool {
		if !internal {
			line.AddAttrs(slog.String(a.Key, redact.Clean(a.Value.String(), secrets...)))
		}
		return true
	}
	for _, a := range h.attrs {
		add(a)
	}
	r.Attrs(add)
	if out := h.logger().Handler(); out.Enabled(ctx, level) {
		return out.Handle(ctx, line)
	}
	return nil
}

// WithAttrs returns a handler that adds fields.
func (h sdkLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return sdkLog{h.logger, h.secrets, append(h.attrs[:len(h.attrs):len(h.attrs)], attrs...)}
}

// WithGroup returns the handler itself: the SDK has no groups.
func (h sdkLog) WithGroup(string) slog.Handler { return h }

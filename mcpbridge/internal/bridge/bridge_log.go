package bridge

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/mcpactor/mcpactor/internal/guard"
)

// bridgeLog logs what servers do beside the protocol.
type bridgeLog struct {
	log     *slog.Logger // of the SDK, too; or nil
	skipped skipped
}

// line logs a line. Its time is that of the logger.
func (b *bridgeLog) line(level slog.Level, message string, attrs ...slog.Attr) {
	if b.log == nil || !b.log.Enabled(context.Background(), level) {
		return
	}
	r := slog.NewRecord(time.Time{}, level, message, 0)
	r.AddAttrs(attrs...)
	b.log.Handler().Handle(context.Background(), r) //nolint:errcheck // there is nowhere to log it
}

// noteSkipped notes text that a server has written to its stdout, and logs the first of each server. The
// text is left out: it may quote arguments.
func (b *bridgeLog) noteSkipped(server string, bytes int) {
	if b.skipped.note(server, bytes) {
		b.line(slog.LevelWarn, "server writes text to stdout that is no message: it is skipped", slog.String("server", server))
	}
}

// panicked logs the panic of a handler of a server in memory. Its value is left out unless the runtime
// made it: it may quote arguments.
func (b *bridgeLog) panicked(server string, p *guard.Panic) {
	reason := fmt.Sprintf("%T", p.Value)
	if err, ok := p.Value.(runtime.Error); ok {
		reason = err.Error()
	}
	b.line(slog.LevelError, "handler of an in-memory server panicked",
		slog.String("server", server), slog.String("reason", reason), slog.String("stack", string(p.Stack)))
}

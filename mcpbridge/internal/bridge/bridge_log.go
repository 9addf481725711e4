package bridge

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpactor/mcpactor/internal/guard"
)

// bridgeLog logs what servers do outside the protocol.
type bridgeLog struct {
	log     *slog.Logger // of the SDK, too
	skipped atomic.Uint64
	printed sync.Map // the names of the servers whose text was skipped
}

// line logs a line, without a time: the logger adds it.
func (b *bridgeLog) line(level slog.Level, message string, attrs ...slog.Attr) {
	if !b.log.Enabled(context.Background(), level) {
		return
	}
	r := slog.NewRecord(time.Time{}, level, message, 0)
	r.AddAttrs(attrs...)
	b.log.Handler().Handle(context.Background(), r) //nolint:errcheck // there is nowhere to log it
}

// noteSkipped counts text that a server has written to its stdout. It logs a line for the first text of
// each server, without the text, which may quote arguments.
func (b *bridgeLog) noteSkipped(server string, bytes int) {
	b.skipped.Add(uint64(bytes))
	if _, again := b.printed.LoadOrStore(server, true); !again {
		b.line(slog.LevelWarn, "server writes text to stdout that is no message: it is skipped", slog.String("server", server))
	}
}

// panicked logs a panic in code of the user. Of the value of the panic it logs only the
// type, unless the value is a runtime error: it may quote arguments.
func (b *bridgeLog) panicked(server, what string, p *guard.Panic) {
	reason := fmt.Sprintf("%T", p.Value)
	if err, ok := p.Value.(runtime.Error); ok {
		reason = err.Error()
	}
	b.line(slog.LevelError, what+" panicked",
		slog.String("server", server), slog.String("reason", reason), slog.String("stack", string(p.Stack)))
}

package bridge

import (
	"context"
	"log/slog"
	"sync"

	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/transport"
)

// recovery ends what sessions of processes that were killed have left: see [mcpbridge.Cleanup]. A nil recovery does nothing.
type recovery struct {
	log    *bridgeLog
	ctx    context.Context // ends with the bridge
	cancel context.CancelFunc
	all    sync.WaitGroup
}

func newRecovery(log *bridgeLog) *recovery {
	ctx, cancel := context.WithCancel(context.Background())
	return &recovery{log: log, ctx: ctx, cancel: cancel}
}

// start begins with the sessions of one server.
func (r *recovery) start(at *endpoint) {
	server, ok := at.newest.(transport.Recoverer)
	if r == nil || !ok || at.Cleanup.Command == "" {
		return
	}
	r.all.Go(func() {
		ended, err := server.Recover(r.ctx)
		if ended > 0 {
			r.log.line(slog.LevelInfo, "ended what sessions of an earlier process had left", slog.String("server", at.Name), slog.Int("sessions", ended))
		}
		if err != nil && r.ctx.Err() == nil {
			r.log.line(slog.LevelWarn, "could not end what sessions of an earlier process have left",
				slog.String("server", at.Name), slog.String("err", redact.Describe(err, at.newest.Secrets()...)))
		}
	})
}

// end ends what runs, and waits for it.
func (r *recovery) end() {
	if r != nil {
		r.cancel()
		r.all.Wait()
	}
}

package actors

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// dialing is one attempt to open a session, away from its actor.
type dialing struct {
	cfg    *Config
	recall recall
	req    mcpbridge.DialRequest
	setup  []*mcp.CallToolParams
	ops    []messages.Operation // that put back what the session holds

	generation uint64 // of the session before
	goesOn     bool   // there was one
}

// run dials, makes the session ready for calls, and remembers it.
func (d dialing) run(ctx context.Context) (msg *dialed) {
	began := time.Now()
	var conn mcpbridge.Conn
	failed := func(err error) *dialed {
		if conn != nil {
			closing(d.cfg.CloseTimeout, conn.Close) //nolint:errcheck // why it was not ready is what matters
		}
		return &dialed{err: err, elapsed: time.Since(began)}
	}
	defer func() {
		if r := recover(); r != nil { // of a connection that wraps the bridge's
			d.cfg.Logger.Error().Str("server", d.req.Key.Server).Str("scope", d.req.Key.Scope).
				Interface("reason", r).Bytes("stack", debug.Stack()).Msg("connection panicked")
			msg = failed(panicked(r))
		}
	}()
	var known *mcpbridge.Record
	if !d.goesOn {
		known = d.recall.load()
	}
	if known != nil {
		d.req.Resume, d.goesOn = &known.Resume, true
		d.generation = max(d.generation, known.Generation)
	}
	var err error
	conn, err = dial(ctx, d.cfg.Dialer, d.req)
	if err == nil && len(d.setup)+len(d.ops) > 0 {
		err = attempt(ctx, "the set-up", func(ctx context.Context) error { return prepare(ctx, conn, d.setup, d.ops) })
	}
	if err != nil {
		return failed(err)
	}
	info := conn.Info()
	if !d.goesOn || !info.Attached && !info.Stateless {
		d.generation++
	}
	if !info.Attached {
		d.recall.save(conn, d.generation)
	}
	return &dialed{conn: conn, generation: d.generation, expired: known != nil && !info.Attached, elapsed: time.Since(began)}
}

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
	fresh  bool // what is remembered of a session is not to be resumed
	req    mcpbridge.DialRequest
	setup  []*mcp.CallToolParams
	ops    []messages.Operation // that put back what the session holds

	generation uint64 // of the session before
	goesOn     bool   // there was one
	stateless  bool   // which kept nothing on the server
}

// left logs what the session before had, and this one has not.
func (d dialing) left(op messages.Operation, e *mcpbridge.Error) {
	d.cfg.Logger.Warn().Str("server", d.req.Key.Server).Str("scope", d.req.Key.Scope).Str("op", op.Method()).
		Str("err", e.Error()).Msg("session goes on without what the server refused to put back")
}

// run dials, makes the session ready for calls, and remembers it.
func (d dialing) run(wanted context.Context) (msg *dialed) {
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
	ctx, cancel := context.WithTimeout(wanted, d.cfg.ConnectTimeout)
	defer cancel()
	if known != nil {
		d.generation = max(d.generation, known.Generation)
		if d.fresh || !known.Valid() {
			known = nil
		} else {
			d.req.Resume, d.goesOn = &known.Resume, true
		}
	}
	var err error
	conn, err = dial(ctx, d.cfg.Dialer, d.req)
	if err == nil && len(d.setup)+len(d.ops) > 0 {
		err = attempt(ctx, "the set-up", func(ctx context.Context) error { return prepare(ctx, conn, d.setup, d.ops, d.left) })
		if err != nil {
			e := *mcpbridge.AsDialError(err)
			e.Server = mcpbridge.Present // it has answered the handshake
			err = &e
		}
	}
	if err != nil {
		return failed(err)
	}
	info := conn.Info()
	msg = &dialed{conn: conn, generation: d.generation, elapsed: time.Since(began)}
	if known != nil && !info.Attached {
		msg.expired = d.generation
	}
	if kept := info.Attached || d.stateless && info.Stateless; !d.goesOn || !kept {
		msg.generation++
	}
	if !info.Attached {
		d.recall.save(conn, msg.generation)
	}
	return msg
}

package session

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/internal/rounds"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// dialAttempt is one attempt to open a connection. It runs in a goroutine of its own.
type dialAttempt struct {
	limits   *mcpbridge.Limits
	store    *contract.KeyStore
	req      dial.Request
	setup    []*mcp.CallToolParams
	previous dial.Conn            // whose MCP session req resumes, or nil
	ops      []messages.Operation // that apply the settings
	last     lastSession
	reopens  bool // there was a previous MCP session
}

// run dials, sets up the MCP session, and saves it in the store. It may block.
func (d dialAttempt) run(wanted context.Context) (msg *dialed) {
	began := time.Now()
	var conn dial.Conn
	failed := func(err error) *dialed {
		msg := &dialed{err: err, left: dial.LeftBy(err), elapsed: time.Since(began)}
		if conn != nil && contract.CloseWithin(d.limits.CloseTimeout, conn.Close) != nil {
			msg.left = conn
		}
		return msg
	}
	defer func() {
		if r := recover(); r != nil { // by a wrapper of the dialer
			contract.About(d.store.Cfg.Logger.Error(), d.req.Key, d.last.generation).
				Interface("reason", r).Bytes("stack", debug.Stack()).Msg("connection panicked")
			msg = failed(contract.Panicked(r))
		}
	}()
	var known *mcpbridge.Record
	if !d.reopens && d.req.Resume == nil { // else this actor has had an MCP session, even if a bug kept it from reporting that
		known = d.store.Load()
	}
	if wanted.Err() != nil { // after a bug, the next incarnation may dial already
		return failed(context.Cause(wanted))
	}
	ctx, cancel := context.WithTimeout(messages.WithTrace(messages.WithAttributes(wanted, d.req.Attributes), d.req.Trace), d.limits.ConnectTimeout)
	defer cancel()
	if known != nil {
		// A record of an earlier generation than that of our last MCP session is outdated: the
		// later one could not be saved. Any other is that of the last MCP session, which another
		// process may have opened.
		outdated := known.Generation < d.last.generation
		d.last.generation = max(d.last.generation, known.Generation)
		if outdated && known.Valid() { // a process that did not know of ours may have left it open
			contract.Leftover{Resume: &known.Resume}.Close(*d.store, d.limits.CloseTimeout)
		}
		if d.last.noResume || outdated || !known.Valid() || slices.Contains(d.last.leftovers, known.SessionID) {
			known = nil
		} else {
			d.req.Resume, d.reopens = &known.Resume, true
		}
	}
	var err error
	var missed []string
	if ask := d.req.Resolved; ask != nil {
		d.req.Resolved = func(ctx context.Context, srv *mcpbridge.Server) error {
			d.setup = srv.Setup
			return ask(ctx, srv)
		}
	}
	conn, err = contract.Dial(ctx, d.store.Cfg.Dialer, d.req)
	if err == nil {
		err = checkSessionID(conn)
	}
	if err == nil && len(d.setup)+len(d.ops) > 0 {
		err = contract.RunWithin(ctx, "the set-up", func(ctx context.Context) (err error) {
			missed, err = d.setUp(ctx, conn)
			return err
		})
		if err != nil {
			e := *dial.AsError(err)
			e.Server = mcpbridge.Present // the handshake was answered
			err = &e
		}
	}
	if err != nil {
		return failed(err)
	}
	info := conn.Info()
	msg = &dialed{conn: conn, generation: d.last.generation, saved: d.last.saved || known != nil, missed: missed, elapsed: time.Since(began)}
	if known != nil && !info.Attached {
		msg.expired = d.last.generation
	}
	if kept := info.Attached || d.last.stateless && info.Stateless; !d.reopens || !kept {
		msg.generation = max(d.last.generation, d.last.floor) + 1
	}
	if !info.Attached && d.previous != nil && d.req.Resolved != nil { // the key may have had another configuration then
		go contract.CloseWithin(d.limits.CloseTimeout, d.previous.Close) //nolint:errcheck // the server may not know it any more
	}
	if !info.Attached || msg.generation != d.last.generation { // a bug may have kept an earlier dial from reporting the generation
		msg.saved = d.store.SaveSession(conn, msg.generation)
	}
	return msg
}

// maxSessionID is the longest id of an MCP session that is kept, in bytes. A request with a longer one is
// too large for most servers.
const maxSessionID = 8 << 10

// checkSessionID returns an error if the id of an MCP session is too long.
func checkSessionID(conn dial.Conn) error {
	resume := conn.Resume()
	if resume == nil || len(resume.SessionID) <= maxSessionID {
		return nil
	}
	return &mcpbridge.Error{
		Class: mcpbridge.Protocol, Server: mcpbridge.Present,
		Detail: fmt.Sprintf("the server has given the session an id of %d bytes; at most %d are accepted", len(resume.SessionID), maxSessionID),
	}
}

// setUp prepares a new MCP session: it runs the configured set-up calls, and applies the
// settings. A setting that the server refuses is skipped: it may name something that no
// longer exists. An MCP session that was resumed still has its settings. It returns the
// resources that are subscribed, and whose updates may have been missed. It may block.
func (d dialAttempt) setUp(ctx context.Context, conn dial.Conn) (missed []string, err error) {
	attached := conn.Info().Attached
	if attached {
		d.setup = nil
	}
	for _, params := range d.setup {
		result, err := rounds.Do(ctx, conn.Do, &messages.CallTool{Params: params})
		if r, ok := result.(*messages.ToolResult); ok && err == nil && r.Result.IsError {
			err = errors.New("the tool returned an error")
		}
		if err != nil {
			e, class := mcpbridge.AsError(err), mcpbridge.Unavailable
			if e.Class == mcpbridge.RateLimited {
				class = e.Class
			}
			return nil, &mcpbridge.Error{
				Class: class, Err: err, RetryAfter: e.RetryAfter,
				Detail: fmt.Sprintf("set-up call of %q: %s", params.Name, e.Detail),
			}
		}
	}
	for _, op := range d.ops {
		var err error
		if !attached {
			_, err = conn.Do(ctx, op)
		}
		var said *jsonrpc.Error
		e := mcpbridge.AsError(err)
		switch {
		case e == nil:
			if s, ok := op.(*messages.Subscribe); ok {
				missed = append(missed, s.URI)
			}
		case e.Class != mcpbridge.Invalid && !errors.As(err, &said): // the server has not answered it
			return nil, &mcpbridge.Error{Class: mcpbridge.Unavailable, Detail: op.Method() + " could not be put back: " + e.Detail, Err: e}
		default:
			contract.About(d.store.Cfg.Logger.Warn(), d.req.Key, d.last.generation).Str("op", op.Method()).Str("err", e.Error()).
				Msg("server refused a setting of the previous session")
		}
	}
	return missed, nil
}

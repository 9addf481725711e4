// Package stdio is the transport to servers that are processes of their own, and talk over
// their standard input and output.
package stdio

import (
	"context"
	"errors"
	"strings"

	"github.com/mcpactor/mcpactor/internal/bridge/redact"
	"github.com/mcpactor/mcpactor/internal/bridge/tap"
	"github.com/mcpactor/mcpactor/internal/bridge/transport"
	"github.com/mcpactor/mcpactor/internal/bridge/wire"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// Server is the [transport.Server] for [mcpbridge.Server.Command].
type Server struct{ transport.Defaults }

// New returns the way to reach a server that is a process.
func New(config *mcpbridge.Server) transport.Server {
	return &Server{transport.Defaults{Config: config}}
}

// Connect starts a process.
func (s *Server) Connect(session *transport.Session) (transport.Conn, error) {
	p, err := startProcess(s.Config, session.Stderr)
	if err != nil {
		return nil, err
	}
	return &conn{tap.OverPipe(s.Config, session, p, &p.input), s.Config, p}, nil
}

// conn is the connection to a process.
type conn struct {
	*tap.Tap
	config  *mcpbridge.Server
	process *process
}

// HasRead reports whether the process has read all of its input so far.
func (c *conn) HasRead() bool { return c.process.hasRead() }

// NeverRead reports whether the process ended before it read the last request.
func (c *conn) NeverRead(ex *wire.Exchange) bool {
	_, end, begun := ex.LastOverPipe()
	return !begun && c.process.neverRead(end)
}

// DescribeEnd says how the process ended, and apart from that what the server said last: on
// stderr, or the output that is no JSON-RPC.
func (c *conn) DescribeEnd() (detail, quote string) {
	detail, quote = c.process.describeEnd()
	detail = "the server process " + detail
	ended := c.Ended()
	if ended == nil || wire.IsEndOfStream(ended) {
		return detail, quote
	}
	if errors.Is(ended, tap.ErrTooLarge) {
		return detail + " (" + wire.TooLarge(c.config) + ")", quote
	}
	reason := redact.Describe(ended, c.Secrets()...)
	return detail + " (its output is no JSON-RPC)", strings.TrimSuffix(reason+"; "+quote, "; ")
}

// Kill kills the process and its children.
func (c *conn) Kill() { c.process.kill() }

// Close ends the process and its children.
func (c *conn) Close(ctx context.Context) error { return c.process.stop(ctx) }

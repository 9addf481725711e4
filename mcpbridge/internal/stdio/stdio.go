// Package stdio is the transport to servers that are processes, over their standard input and output.
package stdio

import (
	"context"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/tap"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/transport"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// Server is the [transport.Server] for [mcpbridge.Server.Command].
type Server struct{ transport.Defaults }

// New returns the way to reach a server that is a process.
func New(config *mcpbridge.Server) transport.Server {
	return &Server{transport.Defaults{Config: config}}
}

// Connect starts a process.
func (s *Server) Connect(session *transport.Session) (transport.Conn, error) {
	after, err := newCleanup(s.Config, func(session string) error { return cleanUp(context.Background(), s.Config, session) })
	if err != nil {
		return nil, err
	}
	p, err := startProcess(s.Config, after, session.Stderr)
	if err != nil {
		after.discard()
		return nil, err
	}
	t := tap.OverPipe(s.Config, session, p, &p.input)
	t.OnText = p.said
	return &conn{t, s.Config, p}, nil
}

// Recover runs the cleanup for sessions of processes that were killed.
func (s *Server) Recover(ctx context.Context) (ended int, err error) {
	return recoverSessions(ctx, s.Config)
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

// EndedAfterReading reports whether the process has ended, not because of what it wrote, and had read some of its input.
func (c *conn) EndedAfterReading() bool {
	ended := c.Ended()
	return (ended == nil || wire.IsEndOfStream(ended)) && c.process.endedAfterReading()
}

// DescribeEnd returns how the process ended, and its last output: to stderr, and text to stdout.
func (c *conn) DescribeEnd() (detail, quote string) {
	detail, quote = c.process.describeEnd()
	switch ended := c.Ended(); {
	case ended == nil || wire.IsEndOfStream(ended):
		return "the server process " + detail, quote
	default:
		return "the server process was ended: " + redact.Describe(ended, c.Secrets()...), quote
	}
}

// Kill kills the process and its children.
func (c *conn) Kill() { c.process.kill() }

// Close ends the process and its children.
func (c *conn) Close(ctx context.Context) error { return c.process.stop(ctx) }

// Package memory is the transport to servers in this process.
package memory

import (
	"context"
	"net"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/tap"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/transport"
)

// Server is the [transport.Server] for [mcpbridge.Server.InMemory].
type Server struct{ transport.Defaults }

// New returns the way to reach a server in memory.
func New(config *mcpbridge.Server) transport.Server {
	return &Server{transport.Defaults{Config: config}}
}

// Connect connects the server to one end of a pipe.
func (s *Server) Connect(session *transport.Session) (transport.Conn, error) {
	contain(s.Config.InMemory)
	near, far := net.Pipe()
	ctx := context.WithValue(session.Cut, sessionKey{}, session)
	if _, err := s.Config.InMemory.Connect(ctx, &mcp.IOTransport{Reader: far, Writer: far}, nil); err != nil {
		return nil, err
	}
	input := &tap.Input{Writer: near}
	return &conn{tap.OverPipe(s.Config, session, near, input)}, nil
}

type conn struct{ *tap.Tap }

// MayRefuseSession returns false: the server and the session live as long as the connection.
func (*conn) MayRefuseSession() bool { return false }

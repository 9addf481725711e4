// Package streamable is the transport over streamable HTTP: it decides what
// becomes of a call and of its session from the HTTP responses themselves.
package streamable

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/sse"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/transport"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// Server is the [transport.Server] for [mcpbridge.TransportHTTP].
type Server struct {
	*outbound.Client
	habits habits
}

// New returns the way to reach a server over streamable HTTP.
func New(config *mcpbridge.Server) transport.Server {
	return &Server{Client: outbound.NewClient(config)}
}

// HasSessions returns true.
func (*Server) HasSessions() bool { return true }

// SpeaksOldProtocolsOnly returns false.
func (*Server) SpeaksOldProtocolsOnly() bool { return false }

// Older returns HTTP+SSE: according to the specification, clients try it when a server refuses streamable HTTP.
func (s *Server) Older() transport.Server { return sse.NewWith(s.Client) }

// Forget forgets the habits of the server.
func (s *Server) Forget() { s.habits.forget() }

// Connect returns a connection, and sends nothing.
func (s *Server) Connect(about *transport.Session) (transport.Conn, error) {
	session := &session{
		Session: about, client: s.Client, out: outbound.NewSender(s.Client, about),
		answers: wire.Answers{IDs: rpc.NewIDs(about.Strays), Progress: &about.Progress, Custom: about.Custom}, habits: &s.habits,
		ending: make(chan struct{}, 1),
	}
	rt := &roundTripper{standalone: standalone{session: session}}
	rt.poster = outbound.Poster{Session: about, Deliver: rt.deliver, Initialized: rt.initialized}
	return &conn{roundTripper: rt}, nil
}

// conn is the [transport.Conn] of a session.
type conn struct{ *roundTripper }

// SDK returns the SDK's transport, which sends through the roundTripper.
func (c *conn) SDK() mcp.Transport {
	config := c.client.Config
	return &mcp.StreamableClientTransport{
		Endpoint: config.URL, HTTPClient: outbound.NoRedirects(c.roundTripper), MaxEventSize: wire.SDKLimit(config),
		MaxRetries: 2 * maxResumptions, DisableStandaloneSSE: config.NoStream,
	}
}

// CarriesParams returns true.
func (*conn) CarriesParams() bool { return true }

// Succeeded notes that the server knows the session.
func (c *conn) Succeeded() {
	if c.fresh.Load() {
		c.fresh.Store(false)
	}
}

// Forget notes that nobody waits for the response to the exchange any longer.
func (c *conn) Forget(ex *wire.Exchange) { c.awaited.forget(ex) }

// IsFresh reports whether the server has answered nothing since initialize.
func (c *conn) IsFresh() bool { return c.fresh.Load() }

// Cookies returns the cookies of the session.
func (c *conn) Cookies() string { return c.out.Cookies() }

// Resumable returns the session.
func (c *conn) Resumable() transport.Resumable { return c }

// Close notes that the session is no longer used.
func (c *conn) Close(context.Context) error {
	c.leave()
	return nil
}

// MayRefuseSession returns true.
func (*conn) MayRefuseSession() bool { return true }

// The following methods are for transports with one connection, or with a process. Here each request has a response of its
// own, which ends when the session is cut.

func (*conn) HasRead() bool                       { return true }
func (*conn) Ended() error                        { return nil }
func (*conn) DescribeEnd() (detail, quote string) { return "", "" }
func (*conn) NeverRead(*wire.Exchange) bool       { return false }
func (*conn) EndedAfterReading() bool             { return false }
func (*conn) Closing()                            {}
func (*conn) Kill()                               {}

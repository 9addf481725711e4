// Package transport defines what the bridge needs of a transport.
//
// A new transport is one file with one type: a [Server] that embeds [Defaults], and whose
// Connect puts a tap (package tap) on a transport of the SDK. The tap is the [Conn]. A
// transport that knows more about its connections, such as how a process ended, embeds the tap
// in a Conn of its own. A transport without a tap embeds [ConnDefaults]. transports.go of
// package bridge lists all transports.
//
// When a connection ends, the Read of the SDK's transport returns an error for which
// [wire.IsEndOfStream] is true, such as io.EOF. Any other error means that the server has sent
// something that is not MCP.
package transport

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// Server is a way to reach one server. All connections to the server share it. Its
// methods may be called from any goroutine, and do not block, but for Recover.
type Server interface {
	// Connect makes a connection for a session. The SDK connects it with [Conn.SDK], and the
	// caller closes it with [Conn.Close].
	Connect(*Session) (Conn, error)
	// Secrets returns what no text about a server may contain, when there is no connection to it.
	Secrets() []string
	// HasSessions reports whether sessions have ids by which they can be resumed over another connection.
	HasSessions() bool
	// SpeaksOldProtocolsOnly reports whether no protocol with server/discover has the transport.
	SpeaksOldProtocolsOnly() bool
	// Older returns the older transport to try when the server refuses a handshake over this one, or nil.
	Older() Server
	// Forget forgets how the server behaves.
	Forget()
	// Release closes idle connections.
	Release()
}

// Recoverer is a [Server] whose sessions may leave something on this machine when their process is killed.
type Recoverer interface {
	// Recover ends what sessions of processes that were killed have left, and returns of how many sessions. It may block
	// until ctx ends.
	Recover(ctx context.Context) (ended int, err error)
}

// Conn is one connection to a server. Its methods may be called from any goroutine.
type Conn interface {
	// SDK returns the transport that the SDK's client connects with.
	SDK() mcp.Transport
	// CarriesParams reports whether the connection adds the parameters of an exchange to its request.
	CarriesParams() bool
	// AwaitStream waits until the server can send messages by itself, if the end of the
	// handshake should wait for that. It waits for a short time, and at most until ctx ends.
	AwaitStream(ctx context.Context)
	// HasRead reports whether the server has read all that was sent to it. It returns true if that is not known.
	HasRead() bool
	// Succeeded notes that an operation of the session had a result.
	Succeeded()
	// Forget notes that nobody waits for the response to the exchange any longer.
	Forget(*wire.Exchange)

	// Ended returns what ended the connection, or nil.
	Ended() error
	// DescribeEnd returns how the server ended, and its last output. detail is empty if that is not known.
	// DescribeEnd may wait for a moment.
	DescribeEnd() (detail, quote string)
	// NeverRead reports whether the server has ended without reading the last request of
	// the exchange. It may wait for a moment.
	NeverRead(*wire.Exchange) bool
	// EndedAfterReading reports whether the server is a process that has ended by itself, and had read some of its input.
	// It may wait for a moment.
	EndedAfterReading() bool
	// Secrets returns what no text about the session may contain.
	Secrets() []string

	// MayRefuseSession reports whether the refusal of a request can be about the session.
	MayRefuseSession() bool
	// Resumable returns the session if the server keeps it without the connection, or nil.
	Resumable() Resumable

	// Expire notes that the session has expired, and reports it once. The error has the status 0 if a control has shown
	// it.
	Expire(*mcpbridge.Error)
	// Closing notes that the bridge itself is about to end the connection.
	Closing()
	// EndSession ends the session on the server. It may be called again if it failed, and also after a handshake that
	// failed.
	EndSession(context.Context) error
	// Kill ends the connection at once. It does not block.
	Kill()
	// Close ends the connection after its session was cut. It may be called again if it failed.
	Close(context.Context) error
}

// Resumable is a session that a server knows by its id, over any connection.
type Resumable interface {
	// SessionID returns the current id of the session.
	SessionID() string
	// Cookies returns the cookies of the session: see [mcpbridge.Resume].
	Cookies() string
	// IsFresh reports whether the server has answered nothing since initialize. Such a server may not
	// know the session yet.
	IsFresh() bool
	// HasExpired reports whether the session has expired.
	HasExpired() bool
	// EndQuietly ends the session on the server with one attempt, and reports nothing.
	EndQuietly()
	// Discard ends the session that a failed handshake may have opened on the server. If it fails, EndSession may be called
	// later.
	Discard(context.Context) error
}

// Defaults are the methods of a [Server] that has no sessions beyond their connections and no
// older transport.
type Defaults struct{ Config *mcpbridge.Server }

// Secrets returns those of the configuration.
func (d Defaults) Secrets() []string { return redact.OfServer(d.Config) }

// HasSessions returns false.
func (Defaults) HasSessions() bool { return false }

// SpeaksOldProtocolsOnly returns false.
func (Defaults) SpeaksOldProtocolsOnly() bool { return false }

// Older returns nil.
func (Defaults) Older() Server { return nil }

// Forget does nothing.
func (Defaults) Forget() {}

// Release does nothing.
func (Defaults) Release() {}

// ConnDefaults are the methods of a [Conn] whose server has no sessions beyond the connection
// and no process, and whose end needs nothing but the cut of its [Session].
type ConnDefaults struct{}

// CarriesParams returns false.
func (ConnDefaults) CarriesParams() bool { return false }

// AwaitStream returns at once.
func (ConnDefaults) AwaitStream(context.Context) {}

// HasRead returns true.
func (ConnDefaults) HasRead() bool { return true }

// Succeeded does nothing.
func (ConnDefaults) Succeeded() {}

// DescribeEnd returns nothing.
func (ConnDefaults) DescribeEnd() (detail, quote string) { return "", "" }

// NeverRead returns false.
func (ConnDefaults) NeverRead(*wire.Exchange) bool { return false }

// EndedAfterReading returns false.
func (ConnDefaults) EndedAfterReading() bool { return false }

// MayRefuseSession returns true.
func (ConnDefaults) MayRefuseSession() bool { return true }

// Resumable returns nil.
func (ConnDefaults) Resumable() Resumable { return nil }

// Expire does nothing.
func (ConnDefaults) Expire(*mcpbridge.Error) {}

// EndSession does nothing.
func (ConnDefaults) EndSession(context.Context) error { return nil }

// Kill does nothing.
func (ConnDefaults) Kill() {}

// Close does nothing.
func (ConnDefaults) Close(context.Context) error { return nil }

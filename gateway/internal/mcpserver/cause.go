package mcpserver

import (
	"errors"
	"io"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ofConnections are the errors by which the SDK says that its own connection is closed, or breaks. It tells those of
// JSON-RPC by their codes. Programs take [mcp.ErrConnectionClosed] for a proof that a call was not sent, and repeat it.
var ofConnections = []error{
	mcp.ErrConnectionClosed, mcp.ErrSessionMissing, io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe,
	&jsonrpc.Error{Code: -32003}, // the client is closing
	&jsonrpc.Error{Code: -32004}, // the server is closing
}

// oneCall is the error of one call that contains an error of another connection: that of a server behind the handler. The
// connection of the client itself works. For errors.As it is the error that the handler returned. For errors.Is it is that
// as well, except that it is none of the errors of connections.
type oneCall struct{ cause error }

// ofOneCall returns the error of a call so that nobody takes it for the end of the client's connection.
func ofOneCall(cause error) error {
	if slices.ContainsFunc(ofConnections, func(end error) bool { return errors.Is(cause, end) }) {
		return &oneCall{cause}
	}
	return cause
}

// Error returns the text of the error that the handler returned.
func (o *oneCall) Error() string { return o.cause.Error() }

// As finds what the error that the handler returned contains.
func (o *oneCall) As(target any) bool { return errors.As(o.cause, target) }

// Is reports whether the error that the handler returned is another, which is none of a connection.
func (o *oneCall) Is(target error) bool {
	isOfConnection := slices.ContainsFunc(ofConnections, func(end error) bool { return errors.Is(target, end) })
	return !isOfConnection && errors.Is(o.cause, target)
}

package tap

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/bridge/rpc"
)

// ErrTooLarge ends a connection over a pipe on which a message exceeds the limit.
var ErrTooLarge = errors.New("a message is too large")

// Pipe is a transport over two pipes, with one message on each line, as the SDK's
// [mcp.IOTransport]. It decodes what most servers send in place. From the first message on that is
// different (a batch, a message on several lines, several on one line, what is no JSON), it is an
// IOTransport.
type Pipe struct {
	// Output is what the server writes. A Read of it returns soon after its Close.
	Output io.ReadCloser
	// Input is where messages to the server go.
	Input *Input
	// Limit bounds the bytes of a line without its end, and SDKLimit is the same for the IOTransport.
	Limit, SDKLimit int
}

// Connect returns the connection. It may be called once.
func (p *Pipe) Connect(context.Context) (mcp.Connection, error) {
	return &pipeConnection{Pipe: p, output: bufio.NewReader(p.Output)}, nil
}

// pipeConnection is the connection over a [Pipe]. One goroutine reads.
type pipeConnection struct {
	*Pipe
	output *bufio.Reader
	closed atomic.Bool
	// unusual is the SDK's connection, when it is in use.
	unusual atomic.Pointer[mcp.Connection]
}

// SessionID returns nothing.
func (c *pipeConnection) SessionID() string { return "" }

// Read reads the next message.
func (c *pipeConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	if sdk := c.unusual.Load(); sdk != nil {
		return (*sdk).Read(ctx)
	}
	line, err := c.line()
	switch {
	case c.closed.Load():
		return nil, io.EOF
	case err != nil:
		return nil, err
	}
	if msg, err := rpc.Decode(line); err == nil && !msg.HasRest {
		return msg.Message, nil
	}
	rest := &mcp.IOTransport{
		Reader: io.NopCloser(io.MultiReader(bytes.NewReader(line), c.output)), // Close closes the output
		Writer: c.Input, MaxLineLength: c.SDKLimit,
	}
	sdk, err := rest.Connect(ctx)
	if err != nil {
		return nil, err
	}
	c.unusual.Store(&sdk)
	if c.closed.Load() {
		return nil, errors.Join(io.EOF, sdk.Close())
	}
	return sdk.Read(ctx)
}

// line reads a line that is not empty, in memory of its own. The last one may lack its end.
func (c *pipeConnection) line() (line []byte, err error) {
	for {
		part, err := c.output.ReadSlice('\n')
		if cap(line)-len(line) < len(part) {
			line = slices.Grow(line, max(len(line), len(part)))
		}
		line = append(line, part...)
		switch {
		case len(bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))) > c.Limit:
			return nil, ErrTooLarge
		case errors.Is(err, bufio.ErrBufferFull):
		case len(bytes.TrimSpace(line)) > 0 && (err == nil || errors.Is(err, io.EOF)):
			return line, nil
		case err != nil:
			return nil, err
		default:
			line = line[:0]
		}
	}
}

// Write writes a message.
func (c *pipeConnection) Write(ctx context.Context, msg jsonrpc.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if sdk := c.unusual.Load(); sdk != nil {
		return (*sdk).Write(ctx, msg)
	}
	data, err := rpc.Encode(msg)
	if err != nil {
		return err
	}
	_, err = c.Input.Write(append(data, '\n'))
	return err
}

// Close ends the connection. A Read returns [io.EOF].
func (c *pipeConnection) Close() error {
	c.closed.Store(true)
	var err error
	if sdk := c.unusual.Load(); sdk != nil {
		err = (*sdk).Close()
	}
	return errors.Join(err, c.Output.Close())
}

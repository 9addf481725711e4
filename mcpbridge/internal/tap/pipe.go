package tap

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
)

// ErrTextFlood ends a connection over a pipe.
var ErrTextFlood = errors.New("more than 10 MB of text in a minute")

const (
	// silence is how long a server may be silent after a line that ends within a value: then the value counts as text. It
	// is also how long a response within text is held, because one at the start of a line takes precedence.
	silence = time.Second
	// maxText bounds the text in each textWindow.
	maxText    = 10 << 20
	textWindow = time.Minute
	// readSize is how much is read at once, except of large messages.
	readSize = 4 << 10
)

// Pipe is a transport over two pipes. It skips the text that a server writes between messages: see [rpc.Output].
type Pipe struct {
	// Output is what the server writes. A Read of it returns soon after its Close.
	Output io.ReadCloser
	// Input is where messages to the server go.
	Input *Input
	// Limit bounds one message.
	Limit int
	// Waits reports whether a request with this id waits for its response.
	Waits func(jsonrpc.ID) bool
	// Unread returns a response in place of one that is torn or too large, or nil if no request waits for it.
	Unread func(rpc.Piece) *jsonrpc.Response
	// Text gets all text. It does not keep it.
	Text func([]byte)
}

// Connect returns the connection. It may be called once.
func (p *Pipe) Connect(context.Context) (mcp.Connection, error) {
	return &pipeConnection{Pipe: p, output: rpc.Output{Limit: p.Limit}, buf: make([]byte, readSize)}, nil
}

// pipeConnection is the connection over a [Pipe]. One goroutine reads.
type pipeConnection struct {
	*Pipe
	closed atomic.Bool

	// Only the goroutine that reads uses the following fields.

	output  rpc.Output
	buf     []byte
	reading chan error // gets the error of a read that is under way in another goroutine; nil for none
	n       int        // how much that read has read, when it has ended
	end     error      // of the output; nil before the end

	held  []held    // the oldest first
	since time.Time // when the textWindow began
	text  int       // how much text there was in it
}

// held is a response that was found within text.
type held struct {
	resp  *jsonrpc.Response
	data  []byte
	until time.Time
}

// SessionID returns nothing.
func (c *pipeConnection) SessionID() string { return "" }

// Read reads the next message.
func (c *pipeConnection) Read(context.Context) (jsonrpc.Message, error) {
	for {
		piece, err := c.output.Next()
		if c.closed.Load() {
			return nil, io.EOF
		}
		if err != nil {
			return nil, err
		}
		switch piece.Kind {
		case rpc.Message:
			return piece.Message, nil
		case rpc.Torn, rpc.TooLarge:
			if resp := c.Unread(piece); resp != nil {
				return resp, nil
			}
		case rpc.Response:
			if c.hold(piece) {
				continue
			}
		case rpc.Nothing:
			if msg, err := c.await(); msg != nil || err != nil {
				return msg, err
			}
			continue
		}
		if err := c.skip(piece.Data); err != nil {
			return nil, err
		}
	}
}

// skip passes text on, and bounds it.
func (c *pipeConnection) skip(text []byte) error {
	if now := time.Now(); now.Sub(c.since) > textWindow {
		c.since, c.text = now, 0
	}
	c.Text(text)
	if c.text += len(text); c.text > maxText {
		return ErrTextFlood
	}
	return nil
}

// hold keeps a response that was found within text, if a request waits for it. The real one may follow.
func (c *pipeConnection) hold(piece rpc.Piece) bool {
	resp := piece.Message.(*jsonrpc.Response)
	isHeld := slices.ContainsFunc(c.held, func(h held) bool { return h.resp.ID == resp.ID })
	if isHeld || !c.Waits(resp.ID) {
		return false
	}
	c.held = append(c.held, held{resp, piece.Data, time.Now().Add(silence)})
	return true
}

// await returns a held response whose time is over. Otherwise it waits for more output, and returns nothing.
func (c *pipeConnection) await() (jsonrpc.Message, error) {
	for len(c.held) > 0 && (c.end != nil || !time.Now().Before(c.held[0].until)) {
		h := c.held[0]
		if c.held = c.held[1:]; c.Waits(h.resp.ID) {
			return h.resp, nil
		}
		if err := c.skip(h.data); err != nil {
			return nil, err
		}
	}
	switch {
	case c.end == nil:
		c.more()
		return nil, nil
	case errors.Is(c.end, io.EOF) && c.output.IsCut():
		return nil, io.ErrUnexpectedEOF
	}
	return nil, c.end
}

// more reads more output, until a held response or an open value is due.
func (c *pipeConnection) more() {
	var due <-chan time.Time
	if c.output.IsOpen() || len(c.held) > 0 {
		wait := silence
		if len(c.held) > 0 {
			wait = min(wait, time.Until(c.held[0].until))
		}
		due = time.After(wait)
	}
	switch {
	case due != nil || c.reading != nil:
	case c.output.Pending() >= readSize:
		n, err := c.Output.Read(c.output.Room())
		c.output.Came(n)
		c.ended(err)
		return
	default:
		n, err := c.Output.Read(c.buf)
		c.output.Feed(c.buf[:n])
		c.ended(err)
		return
	}
	if c.reading == nil {
		read := make(chan error, 1)
		c.reading = read
		go func() {
			n, err := c.Output.Read(c.buf)
			c.n = n
			read <- err
		}()
	}
	select {
	case err := <-c.reading:
		c.reading = nil
		c.output.Feed(c.buf[:c.n])
		c.ended(err)
	case <-due:
		if len(c.held) == 0 {
			c.output.GiveUp()
		}
	}
}

// ended notes the error of a read.
func (c *pipeConnection) ended(err error) {
	if c.end = err; errors.Is(err, io.EOF) {
		c.output.End()
	}
}

// Write writes a message.
func (c *pipeConnection) Write(ctx context.Context, msg jsonrpc.Message) error {
	if err := ctx.Err(); err != nil {
		return err
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
	return c.Output.Close()
}

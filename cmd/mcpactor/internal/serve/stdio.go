package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxLine bounds a message of a client over stdio, in bytes.
const maxLine = 64 << 20

// stdioLink is the link to a client that has started this process.
type stdioLink struct {
	mu  sync.Mutex
	out io.Writer
	err error // of the first write that failed
}

// send writes a message on a line.
func (l *stdioLink) send(m *message, _ json.RawMessage) {
	line, err := m.encode()
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		_, l.err = l.out.Write(append(line, '\n'))
	}
}

func (*stdioLink) finish(json.RawMessage) {}

// serveStdio serves one client until its input ends, or ctx.
func (g *gateway) serveStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	c := newClient(g, &stdioLink{out: out})
	defer g.leave(c)
	ended := make(chan error, 1)
	go func() { ended <- c.readLines(in) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}

// readLines takes a message from each line.
func (c *client) readLines(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue
		}
		batch, err := decode(lines.Bytes())
		if err != nil {
			c.link.send(&message{ID: json.RawMessage("null"), Error: &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: err.Error()}}, nil)
			continue
		}
		for _, m := range batch {
			if m != nil {
				c.receive(m)
			}
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return errors.New("the client has sent a message of more than 64 MiB")
	}
	return nil // its input has ended
}

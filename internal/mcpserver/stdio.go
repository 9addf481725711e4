package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
)

// maxMessage bounds a message of a client, in bytes.
const maxMessage = 64 << 20

// ServeStdio serves one client until its input ends, or ctx. It returns when the client has left.
func ServeStdio(ctx context.Context, in io.Reader, out io.Writer, accept func(*Client) Handler) error {
	c := newClient(&stdioLink{out: out}, accept)
	defer c.leave()
	ended := make(chan error, 1)
	go func() { ended <- c.readLines(in) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}

// readLines takes the messages of each line.
func (c *Client) readLines(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), maxMessage)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue
		}
		batch, err := decode(lines.Bytes())
		if err != nil {
			c.link.send(malformed(err), nil)
			continue
		}
		for _, m := range batch {
			c.receive(m)
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return errors.New("the client has sent a message of more than 64 MiB")
	}
	return nil // its input has ended
}

// stdioLink is the link to a client that has started this process.
type stdioLink struct {
	mu  sync.Mutex
	out io.Writer
	err error // of the first write that failed
}

// send writes a message on a line.
func (l *stdioLink) send(m *Message, _ json.RawMessage) {
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

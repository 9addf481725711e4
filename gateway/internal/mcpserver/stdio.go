package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"
)

const (
	// answerTime is how long requests may take after the end of the input, as long as somebody may read the answers.
	answerTime = 5 * time.Minute
	// lookEvery is how often it is checked meanwhile whether somebody does.
	lookEvery = 200 * time.Millisecond
)

// ServeStdio serves one client until its input has ended and its requests are answered, or until ctx ends. It returns when the
// client has left.
func ServeStdio(ctx context.Context, in io.Reader, out io.Writer, accept func(*Client) Handler) {
	in, done := polled(in, out)
	defer done()
	c := newClient(&stdioLink{out: out}, "", accept)
	c.speaksAll = true
	defer c.leave(true)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		c.readLines(in)
		close(c.deaf)
		c.endListens()
		c.requests.Wait()
	}()
	select {
	case <-c.deaf:
	case <-ctx.Done():
		return
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	for !isUnread(out) {
		select {
		case <-answered:
			return
		case <-ctx.Done():
			return
		case <-time.After(lookEvery):
		}
	}
}

// readLines takes the messages of each line until the input ends.
func (c *Client) readLines(from io.Reader) {
	for lines := bufio.NewReaderSize(from, 64<<10); ; {
		line, isTooLong, err := readLine(lines)
		switch line = bytes.TrimSpace(line); {
		case isTooLong:
			c.link.send(tooLong(), nil)
		case len(line) > 0:
			messages, refused := decode(line)
			for _, no := range refused {
				c.link.send(no, nil)
			}
			for _, m := range messages {
				c.receive(m)
			}
		}
		if err != nil {
			return
		}
	}
}

// readLine returns the next line, unless it is longer than a message may be. err is that of the input after it.
func readLine(in *bufio.Reader) (line []byte, isTooLong bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if isTooLong = isTooLong || len(line)+len(part) > maxMessage; isTooLong {
			line = nil
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, isTooLong, err
		}
	}
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

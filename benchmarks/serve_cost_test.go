package benchmarks

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkServeCost measures what a call through mcpactor serve costs, beside a call without it, and beside the least that a
// process in between can do. The server is a process over stdio. With entry=stdio the client starts mcpactor, and direct has a
// pipe to the server; copy passes bytes on, and lines decodes and encodes each message. With entry=http mcpactor listens, and
// direct is a server of the SDK over HTTP with the same tool. client=lean writes the bytes of a call and looks for the id of
// the answer; client=sdk is the client of the SDK.
func BenchmarkServeCost(b *testing.B) {
	mcpactor, err := buildMcpactor()
	require.NoError(b, err)
	server := []string{self, serveStdio, "", ""}
	serve := []string{mcpactor, "serve", "--no-cache", "--log-level", "error"}
	before := func(command ...string) []string { return append(command, server...) }
	pipes := []struct {
		how     string
		command []string
	}{
		{"direct", server},
		{"copy", before(self, proxyCopy)},
		{"lines", before(self, proxyLines)},
		{"mcpactor", before(append(serve, "--")...)},
	}
	listen := func(port string) []string { return before(append(serve, "--listen", "127.0.0.1:"+port, "--")...) }
	for _, callers := range []int{1, 32} {
		for _, lean := range []bool{true, false} {
			var overPipe, overHTTP []contender
			name, open := "sdk", openHTTP
			if lean {
				name, open = "lean", func(url string) (client, error) { return newFloor(url, protocolWithSessions) }
			}
			for _, p := range pipes {
				overPipe = append(overPipe, contender{p.how, func(route) (client, error) {
					if lean {
						return openLeanPipe(p.command)
					}
					return openBare(overCommand(p.command))
				}})
			}
			overHTTP = []contender{
				{"direct", func(route) (client, error) { return open(origin + pathSSE) }},
				{"mcpactor", listening(listen, open)},
			}
			measure := func(b *testing.B, c client) { measureCalls(b, callers, c) }
			b.Run(fmt.Sprintf("entry=stdio/client=%s/callers=%d", name, callers), func(b *testing.B) { compare(b, route{}, overPipe, measure) })
			b.Run(fmt.Sprintf("entry=http/client=%s/callers=%d", name, callers), func(b *testing.B) { compare(b, route{}, overHTTP, measure) })
		}
	}
}

// leanPipe is a client of a process that writes the same call again and again, and only looks for the id of an answer.
type leanPipe struct {
	cmd *exec.Cmd
	in  io.WriteCloser

	mu      sync.Mutex
	last    int // counts the requests
	waiting map[int]chan bool
}

func openLeanPipe(command []string) (client, error) {
	c := &leanPipe{cmd: exec.Command(command[0], command[1:]...), waiting: map[int]chan bool{}}
	c.cmd.Stderr = os.Stderr
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go c.read(bufio.NewReader(out))
	if err := c.ask(`"initialize","params":{"protocolVersion":"` + protocolWithSessions + `","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`); err != nil {
		return nil, err
	}
	_, err = io.WriteString(c.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	return c, err
}

// read reads answers until the output ends.
func (c *leanPipe) read(out *bufio.Reader) {
	for {
		line, err := out.ReadSlice('\n')
		_, after, _ := bytes.Cut(line, []byte(`"id":`))
		digits := after[:len(after)-len(bytes.TrimLeft(after, "0123456789"))]
		id, isAnswer := strconv.Atoi(string(digits))
		c.mu.Lock()
		if isAnswer == nil && c.waiting[id] != nil {
			c.waiting[id] <- bytes.Contains(line, []byte(`"result":`))
			delete(c.waiting, id)
		}
		if err != nil {
			for _, one := range c.waiting {
				one <- false
			}
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
	}
}

// ask sends a request, which begins with its method, and waits for the answer.
func (c *leanPipe) ask(request string) error {
	answered := make(chan bool, 1)
	c.mu.Lock()
	c.last++
	id := c.last
	c.waiting[id] = answered
	_, err := io.WriteString(c.in, `{"jsonrpc":"2.0","id":`+strconv.Itoa(id)+`,"method":`+request+"}\n")
	c.mu.Unlock()
	if err == nil && !<-answered {
		return fmt.Errorf("request %d has no result", id)
	}
	return err
}

func (c *leanPipe) call(context.Context, string) error {
	return c.ask(`"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}`)
}

func (*leanPipe) drop(context.Context, string) error { return nil }

func (c *leanPipe) close() {
	c.in.Close()
	c.cmd.Wait()
}

// The first arguments that make the test binary a proxy before the command that follows.
const (
	proxyCopy  = "proxy-copy"
	proxyLines = "proxy-lines"
)

var proxies = map[string]func(to io.Writer, from io.Reader) error{proxyCopy: passBytes, proxyLines: passLines}

// runProxy starts a command, and passes on what goes to it and what comes from it.
func runProxy(pass func(to io.Writer, from io.Reader) error, command []string) error {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		defer in.Close()
		pass(in, os.Stdin)
	}()
	if err := pass(os.Stdout, out); err != nil {
		return err
	}
	return cmd.Wait()
}

// passBytes passes on what it reads. io.Copy would leave that to the kernel.
func passBytes(to io.Writer, from io.Reader) error {
	for buf := make([]byte, 64<<10); ; {
		n, err := from.Read(buf)
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
	}
}

// passLines passes on messages, of which it knows the members.
func passLines(to io.Writer, from io.Reader) error {
	type message struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id,omitempty"`
		Method  string          `json:"method,omitempty"`
		Params  json.RawMessage `json:"params,omitempty"`
		Result  json.RawMessage `json:"result,omitempty"`
		Error   json.RawMessage `json:"error,omitempty"`
	}
	decode, encode := json.NewDecoder(from), json.NewEncoder(to)
	for {
		var m message
		if err := decode.Decode(&m); err != nil {
			return nil
		}
		if err := encode.Encode(m); err != nil {
			return err
		}
	}
}

package mcpbridge

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// puppet is a stdio server without a process. It answers well, but for the
// first request of one method.
type puppet struct {
	method string
	said   []byte // in answer to it
	ends   bool   // after it

	out   *io.PipeWriter
	downs atomic.Int32

	line, longest int // of what was read of its output
}

// Write is its stdin, which is written one line at a time.
func (p *puppet) Write(line []byte) (int, error) {
	switch msg := parse(line); {
	case msg.Method == p.method && p.method != "":
		p.method = ""
		go func() {
			p.out.Write(p.said)
			if p.ends {
				p.out.Close()
			}
		}()
	case msg.Method == methodInitialize:
		go fmt.Fprintf(p.out, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%q,"capabilities":{}}}`+"\n", msg.ID, protocolLegacy)
	case msg.isCall():
		go fmt.Fprintf(p.out, `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`+"\n", msg.ID)
	}
	return len(line), nil
}

// Close closes its stdin, which ends it.
func (p *puppet) Close() error { return p.out.Close() }

// meter is its stdout.
type meter struct {
	io.ReadCloser
	*puppet
}

func (m meter) Close() error { return m.ReadCloser.Close() }

func (m meter) Read(b []byte) (int, error) {
	n, err := m.ReadCloser.Read(b)
	for _, c := range b[:n] {
		m.line++
		m.longest = max(m.longest, m.line)
		if c == '\n' {
			m.line = 0
		}
	}
	return n, err
}

// dial opens a session as [conn.transport] and [endpoint.open] do, with pipes
// in place of a process.
func (p *puppet) dial(ctx context.Context, maxResult int) (*conn, *Error) {
	in, out := io.Pipe()
	p.out = out
	c := &conn{at: New([]Server{{Name: "test", MaxResult: maxResult}}).servers["test"], closed: make(chan struct{})}
	c.cut, c.cancel = context.WithCancel(context.Background())
	c.tap = &tap{
		Transport: &mcp.IOTransport{Reader: meter{in, p}, Writer: p, MaxLineLength: maxResult + maxRefusal},
		down:      func(error) { p.downs.Add(1) }, seen: new(discovery),
	}
	inner, ex := withExchange(c.cut)
	defer context.AfterFunc(ctx, c.giveUp)()
	var err error
	if c.cs, err = c.at.client.Connect(inner, c.tap, &mcp.ClientSessionOptions{ProtocolVersion: protocolLegacy}); err != nil {
		e := c.explainDial(ctx, nil, ex, err)
		c.discard()
		return nil, e
	}
	return c, nil
}

func FuzzStdio(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":2,"result":{"content":[]}}`+"\n"), uint8(0), true, true)
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}`+"\n"), uint8(0), false, false)
	f.Fuzz(func(t *testing.T, said []byte, again uint8, met, ends bool) {
		p := &puppet{method: methodInitialize, said: bytes.Repeat(said, 1<<(again%12)), ends: ends}
		if met {
			p.method = "tools/call"
		}
		synctest.Test(t, p.check)
	})
}

// check opens a session and makes two calls, whatever comes of them. Time
// passes only where something waits for it.
func (p *puppet) check(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	ends, limit := p.ends, 1<<10
	c, e := p.dial(ctx, limit)
	late := ctx.Err() != nil
	if c != nil {
		defer c.Close(context.Background())
		for range 2 {
			e, late = do(c)
			require.False(t, ends && late, "it waited for a server that had ended: %v", e)
			if e != nil {
				requirePresentable(t, e)
			}
		}
		require.NoError(t, c.Close(context.Background()))
	} else {
		requirePresentable(t, e)
		require.Contains(t, []Class{Unavailable, Protocol}, e.Class, "%v", e)
		require.False(t, ends && late, "it waited for a server that had ended: %v", e)
	}
	synctest.Wait()
	require.LessOrEqual(t, p.longest, 2*(limit+maxRefusal))
	require.LessOrEqual(t, p.downs.Load(), int32(1))
}

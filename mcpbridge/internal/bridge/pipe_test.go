package bridge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/internal/visible"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/tap"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/transport"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

// puppet is a stdio server without a process. It answers well, but for the
// first request of one method.
type puppet struct {
	transport.Defaults
	tap *tap.Tap

	method string
	said   []byte            // in answer to it
	ends   bool              // after it
	says   map[string]string // in answer to other methods
	late   map[string]time.Duration
	torn   int // how much of a call cannot be written; 0 for a call that can be

	capabilities *mcp.ClientCapabilities
	heard        func(messages.Notification, messages.Operation)
	ask          func(context.Context, messages.Request, messages.Operation) messages.Answer
	answered     chan []byte // what it has asked for, if not nil

	out   *io.PipeWriter
	downs atomic.Int32

	line, longest int // of what was read of its output
}

// sdkID is the id that the SDK gives to a request. It stands for the id on the wire in what a puppet
// has to say.
var sdkID = map[string]string{rpc.MethodInitialize: `"id":1`, "tools/call": `"id":2`}

// Write is its stdin, which is written one line at a time.
func (p *puppet) Write(line []byte) (int, error) {
	switch msg := rpc.Parse(line); {
	case p.says[msg.Method] != "":
		go func() {
			time.Sleep(p.late[msg.Method])
			fmt.Fprintf(p.out, p.says[msg.Method]+"\n", msg.ID)
		}()
	case msg.Method == "tools/call" && p.torn > 0:
		return max(0, len(line)-p.torn), io.ErrClosedPipe
	case msg.Method == p.method && p.method != "":
		p.method = ""
		said := bytes.ReplaceAll(p.said, []byte(sdkID[msg.Method]), fmt.Appendf(nil, `"id":%s`, msg.ID))
		go func() {
			p.out.Write(said)
			if p.ends {
				p.out.Close()
			}
		}()
	case msg.Method == rpc.MethodInitialize:
		go fmt.Fprintf(p.out, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%q,"capabilities":{}}}`+"\n", msg.ID, protocolLegacy)
	case msg.Method == "" && p.answered != nil:
		p.answered <- bytes.Clone(line)
	case msg.IsCall():
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

func (m meter) Close() error { return errors.Join(m.puppet.Close(), m.ReadCloser.Close()) }

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

// Connect makes the puppet the server of a session.
func (p *puppet) Connect(session *transport.Session) (transport.Conn, error) {
	in, out := io.Pipe()
	p.out = out
	input := &tap.Input{Writer: p}
	p.Config.MaxResult += wire.MaxRefusal
	p.tap = tap.OverPipe(p.Config, session, meter{in, p}, input)
	return p.tap, nil
}

// dial opens a session with the puppet in place of a process.
func (p *puppet) dial(ctx context.Context, maxResult int) (*conn, *mcpbridge.Error) {
	b := New(nil, p.capabilities)
	at := &endpoint{dialect: new(dialect), Server: mcpbridge.Server{Name: "test", MaxResult: maxResult, ProtocolVersion: protocolLegacy}, newest: p}
	p.Config = &mcpbridge.Server{MaxResult: maxResult}
	return b.opener.open(ctx, at, attempt{Request: dial.Request{
		Heard: p.heard, Ask: p.ask, Down: func(*mcpbridge.Error) { p.downs.Add(1) },
	}})
}

func toolCall() *messages.CallTool {
	return &messages.CallTool{Params: &mcp.CallToolParams{Name: "tool"}}
}

// do makes a call, and reports whether it took a day.
func do(c dial.Conn) (e *mcpbridge.Error, late bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 24*time.Hour)
	defer cancel()
	_, err := c.Do(ctx, toolCall())
	return mcpbridge.AsError(err), ctx.Err() != nil
}

// requirePresentable requires that an error may be shown to anybody.
func requirePresentable(t *testing.T, err error) {
	t.Helper()
	var e *mcpbridge.Error
	require.True(t, errors.As(err, &e), "%T", err)
	require.NotContains(t, e.Detail, testSession)
	require.Equal(t, visible.Line(e.Detail), e.Detail)
	require.True(t, utf8.ValidString(e.Detail), "%q", e.Detail)
	require.LessOrEqual(t, len(e.Detail), redact.MaxDetail+150)
	require.NotContains(t, e.ForCaller(), testSession)
	require.Equal(t, visible.Line(e.ForCaller()), e.ForCaller())
	require.LessOrEqual(t, len(e.ForCaller()), 2*redact.MaxDetail+150)
	require.GreaterOrEqual(t, e.RetryAfter, time.Duration(0))
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
		require.Contains(t, []mcpbridge.Class{mcpbridge.Unavailable, mcpbridge.Protocol}, e.Class, "%v", e)
		require.False(t, ends && late, "it waited for a server that had ended: %v", e)
	}
	synctest.Wait()
	require.LessOrEqual(t, p.longest, 1<<20+64<<10, "of text; a message is bounded by its limit")
	require.LessOrEqual(t, p.downs.Load(), int32(1))
}

func TestWhatACallOverAPipeComesTo(t *testing.T) {
	const done, result = `{"jsonrpc":"2.0","id":2,"result":{"content":[]}}`, `{"jsonrpc":"2.0","id":2,"result":`
	lost := func(detail string) *mcpbridge.Error {
		return &mcpbridge.Error{Session: mcpbridge.Broken, Detail: detail}
	}
	for name, c := range map[string]struct {
		said string
		ends bool
		want *mcpbridge.Error // nil is a result
	}{
		"result":                {said: done + "\n"},
		"result, then the end":  {said: done + "\n", ends: true},
		"result of another":     {said: `{"jsonrpc":"2.0","id":7,"result":{}}` + "\n" + done + "\n"},
		"request, then result":  {said: `{"jsonrpc":"2.0","id":2,"method":"ping"}` + "\r\n" + done + "\r\n"},
		"error":                 {said: failure("2", "-32603", "oops") + "\n", want: &mcpbridge.Error{Class: mcpbridge.ServerError, Detail: "oops"}},
		"error with parameters": {said: failure("2", "-32602", "oops") + "\n", want: &mcpbridge.Error{Class: mcpbridge.Invalid, Detail: "oops"}},
		"error like the SDK's":  {said: failure("2", "-32005", "oops") + "\n", want: &mcpbridge.Error{Class: mcpbridge.ServerError, Detail: "oops"}},
		"result of no tool":     {said: result + "5}\n"},
		"result that is null":   {said: result + "null}\n", want: &mcpbridge.Error{Class: mcpbridge.Protocol}},
		"text, then result":     {said: "listening on port 80\n{}\n" + done + "\n"},
		"result within text":    {said: "> " + done + "\n"},
		"array of one":          {said: "[" + done + "]\n"},
		"byte order mark":       {said: "\ufeff" + done + "\r\n"},
		"lines":                 {said: strings.ReplaceAll(done, ",", ",\n  ") + "\n"},
		"torn":                  {said: done[:len(done)-8] + "\nINFO\n", want: &mcpbridge.Error{Class: mcpbridge.Protocol, Detail: "stdout is broken"}},
		"text without an end":   {said: strings.Repeat("x", 1<<20+1), want: lost("without the end of a line")},
		"end":                   {ends: true, want: lost("EOF")},
		"half a line":           {said: done[:20], ends: true, want: lost("unexpected EOF")},
		"line over the limit":   {said: result + strings.Repeat(" ", 2*wire.MaxRefusal) + "5}\n", want: &mcpbridge.Error{Class: mcpbridge.Protocol, Detail: "bytes (maxResult)"}},
		"and without an end":    {said: result + strings.Repeat(" ", 2*wire.MaxRefusal), want: &mcpbridge.Error{Class: mcpbridge.Protocol, Detail: "bytes (maxResult)"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &puppet{method: "tools/call", said: []byte(c.said), ends: c.ends}
				conn, e := p.dial(context.Background(), 1<<10)
				require.Nil(t, e)
				defer conn.Close(context.Background())
				e, late := do(conn)
				require.False(t, late)
				if c.want == nil {
					require.Nil(t, e)
				} else {
					requirePresentable(t, e)
					require.Contains(t, e.Detail, c.want.Detail)
					require.Equal(t, mcpbridge.Error{Class: c.want.Class, Session: c.want.Session, Sent: true}, mcpbridge.Error{Class: e.Class, Session: e.Session, Sent: e.Sent})
				}
				synctest.Wait()
				broken := c.ends || c.want != nil && c.want.Session == mcpbridge.Broken
				require.Equal(t, broken, p.downs.Load() == 1)
				e, _ = do(conn)
				require.Equal(t, broken, e != nil && e.Class == mcpbridge.NotSent, "%v", e)
				require.Zero(t, p.tap.Pending())
			})
		})
	}
}

func TestHandshakeOverAPipeFailsForAReason(t *testing.T) {
	for name, c := range map[string]struct {
		said string
		ends bool
		want mcpbridge.Class
	}{
		"end":     {"", true, mcpbridge.Unavailable},
		"mute":    {"", false, mcpbridge.Unavailable},
		"no JSON": {"listening on port 80\n", false, mcpbridge.Unavailable},
		"endless": {strings.Repeat("x", 1<<20+1), false, mcpbridge.Protocol},
		"refusal": {failure("1", "-32603", "oops") + "\n", false, mcpbridge.Unavailable},
		"version": {`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"1999-01-01","capabilities":{}}}` + "\n", false, mcpbridge.Protocol},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				_, e := (&puppet{method: rpc.MethodInitialize, said: []byte(c.said), ends: c.ends}).dial(ctx, 1<<10)
				require.Equal(t, c.want, e.Class, "%v", e)
				require.Equal(t, mcpbridge.Alive, e.Session, "there is none")
			})
		})
	}
}

func TestCallThatIsGivenUpIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &puppet{method: "tools/call"}
		c, e := p.dial(context.Background(), 1<<10)
		require.Nil(t, e)
		e, late := do(c)
		require.True(t, late)
		require.Equal(t, mcpbridge.Deadline, e.Class)
		require.True(t, e.Sent)
		require.Zero(t, p.tap.Pending())
		e, _ = do(c)
		require.Nil(t, e)
		require.NoError(t, c.Close(context.Background()))
		synctest.Wait()
		require.Zero(t, p.downs.Load(), "it was closed")
	})
}

func FuzzStdio(f *testing.F) {
	const (
		done  = `{"jsonrpc":"2.0","id":2,"result":{"content":[]}}`
		met   = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}`
		asked = `{"jsonrpc":"2.0","id":"x","method":"ping"}`
	)
	for _, said := range []string{
		done + "\n", done, met + "\n", met + met + "\n", done + "\r\n" + done + "\n", "\n", "", "\x00", "\xef\xbb\xbf" + done + "\n",
		"[" + done + "]\n", "[" + asked + "," + asked + "]\n", "[]\n", asked + "\n" + asked + "\n", "null\n", "{}\n", "7\n", "{", `"`, " ",
		failure("2", "-32602", "\x1b\xff") + "\n", failure("1", "-32004", "closing") + "\n", failure("null", "-32700", "parse error") + "\n",
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}` + "\n",
		`{"jsonrpc":"2.0","id":3,"method":"sampling/createMessage","params":{}}` + "\n",
		`{"jsonrpc":"2.0","id":2,"method":null,"result":{}}` + "\n", `{"jsonrpc":"2.0","id":1e999}` + "\n", "listening on port 80\n",
		`{"jsonrpc":"2.0","id":2,"result":` + strings.Repeat("[", 1001) + strings.Repeat("]", 1001) + "}\n",
	} {
		for _, met := range []bool{true, false} {
			f.Add([]byte(said), uint8(0), met, true)
			f.Add([]byte(said), uint8(2), met, false)
		}
	}
	f.Add([]byte(`{"x":"`+strings.Repeat("x", 100)), uint8(11), true, false)
	f.Add([]byte(asked+"\n"), uint8(11), true, false)
	f.Fuzz(func(t *testing.T, said []byte, doubled uint8, met, ends bool) {
		p := &puppet{method: rpc.MethodInitialize, said: bytes.Repeat(said, 1<<(doubled%12)), ends: ends}
		if met {
			p.method = "tools/call"
		}
		synctest.Test(t, p.check)
	})
}

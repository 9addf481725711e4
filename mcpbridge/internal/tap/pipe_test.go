package tap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
)

// closed is a reader whose Close does nothing.
type closed struct{ io.Reader }

func (closed) Close() error { return nil }

// newPipe returns a connection over a pipe on which a server writes. The responses to the requests in
// waits are waited for, once.
func newPipe(t *testing.T, output io.Reader, waits ...int) (c mcp.Connection, text *strings.Builder) {
	t.Helper()
	isWaited := func(id jsonrpc.ID) bool { return slices.Contains(waits, int(id.Raw().(int64))) }
	text = new(strings.Builder)
	c, err := (&Pipe{
		Output: closed{output}, Input: new(Input), Limit: 1 << 20, Waits: isWaited, Text: func(b []byte) { text.Write(b) },
		Unread: func(piece rpc.Piece) *jsonrpc.Response {
			if id := piece.ID; id.IsValid() && isWaited(id) {
				return &jsonrpc.Response{ID: id, Error: errors.New("torn")}
			}
			return nil
		},
	}).Connect(t.Context())
	require.NoError(t, err)
	return c, text
}

// readAll returns the messages of a connection, and its end.
func readAll(c mcp.Connection) (all []string, end error) {
	for {
		msg, err := c.Read(context.Background())
		if err != nil {
			return all, err
		}
		data, err := jsonrpc.EncodeMessage(msg)
		if err != nil {
			return all, err
		}
		all = append(all, string(data))
	}
}

// What the SDK's own transport reads, a pipe reads likewise. It differs where the SDK ends a session
// over what is no message.
func TestPipeReadsWhatTheSDKReads(t *testing.T) {
	const result, note, call = `{"jsonrpc":"2.0","id":1,"result":{"a":[1,"\n"]}}`, `{"jsonrpc":"2.0","method":"x"}`, `{"jsonrpc":"2.0","id":"a","method":"y","params":{}}`
	for name, output := range map[string]string{
		"nothing":         "",
		"lines":           result + "\n" + note + "\r\n" + call + "\n",
		"empty lines":     "\n\r\n" + result + "\n \n" + note + "\n\n",
		"no last newline": result + "\n" + note,
		"error":           `{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no","data":[1]}}` + "\n",
		"batch":           result + "\n[" + note + "," + call + "]\n" + result + "\n",
		"several lines":   note + "\n{\n\"jsonrpc\":\"2.0\",\n\"id\":1,\n\"result\":{}\n}\n" + call + "\n",
		"cut off":         result[:20],
		"long line":       `{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat("x", 10_000) + `"}` + "\n" + note + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			sdk, err := (&mcp.IOTransport{Reader: closed{strings.NewReader(output)}, Writer: new(Input)}).Connect(t.Context())
			require.NoError(t, err)
			want, wantEnd := readAll(sdk)
			for _, read := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader} {
				c, text := newPipe(t, read(strings.NewReader(output)))
				got, end := readAll(c)
				require.Equal(t, want, got)
				require.Equal(t, fmt.Sprint(wantEnd), fmt.Sprint(end))
				require.Equal(t, errors.Is(wantEnd, io.EOF), text.String() == "")
				require.NoError(t, c.Close())
			}
		})
	}
}

func TestPipeSkipsText(t *testing.T) {
	const result, call = `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":"a","method":"y"}`
	const unnamed = `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}`
	c, text := newPipe(t, strings.NewReader(unnamed+"\n> start\n"+call+" ok\nsent "+call+"\ngot "+result+"\n{}\n"+call+"\n"))
	all, end := readAll(c)
	require.Equal(t, []string{call, call}, all)
	require.Equal(t, io.EOF, end)
	require.Equal(t, unnamed+"> start\nok\nsent "+call+"\ngot "+result+"\n{}", text.String(), "nobody waits for the response")
}

// talk is a server that says one thing after the other.
func talk(says ...any) io.Reader {
	r, w := io.Pipe()
	go func() {
		for _, say := range says {
			switch say := say.(type) {
			case time.Duration:
				time.Sleep(say)
			case string:
				io.WriteString(w, say)
			}
		}
		w.Close()
	}()
	return r
}

// A response within text may be a copy of the real one, which comes later, or the response itself.
func TestResponseWithinTextIsHeldForAMoment(t *testing.T) {
	const logged, real = `{"jsonrpc":"2.0","id":1,"result":"logged"}`, `{"jsonrpc":"2.0","id":1,"result":"real"}`
	for name, c := range map[string]struct {
		says  []any
		want  []string
		after time.Duration
		text  string
	}{
		"alone":                {[]any{"got " + logged + "\n", 5 * time.Second}, []string{logged}, silence, "got "},
		"before the real one":  {[]any{"got " + logged + "\n", silence / 2, real + "\n", 5 * time.Second}, []string{real}, silence / 2, "got " + logged + "\n"},
		"with the real one":    {[]any{"got " + logged + "\n" + real + "\n", 5 * time.Second}, []string{real}, 0, "got " + logged + "\n"},
		"after the real one":   {[]any{real + "\ngot " + logged + "\n", 5 * time.Second}, []string{real}, 0, "got " + logged + "\n"},
		"twice":                {[]any{"got " + logged + "\n", silence / 2, "got " + real + "\n", 5 * time.Second}, []string{logged}, silence, "got got " + real + "\n"},
		"before the end":       {[]any{"got " + logged + "\n"}, []string{logged}, 0, "got "},
		"while the text flows": {[]any{"got " + logged + "\n", silence / 2, "x\n", silence / 4, "y\n", silence / 4, "z\n", 5 * time.Second}, []string{logged}, silence, "got x\ny\nz\n"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, waits := time.Now(), true
				var text strings.Builder
				conn, err := (&Pipe{
					Output: closed{talk(c.says...)}, Input: new(Input), Limit: 1 << 20,
					Waits: func(jsonrpc.ID) bool { return waits }, Text: func(b []byte) { text.Write(b) },
				}).Connect(t.Context())
				require.NoError(t, err)
				msg, err := conn.Read(t.Context())
				require.NoError(t, err)
				require.Equal(t, c.after, time.Since(began))
				waits = false
				data, err := jsonrpc.EncodeMessage(msg)
				require.NoError(t, err)
				rest, end := readAll(conn)
				require.Equal(t, c.want, append([]string{string(data)}, rest...))
				require.Equal(t, io.EOF, end)
				require.Equal(t, c.text, text.String())
			})
		})
	}
}

// A torn response fails its own call at once. What begins like one, and breaks off between two lines,
// does so after a moment, and what breaks off within a line when that ends.
func TestTornResponseFailsItsCallAlone(t *testing.T) {
	const torn = `{"error":{"code":0,"message":"torn"},"id":1,"jsonrpc":"2.0"}`
	const result = `{"jsonrpc":"2.0","id":2,"result":{}}`
	for name, c := range map[string]struct {
		says  []any
		after time.Duration
	}{
		"by a line":     {[]any{`{"jsonrpc":"2.0","id":1,"res` + "\nINFO\n" + `ult":{}}` + "\n", 5 * time.Second, result}, 0},
		"by a response": {[]any{`{"jsonrpc":"2.0","id":1,"result":` + "\n" + result + "\n", 5 * time.Second}, 0},
		"by silence":    {[]any{`{"jsonrpc":"2.0","id":1,"result":` + "\n", 5 * time.Second, result}, silence},
		"in a line":     {[]any{`{"jsonrpc":"2.0","id":1,"result":`, 5 * time.Second, "\n" + result}, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				conn, _ := newPipe(t, talk(c.says...), 1, 2)
				msg, err := conn.Read(t.Context())
				require.NoError(t, err)
				require.Equal(t, c.after, time.Since(began))
				data, err := jsonrpc.EncodeMessage(msg)
				require.NoError(t, err)
				require.JSONEq(t, torn, string(data))
				rest, _ := readAll(conn)
				require.Equal(t, []string{result}, rest)
			})
		})
	}
}

func TestServerThatIsSlowWithinALineIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const result = `{"jsonrpc":"2.0","id":1,"result":{}}`
		conn, text := newPipe(t, talk(result[:20], time.Hour, result[20:30], time.Hour, result[30:]+"\n"), 1)
		all, end := readAll(conn)
		require.Equal(t, []string{result}, all)
		require.Equal(t, io.EOF, end)
		require.Empty(t, text.String())
	})
}

func TestTextIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		line := strings.Repeat("x", 1<<20-1) + "\n"
		conn, _ := newPipe(t, talk(strings.Repeat(line, 10), 2*textWindow, strings.Repeat(line, 10), line))
		all, end := readAll(conn)
		require.Empty(t, all)
		require.ErrorIs(t, end, ErrTextFlood)
		conn, _ = newPipe(t, talk(strings.Repeat(line, 9), textWindow+1, strings.Repeat(line, 9), textWindow+1, line))
		_, end = readAll(conn)
		require.Equal(t, io.EOF, end)
	})
	conn, _ := newPipe(t, strings.NewReader(strings.Repeat("x", 1<<20+1)))
	_, end := readAll(conn)
	require.ErrorIs(t, end, rpc.ErrEndless)
	conn, _ = newPipe(t, strings.NewReader(`{"jsonrpc":"2.0","id":1,"result":"`+strings.Repeat("x", 1<<20)))
	all, end := readAll(conn)
	require.Empty(t, all)
	require.Equal(t, io.ErrUnexpectedEOF, end)
}

func TestCloseEndsARead(t *testing.T) {
	for name, before := range map[string]string{"at the start": "", "in the middle": `{"jsonrpc"`, "of several lines": "{\n", "with a response in text": `x {"jsonrpc":"2.0","id":1,"result":{}}` + "\n"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, w := io.Pipe()
				go fmt.Fprint(w, before)
				pipe := &Pipe{Output: r, Input: new(Input), Limit: 1 << 20, Waits: func(jsonrpc.ID) bool { return true }, Text: func([]byte) {}}
				c, err := pipe.Connect(t.Context())
				require.NoError(t, err)
				ended := make(chan error)
				go func() {
					_, err := c.Read(context.Background())
					ended <- err
				}()
				synctest.Wait()
				require.NoError(t, c.Close())
				require.Error(t, <-ended)
				_, err = c.Read(t.Context())
				require.Error(t, err)
			})
		})
	}
}

func TestMessageAfterTheEndOfItsContextIsNotWritten(t *testing.T) {
	var written strings.Builder
	c, err := (&Pipe{Output: closed{strings.NewReader("")}, Input: &Input{Writer: &written}}).Connect(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, c.Write(ctx, &jsonrpc.Request{Method: "x"}))
	cancel()
	require.ErrorIs(t, c.Write(ctx, &jsonrpc.Request{Method: "y"}), context.Canceled)
	require.Equal(t, `{"jsonrpc":"2.0","method":"x"}`+"\n", written.String())
}

package tap

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// closed is a reader whose Close does nothing.
type closed struct{ io.Reader }

func (closed) Close() error { return nil }

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

// Whatever a server writes, the messages and the kind of end are those of the SDK's own transport.
func TestPipeReadsWhatTheSDKReads(t *testing.T) {
	const result, note, call = `{"jsonrpc":"2.0","id":1,"result":{"a":[1,"\n"]}}`, `{"jsonrpc":"2.0","method":"x"}`, `{"jsonrpc":"2.0","id":"a","method":"y","params":{}}`
	for name, output := range map[string]string{
		"nothing":             "",
		"lines":               result + "\n" + note + "\r\n" + call + "\n",
		"empty lines":         "\n\r\n" + result + "\n \n" + note + "\n\n",
		"no last newline":     result + "\n" + note,
		"error":               `{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no","data":[1]}}` + "\n",
		"batch":               result + "\n[" + note + "," + call + "]\n" + result + "\n",
		"batch of nothing":    "[]\n" + result + "\n",
		"several lines":       note + "\n{\n\"jsonrpc\":\"2.0\",\n\"id\":1,\n\"result\":{}\n}\n" + call + "\n",
		"two on a line":       result + note + "\n" + call + "\n",
		"two, one an error":   `{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}` + note + "\n",
		"more on a line":      note + " x\n",
		"no JSON":             note + "\nlistening on port 80\n" + result + "\n",
		"no JSON-RPC":         "{}\n",
		"cut off":             result[:20],
		"null":                "null\n",
		"id of another kind":  `{"jsonrpc":"2.0","id":{},"result":1}` + "\n",
		"error without an id": `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}` + "\n",
		"long line":           `{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat("x", 10_000) + `"}` + "\n" + note + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			sdk, err := (&mcp.IOTransport{Reader: closed{strings.NewReader(output)}, Writer: new(Input)}).Connect(t.Context())
			require.NoError(t, err)
			want, wantEnd := readAll(sdk)
			for _, read := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader} {
				pipe := &Pipe{Output: closed{read(strings.NewReader(output))}, Input: new(Input), Limit: 1 << 20, SDKLimit: 1 << 20}
				c, err := pipe.Connect(t.Context())
				require.NoError(t, err)
				got, end := readAll(c)
				require.Equal(t, want, got)
				require.Equal(t, fmt.Sprint(wantEnd), fmt.Sprint(end))
				require.NoError(t, c.Close())
			}
		})
	}
}

func TestLineOverTheLimitEndsTheConnection(t *testing.T) {
	pipe := &Pipe{Output: closed{strings.NewReader(strings.Repeat("x", 5000))}, Input: new(Input), Limit: 4500, SDKLimit: 4500}
	c, err := pipe.Connect(t.Context())
	require.NoError(t, err)
	_, err = c.Read(t.Context())
	require.ErrorIs(t, err, ErrTooLarge)
}

func TestLineOfTheLimitIsRead(t *testing.T) {
	const note = `{"jsonrpc":"2.0","method":"x"}`
	for line, isRead := range map[string]bool{note + "\n": true, note + "\r\n": true, note: true, note + " \n": false, note + "\r\r\n": false, strings.Repeat("\r", 5000): false} {
		pipe := &Pipe{Output: closed{strings.NewReader(line)}, Input: new(Input), Limit: len(note), SDKLimit: 2 * len(note)}
		c, err := pipe.Connect(t.Context())
		require.NoError(t, err)
		_, err = c.Read(t.Context())
		require.Equal(t, isRead, err == nil, "%q: %v", line, err)
	}
}

func TestCloseEndsARead(t *testing.T) {
	for name, before := range map[string]string{"line by line": "", "by the SDK": "[]", "in the middle": `{"jsonrpc"`} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, w := io.Pipe()
				go fmt.Fprint(w, before)
				pipe := &Pipe{Output: r, Input: new(Input), Limit: 1 << 20, SDKLimit: 1 << 20}
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

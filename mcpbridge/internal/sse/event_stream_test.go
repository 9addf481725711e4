package sse

import (
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
)

// The SDK takes each of these for the end of an HTTP+SSE session, or for a message.
func TestStreamHasItsEndpointAndMessagesOnly(t *testing.T) {
	const message = `data: {"jsonrpc":"2.0","method":"x"}` + "\n\n"
	const endpoint = "event: endpoint\ndata: /messages?id=1\n\n"
	for name, c := range map[string]struct{ in, out string }{
		"as it is":               {endpoint + "event: message\n" + message, endpoint + "event: message\n" + message},
		"message without a name": {endpoint + message, endpoint + message},
		"signs of life":          {endpoint + "event: ping\ndata: now\n\n: beat\n\nevent: message\ndata:\n\ndata\n\n", endpoint},
		"no messages":            {endpoint + "data: {}\n\ndata: hello\n\n" + message, endpoint + message},
		"retry before the rest":  {"retry: 3000\n\nid: 1\n\n" + endpoint, endpoint},
		"second endpoint":        {endpoint + endpoint, endpoint},
		"lines that end with CR": {strings.ReplaceAll(endpoint, "\n", "\r"), endpoint},
		"byte order mark":        {"\ufeff" + endpoint, endpoint},
		"another first event":    {"event: hello\ndata: you\n\n", "event: hello\ndata: you\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, read := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.DataErrReader, iotest.HalfReader} {
				out, err := io.ReadAll(streamOf(read(strings.NewReader(c.in)), 1<<10))
				require.NoError(t, err)
				require.Equal(t, c.out, string(out))
			}
		})
	}
}

// streamOf returns a stream of a connection on which a request with the id 7 waits.
func streamOf(in io.Reader, limit int) *eventStream {
	s := newEventStream(io.NopCloser(in), limit, signs{new(atomic.Bool), new(atomic.Bool)}, func(id jsonrpc.ID) *jsonrpc.Response {
		if id.Raw() != int64(7) {
			return nil
		}
		return &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Message: "too large"}}
	})
	s.Skips = 10 * limit
	return s
}

func TestMessageThatIsTooLargeFailsItsCallAlone(t *testing.T) {
	const limit = 100
	const endpoint, next = "event: endpoint\ndata: /messages?id=1\n\n", `data: {"jsonrpc":"2.0","method":"x"}` + "\n\n"
	const failed = `data: {"jsonrpc":"2.0","id":7,"error":{"code":0,"message":"too large"}}` + "\n\n"
	large := strings.Repeat("x", 2*limit)
	for name, c := range map[string]struct {
		event, in string // the event, and what is read in its place
		end       error
	}{
		"a response":              {`data: {"jsonrpc":"2.0","id":7,"result":{"id":5,"x":"` + large + `"}}` + "\n\n", failed, nil},
		"with the id last":        {`data: {"result":{"id":5,"x":"` + large + `"},"jsonrpc":"2.0","id":7}` + "\n\n", failed, nil},
		"on lines":                {"event: message\ndata: {\ndata: \"jsonrpc\":\"2.0\",\ndata: \"id\": 7,\ndata: \"result\":[\ndata: \"" + large + "\"]}\nid: 3\n\n", failed, nil},
		"on lines that are short": {"data: {\"id\":7,\"result\":[\n" + strings.Repeat("data: 5,\n", limit/5) + "data: 5]}\n\n", failed, nil},
		"over by its blank line":  {`data: {"jsonrpc":"2.0","id":7,"result":"` + large[:limit-43] + "\"}\n\n", failed, nil},
		"by the limit":            {`data: {"jsonrpc":"2.0","id":7,"result":"` + large[:limit-44] + "\"}\n\n", `data: {"jsonrpc":"2.0","id":7,"result":"` + large[:limit-44] + "\"}\n\n", nil},
		"lines that end with CR":  {"data: {\"id\":7,\"result\":[\r\n" + strings.Repeat("data: 5,\r\n", limit/5) + "data: 5]}\r\n\r\n", failed, nil},
		"without an end":          {`data: {"jsonrpc":"2.0","id":7,"result":"` + strings.Repeat("x", 11*limit), failed, outbound.ErrTooLarge},
		"many times the limit":    {`data: {"result":"` + strings.Repeat("x", 8*limit) + `","id":7}` + "\n\n", failed, nil},
		"to nobody":               {`data: {"jsonrpc":"2.0","id":8,"result":{"id":7,"x":"` + large + `"}}` + "\n\n", "", nil},
		"a notification":          {`data: {"jsonrpc":"2.0","method":"x","params":{"id":7,"x":"` + large + `"}}` + "\n\n", "", nil},
		"another event":           {"event: ping\n: " + large + "\n\n", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, read := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.DataErrReader, iotest.HalfReader} {
				s := streamOf(read(strings.NewReader(endpoint+c.event+next+c.event+next)), limit)
				out, err := io.ReadAll(s)
				require.Equal(t, c.end != nil, s.signs.endless.Load())
				if c.end != nil {
					require.ErrorIs(t, err, c.end)
					require.Equal(t, endpoint+c.in, string(out))
					continue
				}
				require.NoError(t, err)
				require.Equal(t, endpoint+c.in+next+c.in+next, string(out))
			}
		})
	}
}

// The SDK only says that the stream has ended.
func TestEndOfASessionNamesAnEventWithoutAnEnd(t *testing.T) {
	c := &conn{rt: new(roundTripper)}
	detail, _ := c.DescribeEnd()
	require.Empty(t, detail)
	c.rt.endless.Store(true)
	detail, _ = c.DescribeEnd()
	require.Contains(t, detail, "maxResult")
}

func TestMessageIsReadThoughItsEventHasNoEnd(t *testing.T) {
	const endpoint, one, other = "event: endpoint\ndata: /messages?id=1\n\n", "event: message\n" + `data: {"jsonrpc":"2.0","method":"x"}` + "\n", `data: {"jsonrpc":"2.0","method":"y"}` + "\n"
	synctest.Test(t, func(t *testing.T) {
		body, server := io.Pipe()
		go io.WriteString(server, endpoint+one+other)
		began := time.Now()
		s := streamOf(body, 1<<10)
		for _, want := range []string{endpoint, one + "\n" + other + "\n"} {
			p := make([]byte, 4096)
			n, err := s.Read(p)
			require.NoError(t, err)
			require.Equal(t, want, string(p[:n]))
		}
		require.Equal(t, outbound.Pause, time.Since(began))
		go io.WriteString(server, other+"\n")
		p := make([]byte, 4096)
		n, err := s.Read(p)
		require.NoError(t, err)
		require.Equal(t, other+"\n", string(p[:n]))
		require.NoError(t, s.Close())
	})
}

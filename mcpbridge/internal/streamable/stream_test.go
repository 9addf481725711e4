package streamable

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/transport"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// deaf is a watcher that does nothing.
type deaf struct{ transport.Watcher }

func (deaf) Doubt(string, *mcpbridge.Error) {}

func TestStreamPassesWholeEventsHoweverTheyCome(t *testing.T) {
	const note = `data: {"jsonrpc":"2.0","method":"x"}` + "\n\n"
	events := "id: 1\n" + note + ": beat\r\n\r\n" + "data: {\"jsonrpc\":\"2.0\",\ndata: \"method\":\"y\"}\nid: 2\n\n"
	for name, reader := range map[string]func(io.Reader) io.Reader{
		"at once": func(r io.Reader) io.Reader { return r }, "by bytes": iotest.OneByteReader,
		"by halves": iotest.HalfReader, "with the error": iotest.DataErrReader,
	} {
		for _, size := range []int{1, 7, 4096} {
			ctx, cancel := context.WithCancel(t.Context())
			s := standaloneOf(t, ctx, 0)
			s.body = io.NopCloser(reader(strings.NewReader(events + "id: 3\ndata: ha")))
			want := strings.ReplaceAll(events, "\r\n", "\n")
			var got strings.Builder
			for p := make([]byte, size); got.Len() < len(want); {
				n, err := s.Read(p)
				require.NoError(t, err)
				got.Write(p[:n])
			}
			cancel()
			n, err := s.Read(make([]byte, size))
			require.Zero(t, n)
			require.Equal(t, io.EOF, err)
			require.Equal(t, want, got.String(), name)
			require.Equal(t, "2", s.lastID)
			require.True(t, s.Empty())
		}
	}
}

// standaloneOf returns a standalone stream with this limit, which is not open.
func standaloneOf(t *testing.T, ctx context.Context, limit int) *stream {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://test/mcp", nil)
	require.NoError(t, err)
	about := &transport.Session{Cut: t.Context(), Watcher: deaf{}}
	return newStream(&session{
		Session: about, client: &outbound.Client{Config: &mcpbridge.Server{MaxResult: limit}},
		answers: wire.Answers{IDs: rpc.NewIDs(new(atomic.Uint64)), Progress: &about.Progress},
	}, req, nil, nil)
}

func TestEndlessEventCutsTheStream(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // it is not opened again
	s := standaloneOf(t, ctx, 100)
	s.Skips = 1000
	in := strings.NewReader("data: " + strings.Repeat("x", 1<<20))
	s.body = io.NopCloser(in)
	_, err := s.Read(make([]byte, 500))
	require.Equal(t, io.EOF, err)
	require.Greater(t, in.Len(), 1<<19, "the rest is not read")
}

func TestServerWithoutAStreamIsNotAskedToListen(t *testing.T) {
	c, err := New(&mcpbridge.Server{Name: "s", URL: "http://test/mcp", NoStream: true}).Connect(new(transport.Session))
	require.NoError(t, err)
	req, err := http.NewRequest(http.MethodPost, "http://test/mcp", nil)
	require.NoError(t, err)
	resp := c.(*conn).subscribe(outbound.Message{Envelope: rpc.Envelope{ID: json.RawMessage("1"), Method: rpc.MethodListen}, Request: req})
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
}

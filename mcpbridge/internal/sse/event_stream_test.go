package sse

import (
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

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
				out, err := io.ReadAll(&eventStream{ReadCloser: io.NopCloser(read(strings.NewReader(c.in))), limit: 1 << 10, mute: new(atomic.Bool)})
				require.NoError(t, err)
				require.Equal(t, c.out, string(out))
			}
		})
	}
}

func TestEventThatIsTooLargeEndsTheStream(t *testing.T) {
	_, err := io.ReadAll(&eventStream{ReadCloser: io.NopCloser(strings.NewReader("data: " + strings.Repeat("x", 100))), limit: 50, mute: new(atomic.Bool)})
	require.ErrorIs(t, err, outbound.ErrTooLarge)
}

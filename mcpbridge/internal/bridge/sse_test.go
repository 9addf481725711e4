package bridge

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/messages"
)

// sseServer is a server over HTTP+SSE without a socket. It accepts a POST some time after its response.
type sseServer struct {
	events  io.Writer
	late    time.Duration
	results []string // of the next requests
}

func (s *sseServer) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet {
		stream, how := streamOf()
		s.events = stream
		go io.WriteString(stream, "event: endpoint\ndata: /messages\n\n")
		return how(req)
	}
	if msg := rpc.Parse(rpc.BodyOf(readable(req))); msg.IsCall() {
		fmt.Fprintf(s.events, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", msg.ID, s.results[0])
		s.results = s.results[1:]
		time.Sleep(s.late)
	}
	return outbound.Respond(req, http.StatusAccepted, "", nil), nil
}

// A response may arrive before the answer to the POST with its request.
func TestResponseOverSSEThatIsTooLargeFailsItsCallAlone(t *testing.T) {
	for _, late := range []time.Duration{0, time.Second} {
		t.Run(fmt.Sprint("accepted after ", late), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &sseServer{late: late, results: []string{
					`{"protocolVersion":"2024-11-05","capabilities":{}}`,
					`{"content":[{"type":"text","text":"` + strings.Repeat("x", 5<<10) + `"}]}`, `{"content":[]}`,
				}}
				srv := mcpbridge.Server{Name: "test", URL: "http://test/sse", Transport: mcpbridge.TransportSSE, MaxResult: 4 << 10, HTTPClient: &http.Client{Transport: s}}
				c, err := New([]mcpbridge.Server{srv}, nil).Dial(t.Context(), dial.Request{
					Key: messages.Key{Server: "test"}, Down: func(e *mcpbridge.Error) { t.Errorf("down: %v", e) },
				})
				require.NoError(t, err)
				e, late := do(c)
				require.False(t, late)
				require.Equal(t, mcpbridge.Protocol, e.Class, "%v", e)
				require.Equal(t, "the result has more than 4096 bytes (maxResult)", e.Detail)
				require.Equal(t, mcpbridge.Alive, e.Session)
				require.True(t, e.MayHaveRun())
				e, _ = do(c)
				require.Nil(t, e)
				require.NoError(t, c.Close(context.Background()))
			})
		})
	}
}

package streamable

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/bridgetest"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/transport"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// The event of a response ends with a blank line, which some servers do not write. A second passes after each piece of the
// stream.
func TestResponseIsReadThoughItsEventHasNoEnd(t *testing.T) {
	const wait = time.Second
	id := fmt.Sprint(firstID + 4)
	own, other := saying(id, "a"), saying(fmt.Sprint(firstID+5), "b")
	for name, c := range map[string]struct {
		pieces []string
		end    error         // of the stream, after the pieces; nil: it stays open
		took   time.Duration // until the response was read
	}{
		"with a blank line":              {[]string{"data: " + own + "\n\n"}, nil, 0},
		"the line ends":                  {[]string{"data: " + own + "\n"}, nil, unfinishedSilence},
		"the line ends with CR":          {[]string{"data: " + own + "\r"}, nil, unfinishedSilence},
		"the line does not end":          {[]string{"data: " + own}, nil, unfinishedSilence},
		"other fields follow":            {[]string{"data: " + own + "\nid: 7\nevent: message\n"}, nil, unfinishedSilence},
		"after another event":            {[]string{": beat\n\n", "event: message\n", "data: " + own + "\n"}, nil, 2*wait + unfinishedSilence},
		"on several lines":               {[]string{"data: {\ndata: " + own[1:] + "\n"}, nil, unfinishedSilence},
		"on lines that come slowly":      {[]string{"data: " + own[:len(own)-2] + "\n", "data: }\n", "data: }\n", "\n"}, nil, 2*wait + unfinishedSilence},
		"in pieces that come slowly":     {[]string{"data: " + own[:len(own)-2], "}", "}\n\n"}, nil, 2 * wait},
		"the stream is cut":              {[]string{"data: " + own + "\n"}, io.ErrUnexpectedEOF, unfinishedSilence},
		"the stream is cut at once":      {[]string{"data: " + own[:9], own[9:] + "\n", ""}, io.ErrUnexpectedEOF, wait + unfinishedSilence},
		"the stream ends":                {[]string{"data: " + own[:9], own[9:] + "\n"}, io.EOF, wait + unfinishedSilence},
		"the stream is cut within it":    {[]string{"data: " + own[:len(own)-2] + "\n"}, io.ErrUnexpectedEOF, -1},
		"after that of another":          {[]string{"data: " + other + "\n", "\n", "data: " + own + "\n"}, nil, 2*wait + unfinishedSilence},
		"of another name":                {[]string{"event: beat\ndata: " + own + "\n", "\n", "data: " + own + "\n"}, nil, 2*wait + unfinishedSilence},
		"a bracket far before the end":   {[]string{"data: " + own + "\n" + ": " + strings.Repeat("x", 2000) + "\n", "\n"}, nil, wait},
		"an error":                       {[]string{"data: " + bridgetest.Failure(id, "-1", "no") + "\n"}, nil, unfinishedSilence},
		"an error without an id":         {[]string{"data: " + bridgetest.Failure("null", "-1", "no") + "\n"}, nil, unfinishedSilence},
		"a notification, and no more":    {[]string{"data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n"}, io.EOF, -1},
		"the response to another, alone": {[]string{"data: " + other + "\n"}, io.EOF, -1},
	} {
		t.Run(name, func(t *testing.T) {
			for _, wanted := range []bool{true, false} {
				synctest.Test(t, func(t *testing.T) {
					s := &session{Session: new(transport.Session), client: &outbound.Client{Config: new(mcpbridge.Server)}, habits: new(habits)}
					s.answers = wire.Answers{IDs: rpc.IDsFrom(new(atomic.Uint64)), Progress: &s.Progress}
					s.answers.IDs.OnWire(9)
					ex := new(wire.Exchange)
					ex.Begin(wanted)
					ex.Message(json.RawMessage("4"))
					body, server := io.Pipe()
					go func() {
						for _, piece := range c.pieces {
							io.WriteString(server, piece)
							time.Sleep(wait)
						}
						if c.end != nil {
							server.CloseWithError(c.end)
						}
					}()
					began, took := time.Now(), time.Duration(-1)
					r := s.answerStream(body, ex, false)
					for p := make([]byte, 4096); took < 0; {
						_, err := r.Read(p)
						if ex.IsAnswered() {
							took = time.Since(began)
						} else if err != nil {
							break
						}
					}
					require.Equal(t, c.took, took)
					server.Close()
					require.NoError(t, r.Close())
					time.Sleep(time.Duration(len(c.pieces)) * wait)
				})
			}
		})
	}
}

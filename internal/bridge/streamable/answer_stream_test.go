package streamable

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/bridge/bridgetest"
	"github.com/mcpactor/mcpactor/internal/bridge/outbound"
	"github.com/mcpactor/mcpactor/internal/bridge/rpc"
	"github.com/mcpactor/mcpactor/internal/bridge/transport"
	"github.com/mcpactor/mcpactor/internal/bridge/wire"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// firstID is a number that no request of the SDK has.
const firstID = 1 << 40

// saying is a response with a text as its result.
func saying(id, text string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[{"type":"text","text":"` + text + `"}]}}`
}

func TestEventsWithTheIDsOfAConnection(t *testing.T) {
	const limit = 200
	large := "data: " + strings.Repeat("x", limit)
	padded := "4" + strings.Repeat(" ", len(fmt.Sprint(firstID))-1)
	for name, c := range map[string]struct{ in, out string }{
		"nothing":                {"", ""},
		"own":                    {"id: 1\ndata: " + saying(fmt.Sprint(firstID+4), "") + "\nevent: message\n\n", "id: 1\ndata: " + saying(padded, "") + "\nevent: message\n\n"},
		"own, as a fraction":     {"data: " + saying(fmt.Sprint(firstID+4)+".0", "") + "\n\n", "data: " + saying(padded+"  ", "") + "\n\n"},
		"of another":             {"id: 1\ndata: " + saying("4", "") + "\n\n", "id: 1\n\n"},
		"not asked yet":          {"data: " + saying(fmt.Sprint(firstID+10), "") + "\n\n", "\n"},
		"as text":                {"data: " + saying(`"`+fmt.Sprint(firstID+4)+`"`, "") + "\n\n", "\n"},
		"negative":               {"data: " + saying(fmt.Sprint(-firstID), "") + "\n\n", "\n"},
		"larger than any number": {"data: " + saying("99999999999999999999", "") + "\n\n", "\n"},
		"number that is no int":  {"data: " + saying(`4.5`, "") + "\n\n", "\n"},
		"error without an id":    {"data: " + bridgetest.Failure(`""`, "-1", "no") + "\n\n", "data: {\"jsonrpc\":\"2.0\",\"id\":5,\"error\":{\"code\":-1,\"message\":\"no\"}}\n\n"},
		"request":                {"data: {\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"ping\"}\n\n", "data: {\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"ping\"}\n\n"},
		"nonsense":               {": beat\r\n\r\n\n\ndata\n\ndata: {\n\n", ": beat\n\n\n\ndata:\n\ndata: {\"error\":{\"code\":0,\"message\":\"an event of the answer is no JSON-RPC message\"},\"id\":5,\"jsonrpc\":\"2.0\"}\n\n"},
		"lines without a colon":  {"0\r\n: beat\ndata\n\nretry", "0:\n: beat\ndata:\n\nretry:"},
		"lines that end with CR": {"id: 1\rdata: {\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"ping\"}\r\r: beat\r\n\r\n", "id: 1\ndata: {\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"ping\"}\n\n: beat\n\n"},
		"byte order mark":        {"\ufeffid: 1\n\n", "id: 1\n\n"},
		"event of another name":  {"event: beat\ndata: now\n\n", "event: beat\ndata: now\n\n"},
		"no end":                 {"id: 1\n\ndata: " + saying("4", ""), "id: 1\n\n"},
		"too large":              {": beat\n\n" + large + "\n\n: more\n\n", ": beat\n\n…"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, read := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.DataErrReader, iotest.HalfReader} {
				s := &session{Session: new(transport.Session), client: &outbound.Client{Config: &mcpbridge.Server{MaxResult: limit}}, ids: rpc.IDsFrom(firstID, new(atomic.Uint64)), habits: new(habits)}
				s.ids.OnWire(9)
				ex := new(wire.Exchange)
				ex.Message(json.RawMessage("5"))
				r := s.answerStream(io.NopCloser(read(strings.NewReader(c.in))), ex, false)
				out, err := io.ReadAll(r)
				if begin, cut := strings.CutSuffix(c.out, "…"); cut {
					require.ErrorIs(t, err, io.ErrUnexpectedEOF)
					require.Equal(t, begin, string(out))
					continue
				}
				require.NoError(t, err)
				require.Equal(t, c.out, string(out))
			}
		})
	}
}

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

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/bridgetest"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/transport"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// firstID is a number that no request of the SDK has.
const firstID = 1 << 30

// saying is a response with a text as its result.
func saying(id, text string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[{"type":"text","text":"` + text + `"}]}}`
}

// answerOf returns a stream that answers a request. Its id is 4 for the SDK, and firstID+4 on the wire. Its result is taken if
// that is wanted.
func answerOf(body io.ReadCloser, wanted bool, limit int) (*answerStream, *wire.Exchange) {
	s := &session{Session: new(transport.Session), client: &outbound.Client{Config: &mcpbridge.Server{MaxResult: limit}}, habits: new(habits)}
	s.answers = wire.Answers{IDs: rpc.IDsFrom(new(atomic.Uint64)), Progress: &s.Progress}
	s.answers.IDs.OnWire(9)
	ex := new(wire.Exchange)
	ex.Begin(wanted)
	ex.Message(json.RawMessage("4"))
	return s.answerStream(body, ex, false), ex
}

func TestEventsWithTheIDsOfAConnection(t *testing.T) {
	const limit = 200
	const resumes = "id: 1\nretry: 100\n\n" // what the SDK gets at the end, so that it resumes the stream soon
	large := "data: " + strings.Repeat("x", limit)
	padded := "4" + strings.Repeat(" ", len(fmt.Sprint(firstID))-1)
	for name, c := range map[string]struct{ in, out string }{
		"nothing":                {"", ""},
		"own":                    {"id: 1\ndata: " + saying(fmt.Sprint(firstID+4), "") + "\nevent: message\n\n", "id: 1\ndata: " + saying(padded, "") + "\nevent: message\n\n"},
		"own, as a fraction":     {"data: " + saying(fmt.Sprint(firstID+4)+".0", "") + "\n\n", "data: " + saying(padded+"  ", "") + "\n\n"},
		"of another":             {"id: 1\ndata: " + saying("4", "") + "\n\n", "id: 1\n\n" + resumes},
		"not asked yet":          {"data: " + saying(fmt.Sprint(firstID+10), "") + "\n\n", "\n"},
		"as text":                {"data: " + saying(`"`+fmt.Sprint(firstID+4)+`"`, "") + "\n\n", "data: " + saying(padded+"  ", "") + "\n\n"},
		"negative":               {"data: " + saying(fmt.Sprint(-firstID), "") + "\n\n", "\n"},
		"larger than any number": {"data: " + saying("99999999999999999999", "") + "\n\n", "\n"},
		"number that is no int":  {"data: " + saying(`4.5`, "") + "\n\n", "\n"},
		"error without an id":    {"data: " + bridgetest.Failure(`""`, "-1", "no") + "\n\n", "data: {\"jsonrpc\":\"2.0\",\"id\":4,\"error\":{\"code\":-1,\"message\":\"no\"}}\n\n"},
		"request":                {"data: {\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"ping\"}\n\n", "data: {\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"ping\"}\n\n"},
		"request on two lines":   {"id: 1\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"id\":4,\"method\":\"ping\"}\n\n", "data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":4,\"method\":\"ping\"}\nid: 1\n\n" + resumes},
		"own on two lines":       {"data: {\ndata: " + saying(fmt.Sprint(firstID+4), "")[1:] + "\n\n", "data: {\ndata: " + saying(padded, "")[1:] + "\n\n"},
		"nonsense":               {": beat\r\n\r\n\n\ndata\n\ndata: {\n\n", ": beat\n\n\n\ndata:\n\ndata: {\"error\":{\"code\":0,\"message\":\"an event of the answer is no JSON-RPC message\"},\"id\":4,\"jsonrpc\":\"2.0\"}\n\n"},
		"lines without a colon":  {"0\r\n: beat\ndata\n\nretry", "0:\n: beat\ndata:\n\nretry:"},
		"lines that end with CR": {"id: 1\rdata: {\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"ping\"}\r\r: beat\r\n\r\n", "id: 1\ndata: {\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"ping\"}\n\n: beat\n\n" + resumes},
		"byte order mark":        {"\ufeffid: 1\n\n", "id: 1\n\n" + resumes},
		"event of another name":  {"event: beat\ndata: now\n\n", "event: beat\ndata: now\n\n"},
		"no end":                 {"id: 1\n\ndata: " + saying("4", ""), "id: 1\n\n" + resumes},
		"too large, endless":     {": beat\n\nevent: ping\n" + strings.Repeat(large, 6), ": beat\n\n…"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, read := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.DataErrReader, iotest.HalfReader} {
				r, _ := answerOf(io.NopCloser(read(strings.NewReader(c.in))), false, limit)
				r.Skips = 4 * limit
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

// An event over the limit fails the call only if it is the response, or may be it.
func TestEventOverTheLimitCostsWhatItIs(t *testing.T) {
	const limit = 200
	own, large := saying(fmt.Sprint(firstID+4), "a"), strings.Repeat("x", 2*limit)
	other := fmt.Sprint(firstID + 5)
	for name, c := range map[string]struct {
		event string
		fails bool
	}{
		"a notification":             {`data: {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"` + large + `"}}` + "\n\n", false},
		"its parameters first":       {`data: {"params":{"data":"` + large + `"},"method":"x","jsonrpc":"2.0"}` + "\n\n", false},
		"a notification, on lines":   {"event: message\ndata: {\ndata: \"method\":\"x\",\ndata: \"params\":[\ndata: \"" + large + "\"]}\nid: 3\n\n", false},
		"a request":                  {`data: {"jsonrpc":"2.0","id":` + fmt.Sprint(firstID+4) + `,"method":"x","params":{"data":"` + large + `"}}` + "\n\n", false},
		"a comment":                  {": " + large + "\n\n", false},
		"another event":              {"event: ping\ndata: " + large + "\n\n", false},
		"the response to another":    {"data: " + saying(other, large) + "\n\n", false},
		"the same, with its id last": {`data: {"result":"` + large + `","jsonrpc":"2.0","id":` + other + "}\n\n", false},
		"the response":               {"data: " + saying(fmt.Sprint(firstID+4), large) + "\n\n", true},
		"the response in part":       {"data: " + saying(fmt.Sprint(firstID+4), large), true},
		"the response, id last":      {`data: {"result":"` + large + `","jsonrpc":"2.0","id":` + fmt.Sprint(firstID+4) + "}\n\n", true},
		"an error without an id":     {`data: {"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"` + large + `"}}` + "\n\n", true},
		"the same, without its end":  {`data: {"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"` + large + `"}}`, true},
		"no message":                 {"data: " + large, true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, read := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.DataErrReader, iotest.HalfReader} {
				in := c.event
				if !c.fails {
					in += "data: " + own + "\n\n"
				}
				r, ex := answerOf(io.NopCloser(read(strings.NewReader(in))), true, limit)
				out, err := io.ReadAll(r)
				require.NoError(t, err)
				refused, _ := ex.Outcome()
				require.Equal(t, c.fails, refused)
				if c.fails {
					require.Equal(t, "data: {\"error\":{\"code\":0,\"message\":\"the result has more than 200 bytes (maxResult)\"},\"id\":4,\"jsonrpc\":\"2.0\"}\n\n", string(out))
					continue
				}
				require.Empty(t, string(out))
				require.NotNil(t, ex.Result())
			}
		})
	}
}

// The SDK gets an error in place of a result that was taken, or nothing where it takes the end of
// the stream for that.
func TestResultThatIsWantedIsTakenFromItsEvent(t *testing.T) {
	own := saying(fmt.Sprint(firstID+4), "a")
	pad := strings.Repeat(" ", len(fmt.Sprint(firstID))-1)
	note := "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n"
	for name, c := range map[string]struct {
		in, out string
		taken   bool
	}{
		"alone":                  {"data: " + own + "\n\n", "", true},
		"with an id":             {"id: 1\ndata: " + own + "\n\n", "", true},
		"after an id":            {"id: 1\ndata:\n\ndata: " + own + "\nid: 2\n\n", "id: 1\ndata:\n\ndata: {\"error\":{\"code\":0,\"message\":\"the result was taken\"},\"id\":4,\"jsonrpc\":\"2.0\"}\nid: 2\n\n", true},
		"after a notification":   {note + "data: " + own + "\n\n" + note, note, true},
		"without an empty line":  {"data: " + own, "", true},
		"on two lines":           {"data: " + own[:17] + "\ndata: " + own[17:] + "\n\n", "", true},
		"of another":             {"data: " + saying("4", "") + "\n\n", "\n", false},
		"of another call of it":  {"data: " + saying(fmt.Sprint(firstID+5), "") + "\n\n", "\n", false},
		"error in place of it":   {"data: " + bridgetest.Failure(fmt.Sprint(firstID+4), "-1", "no") + "\n\n", "data: " + bridgetest.Failure("4"+pad, "-1", "no") + "\n\n", false},
		"after an error":         {"data: " + bridgetest.Failure(fmt.Sprint(firstID+4), "-1", "no") + "\n\ndata: " + own + "\n\n", "data: " + bridgetest.Failure("4"+pad, "-1", "no") + "\n\ndata: " + saying("4"+pad, "a") + "\n\n", false},
		"neither result nor err": {"data: {\"jsonrpc\":\"2.0\",\"id\":" + fmt.Sprint(firstID+4) + "}\n\n", "data: {\"jsonrpc\":\"2.0\",\"id\":4" + pad + "}\n\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, read := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.DataErrReader, iotest.HalfReader} {
				body := strings.NewReader(c.in)
				r, ex := answerOf(io.NopCloser(read(body)), true, 0)
				out, err := io.ReadAll(r)
				require.NoError(t, err)
				require.Equal(t, c.out, string(out))
				require.Equal(t, c.taken, ex.Result() != nil)
				if c.taken {
					require.JSONEq(t, `{"content":[{"type":"text","text":"a"}]}`, string(ex.Result()))
				}
				require.NoError(t, r.Close())
				require.Zero(t, body.Len(), "the rest is read, so that the connection can be used again")
			}
		})
	}
}

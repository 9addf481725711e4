package mcpbridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const methodCancelled = "notifications/cancelled"

// callHead is how the SDK begins each call: its id comes next.
const callHead = `{"jsonrpc":"2.0","id":`

// renumberer is the http.RoundTripper of a connection that was attached to a session.
// MCP lets no id be used twice in a session, but the SDK of each connection counts
// from 1, while calls of the connection before may still run on the server: their
// answers could be taken for ours, and ours be refused, or get lost. So on the wire
// the ids have a prefix of the connection, and whatever answers another id is kept
// from the SDK. What the server asks, and our answers to that, have ids of its own.
type renumberer struct {
	base   http.RoundTripper
	prefix string // of the ids of this connection
	limit  int    // of an answer, in bytes
}

func newRenumberer(base http.RoundTripper, limit int) *renumberer {
	return &renumberer{base: base, prefix: nonce() + "-", limit: limit}
}

// nonce returns what tells a connection from all others. It is no secret.
func nonce() string { return fmt.Sprintf("%016x", rand.Uint64()) }

// RoundTrip sends a request with the ids of the connection. A refusal stays as it
// is: who reads it knows which request it is about.
func (n *renumberer) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := n.base.RoundTrip(n.renumbered(req))
	if err != nil || resp.StatusCode < 200 || resp.StatusCode > 299 {
		return resp, err
	}
	kind := mediaType(resp)
	switch {
	case kind == typeSSE, req.Method == http.MethodGet: // which is read as a stream whatever it says
		resp.Body = &ownEvents{ReadCloser: resp.Body, n: n}
		resp.ContentLength = -1
	case kind == typeJSON && req.Method == http.MethodPost:
		n.restoreBody(resp)
	}
	return resp, nil
}

// renumbered returns a request with the ids of the connection.
func (n *renumberer) renumbered(req *http.Request) *http.Request {
	old := bodyOf(req)
	body := n.renumber(old)
	if body == nil {
		return req
	}
	req.Body.Close() // the copy has one of its own
	again := *req
	again.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	again.Body, _ = again.GetBody() // which does not fail
	again.ContentLength = int64(len(body))
	return &again
}

// renumber returns a message of the SDK with the ids of the connection, or nil when
// it has none.
func (n *renumberer) renumber(body []byte) []byte {
	if call, ok := scan(body); ok {
		return slices.Concat([]byte(callHead), n.onWire(call.ID), body[len(callHead)+len(call.ID):])
	}
	if !bytes.Contains(body, []byte(methodCancelled)) {
		return nil
	}
	var msg struct {
		Version string                     `json:"jsonrpc"`
		Method  string                     `json:"method"`
		Params  map[string]json.RawMessage `json:"params"`
	}
	if json.Unmarshal(body, &msg) != nil || msg.Method != methodCancelled || !hasID(msg.Params["requestId"]) {
		return nil
	}
	msg.Params["requestId"] = n.onWire(msg.Params["requestId"])
	body, _ = json.Marshal(msg) // it was JSON before
	return body
}

// onWire returns the id on the wire for a number of the SDK.
func (n *renumberer) onWire(number json.RawMessage) json.RawMessage {
	return strconv.AppendQuote(nil, n.prefix+string(number))
}

// restore returns an answer with the number that the SDK has given its request. It is
// not own when that is no request of this connection: then its id is one that the SDK
// never gives. Any other message stays as it is, which is nil.
func (n *renumberer) restore(data []byte) (restored []byte, own bool) {
	resp := responseOf(data)
	if resp == nil {
		return nil, true
	}
	text, _ := resp.ID.Raw().(string)
	digits, own := strings.CutPrefix(text, n.prefix)
	number, err := strconv.ParseUint(digits, 10, 53)
	if own = own && err == nil; own {
		resp.ID, _ = jsonrpc.MakeID(float64(number))
	} else {
		resp.ID, _ = jsonrpc.MakeID("of another connection")
	}
	restored, _ = jsonrpc.EncodeMessage(resp) // it was JSON before
	return restored, own
}

// restoreBody restores a JSON answer. One over the limit stays as it is, and is not
// read to its end.
func (n *renumberer) restoreBody(resp *http.Response) {
	rest := resp.Body
	body, err := readBounded(rest, n.limit)
	var left io.Reader = bytes.NewReader(nil)
	switch {
	case errors.Is(err, errTooLarge):
		left = io.MultiReader(strings.NewReader(" "), rest) // for the byte that showed it
	case err != nil:
		left = failing{err}
	default:
		if restored, _ := n.restore(body); restored != nil {
			body = restored
		}
	}
	resp.Body = &readCloser{io.MultiReader(bytes.NewReader(body), left), rest}
	resp.ContentLength = -1
}

// ownEvents is a stream of events without the answers to other connections.
type ownEvents struct {
	io.ReadCloser
	n *renumberer

	event []byte // as far as it was read
	line  int    // where its last line begins
	out   bytes.Buffer
	end   error // after that
}

// Read reads whole events.
func (e *ownEvents) Read(p []byte) (int, error) {
	for e.out.Len() == 0 {
		if e.end != nil {
			return 0, e.end
		}
		n, err := e.ReadCloser.Read(p)
		e.take(p[:n])
		if err == nil || e.end != nil {
			continue
		}
		e.end = err
		if errors.Is(err, io.EOF) { // the SDK takes what is there for an event
			e.event = e.restored()
		}
		e.out.Write(e.event)
	}
	return e.out.Read(p)
}

// take takes what was read. An event over the limit is passed on as far as that can
// be seen, and ends the stream.
func (e *ownEvents) take(p []byte) {
	for part := range bytes.Lines(p) {
		e.event = append(e.event, part...)
		switch {
		case len(e.event) > e.n.limit:
			e.out.Write(e.event)
			e.end = io.ErrUnexpectedEOF
			return
		case part[len(part)-1] != '\n':
		case isBlank(e.event[e.line:]):
			e.out.Write(e.restored())
			e.event, e.line = e.event[:0], 0
		default:
			e.line = len(e.event)
		}
	}
}

func isBlank(line []byte) bool { return len(bytes.TrimRight(line, "\r\n")) == 0 }

// restored returns the event that was read, with its data restored. One that answers
// another connection loses its data, and keeps its id: the stream goes on after it.
func (e *ownEvents) restored() []byte {
	restored, own := e.n.restore(dataOf(e.event))
	if own && restored == nil {
		return e.event
	}
	var event []byte
	if own {
		event = fmt.Appendf(event, "data: %s\n", restored)
	}
	for line := range bytes.Lines(e.event) {
		if field, _ := fieldOf(line); field != "data" {
			event = append(event, line...)
		}
	}
	return event
}

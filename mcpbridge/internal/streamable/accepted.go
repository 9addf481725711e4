package streamable

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// accepted handles a 2xx: the server has accepted the message. It reads a JSON answer to its end, because
// the SDK ends the session after an answer that it cannot read (go-sdk#683).
func (s *session) accepted(m outbound.Message, resp *http.Response) *http.Response {
	m.Exchange.Accepted()
	if m.Method != rpc.MethodInitialize {
		s.noteResponse(m.Request, resp)
	}
	kind := outbound.MediaType(resp)
	switch {
	case !m.IsCall():
		return resp
	case kind == outbound.TypeSSE:
		resp.Body = s.answerStream(resp.Body, m.Exchange, isOfSession(m.Request))
		return resp
	}
	body, err := outbound.ReadJSON(resp, wire.MaxResult(s.client.Config))
	resp.Body.Close()
	if err == nil && (resp.StatusCode == http.StatusAccepted || !bytes.HasPrefix(body, []byte("{"))) { // most answers are one JSON object
		switch parts := rpc.Parts(body); {
		case len(parts) == 0 && resp.StatusCode == http.StatusAccepted && m.Method != rpc.MethodDiscover:
			return s.answeredLater(m)
		case len(parts) > 1 && kind == outbound.TypeJSON:
			return s.batchAsEvents(m, resp, parts)
		case len(parts) == 1:
			body = parts[0]
		}
	}
	if err == nil && kind != outbound.TypeJSON && s.answers.IsResponse(body, m.ID) { // its id tells more than its type
		kind = outbound.TypeJSON
		resp.Header.Set("Content-Type", kind)
	}
	if err != nil || kind != outbound.TypeJSON {
		return s.unreadable(m, resp, kind, err)
	}
	msg, use, err := s.answered(m, body)
	switch {
	case err != nil:
		return s.unreadable(m, resp, kind, err)
	case use == wire.Taken:
		return outbound.Drop(m.Request)
	}
	body = msg.Restored(body)
	resp.Body, resp.ContentLength = outbound.Body(body), int64(len(body))
	return resp
}

var (
	errNoResponse = errors.New("the answer is no JSON-RPC response")
	errAnotherID  = errors.New("the answer has the id of another request")
)

// answered reads the response from a JSON body.
func (s *session) answered(m outbound.Message, body []byte) (rpc.Decoded, wire.Use, error) {
	msg, err := s.answers.Decode(body, m.ID)
	resp, ok := msg.Message.(*jsonrpc.Response)
	if err != nil || !ok {
		return msg, wire.Passed, errNoResponse
	}
	use, _ := s.answers.Read(resp, m.Exchange)
	if use == wire.Stray || use == wire.Unawaited {
		return msg, use, errAnotherID
	}
	return msg, use, nil
}

// batchAsEvents returns the messages of a batch in a JSON body as a stream of events.
func (s *session) batchAsEvents(m outbound.Message, resp *http.Response, parts []json.RawMessage) *http.Response {
	var events bytes.Buffer
	for _, part := range parts {
		events.WriteString("data: ")
		json.Compact(&events, part) //nolint:errcheck // it is JSON
		events.WriteString("\n\n")
	}
	resp = outbound.Respond(m.Request, http.StatusOK, outbound.TypeSSE, events.Bytes(), resp.Header)
	stream := s.answerStream(resp.Body, m.Exchange, isOfSession(m.Request))
	stream.batch = true
	resp.Body, resp.ContentLength = stream, -1
	return resp
}

// unreadable fails a call whose answer could not be read.
func (s *session) unreadable(m outbound.Message, resp *http.Response, kind string, err error) *http.Response {
	e := &mcpbridge.Error{Class: mcpbridge.Protocol, Sent: true, Status: resp.StatusCode, Doubt: isOfSession(m.Request)}
	switch {
	case errors.Is(err, outbound.ErrTooLarge):
		e.Detail, e.Doubt = wire.TooLarge(s.client.Config), false
	case errors.Is(err, errNoResponse), errors.Is(err, errAnotherID):
		e.Detail = err.Error()
	case err != nil && m.Request.Context().Err() != nil: // it was cancelled while its answer arrived: that says nothing about the session
		e = &mcpbridge.Error{Class: mcpbridge.Cancelled, Sent: true, Err: err}
	case err != nil:
		e = &mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Broken, Sent: true, Detail: redact.Describe(err, s.Secrets()...)}
	default:
		e.Detail, e.Shared = fmt.Sprintf("the answer has content type %q", redact.Clean(kind)), "the answer has a content type that is not MCP's"
	}
	m.Exchange.Refused(e)
	return outbound.Respond(m.Request, http.StatusOK, outbound.TypeJSON, rpc.Failure(m.ID, 0, e.Detail), resp.Header)
}

package streamable

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"

	"github.com/mcpactor/mcpactor/internal/bridge/outbound"
	"github.com/mcpactor/mcpactor/internal/bridge/redact"
	"github.com/mcpactor/mcpactor/internal/bridge/rpc"
	"github.com/mcpactor/mcpactor/internal/bridge/wire"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// accepted handles a 2xx: the server has the message. A JSON answer is read here
// and now, because the SDK ends the session over an answer that it cannot read.
func (s *session) accepted(m message, resp *http.Response) *http.Response {
	m.ex.Accepted()
	if isOfSession(m.req) {
		resp.Header.Del(outbound.HeaderSession) // the SDK ends a session whose id changes
	}
	kind := outbound.MediaType(resp)
	switch {
	case !m.IsCall():
		return resp
	case kind == outbound.TypeSSE:
		resp.Body = s.answerStream(resp.Body, m.ex, isOfSession(m.req))
		return resp
	}
	defer resp.Body.Close()
	body, err := outbound.ReadBounded(resp.Body, wire.MaxResult(s.client.Config))
	e := &mcpbridge.Error{Class: mcpbridge.Protocol, Sent: true, Status: resp.StatusCode, Doubt: isOfSession(m.req)}
	switch {
	case errors.Is(err, outbound.ErrTooLarge):
		e.Detail, e.Doubt = wire.TooLarge(s.client.Config), false
	case err != nil:
		e = &mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Broken, Sent: true, Detail: redact.Describe(err, s.Secrets()...)}
	case kind != outbound.TypeJSON:
		e.Detail = fmt.Sprintf("the answer has content type %q", redact.Clean(kind))
	default:
		if body, e.Detail = s.answered(m, body); body != nil {
			resp.Body, resp.ContentLength = outbound.Body(body), int64(len(body))
			return resp
		}
	}
	m.ex.Refused(e)
	return outbound.Respond(m.req, http.StatusOK, outbound.TypeJSON, rpc.Failure(m.ID, 0, e.Detail), resp.Header)
}

// answered handles a JSON body: it notes the response, and returns it with the id of the SDK.
// It returns nil and the reason if the body is no response that the SDK can read.
func (s *session) answered(m message, body []byte) (own []byte, wrong string) {
	msg, from := s.ids.Restore(body)
	if from == rpc.Unnamed { // it is the response to this request all the same
		body = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":%s}`, m.ID, msg.Error)
	}
	switch {
	case from == rpc.NoAnswer, from == rpc.NoMessage:
		return nil, "the answer is no JSON-RPC response"
	case from == rpc.StrayAnswer, from == rpc.OwnAnswer && !bytes.Equal(bytes.TrimSpace(msg.ID), m.ID):
		return nil, "the answer has the id of another request"
	case rpc.IsPlain(body, msg):
		m.ex.Answered(nil)
		return body, ""
	}
	response := rpc.ResponseOf(body)
	if response == nil {
		return nil, "the answer is no JSON-RPC response"
	}
	m.ex.Answered(response.Error)
	return body, ""
}

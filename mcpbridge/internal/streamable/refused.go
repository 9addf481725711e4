package streamable

import (
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// refused handles any answer but a 2xx. The SDK may end the session after it (go-sdk#683).
func (s *session) refused(m outbound.Message, resp *http.Response) (*http.Response, error) {
	e, body := s.judge(m.Request, resp, m.ID)
	hasFormerID := m.Request.Header.Get(outbound.HeaderSession) != s.SessionID()
	if e.Session == mcpbridge.Gone && (s.fresh.Load() || hasFormerID) && m.Exchange.As == "" {
		switch known, err := s.untilKnown(m.Request); {
		case err != nil:
			return nil, err
		case known == nil:
		case is2xx(known):
			return s.accepted(m, known), nil
		default:
			resp = known
			e, body = s.judge(m.Request, resp, m.ID)
		}
	}
	m.ReportRefusal(s.Session, e, s.Expire)
	if outbound.IsMoved(resp.StatusCode) { // the call has not run here
		e.Sent = m.Exchange.WasAccepted()
	}
	return s.reject(m, resp.StatusCode, body, e), nil
}

// untilKnown repeats a request while the server answers that it does not know the session, which it has just opened or given
// another id. It returns the first other answer, or nil.
func (s *session) untilKnown(req *http.Request) (*http.Response, error) {
	for range wire.WhileFresh(req.Context()) {
		again := outbound.Again(req)
		again.Header = again.Header.Clone()
		s.noteRequest(again)
		resp, err := s.out.Send(again)
		if err != nil {
			return nil, err
		}
		if !wire.IsMissing(resp.StatusCode) {
			return resp, nil
		}
		resp.Body.Close()
	}
	return nil, nil
}

// reject fails one message. Its answer for the SDK fails no other message.
func (s *session) reject(m outbound.Message, status int, body []byte, e *mcpbridge.Error) *http.Response {
	m.Exchange.Refused(e)
	s.Discovery.Refused(m.Method, e)
	if !m.IsCall() {
		// After a refused notification the SDK would end the session, with all its calls.
		return outbound.Respond(m.Request, http.StatusAccepted, "", nil)
	}
	told := rpc.Error{Message: e.Detail}
	if said := rpc.Parse(body).Error; said != nil && m.Method == rpc.MethodDiscover && said.Code == mcp.CodeUnsupportedProtocolVersion {
		told.Code, told.Data = said.Code, said.Data // the SDK finds another version in it
	}
	return outbound.Respond(m.Request, status, outbound.TypeJSON, rpc.Refusal(m.ID, told))
}

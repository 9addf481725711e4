package streamable

import (
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// refused handles everything but a 2xx, over which the SDK may end the session (go-sdk#683).
func (s *session) refused(m outbound.Message, resp *http.Response) (*http.Response, error) {
	e, body := s.judge(m.Request, resp, m.ID)
	if e.Session == mcpbridge.Gone && s.fresh.Load() && m.Exchange.As == "" {
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
	if outbound.IsMoved(resp.StatusCode) { // the call would run elsewhere, if at all
		e.Sent = m.Exchange.WasAccepted()
	}
	return s.reject(m, resp.StatusCode, body, e), nil
}

// untilKnown sends a request again that was refused because the server does not know a
// session which it has just opened. It returns the first other answer, or nil.
func (s *session) untilKnown(req *http.Request) (*http.Response, error) {
	for range wire.WhileFresh(req.Context()) {
		resp, err := s.out.Send(outbound.Again(req))
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

// reject fails one message, and answers the SDK in a way that fails no other.
func (s *session) reject(m outbound.Message, status int, body []byte, e *mcpbridge.Error) *http.Response {
	m.Exchange.Refused(e)
	s.Discovery.Refused(m.Method, e)
	if !m.IsCall() {
		// A refused notification must not end the session of those who wait.
		return outbound.Respond(m.Request, http.StatusAccepted, "", nil)
	}
	told := rpc.Error{Message: e.Detail}
	if said := rpc.Parse(body).Error; said != nil && m.Method == rpc.MethodDiscover && said.Code == mcp.CodeUnsupportedProtocolVersion {
		told.Code, told.Data = said.Code, said.Data // the SDK finds in it which version to ask for instead
	}
	return outbound.Respond(m.Request, status, outbound.TypeJSON, rpc.Refusal(m.ID, told))
}

package streamable

import (
	"errors"
	"net/http"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// maxResumptions bounds how often the answer to one call is resumed. It
// is below the SDK's own bound, at which the SDK ends the whole session.
const maxResumptions = 3

// saysNoStream reports whether a server that refuses a request for a stream with this status will always refuse it. With
// another status it may have no stream at the moment, or require other credentials.
func saysNoStream(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusRequestTimeout,
		http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status < 500 || status == http.StatusNotImplemented
}

// resumeAnswer resumes the stream with the answer to a call, after it broke off. The server has accepted the call, so that
// a refusal of this request proves nothing about it: the call is lost. After a refusal the SDK would end the session.
// Instead, it gets an event that fails the call.
func (s *session) resumeAnswer(req *http.Request) (*http.Response, error) {
	ex := wire.ExchangeOf(req.Context())
	attempts, known := ex.Resumes()
	instead := func(e *mcpbridge.Error) *http.Response {
		event := "data: " + string(rpc.Failure(ex.MessageID(), 0, e.Detail)) + "\n\n"
		return outbound.Respond(req, http.StatusOK, outbound.TypeSSE, []byte(event))
	}
	if known != nil { // another attempt would be refused as well
		return instead(known), nil
	}
	lost := func(e *mcpbridge.Error) *http.Response {
		ex.BrokeOff(e)
		return instead(e)
	}
	resp, err := s.out.Send(req)
	if err == nil {
		s.noteResponse(req, resp)
	}
	final := attempts >= maxResumptions
	switch {
	case err == nil && resp.StatusCode == http.StatusOK && attempts <= maxResumptions:
		resp.Body = s.answerStream(resp.Body, ex, false)
		return resp, nil
	case err == nil && resp.StatusCode == http.StatusOK:
		resp.Body.Close()
		err = errors.New("it broke off again and again")
	case err == nil:
		e, _ := s.judge(req, resp, nil)
		if e.Session == mcpbridge.Gone {
			s.Expire(e)
			return lost(s.lostToExpiry()), nil
		}
		err, final = e, final || saysNoStream(resp.StatusCode)
	case req.Context().Err() != nil:
		return nil, err
	}
	if final {
		return lost(&mcpbridge.Error{Session: mcpbridge.Broken, Detail: "its answer broke off and could not be resumed: " + redact.Describe(err, s.Secrets()...)}), nil
	}
	return nil, err
}

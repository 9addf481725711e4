package streamable

import (
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// tooLarge fails the call whose response is over the limit, and returns the event for the SDK. own is the exchange that has
// opened the stream, or nil.
func (s *session) tooLarge(own *wire.Exchange, large rpc.Large) []byte {
	number, isOurs := s.answers.IDs.Number(large.ID)
	if !isOurs {
		return nil
	}
	id, _ := jsonrpc.MakeID(float64(number))
	ex := waiting{own: own, s: s}.ExchangeFor(id)
	if ex == nil {
		return nil
	}
	return s.failTooLarge(ex)
}

// OnLarge also fails the call that the stream answers over an event that may be its response.
func (a *answerStream) OnLarge(large rpc.Large) []byte {
	if large.MayAnswer && !a.extra && !a.ex.IsAnswered() {
		return a.s.failTooLarge(a.ex)
	}
	return a.s.tooLarge(a.ex, large)
}

// OnLarge fails the call whose response is over the limit.
func (st *stream) OnLarge(large rpc.Large) []byte { return st.s.tooLarge(st.own, large) }

// failTooLarge fails a call whose response is over the limit, and returns the event for the SDK.
func (s *session) failTooLarge(ex *wire.Exchange) []byte {
	e := &mcpbridge.Error{Class: mcpbridge.Protocol, Sent: true, Detail: wire.TooLarge(s.client.Config)}
	ex.Unread(e)
	return fmt.Appendf(nil, "data: %s\n\n", rpc.Failure(ex.MessageID(), 0, e.Detail))
}

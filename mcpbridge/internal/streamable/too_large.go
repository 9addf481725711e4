package streamable

import (
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// tooLarge returns the TooLarge of a stream that may bring the responses to several calls. It fails the call whose response is
// over the limit. own is the exchange that has opened the stream, or nil.
func (s *session) tooLarge(own *wire.Exchange) func(rpc.Large) []byte {
	return func(large rpc.Large) []byte {
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
}

// ownTooLarge returns the TooLarge of a stream that answers one call. It also fails that call over an event that may be its
// response.
func (s *session) ownTooLarge(own *wire.Exchange) func(rpc.Large) []byte {
	known := s.tooLarge(own)
	return func(large rpc.Large) []byte {
		if large.MayAnswer && !own.IsAnswered() {
			return s.failTooLarge(own)
		}
		return known(large)
	}
}

// failTooLarge fails a call whose response is over the limit, and returns the event for the SDK.
func (s *session) failTooLarge(ex *wire.Exchange) []byte {
	e := &mcpbridge.Error{Class: mcpbridge.Protocol, Sent: true, Detail: wire.TooLarge(s.client.Config)}
	ex.Unread(e)
	return fmt.Appendf(nil, "data: %s\n\n", rpc.Failure(ex.MessageID(), 0, e.Detail))
}

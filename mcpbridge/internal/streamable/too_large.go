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
func (s *session) tooLarge(own *wire.Exchange) func(jsonrpc.ID) []byte {
	return func(id jsonrpc.ID) []byte {
		number, isOurs := s.answers.IDs.Number(id)
		if !isOurs {
			return nil
		}
		id, _ = jsonrpc.MakeID(float64(number))
		ex := waiting{own: own, s: s}.ExchangeFor(id)
		if ex == nil {
			return nil
		}
		e := &mcpbridge.Error{Class: mcpbridge.Protocol, Sent: true, Detail: wire.TooLarge(s.client.Config)}
		ex.Refused(e)
		return fmt.Appendf(nil, "data: %s\n\n", rpc.Failure(ex.MessageID(), 0, e.Detail))
	}
}

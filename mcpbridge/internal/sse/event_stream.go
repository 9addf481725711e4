package sse

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
)

// eventStream is the body of the one stream of a session. The SDK reads from it the URL of the endpoint, once, and
// messages. After any other event, such as a heartbeat, or data that is no message, the SDK would end the session with all
// its calls (go-sdk#637). So the SDK does not get them.
type eventStream struct {
	io.ReadCloser
	rpc.EventBuffer
	pauses outbound.Pauses

	limit  int
	named  bool  // the first event with data, which names the endpoint, has come
	end    error // of the stream; nil before
	signs  signs
	unread func(jsonrpc.ID) *jsonrpc.Response // see newEventStream
}

// signs are what others learn from a stream.
type signs struct {
	isMute  *atomic.Bool // nothing has come
	endless *atomic.Bool // the stream was ended at an event that is too large to be skipped
}

// newEventStream returns the events of a body. Each may have limit bytes, but for those of messages, which are skipped: unread
// returns the response in place of one that is too large, or nil if no request waits for it.
func newEventStream(body io.ReadCloser, limit int, signs signs, unread func(jsonrpc.ID) *jsonrpc.Response) *eventStream {
	return &eventStream{ReadCloser: body, limit: limit, signs: signs, unread: unread}
}

// Read reads whole events.
func (s *eventStream) Read(p []byte) (int, error) {
	for !s.Ready() {
		if s.end != nil {
			return 0, s.end
		}
		data, isPause, err := s.pauses.Read(s.ReadCloser, &s.EventBuffer, p)
		if len(data) > 0 {
			s.signs.isMute.Store(false)
		}
		switch {
		case isPause:
			s.EndEvent(s.limit, s)
		case !s.Feed(data, s.limit, s):
			s.signs.endless.Store(true)
			s.end = outbound.ErrTooLarge
		case err != nil:
			s.end = err
			s.Finish(errors.Is(err, io.EOF), s)
		}
	}
	return s.Next(p), nil
}

// OnEvent drops what the SDK cannot read.
func (s *eventStream) OnEvent(e rpc.Event) []byte {
	switch {
	case len(e.Data) == 0:
	case !s.named: // if this does not name the endpoint, the SDK says so
		s.named = true
		return e.Lines
	case e.IsMessage():
		if msg, err := rpc.Decode(e.Data); err == nil {
			return e.With(msg.Readable(e.Data))
		}
	}
	return nil
}

// OnLarge fails the call whose response is too large.
func (s *eventStream) OnLarge(large rpc.Large) []byte {
	resp := s.unread(large.ID)
	if resp == nil {
		return nil
	}
	data, _ := jsonrpc.EncodeMessage(resp)
	return fmt.Appendf(nil, "data: %s\n\n", data)
}

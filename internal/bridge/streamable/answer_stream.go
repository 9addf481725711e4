package streamable

import (
	"errors"
	"io"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcpactor/mcpactor/internal/bridge/rpc"
	"github.com/mcpactor/mcpactor/internal/bridge/wire"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// answerStream is a stream of events with the response to one request. It passes on whole
// events, with the ids of the SDK, and ends at an event that is too large. It notes a response
// that is an error: the SDK's own error for it may be that of a connection that has ended.
type answerStream struct {
	io.ReadCloser
	rpc.EventBuffer
	s  *session
	ex *wire.Exchange

	ofSession bool  // the request was one of a session
	heard     bool  // an event had data
	resumable bool  // an event had an id
	taken     bool  // the result has come, and is not for the SDK
	end       error // what follows the events that came; nil before the end
	closed    bool
}

// answerStream returns the body of a response that answers an exchange by events. ofSession is true if
// the request was one of a session.
func (s *session) answerStream(body io.ReadCloser, ex *wire.Exchange, ofSession bool) io.ReadCloser {
	ex.StreamOpened(&s.habits.lingers)
	return &answerStream{ReadCloser: body, s: s, ex: ex, ofSession: ofSession}
}

// Read reads whole events.
func (a *answerStream) Read(p []byte) (int, error) {
	limit := wire.MaxResult(a.s.client.Config)
	for !a.Ready() {
		if a.taken {
			return 0, io.EOF
		}
		if a.end != nil {
			return 0, a.end // the SDK drains what it has given up
		}
		n, err := a.ReadCloser.Read(p)
		switch {
		case !a.Feed(p[:n], limit, a):
			a.ex.Refused(&mcpbridge.Error{Class: mcpbridge.Protocol, Sent: true, Detail: wire.TooLarge(a.s.client.Config)})
			a.end = io.ErrUnexpectedEOF
		case err != nil:
			a.end = err
			a.Finish(errors.Is(err, io.EOF), a) // the SDK takes the last event as if it were whole
			if errors.Is(err, io.EOF) && !a.heard && !a.resumable {
				a.ex.Refused(&mcpbridge.Error{
					Class: mcpbridge.Lost, Sent: true, Detail: "the answer ended without a response",
					Status: http.StatusOK, Doubt: a.ofSession,
				})
			}
		}
	}
	return a.Next(p), nil
}

// Close ends the stream. If its result was taken, it reads the rest first, so that its connection
// can be used again: the SDK does so with what it reads itself.
func (a *answerStream) Close() error {
	if a.taken && a.end == nil {
		io.Copy(io.Discard, a.ReadCloser) //nolint:errcheck // nobody reads it
	}
	err := a.ReadCloser.Close()
	if !a.closed {
		a.closed = true
		a.ex.StreamClosed()
	}
	return err
}

// OnEvent reads an event as a JSON body is read. Nothing is read after the response.
func (a *answerStream) OnEvent(e rpc.Event) []byte {
	if a.taken {
		return nil
	}
	isMessage := e.IsMessage()
	a.heard = a.heard || isMessage && e.Data != nil
	lines := e.Lines
	if isMessage && len(e.Data) > 0 {
		lines = a.read(e)
	}
	a.resumable = a.resumable || len(e.ID) > 0 && !a.taken
	return lines
}

// read reads the message in an event, and returns the event for the SDK.
func (a *answerStream) read(e rpc.Event) []byte {
	id := a.ex.MessageID()
	msg, err := a.s.answers.Decode(e.Data, id)
	switch {
	case err != nil && rpc.HasID(id):
		refusal := &mcpbridge.Error{Class: mcpbridge.Protocol, Sent: true, Detail: "an event of the answer is no JSON-RPC message", Status: http.StatusOK, Doubt: true}
		a.ex.Refused(refusal)
		return e.With(rpc.Failure(id, 0, refusal.Detail))
	case err != nil:
		return e.Lines
	}
	if req, ok := msg.Message.(*jsonrpc.Request); ok && req.IsCall() && rpc.IsQuestion(req.Method) {
		return e.With(a.s.Questions.Mark(e.Data, a.ex))
	}
	switch a.s.answers.Read(msg.Message, a.ex) {
	case wire.Stray:
		return e.With(nil) // with its id, so that the stream is resumed after it
	case wire.Passed:
		return e.With(msg.Restored(e.Data))
	}
	a.ex.OwnResult()
	a.taken = true
	if !a.resumable {
		return nil // the SDK takes the end of the stream for the end of the call
	}
	return e.With(rpc.Failure(id, 0, "the result was taken"))
}

package streamable

import (
	"errors"
	"io"
	"net/http"

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

// Close ends the stream.
func (a *answerStream) Close() error {
	err := a.ReadCloser.Close()
	if !a.closed {
		a.closed = true
		a.ex.StreamClosed()
	}
	return err
}

// OnLine notes whether the stream can be resumed.
func (a *answerStream) OnLine(line []byte) {
	if field, value := rpc.FieldOf(line); field == "id" && value != "" {
		a.resumable = true
	}
}

// OnEvent handles an event as a JSON body is handled, and reports progress.
func (a *answerStream) OnEvent(event []byte) []byte {
	if !rpc.IsMessage(event) {
		return event
	}
	a.heard = a.heard || rpc.HasData(event)
	a.s.Progress.NotifyEvent(event)
	id := a.ex.MessageID()
	event, content := a.s.ids.RestoreEvent(event, id)
	switch {
	case content == rpc.ContentError:
		if resp := rpc.ResponseOf(rpc.DataOf(event)); resp != nil && resp.ID == rpc.IDOf(id) {
			a.ex.Answered(resp.Error)
		}
	case content == rpc.ContentNonsense && rpc.HasID(id):
		refusal := &mcpbridge.Error{Class: mcpbridge.Protocol, Sent: true, Detail: "an event of the answer is no JSON-RPC message", Status: http.StatusOK, Doubt: true}
		a.ex.Refused(refusal)
		event = rpc.WithData(event, rpc.Failure(id, 0, refusal.Detail))
	}
	return event
}

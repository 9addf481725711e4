package streamable

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// resumeAfter is the delay before an answer that broke off is resumed, unless the server names another.
const resumeAfter = 100 * time.Millisecond

// answerStream is a stream of events with the response to one request. It passes on whole
// events, with the ids of the SDK, and skips an event that is too large. It notes a response
// that is an error, because the SDK may return another error in its place, about the end of the connection.
type answerStream struct {
	io.ReadCloser
	rpc.EventBuffer
	pauses outbound.Pauses

	s  *session
	ex *wire.Exchange

	ofSession bool   // the request was one of a session
	extra     bool   // it is an [extraStream]
	batch     bool   // it was the body of one answer
	heard     bool   // an event had data
	resumable bool   // an event had an id
	last      []byte // the last id
	paced     bool   // an event had a delay for resuming
	taken     bool   // the exchange has taken the result
	end       error  // of the stream; nil before it has ended
	closed    bool
}

// answerStream returns the body of a response that answers an exchange by events. ofSession is true if
// the request was one of a session.
func (s *session) answerStream(body io.ReadCloser, ex *wire.Exchange, ofSession bool) *answerStream {
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
			return 0, a.end // the SDK may read on after the end
		}
		data, isPause, err := a.pauses.Read(a.ReadCloser, &a.EventBuffer, p)
		switch {
		case isPause:
			a.EndEvent(limit, a)
			a.endIfAnswered()
		case !a.Feed(data, limit, a):
			a.ex.Refused(&mcpbridge.Error{Class: mcpbridge.Protocol, Sent: true, Detail: wire.TooLarge(a.s.client.Config)})
			a.end = io.ErrUnexpectedEOF
		case err != nil:
			if a.holdsResponse() {
				err = io.EOF // however the stream has ended
			}
			if a.end = err; !errors.Is(err, io.EOF) {
				a.DropPartial()
			}
			a.Finish(true, a) // the SDK accepts a last event without the empty line
			a.ended()
		}
	}
	return a.Next(p), nil
}

// endIfAnswered ends the stream after the response. A server that has not ended the event may leave the stream open.
func (a *answerStream) endIfAnswered() {
	if a.taken || a.ex.IsAnswered() {
		a.ReadCloser.Close()
		a.end = io.EOF
	}
}

// holdsResponse reports whether the unfinished event holds the response to the exchange. What follows a whole response can
// only be another field of the event.
func (a *answerStream) holdsResponse() bool {
	e := a.Unfinished()
	return e.IsMessage() && len(e.Data) > 0 && a.s.answers.IsResponse(e.Data, a.ex.MessageID())
}

// ended notes that the stream has ended. If it is resumable, the SDK resumes it, and the response may also come on another
// stream of the session.
func (a *answerStream) ended() {
	switch {
	case a.taken || a.ex.IsAnswered():
	case a.resumable:
		if !a.paced { // by default the SDK waits for a second or two
			a.Feed(fmt.Appendf(nil, "id: %s\nretry: %d\n\n", a.last, resumeAfter.Milliseconds()), wire.MaxResult(a.s.client.Config), a)
		}
		a.s.brokeOff(a.ex)
	case errors.Is(a.end, io.EOF) && (!a.heard || a.batch):
		a.ex.Refused(&mcpbridge.Error{
			Class: mcpbridge.Lost, Sent: true, Detail: "the answer ended without a response",
			Status: http.StatusOK, Doubt: a.ofSession,
		})
	}
}

// Close ends the stream. If the result was taken, Close first reads the stream to its end, as the SDK would do, so that
// the HTTP connection can be used again.
func (a *answerStream) Close() error {
	if a.extra {
		return a.ReadCloser.Close()
	}
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

// OnEvent reads an event. It drops all events after the response.
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
	if len(e.ID) > 0 && !a.taken {
		a.resumable, a.last = true, append(a.last[:0], e.ID...)
	}
	a.paced = a.paced || e.Retry != nil
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
	if req, ok := msg.Message.(*jsonrpc.Request); ok {
		switch admitted, err := a.s.admit(a.ex, req); {
		case errors.Is(err, wire.ErrUntaken):
			refusal := &mcpbridge.Error{Class: mcpbridge.Protocol, Sent: true, Detail: err.Error()}
			a.ex.Refused(refusal)
			return e.With(rpc.Failure(id, 0, refusal.Detail))
		case !admitted:
			return e.With(nil)
		}
		e = a.s.keep(e, req)
		switch {
		case req.IsCall() && rpc.IsQuestion(req.Method):
			return e.With(a.s.Questions.Mark(e.Data, a.ex))
		case req.Method == rpc.MethodLog:
			e = rpc.ParseEvent(e.With(a.s.Questions.MarkLog(e.Data, a.ex)))
		}
	}
	return a.s.readEvent(e, msg, a.ex, a)
}

// keep returns an event with a message of a server, whose parameters are kept if the configuration says so.
func (s *session) keep(e rpc.Event, req *jsonrpc.Request) rpc.Event {
	if !s.client.Config.Verbatim || !rpc.IsForOthers(req.Method) {
		return e
	}
	return rpc.ParseEvent(e.With(s.Questions.Keep(e.Data)))
}

// readEvent reads the message in an event of a stream, and returns the event for the SDK. own is the
// exchange whose response the stream brings, or nil. answers is that stream, or nil.
func (s *session) readEvent(e rpc.Event, msg rpc.Decoded, own *wire.Exchange, answers *answerStream) []byte {
	use, ex := s.answers.Read(msg.Message, waiting{own, s, e.Data})
	switch use {
	case wire.Stray, wire.Unawaited:
		return e.With(nil) // the event keeps its id, so that a resumed stream does not repeat it
	case wire.Passed:
		return s.withBarrier(e.With(msg.Restored(e.Data)))
	}
	ex.OwnResult()
	if answers != nil && ex == own {
		answers.taken = true
		if !answers.resumable {
			return nil // the stream ends now, and the SDK fails the call
		}
	}
	return e.With(rpc.Failure(ex.MessageID(), 0, "the result was taken"))
}

// waiting finds the exchange that waits for a response on a stream of a session.
type waiting struct {
	own  *wire.Exchange // whose response the stream brings, or nil
	s    *session
	data []byte // the response; nil if it is too large
}

// ExchangeFor returns the exchange that waits for a response.
func (w waiting) ExchangeFor(id jsonrpc.ID) *wire.Exchange {
	if ex := w.own.ExchangeFor(id); ex != nil {
		return ex
	}
	return w.s.awaited.take(id, w.data, wire.MaxResult(w.s.client.Config))
}

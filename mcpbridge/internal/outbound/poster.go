package outbound

import (
	"context"
	"net/http"
	"sync"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/transport"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// Message is a message of the SDK.
type Message struct {
	rpc.Envelope                // with the id of the SDK
	Request      *http.Request  // that carries it
	Exchange     *wire.Exchange // of its operation, or of the message alone
	IsHandshake  bool
}

// Poster sends the messages of the SDK over one connection, each in a POST.
type Poster struct {
	Session *transport.Session
	// Deliver sends one message.
	Deliver func(Message) (*http.Response, error)
	// Initialized sends notifications/initialized.
	Initialized func(*http.Request) error

	cancellations, answers turns
}

// Post sends a message. Its IsHandshake need not be set.
func (p *Poster) Post(m Message) (*http.Response, error) {
	m.IsHandshake = !p.Session.IsOpen.Load() && !m.IsAnswer()
	switch {
	case m.IsHandshake:
		p.Session.Discovery.Asked(m.Method)
		m.Exchange.Restart() // only the last request of a handshake counts
		if m.Method == rpc.MethodInitialized {
			return initialized(p.Session.Cut, m.Request, p.Initialized), nil
		}
	case !m.IsCall():
		// A notification that cancels a call is sent in the context of the call. It gets an exchange of
		// its own, so that neither notes anything about the other.
		life := wire.WithoutValues(m.Request.Context())
		if !wire.MayRefresh(m.Request.Context()) { // a check is cancelled
			life = wire.WithoutRefresh(life)
		}
		m.Exchange = wire.NewExchange(life, nil, true)
		m.Request = m.Request.WithContext(m.Exchange)
	}
	switch {
	case m.IsAnswer():
		return p.answer(m), nil
	case m.Method == rpc.MethodCancelled && !m.IsHandshake:
		release, err := p.cancellations.wait(m.Exchange)
		if err != nil {
			return nil, err
		}
		defer release()
	}
	return p.Deliver(m)
}

// answer sends the answer to a request of the server, for [wire.AnswerTime] at most. The SDK gets a 202
// in any case, because it could end the session after an error.
func (p *Poster) answer(m Message) *http.Response {
	id := rpc.ParseID(m.ID)
	if p.Session.Backpressure.IsBarrier(id) {
		return Respond(m.Request, http.StatusAccepted, "", nil)
	}
	taken, done := false, p.Session.Backpressure.Answering(id)
	defer func() { done(taken) }()
	ctx, cancel := context.WithTimeout(m.Request.Context(), wire.AnswerTime)
	defer cancel()
	if release, err := p.answers.wait(ctx); err == nil {
		defer release()
		m.Request = m.Request.WithContext(ctx)
		if resp, err := p.Deliver(m); err == nil {
			resp.Body.Close()
			taken = true
		}
	}
	return Respond(m.Request, http.StatusAccepted, "", nil)
}

// ReportRefusal reports a refusal of the message that is about its session. expire reports that the server
// does not know the session.
func (m Message) ReportRefusal(session *transport.Session, e *mcpbridge.Error, expire func(*mcpbridge.Error)) {
	switch {
	case e.Session != mcpbridge.Gone:
	case !wire.MayRefresh(m.Request.Context()): // it is a check, whose caller judges the refusal
	case m.IsCall() || m.IsAnswer():
		expire(e)
	default: // a server without such a notification may answer it with 404
		session.Watcher.Doubt(m.Method, e)
	}
}

// maxTurns bounds how many messages of a kind one connection sends at a time, if no call waits for
// them. To a server that hangs, each of them holds an HTTP connection.
const maxTurns = 16

// turns gives turns to the messages of one kind. The zero value is ready for use.
type turns struct {
	used  sync.Once
	turns chan struct{} // made with the first message: most sessions send none
}

// wait waits for a turn, which ends with release.
func (t *turns) wait(ctx context.Context) (release func(), err error) {
	t.used.Do(func() { t.turns = make(chan struct{}, maxTurns) })
	select {
	case t.turns <- struct{}{}:
		return func() { <-t.turns }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

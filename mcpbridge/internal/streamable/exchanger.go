package streamable

import (
	"errors"
	"net/http"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// exchanger is the http.RoundTripper of the SDK for one connection. It notes in the exchange of
// each operation what happened to its requests, and hands the SDK answers in place of refusals,
// so that a refusal fails its own call and no other. The design is described in design.go.
type exchanger struct {
	standalone
	cancellations, answering outbound.Turns
}

// RoundTrip does one exchange.
func (x *exchanger) RoundTrip(req *http.Request) (*http.Response, error) {
	if isStandalone(req) {
		x.note(req)
		return x.open(req), nil // the stream ends with the session by itself
	}
	return outbound.UntilCut(x.Cut, req, x.exchange)
}

func (x *exchanger) exchange(req *http.Request) (*http.Response, error) {
	x.note(req)
	switch req.Method {
	case http.MethodDelete:
		return outbound.Respond(req, http.StatusOK, "", nil), nil // EndSession sends its own
	case http.MethodGet:
		return x.resumeAnswer(req)
	}
	return x.post(req)
}

// post sends one message of the SDK.
func (x *exchanger) post(req *http.Request) (*http.Response, error) {
	m := message{ex: wire.ExchangeOf(req.Context())}
	m.Envelope, m.req = x.answers.IDs.Renumber(req, m.ex.Params())
	m.isHandshake = !x.IsOpen.Load() && !m.IsAnswer()
	switch {
	case m.isHandshake:
		x.Discovery.Asked(m.Method)
		m.ex.Restart() // what counts is what became of the last request
		if resp := x.attach(m); resp != nil {
			return resp, nil
		}
		if m.Method == rpc.MethodInitialized {
			return outbound.Initialized(x.Cut, m.req, x.initialized), nil
		}
	case !m.IsCall():
		// The exchange of a call records nothing of the notification that the call is cancelled,
		// and the connection of the notification nothing of the call.
		life := wire.WithoutValues(m.req.Context())
		if !wire.MayRefresh(m.req.Context()) { // a question is cancelled
			life = wire.WithoutRefresh(life)
		}
		m.ex = wire.NewExchange(life, nil, true)
		m.req = m.req.WithContext(m.ex)
	}
	switch {
	case m.IsAnswer():
		return x.answering.Answer(m.req, rpc.ParseID(m.ID), &x.Requests, func(req *http.Request) (*http.Response, error) {
			m.req = req
			return x.deliver(m)
		}), nil
	case m.Method == rpc.MethodCancelled && !m.isHandshake:
		release, err := x.cancellations.Wait(m.ex)
		if err != nil {
			return nil, err
		}
		defer release()
	}
	return x.deliver(m)
}

// deliver sends one message, whose turn it is.
func (x *exchanger) deliver(m message) (*http.Response, error) {
	if m.ex.As != "" {
		m.req.Header.Set(outbound.HeaderSession, m.ex.As)
	}
	m.ex.Message(m.ID)
	if note := m.ex.IDNote(); note != nil && m.IsCall() {
		sent, _ := rpc.Scan(rpc.BodyOf(m.req)) // m has the id of the SDK
		note(string(sent.ID))
	}
	if m.Method == rpc.MethodListen {
		return x.subscribe(m), nil
	}
	resp, err := x.send(m)
	if err != nil {
		return x.notAnswered(m, err)
	}
	if m.isHandshake {
		x.Discovery.Answered()
	}
	if !is2xx(resp) {
		return x.refused(m, resp)
	}
	return x.accepted(m, resp), nil
}

func (x *exchanger) send(m message) (*http.Response, error) {
	if m.Method == rpc.MethodInitialize {
		return x.initialize(m.req)
	}
	return x.out.Send(m.req)
}

// notAnswered handles an error in place of an answer. An error of ours fails the message alone.
func (x *exchanger) notAnswered(m message, err error) (*http.Response, error) {
	var ours *mcpbridge.Error
	if errors.As(err, &ours) {
		return x.reject(m, http.StatusInternalServerError, nil, ours), nil
	}
	return nil, err
}

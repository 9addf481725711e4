package streamable

import (
	"errors"
	"net/http"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// roundTripper is the http.RoundTripper of the SDK for one connection. It notes in the
// [wire.Exchange] of each operation what happened to its requests. In place of a refusal it gives the
// SDK an answer that fails one call and no other. See design.go of package bridge.
type roundTripper struct {
	standalone
	cancellations, answering outbound.Turns
}

// RoundTrip sends a request of the SDK, and returns the answer, or another in its place.
func (rt *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if isStandalone(req) {
		rt.note(req)
		return rt.open(req), nil // the stream ends with the session by itself
	}
	return outbound.UntilCut(rt.Cut, req, rt.roundTrip)
}

func (rt *roundTripper) roundTrip(req *http.Request) (*http.Response, error) {
	rt.note(req)
	switch req.Method {
	case http.MethodDelete:
		return outbound.Respond(req, http.StatusOK, "", nil), nil // EndSession sends its own
	case http.MethodGet:
		return rt.resumeAnswer(req)
	}
	return rt.post(req)
}

// post sends one message of the SDK.
func (rt *roundTripper) post(req *http.Request) (*http.Response, error) {
	m := message{ex: wire.ExchangeOf(req.Context())}
	m.Envelope, m.req = rt.answers.IDs.Renumber(req, m.ex.Params())
	m.isHandshake = !rt.IsOpen.Load() && !m.IsAnswer()
	switch {
	case m.isHandshake:
		rt.Discovery.Asked(m.Method)
		m.ex.Restart() // what counts is what became of the last request
		if resp := rt.attach(m); resp != nil {
			return resp, nil
		}
		if m.Method == rpc.MethodInitialized {
			return outbound.Initialized(rt.Cut, m.req, rt.initialized), nil
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
		return rt.answering.Answer(m.req, rpc.ParseID(m.ID), &rt.Requests, func(req *http.Request) (*http.Response, error) {
			m.req = req
			return rt.deliver(m)
		}), nil
	case m.Method == rpc.MethodCancelled && !m.isHandshake:
		release, err := rt.cancellations.Wait(m.ex)
		if err != nil {
			return nil, err
		}
		defer release()
	}
	return rt.deliver(m)
}

// deliver sends one message, whose turn it is.
func (rt *roundTripper) deliver(m message) (*http.Response, error) {
	if m.ex.As != "" {
		m.req.Header.Set(outbound.HeaderSession, m.ex.As)
	}
	m.ex.Message(m.ID)
	if note := m.ex.IDNote(); note != nil && m.IsCall() {
		sent, _ := rpc.Scan(rpc.BodyOf(m.req)) // m has the id of the SDK
		note(string(sent.ID))
	}
	if m.Method == rpc.MethodListen {
		return rt.subscribe(m), nil
	}
	resp, err := rt.send(m)
	if err != nil {
		return rt.notAnswered(m, err)
	}
	if m.isHandshake {
		rt.Discovery.Answered()
	}
	if !is2xx(resp) {
		return rt.refused(m, resp)
	}
	return rt.accepted(m, resp), nil
}

func (rt *roundTripper) send(m message) (*http.Response, error) {
	if m.Method == rpc.MethodInitialize {
		return rt.initialize(m.req)
	}
	return rt.out.Send(m.req)
}

// notAnswered handles an error in place of an answer. An error of ours fails the message alone.
func (rt *roundTripper) notAnswered(m message, err error) (*http.Response, error) {
	var ours *mcpbridge.Error
	if errors.As(err, &ours) {
		return rt.reject(m, http.StatusInternalServerError, nil, ours), nil
	}
	return nil, err
}

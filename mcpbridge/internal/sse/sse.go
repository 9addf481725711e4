// Package sse is the transport over HTTP+SSE, of protocol 2024-11-05: requests are POSTs, and
// their responses come over one stream.
package sse

import (
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/tap"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/transport"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// Server is the [transport.Server] for [mcpbridge.TransportSSE].
type Server struct{ *outbound.Client }

// New returns the way to reach a server over HTTP+SSE.
func New(config *mcpbridge.Server) transport.Server { return NewWith(outbound.NewClient(config)) }

// NewWith is New for a server that has a client.
func NewWith(client *outbound.Client) transport.Server { return &Server{client} }

// HasSessions returns false: a session ends with its stream.
func (*Server) HasSessions() bool { return false }

// SpeaksOldProtocolsOnly returns true.
func (*Server) SpeaksOldProtocolsOnly() bool { return true }

// Older returns nil.
func (*Server) Older() transport.Server { return nil }

// Forget does nothing.
func (*Server) Forget() {}

// Connect returns a connection that sends nothing before the SDK does.
func (s *Server) Connect(session *transport.Session) (transport.Conn, error) {
	rt := &roundTripper{session: session, client: s.Client, out: outbound.NewSender(s.Client, session)}
	sdk := &mcp.SSEClientTransport{Endpoint: s.Config.URL, HTTPClient: outbound.NoRedirects(rt), MaxEventSize: wire.SDKLimit(s.Config)}
	none := new(tap.Input) // nothing goes through it: the roundTripper notes when a request is sent
	return &conn{tap.New(s.Config, session, sdk, none), rt}, nil
}

// conn is the [transport.Conn]. The tap sees the responses, and the roundTripper the refusals.
type conn struct {
	*tap.Tap
	rt *roundTripper
}

// Secrets returns what no text about the session may contain.
func (c *conn) Secrets() []string { return c.rt.out.Secrets() }

// Expire notes that the server does not know the session any more.
func (c *conn) Expire(e *mcpbridge.Error) { c.rt.expire(e) }

// roundTripper is the http.RoundTripper of the SDK for one connection. It notes in the
// [wire.Exchange] of each operation what happened to its POST.
type roundTripper struct {
	session *transport.Session
	client  *outbound.Client
	out     *outbound.Sender
	expired atomic.Bool

	cancellations, answering outbound.Turns
}

// RoundTrip sends a message, or opens the stream.
func (rt *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	do := rt.post
	if req.Method == http.MethodGet {
		do = rt.connect
	}
	return outbound.UntilCut(rt.session.Cut, req, do)
}

// connect opens the stream.
func (rt *roundTripper) connect(req *http.Request) (*http.Response, error) {
	rt.session.IsMute.Store(true)
	resp, err := rt.out.Send(req)
	var e *mcpbridge.Error
	switch {
	case errors.As(err, &e):
	case err == nil && resp.StatusCode != http.StatusOK:
		e, _ = rt.judge(req, resp, nil)
	case err == nil && outbound.MediaType(resp) == "text/html": // else the SDK would look for events in it
		resp.Body.Close()
		e = &mcpbridge.Error{Class: mcpbridge.Protocol, Sent: true, Status: resp.StatusCode, Detail: "the answer is a web page"}
	case err == nil:
		resp.Body = &eventStream{ReadCloser: resp.Body, limit: wire.MaxResult(rt.client.Config), mute: &rt.session.IsMute}
		return resp, nil
	default:
		return nil, err
	}
	wire.ExchangeOf(req.Context()).Refused(e)
	return nil, e
}

// post sends one message. Its response, if it has one, comes over the stream.
func (rt *roundTripper) post(req *http.Request) (*http.Response, error) {
	msg, ex := rpc.Parse(rpc.BodyOf(req)), wire.ExchangeOf(req.Context())
	isHandshake := !rt.session.IsOpen.Load() && !msg.IsAnswer()
	switch {
	case isHandshake:
		rt.session.Discovery.Asked(msg.Method)
		ex.Restart() // what counts is what became of the last request
		if msg.Method == rpc.MethodInitialized {
			return outbound.Initialized(rt.session.Cut, req, rt.initialized), nil
		}
	case !msg.IsCall():
		// The exchange of a call records nothing of the notification that the call is cancelled.
		ex = wire.NewExchange(wire.WithoutValues(req.Context()), nil, true)
		req = req.WithContext(ex)
	}
	switch {
	case msg.IsAnswer():
		return rt.answering.Answer(req, rpc.ParseID(msg.ID), &rt.session.Requests, func(req *http.Request) (*http.Response, error) {
			return rt.deliver(req, msg, ex)
		}), nil
	case msg.Method == rpc.MethodCancelled && !isHandshake:
		release, err := rt.cancellations.Wait(ex)
		if err != nil {
			return nil, err
		}
		defer release()
	}
	return rt.deliver(req, msg, ex)
}

// deliver sends one message, whose turn it is.
func (rt *roundTripper) deliver(req *http.Request, msg rpc.Envelope, ex *wire.Exchange) (*http.Response, error) {
	ex.Message(msg.ID)
	resp, err := rt.out.Send(req)
	var ours *mcpbridge.Error
	switch {
	case errors.As(err, &ours):
		return rt.reject(req, http.StatusInternalServerError, nil, ex, msg, ours), nil
	case err != nil:
		return nil, err
	}
	if !rt.session.IsOpen.Load() {
		rt.session.Discovery.Answered()
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return rt.refused(req, resp, ex, msg), nil
	}
	ex.Accepted()
	return resp, nil
}

// initialized sends the notification that ends the handshake.
func (rt *roundTripper) initialized(req *http.Request) error {
	resp, err := rt.out.Send(req)
	if err == nil {
		resp.Body.Close()
	}
	return err
}

// refused handles everything but a 2xx, over which the SDK would end the session (go-sdk#723).
func (rt *roundTripper) refused(req *http.Request, resp *http.Response, ex *wire.Exchange, msg rpc.Envelope) *http.Response {
	e, body := rt.judge(req, resp, &msg)
	if e.Session == mcpbridge.Gone && wire.MayRefresh(req.Context()) { // else it answers a question, and the asker reports it
		if msg.IsCall() || msg.IsAnswer() {
			rt.expire(e)
		} else if rt.session.IsOpen.Load() { // the server may have no such notification
			rt.session.Watcher.Doubt(msg.Method, e)
		}
	}
	if outbound.IsMoved(resp.StatusCode) { // the call would run elsewhere, if at all
		e.Sent = ex.WasAccepted()
	}
	return rt.reject(req, resp.StatusCode, body, ex, msg, e)
}

// reject fails one message.
func (rt *roundTripper) reject(req *http.Request, status int, body []byte, ex *wire.Exchange, msg rpc.Envelope, e *mcpbridge.Error) *http.Response {
	ex.Refused(e)
	rt.session.Discovery.Refused(msg.Method, e)
	if !msg.IsCall() && !msg.IsAnswer() { // else the SDK would end the session
		return outbound.Respond(req, http.StatusAccepted, "", nil)
	}
	return outbound.Respond(req, status, "", body)
}

// judge reads a refusal to its end and says what it means. The URL of a POST has the session in it.
func (rt *roundTripper) judge(req *http.Request, resp *http.Response, msg *rpc.Envelope) (e *mcpbridge.Error, body []byte) {
	body = outbound.ReadRefusal(resp)
	refusal := wire.Refusal{Status: resp.StatusCode, Header: resp.Header, Body: body, OfSession: msg != nil}
	if msg != nil {
		refusal.ID, refusal.Session = msg.ID, req.URL.String()
	}
	return refusal.Judge(rt.out.Secrets()...), body
}

// expire reports once that the server does not know the session any more.
func (rt *roundTripper) expire(e *mcpbridge.Error) {
	if !rt.expired.Swap(true) && rt.session.IsOpen.Load() {
		rt.session.Watcher.Expired(e)
	}
}

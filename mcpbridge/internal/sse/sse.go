// Package sse is the transport over HTTP+SSE, of protocol 2024-11-05: requests are POSTs, and
// their responses come over one stream.
package sse

import (
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
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

// NewWith is New with an existing client.
func NewWith(client *outbound.Client) transport.Server { return &Server{client} }

// HasSessions returns false: a session ends with its stream.
func (*Server) HasSessions() bool { return false }

// SpeaksOldProtocolsOnly returns true.
func (*Server) SpeaksOldProtocolsOnly() bool { return true }

// Older returns nil.
func (*Server) Older() transport.Server { return nil }

// Forget does nothing.
func (*Server) Forget() {}

// Connect returns a connection, and sends nothing.
func (s *Server) Connect(session *transport.Session) (transport.Conn, error) {
	rt := &roundTripper{session: session, client: s.Client, out: outbound.NewSender(s.Client, session)}
	rt.poster = outbound.Poster{Session: session, Deliver: rt.deliver, Initialized: rt.initialized}
	sdk := &mcp.SSEClientTransport{Endpoint: s.Config.URL, HTTPClient: outbound.NoRedirects(rt), MaxEventSize: wire.SDKLimit(s.Config)}
	none := new(tap.Input) // nothing goes through it: the roundTripper notes when a request is sent
	t := tap.New(s.Config, session, sdk, none)
	rt.unread = t.TooLarge
	return &conn{t, rt}, nil
}

// conn is the [transport.Conn]. The tap sees the responses, and the roundTripper sees the refusals.
type conn struct {
	*tap.Tap
	rt *roundTripper
}

// Secrets returns what no text about the session may contain.
func (c *conn) Secrets() []string { return c.rt.out.Secrets() }

// DescribeEnd names an event that is too large to be skipped. The SDK only says that the stream has ended.
func (c *conn) DescribeEnd() (detail, quote string) {
	if c.rt.endless.Load() {
		return "a message does not end within 1 GiB after the limit (maxResult)", ""
	}
	return "", ""
}

// Expire notes that the session has expired.
func (c *conn) Expire(e *mcpbridge.Error) { c.rt.expire(e) }

// roundTripper is the http.RoundTripper of the SDK for one connection. It notes in the
// [wire.Exchange] of each operation what happened to its POST.
type roundTripper struct {
	session *transport.Session
	client  *outbound.Client
	out     *outbound.Sender
	expired atomic.Bool
	endless atomic.Bool // see signs
	poster  outbound.Poster
	unread  func(jsonrpc.ID) *jsonrpc.Response // see newEventStream
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
	case err == nil && outbound.MediaType(resp) == "text/html": // the SDK would look for events in it
		resp.Body.Close()
		e = &mcpbridge.Error{Class: mcpbridge.Protocol, Sent: true, Status: resp.StatusCode, Detail: "the answer is a web page"}
	case err == nil:
		resp.Body = newEventStream(resp.Body, wire.MaxResult(rt.client.Config), signs{&rt.session.IsMute, &rt.endless}, rt.unread)
		return resp, nil
	default:
		return nil, err
	}
	wire.ExchangeOf(req.Context()).Refused(e)
	return nil, e
}

// post sends a message of the SDK. The response to a call comes over the stream.
func (rt *roundTripper) post(req *http.Request) (*http.Response, error) {
	return rt.poster.Post(outbound.Message{Envelope: rpc.Parse(rpc.BodyOf(req)), Request: req, Exchange: wire.ExchangeOf(req.Context())})
}

// deliver sends one message.
func (rt *roundTripper) deliver(m outbound.Message) (*http.Response, error) {
	m.Exchange.Message(m.ID)
	resp, err := rt.out.Send(m.Request)
	var ours *mcpbridge.Error
	switch {
	case errors.As(err, &ours):
		return rt.reject(m, http.StatusInternalServerError, nil, ours), nil
	case err != nil:
		return nil, err
	}
	if !rt.session.IsOpen.Load() {
		rt.session.Discovery.Answered()
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return rt.refused(m, resp), nil
	}
	m.Exchange.Accepted()
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

// refused handles any answer but a 2xx. The SDK would end the session after it (go-sdk#723).
func (rt *roundTripper) refused(m outbound.Message, resp *http.Response) *http.Response {
	e, body := rt.judge(m.Request, resp, &m.Envelope)
	m.ReportRefusal(rt.session, e, rt.expire)
	if outbound.IsMoved(resp.StatusCode) { // the call has not run here
		e.Sent = m.Exchange.WasAccepted()
	}
	return rt.reject(m, resp.StatusCode, body, e)
}

// reject fails one message.
func (rt *roundTripper) reject(m outbound.Message, status int, body []byte, e *mcpbridge.Error) *http.Response {
	m.Exchange.Refused(e)
	rt.session.Discovery.Refused(m.Method, e)
	if !m.IsCall() && !m.IsAnswer() { // after a refused notification the SDK would end the session
		return outbound.Respond(m.Request, http.StatusAccepted, "", nil)
	}
	return outbound.Respond(m.Request, status, "", body)
}

// judge reads a refusal to its end, and returns what it means. The URL of a POST contains the session id.
func (rt *roundTripper) judge(req *http.Request, resp *http.Response, msg *rpc.Envelope) (e *mcpbridge.Error, body []byte) {
	body = outbound.ReadRefusal(resp)
	refusal := wire.Refusal{Status: resp.StatusCode, Header: resp.Header, Body: body, OfSession: msg != nil}
	if msg != nil {
		refusal.ID, refusal.Session = msg.ID, req.URL.String()
	}
	return refusal.Judge(rt.out.Secrets()...), body
}

// expire reports once that the session has expired.
func (rt *roundTripper) expire(e *mcpbridge.Error) {
	if !rt.expired.Swap(true) && rt.session.IsOpen.Load() {
		rt.session.Watcher.Expired(e)
	}
}

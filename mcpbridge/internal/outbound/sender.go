package outbound

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"

	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/hold"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/transport"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// Sender sends all requests of one session: calls, streams, resumed answers, pings, and the
// DELETE that ends the session. It follows redirects within the origin of the server's URL. It
// sends nothing to another origin, whether a redirect, an endpoint event or a hook names it.
type Sender struct {
	client  *Client
	auth    *authorizer // nil without credentials
	cookies cookies
	holds   holds
	hidden  redact.Recent // secret parts of other URLs of the server
}

// NewSender returns the sender of a session.
func NewSender(client *Client, session *transport.Session) *Sender {
	s := &Sender{client: client, holds: holds{cmp.Or(session.Holds, new(hold.Book)), client.Config, session.Identity}}
	if session.Credentials != nil {
		s.auth = &authorizer{client: client, session: session, proofs: proofs{&client.said, s}}
	}
	s.cookies.client = client
	if session.Resume != nil {
		s.cookies.restore(session.Resume.Cookies)
	}
	return s
}

// Send sends a request, and follows redirects. A redirect that is not followed is returned as the
// response, with the reason as its body. A panic of the user's code is returned as an
// [*mcpbridge.Error]: it would leave the locks of the SDK held.
func (s *Sender) Send(req *http.Request) (resp *http.Response, err error) {
	defer wire.Recover(&err)
	var via []*http.Request
	for {
		resp, err := s.authorized(req)
		if err != nil || !isRedirect(resp.StatusCode) {
			return resp, err
		}
		via = append(via, req)
		next, reason := s.client.redirected(resp, via, s.Secrets)
		resp.Body.Close()
		if next == nil {
			return notFollowed(req, resp, reason), nil
		}
		repeats(req)
		req = next
	}
}

// authorized sends a request with the credentials that there are.
func (s *Sender) authorized(req *http.Request) (*http.Response, error) {
	if s.auth == nil {
		return s.transmit(req, nil)
	}
	return s.auth.RoundTrip(req)
}

// transmit sends one request with the headers of the configuration, credentials and cookies, unless it is held. All requests pass
// here.
func (s *Sender) transmit(req *http.Request, credentials http.Header) (*http.Response, error) {
	url := s.client.URL
	switch {
	case !sameOrigin(req.URL, url):
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, &mcpbridge.Error{Class: mcpbridge.Protocol, Shared: "the server names another origin for requests", Detail: redact.Clean(fmt.Sprintf("%s names %s for requests, which is another origin: nothing is sent there",
			originOf(url), originOf(req.URL)), s.Secrets()...)}
	case req.URL.Path != url.Path || req.URL.RawQuery != url.RawQuery:
		for _, secret := range redact.OfURL(req.URL) {
			s.hidden.Add(secret, maxRecent)
		}
	}
	if err := s.holds.check(req, credentials); err != nil {
		req.Body.Close()
		return nil, err
	}
	req = s.cookies.onto(s.client.addHeaders(req, credentials))
	resp, err := s.handOver(req)
	if err != nil {
		return nil, withoutSecrets(err, s.Secrets)
	}
	s.holds.note(req, credentials, resp)
	s.cookies.take(req.URL, resp)
	return resp, nil
}

// handOver hands a request to the transport. A transport of the user may panic.
func (s *Sender) handOver(req *http.Request) (resp *http.Response, err error) {
	defer wire.Recover(&err)
	return s.client.transport.RoundTrip(req)
}

// withoutSecrets returns an error as it is, except for a panic. It removes the secrets from the text of a panic before
// that text is shortened.
func withoutSecrets(err error, secrets func() []string) error {
	var panicked *guard.Panic
	if errors.As(err, &panicked) {
		return &mcpbridge.Error{Class: mcpbridge.Internal, Sent: true, Detail: redact.Clean(panicked.Brief(), secrets()...), Err: panicked}
	}
	return err
}

// Cookies returns the cookies of the session in the form of a Cookie header, or nothing if they are in the jar of the user.
func (s *Sender) Cookies() string { return s.cookies.record() }

// Secrets returns what no text about the session may contain: the secrets of the configuration, and the credentials,
// cookies and secret parts of URLs that were sent recently.
func (s *Sender) Secrets() []string {
	all := s.cookies.sent.AppendTo(s.hidden.AppendTo(redact.OfServer(s.client.Config)))
	if s.auth == nil {
		return all
	}
	return s.client.sent.AppendTo(s.auth.sent.AppendTo(all))
}

package bridge

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/mcpbridge"

	"github.com/mcpactor/mcpactor/internal/bridge/redact"
)

// maxRedirects bounds how many redirects of one request are followed.
const maxRedirects = 10

// sender is the http.RoundTripper through which all requests of one session leave:
// calls, streams, answers that are resumed, pings, and the DELETE that ends it. It
// follows redirects within the origin of the server's URL; its [authorizer] adds the
// headers and the credentials, its [cookies] what the server has set. It sends nothing
// to another origin, whoever names that: a redirect, an endpoint event, a hook.
type sender struct {
	conn     *conn // whose it is
	auth     authorizer
	cookies  cookies
	hidden   redact.Recent // parts of other URLs of the server, to be blacked out
	identity string        // of whose credentials these are
}

// newSender returns the sender of a session that is dialed, or attached to.
func newSender(c *conn, req attempt, seen *discovery) *sender {
	s := &sender{conn: c, identity: identityOf(req.credentials)}
	s.auth = authorizer{conn: c, credentials: req.credentials, seen: seen, send: s.transmit, secrets: s.secrets}
	s.cookies.at = c.at
	if req.Resume != nil {
		s.cookies.restore(req.Resume.Cookies)
	}
	return s
}

// RoundTrip sends a request, and follows redirects. A redirect that is not followed is
// the response, with the reason as its body.
func (s *sender) RoundTrip(req *http.Request) (*http.Response, error) {
	var via []*http.Request
	for {
		resp, err := s.auth.RoundTrip(req)
		if err != nil || !isRedirect(resp.StatusCode) {
			return resp, err
		}
		via = append(via, req)
		next, reason := s.next(resp, via)
		resp.Body.Close()
		if next == nil {
			return notFollowed(req, resp, reason), nil
		}
		undone(req)
		req = next
	}
}

// isRedirect reports whether a status asks for the request, or another, to be sent
// elsewhere.
func isRedirect(status int) bool {
	return isMoved(status) || status == http.StatusFound || status == http.StatusSeeOther
}

// isMoved reports whether a status says that the request was not carried out, because
// it belongs elsewhere.
func isMoved(status int) bool {
	return status == http.StatusMovedPermanently || status == http.StatusTemporaryRedirect || status == http.StatusPermanentRedirect
}

// undone notes that a request was refused before it has done anything, and that it is
// sent again.
func undone(req *http.Request) {
	if req.Method == http.MethodPost {
		exchangeOf(req.Context()).note(func(ex *exchange) { ex.sent, ex.onWire = false, false })
	}
}

// next returns the request that follows a redirect of the last of via, or the reason
// why there is none.
func (s *sender) next(resp *http.Response, via []*http.Request) (next *http.Request, reason string) {
	req, at := via[len(via)-1], s.conn.at
	location := resp.Header.Get("Location")
	to, err := req.URL.Parse(location)
	switch {
	case location == "":
		return nil, "it does not say where to"
	case err != nil:
		return nil, "where to is malformed"
	case !sameOrigin(to, at.url):
		return nil, fmt.Sprintf("%s redirects to %s, which is another origin: nothing is sent there; set url to the address of the server itself", originOf(at.url), originOf(to))
	case !follows(req, resp.StatusCode, to):
		return nil, fmt.Sprintf("a %s is not sent again after this status: it may be a login page, or have been done", req.Method)
	case len(via) > maxRedirects:
		return nil, fmt.Sprintf("stopped after %d redirects", maxRedirects)
	}
	to.User, to.Fragment = nil, ""
	again := *req
	again.URL, again.Host, again.Header, again.Response = to, "", req.Header.Clone(), resp
	if req.Body != nil && req.Body != http.NoBody {
		if req.GetBody == nil {
			return nil, "its body cannot be sent again"
		}
		if again.Body, err = req.GetBody(); err != nil {
			return nil, "its body cannot be sent again"
		}
	}
	if client := at.HTTPClient; client != nil && client.CheckRedirect != nil {
		_, err := guard.Call(func() (none struct{}, err error) { return none, client.CheckRedirect(&again, via) })
		switch {
		case errors.Is(err, http.ErrUseLastResponse):
			return nil, "CheckRedirect of the HTTP client does not follow it"
		case err != nil:
			return nil, "CheckRedirect of the HTTP client refuses: " + redact.Describe(err, s.secrets()...)
		}
	}
	return &again, ""
}

// follows reports whether a request is sent again, as it is, after a status. What only
// reads always is. What changes something is not after 303, which says that it was
// done; nor after 302, with which many send whoever has not logged in to a page: unless
// no more than the slash at the end was wrong.
func follows(req *http.Request, status int, to *url.URL) bool {
	isSlash := strings.TrimSuffix(req.URL.Path, "/") == strings.TrimSuffix(to.Path, "/")
	return req.Method == http.MethodGet || isMoved(status) || status == http.StatusFound && isSlash
}

// notFollowed returns a redirect that says why it is one.
func notFollowed(req *http.Request, resp *http.Response, reason string) *http.Response {
	instead := answer(req, resp.StatusCode, "text/plain", []byte(reason), resp.Header)
	instead.Header.Del("Location")
	return instead
}

func sameOrigin(one, two *url.URL) bool {
	return one.Scheme == two.Scheme && one.Host == two.Host || originOf(one) == originOf(two)
}

// originOf returns the origin of a URL: scheme, host, and port where it is not the
// scheme's own.
func originOf(u *url.URL) string {
	scheme, host, port := strings.ToLower(u.Scheme), strings.ToLower(u.Hostname()), u.Port()
	if port != "" && port != map[string]string{"http": "80", "https": "443"}[scheme] {
		return scheme + "://" + net.JoinHostPort(host, port)
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return scheme + "://" + host
}

// transmit sends one request, with cookies. It is the only way out.
func (s *sender) transmit(req *http.Request) (*http.Response, error) {
	at := s.conn.at
	switch {
	case !sameOrigin(req.URL, at.url):
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, &mcpbridge.Error{Class: mcpbridge.Protocol, Detail: redact.Clean(fmt.Sprintf("%s names %s for requests, which is another origin: nothing is sent there",
			originOf(at.url), originOf(req.URL)), s.secrets()...)}
	case req.URL.Path != at.url.Path || req.URL.RawQuery != at.url.RawQuery:
		for _, secret := range redact.OfURL(req.URL) {
			s.hidden.Add(secret, maxRecent)
		}
	}
	req = s.cookies.onto(req)
	resp, err := s.hand(req)
	if err != nil {
		return nil, withoutSecrets(err, s.secrets)
	}
	s.cookies.take(req.URL, resp)
	return resp, nil
}

// hand hands a request to the transport, which may be the user's, and panic.
func (s *sender) hand(req *http.Request) (resp *http.Response, err error) {
	defer recovered(&err)
	return s.conn.at.base.RoundTrip(req)
}

// withoutSecrets returns an error that is not changed, unless it is a panic, whose text is
// freed of secrets before it is cut.
func withoutSecrets(err error, secrets func() []string) error {
	var panicked *guard.Panic
	if errors.As(err, &panicked) {
		return &mcpbridge.Error{Class: mcpbridge.Internal, Sent: true, Detail: redact.Clean(panicked.Brief(), secrets()...), Err: panicked}
	}
	return err
}

// secrets returns what no error text may have: what [Server.secrets] has, and what was
// sent of late of credentials, cookies and other URLs of the server.
func (s *sender) secrets() []string {
	all := s.cookies.sent.AppendTo(s.hidden.AppendTo(redact.OfServer(&s.conn.at.Server)))
	if s.auth.credentials == nil {
		return all
	}
	return s.conn.at.sent.AppendTo(s.auth.sent.AppendTo(all))
}

package outbound

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// maxRedirects bounds how many redirects of one request are followed.
const maxRedirects = 10

// IsMoved reports whether a status says that the request was not carried out, and is to be sent to another URL.
func IsMoved(status int) bool {
	return status == http.StatusMovedPermanently || status == http.StatusTemporaryRedirect || status == http.StatusPermanentRedirect
}

// isRedirect reports whether a status names another URL for this request, or for another one.
func isRedirect(status int) bool {
	return IsMoved(status) || status == http.StatusFound || status == http.StatusSeeOther
}

// repeats notes that a request is sent again, because it was refused before it was carried out.
func repeats(req *http.Request) {
	if req.Method == http.MethodPost {
		wire.ExchangeOf(req.Context()).Repeats()
	}
}

// Again returns a copy of a request, to be sent once more, or nil if the body cannot be read once more. The
// bodies of the SDK's messages can be.
func Again(req *http.Request) *http.Request {
	again := *req
	if req.Body == nil || req.Body == http.NoBody {
		return &again
	}
	if req.GetBody == nil {
		return nil
	}
	var err error
	if again.Body, err = req.GetBody(); err != nil {
		return nil
	}
	return &again
}

// redirected returns the request that follows a redirect of the last request of via, or the reason
// why it is not followed.
func (c *Client) redirected(resp *http.Response, via []*http.Request, secrets func() []string) (next *http.Request, reason string) {
	req := via[len(via)-1]
	location := resp.Header.Get("Location")
	to, err := req.URL.Parse(location)
	switch {
	case location == "":
		return nil, "it does not say where to"
	case err != nil:
		return nil, "where to is malformed"
	case !sameOrigin(to, c.URL):
		return nil, fmt.Sprintf("%s redirects to %s, which is another origin: nothing is sent there", originOf(c.URL), originOf(to))
	case !follows(req, resp.StatusCode, to):
		return nil, fmt.Sprintf("a %s is not sent again after this status: it may be a login page, or have been done", req.Method)
	case len(via) > maxRedirects:
		return nil, fmt.Sprintf("stopped after %d redirects", maxRedirects)
	}
	to.User, to.Fragment = nil, ""
	again := Again(req)
	if again == nil {
		return nil, "its body cannot be sent again"
	}
	again.URL, again.Host, again.Header, again.Response = to, "", req.Header.Clone(), resp
	if client := c.Config.HTTPClient; client != nil && client.CheckRedirect != nil {
		_, err := guard.Call(func() (none struct{}, err error) { return none, client.CheckRedirect(again, via) })
		switch {
		case errors.Is(err, http.ErrUseLastResponse):
			return nil, "CheckRedirect of the HTTP client does not follow it"
		case err != nil:
			return nil, "CheckRedirect of the HTTP client refuses: " + redact.Describe(err, secrets()...)
		}
	}
	return again, ""
}

// follows reports whether a request is sent again after a status. A GET always is. Any other request is not sent again
// after 303, which says that it was carried out. Neither is it after 302, with which many servers redirect to a login
// page, unless the URLs differ only in the slash at the end.
func follows(req *http.Request, status int, to *url.URL) bool {
	isSlash := strings.TrimSuffix(req.URL.Path, "/") == strings.TrimSuffix(to.Path, "/")
	return req.Method == http.MethodGet || IsMoved(status) || status == http.StatusFound && isSlash
}

// notFollowed returns a redirect whose body says why it is not followed.
func notFollowed(req *http.Request, resp *http.Response, reason string) *http.Response {
	instead := Respond(req, resp.StatusCode, "text/plain", []byte(reason), resp.Header)
	instead.Header.Del("Location")
	return instead
}

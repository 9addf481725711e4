package login

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/mcpactor/mcpactor/internal/oauthresource"
	"github.com/mcpactor/mcpactor/internal/visible"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// ErrNeeded is wrapped by the error of a login that a person has to make. Its text says why.
var ErrNeeded = errors.New("a person has to log in")

// hasEnded reports whether an authorization server has refused for good to refresh a token.
func hasEnded(err error) bool {
	return slices.Contains([]string{"invalid_grant", "invalid_client", "unauthorized_client"}, codeOf(err))
}

// codeOf returns the code of OAuth with which an authorization server has refused, or nothing.
func codeOf(err error) string {
	if answer, ok := errors.AsType[*oauth2.RetrieveError](err); ok && oauthresource.IsErrorCode(answer.ErrorCode) {
		return answer.ErrorCode
	}
	return ""
}

// refusedBy returns the error of a token that a grant has not got.
func refusedBy(issuer string, g Grant, err error) error {
	remedy, at := g.advice(), "the authorization server"
	if errors.Is(err, errProvider) {
		at = errProvider.Error()
	}
	switch codeOf(err) {
	case "invalid_client":
		remedy = "check the ID of the client at " + at + ", and its secret or key"
	case "unauthorized_client", "unsupported_grant_type":
		remedy = "allow this client the grant at " + at
	case "invalid_scope":
		remedy = "check the scopes that are asked for"
	case "invalid_target":
		remedy = "allow this client the server at " + at
	case "":
		if strings.Contains(err.Error(), "oauth2: ") { // it is about an answer, such as one of an outage
			remedy = "ask those who run " + at
		}
	}
	return &mcpbridge.Error{Class: mcpbridge.Unauthorized, Detail: "no token from " + visible.Detail(issuer) + ": " + CauseOf(err), Remedy: remedy}
}

// CauseOf returns the text of an error of a login, without what an authorization server says in it: its answers may have secrets.
func CauseOf(err error) string {
	answer, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		before, _, malformed := strings.Cut(err.Error(), "oauth2: cannot parse")
		if malformed {
			before += "the answer of the authorization server is malformed"
		}
		return visible.Detail(before)
	}
	text := codeOf(answer)
	if text == "" && answer.Response != nil {
		text = fmt.Sprint(answer.Response.StatusCode, " ", http.StatusText(answer.Response.StatusCode))
	}
	before, _, _ := strings.Cut(err.Error(), answer.Error())
	return visible.Detail(before + "the authorization server refuses: " + text)
}

// hostOf names a server to a person: by the first URL that is one.
func hostOf(urls ...string) string {
	for _, one := range urls {
		if u, err := url.Parse(one); err == nil && u.Host != "" {
			return u.Host
		}
	}
	return "the server"
}

// carriedBy returns the token that a request carries, or "".
func carriedBy(req *http.Request) string {
	_, token, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	return token
}

// namedScopes returns the scopes that a refusal names.
func namedScopes(resp *http.Response) []string {
	challenges, err := oauthex.ParseWWWAuthenticate(resp.Header.Values("WWW-Authenticate"))
	if err != nil {
		return nil
	}
	for _, c := range challenges {
		if scope := c.Params["scope"]; scope != "" {
			return strings.Fields(scope)
		}
	}
	return nil
}

func union(one, two []string) []string {
	all := slices.Concat(one, two)
	slices.Sort(all)
	return slices.Compact(all)
}

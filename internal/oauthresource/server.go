package oauthresource

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcpactor/mcpactor/internal/loopback"
	"github.com/mcpactor/mcpactor/internal/visible"
)

// Server is the metadata of an authorization server (RFC 8414).
type Server struct {
	oauthex.AuthServerMeta
	// DPoP has the algorithms of the proofs of possession that the server takes (RFC 9449). It is empty if it takes none.
	DPoP []string `json:"dpop_signing_alg_values_supported"`
}

// ErrNoServer is the error of an issuer that has no metadata where that of an authorization server is.
var ErrNoServer = errors.New("it has no metadata of an authorization server")

// The well-known places of the metadata of an authorization server.
const (
	oauthPlace  = "/.well-known/oauth-authorization-server"
	openIDPlace = "/.well-known/openid-configuration"
)

// AuthorizationServer returns the metadata of the authorization server with an issuer. Its endpoints are over https, or on this
// machine. That of a company may be at a private address. It may block until ctx ends.
//
// GetAuthServerMetadata of the SDK demands that the server names PKCE, which only a login of a person needs. No issue of the SDK
// asks for that.
func AuthorizationServer(ctx context.Context, client *http.Client, issuer string) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	at, err := url.Parse(issuer)
	if err == nil {
		err = CheckURL(issuer)
	}
	if err != nil {
		return nil, fmt.Errorf("the issuer %s: %w", visible.Detail(issuer), err)
	}
	careful := *client
	careful.CheckRedirect = CheckRedirect
	var failure error // the first one that is not that there is nothing
	for _, place := range places(at) {
		s, err := get[Server](ctx, &careful, place)
		var status statusError
		switch {
		case err == nil:
			if err = s.check(issuer); err == nil {
				return s, nil
			}
		case errors.As(err, &status) && status.code/100 == 4:
			err = nil
		}
		if failure == nil {
			failure = err
		}
	}
	if failure == nil {
		failure = ErrNoServer
	}
	return nil, fmt.Errorf("the authorization server %s: %w", visible.Detail(issuer), failure)
}

// places returns where the metadata of the authorization server with an issuer may be.
func places(issuer *url.URL) (all []*url.URL) {
	path := strings.TrimRight(issuer.EscapedPath(), "/")
	paths := []string{oauthPlace + path, openIDPlace + path}
	if path != "" {
		paths = append(paths, path+openIDPlace)
	}
	for _, path := range paths {
		if at, err := url.Parse(path); err == nil {
			at.Scheme, at.Host = issuer.Scheme, issuer.Host
			all = append(all, at)
		}
	}
	return all
}

// check returns an error unless the metadata is that of an issuer (RFC 8414, section 3.3) and its endpoints can be used. A slash at
// the end of the issuer makes no difference, as in the SDK.
func (s *Server) check(issuer string) error {
	if !SameIssuer(s.Issuer, issuer) {
		return fmt.Errorf("its metadata is that of the issuer %s", visible.Detail(s.Issuer))
	}
	for _, e := range []struct{ name, at string }{
		{"authorization_endpoint", s.AuthorizationEndpoint}, {"token_endpoint", s.TokenEndpoint}, {"registration_endpoint", s.RegistrationEndpoint},
	} {
		if e.at == "" {
			continue
		}
		err := CheckURL(e.at)
		if err == nil && isHere(e.at) && !isHere(issuer) {
			err = errors.New("is on this machine, and the issuer is not")
		}
		if err != nil {
			return fmt.Errorf("its %s %s: %w", e.name, visible.Detail(e.at), err)
		}
	}
	return nil
}

// SameIssuer compares issuers as the SDK does: a slash at the end makes no difference.
func SameIssuer(one, two string) bool {
	return strings.TrimSuffix(one, "/") == strings.TrimSuffix(two, "/")
}

var errorCode = regexp.MustCompile(`^[a-z_]{1,64}$`)

// IsErrorCode reports whether a text is a code of OAuth. What else comes in its place is not shown: it may have secrets.
func IsErrorCode(text string) bool { return errorCode.MatchString(text) }

// CheckURL returns an error unless a URL can be that of an authorization server: over https, or on this machine.
func CheckURL(address string) error {
	at, err := url.Parse(address)
	switch {
	case err != nil || at.Hostname() == "":
		return errors.New("is no URL")
	case at.User != nil:
		return errors.New("has a user")
	}
	if loopback.Is(at.Hostname()) && (at.Scheme == "http" || at.Scheme == "https") {
		return nil
	}
	if at.Scheme != "https" {
		return errors.New("is not over https")
	}
	return nil
}

// isHere reports whether a URL leads to this machine.
func isHere(address string) bool {
	at, err := url.Parse(address)
	return err == nil && loopback.IsUnder(at.Hostname())
}

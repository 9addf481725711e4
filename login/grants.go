package login

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcpactor/mcpactor/internal/oauthresource"
	"github.com/mcpactor/mcpactor/internal/visible"
)

// Grant gets tokens without a person: [ClientCredentials], [WorkloadIdentity] or [Enterprise].
type Grant interface {
	// registered is how this program is known to the authorization server of the MCP server.
	registered() *Client
	// form returns the token request, without what all of them have. It may ask other servers.
	form(ctx context.Context, w *wanted, to *authority) (url.Values, error)
	// advice says what to do after the authorization server has refused the grant itself.
	advice() string
	validate() error
}

// grantBearer is the grant type of a JWT as an authorization grant (RFC 7523, section 2.1).
const grantBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"

// ClientCredentials gets tokens for a program that acts for itself (RFC 6749, section 4.4; the extension
// io.modelcontextprotocol/oauth-client-credentials of MCP). The handler of the SDK for it knows neither keys (go-sdk#895 leaves them
// for later) nor DPoP.
type ClientCredentials struct{ Client Client }

func (g ClientCredentials) registered() *Client { return &g.Client }

func (g ClientCredentials) form(context.Context, *wanted, *authority) (url.Values, error) {
	return url.Values{"grant_type": {"client_credentials"}}, nil
}

func (g ClientCredentials) advice() string { return "check the client" }

func (g ClientCredentials) validate() error {
	err := g.Client.validate()
	if err == nil && g.Client.Secret == "" && g.Client.Key == nil && g.Client.KeyFile == "" {
		err = errors.New("has neither a Secret nor a Key")
	}
	return within("Client", err)
}

// WorkloadIdentity gets tokens for a program by the identity that its platform gives it, such as the token of a service account of
// Kubernetes, or a JWT-SVID of SPIFFE (RFC 7523; SEP-1933 of MCP). The audience of that token has to be the authorization server.
type WorkloadIdentity struct {
	// TokenFile is the file with the token. It is read for each request: platforms replace it before it expires.
	TokenFile string
	// Token returns the token, in place of TokenFile. It must return when ctx ends: until then, nobody else gets a token. The text of its
	// error must have no secrets.
	Token func(ctx context.Context) (string, error)
	// Client is optional.
	Client Client
}

func (g WorkloadIdentity) registered() *Client { return &g.Client }

func (g WorkloadIdentity) form(ctx context.Context, _ *wanted, _ *authority) (url.Values, error) {
	token, err := textOf(ctx, "the token of the workload", g.TokenFile, g.Token)
	return url.Values{"grant_type": {grantBearer}, "assertion": {token}}, err
}

func (g WorkloadIdentity) advice() string {
	return "check the token of the workload: its audience, and how long it is valid"
}

func (g WorkloadIdentity) validate() error {
	return errors.Join(exactlyOne("TokenFile", g.TokenFile, "Token", g.Token != nil), within("Client", g.Client.validate()))
}

// Enterprise gets tokens for a person that has logged in at an identity provider, which decides who may use which MCP server
// (enterprise-managed authorization, SEP-990): the ID token of the person is exchanged at the provider for an ID-JAG (RFC 8693), and
// that at the authorization server of the MCP server for a token (RFC 7523).
//
// The handler of the SDK refuses a provider whose metadata does not name PKCE, which this has no use for, and sends secrets in the body
// only. It is used again when it does neither (it comes from go-sdk#770).
type Enterprise struct {
	// Provider is the issuer of the identity provider, and ProviderClient how this program is registered there.
	Provider       string
	ProviderClient Client
	// IDToken returns the ID token of the person. It must return when ctx ends: until then, nobody else gets a token. The text of its
	// error must have no secrets. IDTokenFile is a file with the ID token, in place of IDToken. It is read for each request.
	IDToken     func(ctx context.Context) (string, error)
	IDTokenFile string
	// Client is how this program is registered at the authorization server of the MCP server.
	Client Client
}

// errProvider begins the text of an error of the identity provider, and not of the authorization server of the MCP server.
var errProvider = errors.New("the identity provider")

func (g Enterprise) registered() *Client { return &g.Client }

func (g Enterprise) form(ctx context.Context, w *wanted, to *authority) (url.Values, error) {
	token, err := textOf(ctx, "the ID token", g.IDTokenFile, g.IDToken)
	if err != nil {
		return nil, err
	}
	provider := newAuthority(w.web, nil, false)
	if err := provider.discover(ctx, g.Provider); err != nil {
		return nil, fmt.Errorf("%w %s: %w", errProvider, visible.Detail(g.Provider), err)
	}
	exchanged, err := g.ProviderClient.request(ctx, provider, url.Values{
		"grant_type": {oauthex.GrantTypeTokenExchange}, "requested_token_type": {oauthex.TokenTypeIDJAG},
		"audience": {to.Issuer}, "resource": {w.resource},
		"subject_token": {token}, "subject_token_type": {oauthex.TokenTypeIDToken},
	}, w.scopes)
	if err != nil {
		return nil, fmt.Errorf("%w %s: %w", errProvider, visible.Detail(g.Provider), err)
	}
	if kind, _ := exchanged.Extra("issued_token_type").(string); kind != oauthex.TokenTypeIDJAG {
		return nil, fmt.Errorf("%w %s gives a token of type %q in place of an ID-JAG", errProvider, visible.Detail(g.Provider), kind)
	}
	return url.Values{"grant_type": {grantBearer}, "assertion": {exchanged.AccessToken}}, nil
}

func (g Enterprise) advice() string {
	return "log in at the identity provider again, or ask those who run it"
}

func (g Enterprise) validate() error {
	return errors.Join(within("Client", g.Client.validate()), within("ProviderClient", g.ProviderClient.validate()),
		exactlyOne("IDTokenFile", g.IDTokenFile, "IDToken", g.IDToken != nil), within("Provider", oauthresource.CheckURL(g.Provider)))
}

// textOf returns the text that a function returns, or a file has.
func textOf(ctx context.Context, what, file string, get func(context.Context) (string, error)) (text string, err error) {
	if get != nil {
		text, err = get(ctx)
	} else {
		var data []byte
		data, err = os.ReadFile(file)
		text = strings.TrimSpace(string(data))
	}
	if err == nil && text == "" {
		err = errors.New("it is empty")
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	return text, nil
}

func exactlyOne(oneName, one, otherName string, other bool) error {
	switch {
	case one != "" && other:
		return fmt.Errorf("has both %s and %s", oneName, otherName)
	case one == "" && !other:
		return fmt.Errorf("has neither %s nor %s", oneName, otherName)
	}
	return nil
}

// wanted is what a token is wanted for, and how to ask for it.
type wanted struct {
	web      *http.Client // without proofs
	resource string
	issuer   string
	scopes   []string
	bound    bool // the MCP server asks for DPoP
}

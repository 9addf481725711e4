package login

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/mcpactor/mcpactor/internal/oauthresource"
	"github.com/mcpactor/mcpactor/internal/proof"
)

// Client is a program that is registered at an authorization server. It authenticates with its key, else with its secret, else only
// by its ID.
type Client struct {
	ID string
	// Secret is sent in the body or in a header (client_secret_post, client_secret_basic), as the authorization server says.
	Secret string
	// Key signs assertions (private_key_jwt, RFC 7523): ECDSA, Ed25519 or RSA. KeyID names it, and may be empty. KeyFile is a file
	// with a key as PEM or as a JWK in place of Key. It is read for each assertion.
	Key     crypto.Signer
	KeyID   string
	KeyFile string
	// Issuer is the authorization server at which the client is registered. If an MCP server names another one, nothing is sent there. If
	// Issuer is empty, the first one that the MCP server names is used from then on. So set it for a client with a secret, and for
	// [WorkloadIdentity]: a hostile MCP server could name an authorization server of its own, which would get the secret or the token
	// of the workload.
	Issuer string
}

func (c *Client) validate() error {
	switch {
	case c.ID == "" && (c.Secret != "" || c.Key != nil || c.KeyFile != ""):
		return errors.New("has no ID")
	case c.Secret != "" && (c.Key != nil || c.KeyFile != ""):
		return errors.New("has a Secret and a Key: which one is it?")
	case c.Key != nil && c.KeyFile != "":
		return errors.New("has a Key and a KeyFile")
	case c.Issuer != "":
		return within("Issuer", oauthresource.CheckURL(c.Issuer))
	}
	return nil
}

func within(field string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %w", field, err)
}

// key returns the private key, or nil.
func (c *Client) key() (key crypto.Signer, id string, err error) {
	if c.KeyFile == "" {
		return c.Key, c.KeyID, nil
	}
	data, err := os.ReadFile(c.KeyFile)
	if err != nil {
		return nil, "", fmt.Errorf("the key of the client: %w", err)
	}
	key, id, err = proof.ParseKey(data)
	if err != nil {
		return nil, "", fmt.Errorf("the key of the client in %s: %w", c.KeyFile, err)
	}
	if c.KeyID != "" {
		id = c.KeyID
	}
	return key, id, nil
}

// bearerAssertion is the type of an assertion that is a JWT (RFC 7523).
const bearerAssertion = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

// request sends a token request with a form to an authorization server, as the client.
func (c *Client) request(ctx context.Context, to *authority, form url.Values, scopes []string) (*oauth2.Token, error) {
	cfg := clientcredentials.Config{
		ClientID: c.ID, ClientSecret: c.Secret, TokenURL: to.TokenEndpoint, Scopes: scopes,
		AuthStyle: oauth2.AuthStyleInParams, EndpointParams: form,
	}
	key, id, err := c.key()
	switch {
	case err != nil:
		return nil, err
	case key != nil:
		to.sender.Renew = func(form url.Values) error { // an assertion is valid once
			assertion, err := proof.Assertion(key, id, c.ID, to.Issuer, to.sender.Server(to.TokenEndpoint).Now())
			form.Set("client_assertion_type", bearerAssertion)
			form.Set("client_assertion", assertion)
			return err
		}
		if err := to.sender.Renew(form); err != nil {
			return nil, err
		}
	case c.Secret != "" && !slices.Contains(to.TokenEndpointAuthMethodsSupported, "client_secret_post"):
		cfg.AuthStyle = oauth2.AuthStyleInHeader // the default of RFC 8414
	}
	return cfg.Token(context.WithValue(ctx, oauth2.HTTPClient, to.web))
}

// authority is an authorization server, and what sends requests to it.
type authority struct {
	*oauthresource.Server
	web    *http.Client
	sender *proof.Transport // of web
}

// newAuthority returns an authorization server without its metadata.
func newAuthority(web *http.Client, key crypto.Signer, asked bool) *authority {
	to := &authority{Server: &oauthresource.Server{}, sender: &proof.Transport{Base: web.Transport, Key: key, Asked: asked}}
	own := *web
	own.Transport, own.CheckRedirect, to.web = to.sender, oauthresource.Web.CheckRedirect, &own
	return to
}

// discover gets the metadata of the authorization server with an issuer.
func (to *authority) discover(ctx context.Context, issuer string) (err error) {
	to.Server, err = oauthresource.AuthorizationServer(ctx, to.web, issuer)
	if err == nil && to.TokenEndpoint == "" {
		err = errors.New("its metadata names no token endpoint")
	}
	return err
}

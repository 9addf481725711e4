package main

import (
	"context"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcpactor/mcpactor/login"
)

const (
	redirectURL = "http://localhost:3000/callback"
	// documentURL is what the suite takes for the client's metadata document.
	documentURL = "https://conformance-test.local/client-metadata.json"
)

// web sends what is sent to authorize. Redirects are for the user's browser.
var web = &http.Client{
	Timeout:       10 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// authorized returns the scenario of an agent that has to be authorized to use the
// server.
func authorized(name string, known knowledge) scenario {
	s := scenario{
		first: commands(listTools(), callTool("test-tool", nil)),
		login: known.byUser,
	}
	switch name {
	case "auth/client-credentials-basic", "auth/client-credentials-jwt":
		s.login = known.byItself
	case "auth/cross-app-access-complete-flow", "auth/enterprise-managed-authorization":
		s.login = known.byProvider
	case "auth/wif-jwt-bearer":
		s.login = known.byWorkload
	case "auth/dpop", "auth/dpop-nonce":
		s.program = true
	case "auth/scope-retry-limit", "auth/resource-mismatch", "auth/metadata-issuer-mismatch",
		"auth/iss-supported-missing", "auth/iss-wrong-issuer", "auth/iss-unexpected", "auth/iss-normalized":
		s.refused = true
	}
	return s
}

// credentials are those that the client was given beforehand; nil if it was given none.
func (k knowledge) credentials() *oauthex.ClientCredentials {
	if k.ClientID == "" || k.ClientSecret == "" {
		return nil
	}
	return &oauthex.ClientCredentials{ClientID: k.ClientID, ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: k.ClientSecret}}
}

// byUser has the user log in, with an authorization code.
func (k knowledge) byUser() (auth.OAuthHandler, error) {
	return auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		RedirectURL:                     redirectURL,
		AuthorizationCodeFetcher:        visit,
		PreregisteredClient:             k.credentials(),
		ClientIDMetadataDocumentConfig:  &auth.ClientIDMetadataDocumentConfig{URL: documentURL},
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{RedirectURIs: []string{redirectURL}}},
		Client:                          web,
	})
}

// visit is the user, who agrees to everything: the suite's pages send the browser
// back at once.
func visit(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, args.URL, nil)
	if err != nil {
		return nil, err
	}
	resp, err := web.Do(req)
	if err != nil {
		return nil, err
	}
	resp.Body.Close()
	back, err := resp.Location()
	if err != nil {
		return nil, fmt.Errorf("the page that asks the user answered %s: %w", resp.Status, err)
	}
	said := back.Query()
	return &auth.AuthorizationResult{Code: said.Get("code"), State: said.Get("state"), Iss: said.Get("iss")}, nil
}

// client is how the agent is registered at the authorization server.
func (k knowledge) client() (c login.Client, err error) {
	c = login.Client{ID: k.ClientID, Secret: k.ClientSecret}
	if block, _ := pem.Decode([]byte(k.PrivateKey)); block != nil {
		key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if err != nil {
			return c, err
		}
		c.Key, _ = key.(crypto.Signer)
	}
	return c, nil
}

// byItself has the agent authorized by what it was given beforehand.
func (k knowledge) byItself() (auth.OAuthHandler, error) {
	client, err := k.client()
	if err != nil {
		return nil, err
	}
	return login.New(login.Config{Grant: login.ClientCredentials{Client: client}})
}

// byProvider has the agent authorized by the identity provider at which the user has logged in.
func (k knowledge) byProvider() (auth.OAuthHandler, error) {
	client, err := k.client()
	if err != nil {
		return nil, err
	}
	return login.New(login.Config{Grant: login.Enterprise{
		Provider: k.Provider, ProviderClient: login.Client{ID: k.ProviderClientID}, Client: client,
		IDToken: func(context.Context) (string, error) { return k.IDToken, nil },
	}})
}

// byWorkload has the agent authorized by the identity that its platform gives it.
func (k knowledge) byWorkload() (auth.OAuthHandler, error) {
	return login.New(login.Config{Grant: login.WorkloadIdentity{
		Client: login.Client{ID: k.ClientID}, Token: func(context.Context) (string, error) { return k.WorkloadToken, nil },
	}})
}

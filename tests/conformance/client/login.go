package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/auth/extauth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
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
func authorized(name string, known knowledge) (scenario, error) {
	s := scenario{
		first: commands(listTools(), callTool("test-tool", nil)),
		login: known.byUser,
	}
	switch name {
	case "auth/client-credentials-basic":
		s.login = known.byItself
	case "auth/scope-retry-limit", "auth/resource-mismatch", "auth/metadata-issuer-mismatch",
		"auth/iss-supported-missing", "auth/iss-wrong-issuer", "auth/iss-unexpected", "auth/iss-normalized":
		s.refused = true
	case "auth/client-credentials-jwt", "auth/cross-app-access-complete-flow", "auth/enterprise-managed-authorization",
		"auth/dpop", "auth/dpop-nonce", "auth/wif-jwt-bearer":
		return scenario{}, errors.New("the SDK has no handler that can do this")
	}
	return s, nil
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

// byItself has the agent authorized by what it was given beforehand.
func (k knowledge) byItself() (auth.OAuthHandler, error) {
	return extauth.NewClientCredentialsHandler(&extauth.ClientCredentialsHandlerConfig{Credentials: k.credentials(), HTTPClient: web})
}

//go:build real

package real

import (
	"context"
	"crypto/ecdsa"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"

	"github.com/mcpactor/mcpactor/internal/proof"
)

const (
	jwtBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	exchange  = "urn:ietf:params:oauth:grant-type:token-exchange"
)

// issuer signs JWTs for workloads, as a cloud does.
type issuer struct {
	*httptest.Server // of its public key
	h                *harness
	key              *ecdsa.PrivateKey
}

// newIssuer starts an issuer.
func (h *harness) newIssuer() *issuer {
	h.t.Helper()
	key, err := proof.NewKey()
	require.NoError(h.t, err)
	keys := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), Algorithm: string(jose.ES256), Use: "sig"}}}
	i := &issuer{h: h, key: key, Server: httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { json.NewEncoder(w).Encode(keys) }))}
	h.t.Cleanup(func() {
		i.CloseClientConnections()
		i.Close()
	})
	return i
}

// sign returns a JWT for a workload.
func (i *issuer) sign(audience, subject string, life time.Duration) string {
	i.h.t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: i.key}, nil)
	require.NoError(i.h.t, err)
	payload, err := json.Marshal(map[string]any{"iss": i.URL, "sub": subject, "aud": audience, "exp": time.Now().Add(life).Unix()})
	require.NoError(i.h.t, err)
	signed, err := signer.Sign(payload)
	require.NoError(i.h.t, err)
	text, err := signed.CompactSerialize()
	require.NoError(i.h.t, err)
	return text
}

// idToken has a person log in at an identity provider, and returns the ID token.
func (h *harness) idToken(a *authority, client, secret string) string {
	h.t.Helper()
	var code string
	back := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { code = r.URL.Query().Get("code") }))
	defer back.Close()
	c := oauth2.Config{ClientID: client, ClientSecret: secret, RedirectURL: back.URL + "/back", Scopes: []string{"openid"}, Endpoint: oauth2.Endpoint{
		AuthURL: a.URL + "/auth", TokenURL: a.URL + "/token", AuthStyle: oauth2.AuthStyleInHeader,
	}}
	verifier := oauth2.GenerateVerifier()
	h.browse(c.AuthCodeURL("state", oauth2.S256ChallengeOption(verifier)), nil)
	token, err := c.Exchange(context.WithValue(h.t.Context(), oauth2.HTTPClient, a.Client()), code, oauth2.VerifierOption(verifier))
	require.NoError(h.t, err)
	id, is := token.Extra("id_token").(string)
	require.True(h.t, is)
	return id
}

package oauthresource

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// metadataAt returns a client to which a server answers with metadata at one address, and the addresses that were asked.
func metadataAt(address, metadata string) (*http.Client, *[]string) {
	asked := &[]string{}
	return &http.Client{Transport: roundTripper(func(r *http.Request) string {
		*asked = append(*asked, r.URL.String())
		if r.URL.String() == address {
			return metadata
		}
		return ""
	})}, asked
}

func TestMetadataOfAnAuthorizationServerIsAtThreePlaces(t *testing.T) {
	for _, c := range []struct {
		issuer string
		places []string
	}{
		{"https://as.test", []string{"https://as.test/.well-known/oauth-authorization-server", "https://as.test/.well-known/openid-configuration"}},
		{"https://as.test/", []string{"https://as.test/.well-known/oauth-authorization-server", "https://as.test/.well-known/openid-configuration"}},
		{"https://as.test/a%2Fb", []string{
			"https://as.test/.well-known/oauth-authorization-server/a%2Fb", "https://as.test/.well-known/openid-configuration/a%2Fb",
			"https://as.test/a%2Fb/.well-known/openid-configuration",
		}},
	} {
		for i, place := range c.places {
			client, asked := metadataAt(place, fmt.Sprintf(`{"issuer":%q,"token_endpoint":"https://as.test/token","dpop_signing_alg_values_supported":["ES256"]}`, c.issuer))
			s, err := AuthorizationServer(t.Context(), client, c.issuer)
			require.NoError(t, err)
			require.Equal(t, "https://as.test/token", s.TokenEndpoint)
			require.Equal(t, []string{"ES256"}, s.DPoP)
			require.Equal(t, c.places[:i+1], *asked)
		}
		client, asked := metadataAt("", "")
		_, err := AuthorizationServer(t.Context(), client, c.issuer)
		require.ErrorIs(t, err, ErrNoServer)
		require.Equal(t, c.places, *asked)
	}
}

func TestMetadataOfAnAuthorizationServerIsChecked(t *testing.T) {
	for metadata, want := range map[string]string{
		`{}`:                              "its metadata is that of the issuer ",
		`{"issuer":"https://other.test"}`: "its metadata is that of the issuer https://other.test",
		`{"issuer":"https://as.test","token_endpoint":"http://as.test/token"}`:        "its token_endpoint http://as.test/token: is not over https",
		`{"issuer":"https://as.test","authorization_endpoint":"javascript:alert(1)"}`: "its authorization_endpoint javascript:alert(1): is no URL",
		`{"issuer":"https://as.test","registration_endpoint":"ftp://localhost/"}`:     "is not over https",
		`{"issuer":"https://as.test","token_endpoint":"http://127.0.0.1:1/token"}`:    "its token_endpoint http://127.0.0.1:1/token: is on this machine, and the issuer is not",
		`{"issuer":"https://as.test","token_endpoint":"https://x.localhost/token"}`:   "is on this machine, and the issuer is not",
		`{"issuer":"https://as.test","token_endpoint":"https://a@as.test/token"}`:     "has a user",
		`{"issuer":"https://as.test","token_endpoint":"https://:1/token"}`:            "is no URL",
		`[]`:         "cannot unmarshal",
		`<html>`:     "invalid character",
		`{"issuer":`: "unexpected EOF",
	} {
		client, _ := metadataAt("https://as.test"+oauthPlace, metadata)
		_, err := AuthorizationServer(t.Context(), client, "https://as.test")
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "the authorization server https://as.test: ")
	}
	client, _ := metadataAt("https://as.test"+openIDPlace, `{"issuer":"https://as.test","token_endpoint":"https://other.test/token"}`)
	s, err := AuthorizationServer(t.Context(), client, "https://as.test")
	require.NoError(t, err)
	require.Empty(t, s.CodeChallengeMethodsSupported)

	for issuer, want := range map[string]string{
		"": "is no URL", "as.test": "is no URL", "https://%zz": "invalid URL escape", "http://as.test": "is not over https",
	} {
		_, err := AuthorizationServer(t.Context(), client, issuer)
		require.ErrorContains(t, err, "the issuer "+issuer+": ")
		require.ErrorContains(t, err, want)
	}
}

func TestAuthorizationServerThatFailsIsNoServerWithoutMetadata(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Error("asked:", r.URL) }))
	defer other.Close()
	for want, answer := range map[string]http.Handler{
		"503 Service Unavailable": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }),
		"another origin":          http.RedirectHandler(other.URL, http.StatusFound),
	} {
		s := httptest.NewServer(answer)
		_, err := AuthorizationServer(t.Context(), &http.Client{}, s.URL)
		require.ErrorContains(t, err, want)
		require.NotErrorIs(t, err, ErrNoServer)
		s.Close()
	}
}

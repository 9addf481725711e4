package proof

import (
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/proof/prooftest"
)

// keys returns a key of each kind that can sign.
func keys(t testing.TB) map[string]crypto.Signer {
	ours, err := NewKey()
	require.NoError(t, err)
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	require.NoError(t, err)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	return map[string]crypto.Signer{"ES256": ours, "ES384": p384, "RS256": rsaKey, "EdDSA": ed}
}

func TestProofIsForOneRequest(t *testing.T) {
	for alg, key := range keys(t) {
		for url, origin := range map[string]string{
			"https://a.test/mcp": "https://a.test", "https://a.test/mcp?x=/y#z": "https://a.test", "https://A.test:443/a%2Fb/": "https://a.test",
			"http://me:hush@a.test:80": "http://a.test", "http://a.test:443": "http://a.test:443", "http://[::1]:80/x": "http://[::1]",
			"http://[FE80::1]:8080/": "http://[fe80::1]:8080", "http://a.test:/x": "http://a.test",
		} {
			for _, method := range []string{"GET", "POST", "DELETE"} {
				for _, token := range []string{"", "the-token"} {
					check := &prooftest.Checker{Origin: origin}
					req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
					require.NoError(t, err)
					proven, err := Prove(req, key, token, State{})
					require.NoError(t, err)
					require.Empty(t, req.Header)
					received := httptest.NewRequest(method, "http://server"+strings.TrimPrefix(target(req.URL), origin)+"?"+req.URL.RawQuery, nil)
					received.Header = proven.Header
					w := httptest.NewRecorder()
					_, code := check.Check(w, received, token)
					require.Empty(t, code, "%s %s: %v", alg, url, check.Err())
					_, err = jose.ParseSignedCompact(proven.Header.Get("DPoP"), []jose.SignatureAlgorithm{jose.SignatureAlgorithm(alg)})
					require.NoError(t, err)

					_, code = check.Check(w, received, token)
					require.Equal(t, prooftest.IsInvalid, code, "it was used before")
					_, code = (&prooftest.Checker{Origin: origin}).Check(w, received, token+"!")
					require.Equal(t, prooftest.IsInvalid, code, "another token")
					received.Method = "PUT"
					_, code = (&prooftest.Checker{Origin: origin}).Check(w, received, token)
					require.Equal(t, prooftest.IsInvalid, code, "another method")
				}
			}
		}
	}
}

// noSigner is a key that no JWT can be signed with.
type noSigner struct{ crypto.Signer }

func (noSigner) Public() crypto.PublicKey { return "a text" }

func TestKeyOfAnotherKindIsAnError(t *testing.T) {
	_, err := Prove(httptest.NewRequest("GET", "http://a.test", nil), noSigner{}, "", State{})
	require.EqualError(t, err, "no JWT can be signed with a key of type string")
}

func TestAssertionNamesTheClientAndTheAudience(t *testing.T) {
	for alg, key := range keys(t) {
		at := time.Unix(1_700_000_000, 0)
		text, err := Assertion(key, "the-key", "me", "https://as.test", at)
		require.NoError(t, err)
		signed, err := jose.ParseSignedCompact(text, []jose.SignatureAlgorithm{jose.SignatureAlgorithm(alg)})
		require.NoError(t, err)
		require.Equal(t, "the-key", signed.Signatures[0].Header.KeyID)
		require.Nil(t, signed.Signatures[0].Header.JSONWebKey)
		payload, err := signed.Verify(key.Public())
		require.NoError(t, err)
		var claims map[string]any
		require.NoError(t, json.Unmarshal(payload, &claims))
		require.Len(t, claims["jti"], 26)
		delete(claims, "jti")
		require.Equal(t, map[string]any{
			"iss": "me", "sub": "me", "aud": "https://as.test", "iat": float64(at.Unix()), "exp": float64(at.Add(5 * time.Minute).Unix()),
		}, claims)
	}
}

func TestKeysAreParsed(t *testing.T) {
	block := func(kind string, der []byte, err error) string {
		require.NoError(t, err)
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	jwk := func(k jose.JSONWebKey) string {
		text, err := k.MarshalJSON()
		require.NoError(t, err)
		return string(text)
	}
	all := keys(t)
	for alg, key := range all {
		pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
		formatted, wrong := FormatKey(key)
		require.NoError(t, wrong)
		texts := []string{block("PRIVATE KEY", pkcs8, err), jwk(jose.JSONWebKey{Key: key}), string(formatted)}
		switch key := key.(type) {
		case *ecdsa.PrivateKey:
			der, err := x509.MarshalECPrivateKey(key)
			ec := block("EC PRIVATE KEY", der, err)
			texts = append(texts, ec, block("EC PARAMETERS", []byte{6, 0}, nil)+ec)
		case *rsa.PrivateKey:
			texts = append(texts, block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key), nil))
		}
		for _, text := range texts {
			parsed, id, err := ParseKey([]byte(text))
			require.NoError(t, err, "%s: %s", alg, text)
			require.Empty(t, id)
			require.True(t, parsed.Public().(interface{ Equal(crypto.PublicKey) bool }).Equal(key.Public()))
		}
	}
	_, id, err := ParseKey([]byte(jwk(jose.JSONWebKey{Key: all["ES256"], KeyID: "mine"})))
	require.NoError(t, err)
	require.Equal(t, "mine", id)

	x, err := ecdh.X25519().GenerateKey(rand.Reader)
	require.NoError(t, err)
	exchange, err := x509.MarshalPKCS8PrivateKey(x)
	public, wrong := x509.MarshalPKIXPublicKey(all["RS256"].Public())
	for name, text := range map[string]string{
		"nothing": "", "garbage": "hush", "JSON": "{}", "an array": "[]", "a secret": `{"kty":"oct","k":"aHVzaA"}`,
		"a public JWK": jwk(jose.JSONWebKey{Key: all["ES256"].Public()}), "a public PEM": block("PUBLIC KEY", public, wrong),
		"a broken PEM": block("PRIVATE KEY", []byte("hush"), nil), "a key that cannot sign": block("PRIVATE KEY", exchange, err),
		"a key with another public part": `{"kty":"EC","crv":"P-256","x":"aHVzaA","y":"aHVzaA","d":"aHVzaA"}`,
	} {
		key, _, err := ParseKey([]byte(text))
		require.ErrorIs(t, err, errNoKey, name)
		require.Nil(t, key, name)
	}
}

// Whatever is parsed as a key can be kept, and is the same key then.
func FuzzParseKey(f *testing.F) {
	for _, key := range keys(f) {
		text, err := FormatKey(key)
		require.NoError(f, err)
		f.Add(text)
		der, err := x509.MarshalPKCS8PrivateKey(key)
		require.NoError(f, err)
		f.Add(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		key, _, err := ParseKey(data)
		if err != nil {
			require.Equal(t, errNoKey, err)
			return
		}
		text, err := FormatKey(key)
		if err != nil {
			return // a curve that JWKs do not have
		}
		again, _, err := ParseKey(text)
		require.NoError(t, err)
		require.True(t, again.Public().(interface{ Equal(crypto.PublicKey) bool }).Equal(key.Public()))
	})
}

func TestServerHasTheLastNonceAndTheTimeOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		says := func(ahead time.Duration, more ...string) http.Header {
			h := http.Header{}
			h.Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
			for i := 0; i < len(more); i += 2 {
				h.Set(more[i], more[i+1])
			}
			return h
		}
		var s Server
		for _, c := range []struct {
			why   string
			said  http.Header
			nonce string
			ahead time.Duration
		}{
			{"nothing", http.Header{}, "", 0},
			{"a nonce", http.Header{"Dpop-Nonce": {"a"}}, "a", 0},
			{"no other one", http.Header{"Dpop-Nonce": {""}}, "a", 0},
			{"the time, nearly", says(5 * time.Second), "a", 0},
			{"both", says(5*time.Minute, "DPoP-Nonce", "b"), "b", 5 * time.Minute},
			{"the same time, nearly", says(5*time.Minute - 4*time.Second), "b", 5 * time.Minute},
			{"the time of a cache", says(-time.Hour, "Age", "3600"), "b", 5 * time.Minute},
			{"no time", http.Header{"Date": {"now"}}, "b", 5 * time.Minute},
			{"another time", says(-5 * time.Minute), "b", -5 * time.Minute},
			{"ours", says(0), "b", 0},
		} {
			after := s.Note(c.said)
			require.Equal(t, State{c.nonce, c.ahead}, after, c.why)
			require.Equal(t, after, s.State())
			require.Equal(t, time.Now().Add(c.ahead), s.Now())
		}
	})
}

// Package proof signs the JWTs with which an OAuth client proves who it is: proofs of possession (DPoP, RFC 9449) and client
// assertions (private_key_jwt, RFC 7523). Neither golang.org/x/oauth2 nor the SDK has them (golang/oauth2#651, go-sdk#1139).
package proof

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/cryptosigner"
)

// assertionLife is how long an assertion is valid.
const assertionLife = 5 * time.Minute

// NewKey returns a key for proofs of possession, for ES256, which all authorization servers with DPoP take.
func NewKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

// Prove returns a request with a proof of the possession of a key, which is for this request alone. token is the access token of
// the request, or empty.
func Prove(req *http.Request, key crypto.Signer, token string, at State) (*http.Request, error) {
	claims := map[string]any{"jti": rand.Text(), "htm": req.Method, "htu": target(req.URL), "iat": at.Now().Unix()}
	if at.nonce != "" {
		claims["nonce"] = at.nonce
	}
	if token != "" {
		sum := sha256.Sum256([]byte(token))
		claims["ath"] = base64.RawURLEncoding.EncodeToString(sum[:])
	}
	signed, err := sign(key, claims, (&jose.SignerOptions{EmbedJWK: true}).WithType("dpop+jwt"))
	if err != nil {
		return nil, err
	}
	r := *req
	r.Header = req.Header.Clone()
	r.Header.Set("DPoP", signed)
	return &r, nil
}

// target returns the URL of a request as proofs have it: without a query, and in the form in which the server sees it (RFC 9449,
// section 4.3, and RFC 3986, sections 6.2.2 and 6.2.3).
func target(u *url.URL) string {
	path := cmp.Or(u.EscapedPath(), "/")
	host := strings.ToLower(u.Host)
	if port := u.Port(); port == "" || port == map[string]string{"http": "80", "https": "443"}[u.Scheme] {
		host = strings.TrimSuffix(host, ":"+port)
	}
	return u.Scheme + "://" + host + path
}

// Assertion returns an assertion with which a client authenticates to an authorization server. keyID says which of the keys of the
// client has signed it, and may be empty. at is the time, by the clock of the server.
func Assertion(key crypto.Signer, keyID, client, audience string, at time.Time) (string, error) {
	o := &jose.SignerOptions{}
	if keyID != "" {
		o.WithHeader("kid", keyID)
	}
	return sign(key, map[string]any{
		"iss": client, "sub": client, "aud": audience, "jti": rand.Text(),
		"iat": at.Unix(), "exp": at.Add(assertionLife).Unix(),
	}, o)
}

func sign(key crypto.Signer, claims map[string]any, o *jose.SignerOptions) (string, error) {
	signer := cryptosigner.Opaque(key)
	algorithms := signer.Algs()
	if len(algorithms) == 0 {
		return "", fmt.Errorf("no JWT can be signed with a key of type %T", key.Public())
	}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithms[0], Key: signer}, o)
	if err != nil {
		return "", err
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signed, err := s.Sign(payload)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

// errNoKey is the error of a text that has no key. It says nothing of the text, which is secret.
var errNoKey = errors.New("it is no private key: give one as PEM (PKCS #8, EC or RSA) or as a JWK")

// ParseKey returns the private key in a PEM file or a JWK, and the id that a JWK gives it.
func ParseKey(data []byte) (key crypto.Signer, id string, err error) {
	block, rest := pem.Decode(data)
	for ; block != nil; block, rest = pem.Decode(rest) { // the parameters of a curve may stand before the key
		for _, parse := range []func([]byte) (any, error){
			x509.ParsePKCS8PrivateKey,
			func(der []byte) (any, error) { return x509.ParseECPrivateKey(der) },
			func(der []byte) (any, error) { return x509.ParsePKCS1PrivateKey(der) },
		} {
			if parsed, err := parse(block.Bytes); err == nil {
				if key, is := parsed.(crypto.Signer); is {
					return key, "", nil
				}
			}
		}
	}
	var k jose.JSONWebKey
	if k.UnmarshalJSON(data) != nil || k.IsPublic() {
		return nil, "", errNoKey
	}
	key, is := k.Key.(crypto.Signer)
	if !is {
		return nil, "", errNoKey
	}
	return key, k.KeyID, nil
}

// FormatKey returns a private key as a JWK. It is secret.
func FormatKey(key crypto.Signer) ([]byte, error) { return jose.JSONWebKey{Key: key}.MarshalJSON() }

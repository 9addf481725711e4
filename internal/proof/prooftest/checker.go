// Package prooftest checks proofs of possession as a strict server does (RFC 9449, section 4.3).
package prooftest

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	// skew is how far the time of a proof may be from that of the server.
	skew = 30 * time.Second
	// minID is the shortest jti, in bytes of base32: 96 bits.
	minID = 20
)

// The codes with which proofs are refused.
const (
	WantsNonce = "use_dpop_nonce"
	IsInvalid  = "invalid_dpop_proof"
)

// Checker checks the proofs of the requests to one server. The fields are set before its first use. Its method may be called from any
// goroutine.
type Checker struct {
	// Origin is the scheme and the host of the server, as in "https://a.test".
	Origin string
	// Ahead is how far the clock of the server is ahead of ours.
	Ahead time.Duration
	// Nonces is how many of its last nonces the server takes. Each response has a new one. 0 is a server without nonces.
	Nonces int

	mu     sync.Mutex
	seen   map[string]bool // values of jti
	nonces []string
	errs   []error
}

// Check sets the time and the nonce of a response, and checks the proof of its request. token is the access token of the request, or
// empty. It returns the thumbprint of the key of the proof, or the code with which the request is to be refused.
func (c *Checker) Check(w http.ResponseWriter, r *http.Request, token string) (thumbprint, code string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now().Add(c.Ahead)
	thumbprint, nonce, err := c.read(r, token, now)
	known := c.Nonces == 0 || slices.Contains(c.nonces, nonce)
	w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
	if c.Nonces > 0 {
		fresh := rand.Text()
		c.nonces = append(c.nonces, fresh)
		c.nonces = c.nonces[max(0, len(c.nonces)-c.Nonces):]
		w.Header().Set("DPoP-Nonce", fresh)
	}
	switch {
	case err != nil:
		c.errs = append(c.errs, err)
		return "", IsInvalid
	case !known:
		return "", WantsNonce
	}
	return thumbprint, ""
}

// Err returns what was wrong with proofs that were invalid.
func (c *Checker) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.errs...)
}

// algorithms are those of RFC 7518 that are asymmetric.
var algorithms = []jose.SignatureAlgorithm{jose.ES256, jose.ES384, jose.ES512, jose.RS256, jose.PS256, jose.EdDSA}

func (c *Checker) read(r *http.Request, token string, now time.Time) (thumbprint, nonce string, err error) {
	proofs := r.Header.Values("DPoP")
	if len(proofs) != 1 {
		return "", "", fmt.Errorf("%d proofs", len(proofs))
	}
	parts := strings.Split(proofs[0], ".")
	if len(parts) != 3 {
		return "", "", errors.New("no compact JWS")
	}
	var header struct {
		Typ, Alg string
		JWK      map[string]string
	}
	if err := decode(parts[0], &header); err != nil {
		return "", "", fmt.Errorf("header: %w", err)
	}
	for _, secret := range []string{"d", "p", "q", "dp", "dq", "qi", "k"} {
		if header.JWK[secret] != "" {
			return "", "", errors.New("the private key is in the proof")
		}
	}
	if header.Typ != "dpop+jwt" || !slices.Contains(algorithms, jose.SignatureAlgorithm(header.Alg)) || header.JWK["kty"] == "" {
		return "", "", fmt.Errorf("header: %+v", header)
	}
	signed, err := jose.ParseSignedCompact(proofs[0], algorithms)
	if err != nil {
		return "", "", err
	}
	key := signed.Signatures[0].Header.JSONWebKey
	if _, err := signed.Verify(key); err != nil {
		return "", "", err
	}
	sum, err := key.Thumbprint(crypto.SHA256)
	if err != nil {
		return "", "", err
	}
	var claims struct {
		JTI, HTM, HTU, Nonce, ATH string
		IAT                       int64
	}
	if err := decode(parts[1], &claims); err != nil {
		return "", "", fmt.Errorf("claims: %w", err)
	}
	ath := ""
	if token != "" {
		hash := sha256.Sum256([]byte(token))
		ath = base64.RawURLEncoding.EncodeToString(hash[:])
	}
	off := time.Unix(claims.IAT, 0).Sub(now)
	switch htu := c.Origin + r.URL.EscapedPath(); {
	case claims.HTM != r.Method, claims.HTU != htu:
		err = fmt.Errorf("%s %s, and not %s %s", claims.HTM, claims.HTU, r.Method, htu)
	case claims.ATH != ath:
		err = fmt.Errorf("ath %q", claims.ATH)
	case off.Abs() > skew:
		err = fmt.Errorf("iat off by %s", off)
	case len(claims.JTI) < minID || c.seen[claims.JTI]:
		err = fmt.Errorf("jti %q", claims.JTI)
	}
	if c.seen == nil {
		c.seen = map[string]bool{}
	}
	c.seen[claims.JTI] = true
	return base64.RawURLEncoding.EncodeToString(sum), claims.Nonce, err
}

func decode(part string, into any) error {
	data, err := base64.RawURLEncoding.Strict().DecodeString(part)
	if err != nil {
		return err
	}
	return json.NewDecoder(bytes.NewReader(data)).Decode(into)
}

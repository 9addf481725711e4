package mcpbridge

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"
)

// H-G: credentials that were not made by OAuth are refused, and do not block.
func TestCredentialsWithoutAHandlerSaySo(t *testing.T) {
	for _, o := range []*OAuthCredentials{nil, {}, OAuth(nil)} {
		_, err := o.Headers(t.Context())
		require.ErrorIs(t, err, errNotMade)
		require.ErrorIs(t, o.Refresh(t.Context(), nil, nil), errNotMade)
		require.ErrorIs(t, (&Server{Name: "s", URL: "https://a", Auth: o}).Validate(), errNotMade)
	}
}

var (
	_ BoundTokenSource = (*bound)(nil)
	_ BoundCredentials = (*OAuthCredentials)(nil)
)

// bound is a source of tokens that can be bound to a key, and the handler that has it.
type bound struct {
	token *oauth2.Token
	key   crypto.Signer
	err   error
	next  *oauth2.Token // after Authorize
}

func (b *bound) Token() (*oauth2.Token, error) {
	return nil, errors.New("BoundToken is called in place of it")
}

func (b *bound) BoundToken() (*oauth2.Token, crypto.Signer, error) { return b.token, b.key, b.err }

func (b *bound) TokenSource(context.Context) (oauth2.TokenSource, error) { return b, nil }

func (b *bound) Authorize(context.Context, *http.Request, *http.Response) error {
	b.token, b.err = b.next, nil
	return nil
}

func TestTokenAndItsKeyComeTogether(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	lost := errors.New("the key is lost")
	for name, c := range map[string]struct {
		source bound
		want   string
		bound  bool
		err    error
	}{
		"bound":           {bound{token: &oauth2.Token{AccessToken: "a", TokenType: "DPoP"}, key: key}, "DPoP a", true, nil},
		"in another case": {bound{token: &oauth2.Token{AccessToken: "a", TokenType: "dpop"}, key: key}, "DPoP a", true, nil},
		"not bound":       {bound{token: &oauth2.Token{AccessToken: "a", TokenType: "bearer"}, key: key}, "Bearer a", false, nil},
		"of an odd type":  {bound{token: &oauth2.Token{AccessToken: "a", TokenType: "user"}, key: key}, "Bearer a", false, nil},
		"without a key":   {bound{token: &oauth2.Token{AccessToken: "a", TokenType: "DPoP"}}, "", false, errNoKey},
		"no token":        {bound{key: key}, "", false, nil},
		"an error":        {bound{err: lost}, "", false, lost},
	} {
		t.Run(name, func(t *testing.T) {
			o := OAuth(&c.source)
			headers, signer, err := o.BoundHeaders(t.Context())
			require.ErrorIs(t, err, c.err)
			require.Equal(t, c.want, headers.Get("Authorization"))
			require.Equal(t, c.bound, signer != nil)
			plain, err := o.Headers(t.Context())
			require.ErrorIs(t, err, c.err)
			require.Equal(t, headers, plain)

			c.source.next = &oauth2.Token{AccessToken: "b", TokenType: "DPoP"}
			c.source.key = key
			for _, scheme := range []string{"Bearer", "DPoP"} { // of the token that was refused
				req := &http.Request{Header: http.Header{"Authorization": {scheme + " another"}}}
				require.NoError(t, o.Refresh(t.Context(), req, &http.Response{StatusCode: 401, Body: http.NoBody}))
				if c.want != "" {
					require.Equal(t, "a", c.source.token.AccessToken, "it has another token")
				}
				req = &http.Request{Header: http.Header{"Authorization": {scheme + " a"}}}
				require.NoError(t, o.Refresh(t.Context(), req, &http.Response{StatusCode: 401, Body: http.NoBody}))
				if c.want == "" {
					continue
				}
				require.Equal(t, "b", c.source.token.AccessToken)
				c.source.token = &oauth2.Token{AccessToken: "a", TokenType: "DPoP"}
			}
		})
	}

	source := oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "a", TokenType: "DPoP"})
	_, err = OAuth(plain{source}).Headers(t.Context())
	require.ErrorIs(t, err, errNoKey, "the source gives no keys")
}

// plain is a handler with a source of tokens.
type plain struct{ source oauth2.TokenSource }

func (p plain) TokenSource(context.Context) (oauth2.TokenSource, error) { return p.source, nil }

func (plain) Authorize(context.Context, *http.Request, *http.Response) error { return nil }

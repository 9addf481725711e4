package login

import (
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"golang.org/x/oauth2"

	"github.com/mcpactor/mcpactor/internal/proof"
)

// Record is what is kept of a login. It is secret, and read-only once it is kept.
type Record struct {
	// Server is the URL of the MCP server.
	Server string
	// Resource is what the tokens are for (RFC 8707), and Issuer the authorization server that gives them. Issuer may be empty.
	Resource string
	Issuer   string `json:",omitempty"`
	// Client is this program, as the authorization server knows it. A token is refreshed at its Endpoint.TokenURL.
	Client *oauth2.Config
	// Given is true if a person has given Client: the program has not registered itself.
	Given bool
	// Way is how the authorization server knows this program, in words. It may be empty.
	Way string `json:",omitempty"`
	// KeyFile is the file with the private key of a client that logs in by itself, see [ClientCredentials]. Machine is true for such a
	// client.
	KeyFile string `json:",omitempty"`
	Machine bool   `json:",omitempty"`
	// Token is nil after the authorization server has refused to refresh it.
	Token *oauth2.Token
	// Key is the private key that Token is bound to (DPoP, RFC 9449), as a JWK. It is empty for a bearer token.
	Key json.RawMessage `json:",omitempty"`

	signs crypto.Signer // Key, once it has been read
}

// validate returns an error for what cannot be kept, because it could not be used.
func (r *Record) validate() error {
	switch {
	case r == nil:
		return errors.New("is nil")
	case r.Client == nil:
		return errors.New("Client is nil")
	case r.Token == nil:
		return errors.New("Token is nil")
	case r.Token.RefreshToken != "" && !r.Machine && r.Client.Endpoint.TokenURL == "":
		return errors.New("Client has no Endpoint.TokenURL, at which its token is refreshed")
	}
	return nil
}

// String says whether there is a token, and nothing of it.
func (r *Record) String() string {
	if r == nil || r.Token == nil {
		return "no token"
	}
	return "a token that is hidden"
}

// Format writes String for every verb: "%#v" would show the token.
func (r *Record) Format(s fmt.State, _ rune) { io.WriteString(s, r.String()) } //nolint:errcheck // fmt has nowhere to report it

// signer returns the key that the token is bound to, or nil. It is asked for each request.
func (r *Record) signer() (crypto.Signer, error) {
	if len(r.Key) == 0 || r.signs != nil {
		return r.signs, nil
	}
	key, _, err := proof.ParseKey(r.Key)
	return key, err
}

// scopes returns those that were asked for.
func (r *Record) scopes() []string {
	if r == nil || r.Client == nil {
		return nil
	}
	return r.Client.Scopes
}

// decode returns the record that a store has, or nil if it has none.
func decode(data []byte) (*Record, error) {
	if len(data) == 0 {
		return nil, nil
	}
	var r Record
	err := json.Unmarshal(data, &r)
	if err == nil && r.Client == nil {
		err = errors.New("it has no client")
	}
	if err == nil {
		if r.signs, err = r.signer(); err != nil {
			err = errors.New("its key is none")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the login that is kept cannot be read: %w", err)
	}
	return &r, nil
}

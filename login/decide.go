package login

import (
	"slices"

	"github.com/mcpactor/mcpactor/internal/oauthresource"
)

// step is what is done to have a token.
type step int

const (
	use     step = iota // the token that is kept
	refresh             // it, with its refresh token
	grant               // get another one by the grant
	ask                 // a person
)

// decide says what is done for a request. kept may be nil. refused is the token that the MCP server has refused, or empty. An
// automatic login has a grant.
func decide(kept *Record, refused string, automatic bool) step {
	has := kept != nil && kept.Token != nil
	switch {
	case has && kept.Token.Valid() && kept.Token.AccessToken != refused:
		return use // another one may have got it meanwhile
	case automatic:
		return grant
	case has && kept.Token.RefreshToken != "":
		return refresh
	}
	return ask
}

// issuerOf says which of the authorization servers that an MCP server names is used: the one at which the client is registered, else
// the one that was used before, else the first. It returns false if that is not among them.
func issuerOf(named []string, registered, before string) (issuer string, ok bool) {
	for _, known := range []string{registered, before} {
		if known != "" {
			i := slices.IndexFunc(named, func(one string) bool { return oauthresource.SameIssuer(one, known) })
			if i < 0 {
				return known, false
			}
			return named[i], true
		}
	}
	if len(named) == 0 {
		return "", false
	}
	return named[0], true
}

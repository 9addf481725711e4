// Package challenge reads what a server says about the credentials that it refuses.
package challenge

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
)

var scopeParameter = regexp.MustCompile(`(?i)\bscope\s*=\s*(?:"([^"]*)"|([^\s",]+))`)

// MissingScopes reports whether a response refuses credentials because they lack scopes
// (403 with insufficient_scope), and returns those scopes, sorted and separated by spaces.
func MissingScopes(resp *http.Response) (scopes string, missing bool) {
	challenge := strings.Join(resp.Header["Www-Authenticate"], ", ")
	if resp.StatusCode != http.StatusForbidden || !strings.Contains(challenge, "insufficient_scope") {
		return "", false
	}
	if found := scopeParameter.FindStringSubmatch(challenge); found != nil {
		names := strings.Fields(found[1] + found[2])
		slices.Sort(names)
		scopes = strings.Join(slices.Compact(names), " ")
	}
	return scopes, true
}

// MaxSets bounds how many sets of scopes are requested with the same credentials: a
// server could name other scopes each time.
const MaxSets = 16

// Requested maps each set of scopes that was requested to the token that resulted from it. The token is empty if
// the caller forgets all sets when the credentials change. A request may involve a person, so each set is requested
// once.
type Requested map[string]string

// Add notes that a set of scopes is requested with a token. It returns false when the
// set was requested with that token before, or when there are too many sets.
func (r *Requested) Add(scopes, token string) bool {
	before, asked := (*r)[scopes]
	if asked && before == token || !asked && len(*r) == MaxSets {
		return false
	}
	if *r == nil {
		*r = Requested{}
	}
	(*r)[scopes] = token
	return true
}

package mcpbridge

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// maxScopeSets bounds how many sets of scopes are asked for with the same credentials.
const maxScopeSets = 16

// scopeSets are the sets of scopes that were asked for, each with the token that came
// of it; empty where the credentials are the same until the sets are forgotten. Asking
// may be asking a person, so it is done once.
type scopeSets map[string]string

// add notes that a set is asked for with a token. It reports false when it was before,
// and when there are too many.
func (s *scopeSets) add(scopes, token string) bool {
	before, asked := (*s)[scopes]
	if asked && before == token || !asked && len(*s) == maxScopeSets {
		return false
	}
	if *s == nil {
		*s = scopeSets{}
	}
	(*s)[scopes] = token
	return true
}

var scopeIn = regexp.MustCompile(`(?i)\bscope\s*=\s*(?:"([^"]*)"|([^\s",]+))`)

// stepUp reports whether a response refuses credentials that lack scopes, and which
// those are.
func stepUp(resp *http.Response) (scopes string, step bool) {
	said := challenge(resp)
	if resp.StatusCode != http.StatusForbidden || !strings.Contains(said, "insufficient_scope") {
		return "", false
	}
	if found := scopeIn.FindStringSubmatch(said); found != nil {
		names := strings.Fields(found[1] + found[2])
		slices.Sort(names)
		scopes = strings.Join(slices.Compact(names), " ")
	}
	return scopes, true
}

// challenge returns what a response says about the credentials that it wants.
func challenge(resp *http.Response) string {
	return strings.Join(resp.Header["Www-Authenticate"], ", ")
}

package bridge

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// fingerprintOf stands for a text, without saying it.
func fingerprintOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// identity returns what [Resume.Identity] is for a session; empty when nothing tells one
// identity from another. It is another one for each session, so that it does not tell
// which records are of the same.
func (at *endpoint) identity(sessionID, who string) string {
	if who == "" && len(at.Headers) == 0 {
		return ""
	}
	said := fmt.Appendf(nil, "%q of %q", sessionID, who)
	for _, name := range slices.Sorted(maps.Keys(at.Headers)) {
		said = fmt.Appendf(said, ", %q: %q", http.CanonicalHeaderKey(name), at.Headers[name])
	}
	return fingerprintOf(string(said))
}

// owns reports whether a session is one of this server, and of whoever these
// credentials are of.
func (at *endpoint) owns(r *mcpbridge.Resume, c mcpbridge.Credentials) bool {
	return r.Endpoint == at.fingerprint && r.Identity == at.identity(r.SessionID, identityOf(c))
}

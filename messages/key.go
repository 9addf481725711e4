package messages

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// DefaultScope is the scope that an empty scope stands for.
const DefaultScope = "default"

// maxScope is the maximum length of a scope, in bytes.
const maxScope = 1024

// Key names one session: by the name of its server in the configuration, and by the scope
// of the caller. A key has at most one live MCP session.
type Key struct {
	Server string `json:"server"`
	// Scope is the unit of isolation that the caller chooses: a conversation, a user, a
	// tenant. It has at most 1,024 bytes, see [Key.Validate]. Empty means [DefaultScope].
	Scope string `json:"scope"`
}

// Normal returns the key with an empty scope replaced by [DefaultScope].
func (k Key) Normal() Key {
	if k.Scope == "" {
		k.Scope = DefaultScope
	}
	return k
}

// Compare orders keys by server, then by scope. The result is that of [cmp.Compare].
func (k Key) Compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Server, other.Server), cmp.Compare(k.Scope, other.Scope))
}

// Validate returns an error if the scope is too long, or has control characters or invalid
// UTF-8: a scope is part of log lines.
func (k Key) Validate() error {
	switch {
	case len(k.Scope) > maxScope:
		return fmt.Errorf("scope: has %d bytes, at most %d are allowed", len(k.Scope), maxScope)
	case !utf8.ValidString(k.Scope):
		return fmt.Errorf("scope: is not valid UTF-8")
	case strings.ContainsFunc(k.Scope, unicode.IsControl):
		return fmt.Errorf("scope: has a control character")
	}
	return nil
}

// String returns "server/scope". It is quoted if it contains characters that could be
// misread, and bounded in length.
func (k Key) String() string {
	s := k.Server + "/" + k.Scope
	if len(s) > 2*maxScope {
		s = strings.ToValidUTF8(s[:2*maxScope], "") + "…"
	}
	if q := strconv.Quote(s); len(q) != len(s)+2 {
		return q
	}
	return s
}

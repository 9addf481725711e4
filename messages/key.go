package messages

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// DefaultScope is the scope that an empty one stands for.
const DefaultScope = "default"

// MaxScope is the longest scope that is accepted, in bytes.
const MaxScope = 1024

// Key names one session: the server it talks to, by its configured name, and
// the scope of the caller who owns it. There is at most one live MCP session
// per key.
type Key struct {
	Server string `json:"server"`
	// Scope is the caller's unit of isolation: a conversation, a user, a
	// tenant. Empty means [DefaultScope].
	Scope string `json:"scope"`
}

// Normal returns the key with an empty scope replaced by [DefaultScope].
func (k Key) Normal() Key {
	if k.Scope == "" {
		k.Scope = DefaultScope
	}
	return k
}

// Validate reports what is wrong with the scope: control characters and
// invalid UTF-8 are refused, because a scope ends up in log lines.
func (k Key) Validate() error {
	switch {
	case len(k.Scope) > MaxScope:
		return fmt.Errorf("scope: has %d bytes, at most %d are allowed", len(k.Scope), MaxScope)
	case !utf8.ValidString(k.Scope):
		return fmt.Errorf("scope: is not valid UTF-8")
	case strings.ContainsFunc(k.Scope, unicode.IsControl):
		return fmt.Errorf("scope: has a control character")
	}
	return nil
}

// String returns "server/scope", quoted where it could be mistaken for
// something else.
func (k Key) String() string {
	s := k.Server + "/" + k.Scope
	if len(s) > 2*MaxScope {
		s = strings.ToValidUTF8(s[:2*MaxScope], "") + "…"
	}
	if q := strconv.Quote(s); len(q) != len(s)+2 {
		return q
	}
	return s
}

package supervisor

import (
	"strings"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Limits are bounds and timeouts of one server, in the field Limits of a [Server]: an alias,
// so that most programs need no import of package mcpbridge.
type Limits = mcpbridge.Limits

// Bound bounds how often tools of a server are called: an alias, so that programs need not import package mcpbridge.
type Bound = mcpbridge.Bound

// ScopePrefix returns a function for [Config.Tenant]. The tenant of a key is the part of its
// scope before the first separator: with the separator "/", the tenant of the scope
// "acme/42" is "acme". A scope without a separator, or without text before it, is a tenant by
// itself.
func ScopePrefix(separator string) func(messages.Key) string {
	return func(key messages.Key) string {
		if at := strings.Index(key.Scope, separator); at > 0 {
			return key.Scope[:at]
		}
		return key.Scope
	}
}

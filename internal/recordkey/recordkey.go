// Package recordkey has the keys of those records in a store that are of no session.
package recordkey

import (
	"strconv"
	"strings"

	"github.com/mcpactor/mcpactor/messages"
)

// The scopes of these keys begin with one of these. No other scope has control characters.
const (
	listScope = "\x1flist "
	callScope = "\x1fcall "
)

// List returns the key of the record with a list of a server. id says which list it is.
func List(server, id string) messages.Key {
	return messages.Key{Server: server, Scope: listScope + id}
}

// IsList reports whether a key is one that List has returned.
func IsList(key messages.Key) bool { return strings.HasPrefix(key.Scope, listScope) }

// Call returns the key of the record with a call that waits for an approval: of the toolset of a scope, under an id.
func Call(scope, id string) messages.Key {
	return messages.Key{Server: "toolset", Scope: callScope + strconv.Quote(scope) + " " + id}
}

// IsCall reports whether a key is one that Call has returned.
func IsCall(key messages.Key) bool { return strings.HasPrefix(key.Scope, callScope) }

// Package recordkey has the keys of those records in a store that are of no session.
package recordkey

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"

	"github.com/mcpactor/mcpactor/messages"
)

// The scopes of lists begin with listScope, calls are of callServer, handles of handleServer, and logins of loginServer. No other scope and
// no server has control characters.
// Calls of version 0.2 have scopes that begin with oldCallScope. They are deleted when they are outdated.
const (
	listScope    = "\x1flist "
	callServer   = "\x1fcall"
	oldCallScope = "\x1fcall "
	handleServer = "\x1fhandle"
	loginServer  = "\x1flogin"
)

// List returns the key of the record with a list of a server. id says which list it is.
func List(server, id string) messages.Key {
	return messages.Key{Server: server, Scope: listScope + id}
}

// IsList reports whether a key is one that List has returned.
func IsList(key messages.Key) bool { return strings.HasPrefix(key.Scope, listScope) && !IsLogin(key) }

// Call returns the key of the record of a call: of a scope, under an id.
func Call(scope, id string) messages.Key {
	return messages.Key{Server: callServer, Scope: strconv.Quote(scope) + " " + id}
}

// IsCall reports whether a key is that of a call, also of version 0.2.
func IsCall(key messages.Key) bool { return key.Server == callServer || IsOldCall(key) }

// OldCall returns the key of the record of a durable call in version 0.2.
func OldCall(key messages.Key, id string) messages.Key {
	return messages.Key{Server: key.Server, Scope: oldCallScope + strconv.Quote(key.Scope) + " task " + id}
}

// IsOldCall reports whether a key is that of a call of version 0.2.
func IsOldCall(key messages.Key) bool { return strings.HasPrefix(key.Scope, oldCallScope) }

// Handle returns the key of the record of a handle, or of a mint, that a call of a key has caused. id tells them apart.
func Handle(of messages.Key, id string) messages.Key {
	return messages.Key{Server: handleServer, Scope: strconv.Quote(of.Scope) + " " + of.Server + " " + id}
}

// OfHandle returns the key whose call has caused the record of a handle.
func OfHandle(record messages.Key) (of messages.Key) {
	quoted, err := strconv.QuotedPrefix(record.Scope)
	if err != nil {
		return of
	}
	of.Scope, _ = strconv.Unquote(quoted)
	of.Server, _, _ = strings.Cut(strings.TrimPrefix(record.Scope[len(quoted):], " "), " ")
	return of
}

// IsHandle reports whether a key is that of a handle.
func IsHandle(key messages.Key) bool { return key.Server == handleServer }

// Login returns the key of the record of a login. It does not show the ID. Version 0.2 takes it for the key of a list, and leaves the record
// alone.
func Login(id string) messages.Key {
	return messages.Key{Server: loginServer, Scope: listScope + fmt.Sprintf("%x", sha256.Sum256([]byte(id)))}
}

// IsLogin reports whether a key is that of a login.
func IsLogin(key messages.Key) bool { return key.Server == loginServer }

// IsOfSession reports whether a key is that of a session.
func IsOfSession(key messages.Key) bool {
	return !IsList(key) && !IsCall(key) && !IsHandle(key) && !IsLogin(key)
}

// Package session has the session actor, which owns the connection of one key. A registry spawns
// it with [Props].
package session

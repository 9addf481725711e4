// Package resume keeps what it takes to attach to sessions that servers still
// know: stores for [mcpbridge.Store].
//
// # Secrets
//
// A record has no credentials, but whoever knows a session id may be able to
// use the session. So no error and no printed value has an id in it.
//
// # Concurrency
//
// All methods may be called from any goroutine.
package resume

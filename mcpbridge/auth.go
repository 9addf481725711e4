package mcpbridge

import (
	"context"
	"net/http"

	"github.com/mcpactor/mcpactor/messages"
)

// Authenticator gives each key of a server its credentials, such as the tokens of
// the user that a scope stands for. Its method may be called from any goroutine.
type Authenticator interface {
	// Credentials returns what the requests of a key carry; nil is nothing. It is
	// called for each session that is dialed or attached to; ctx ends with the
	// attempt. An error is an unauthorized one, and fails the dial.
	Credentials(ctx context.Context, key messages.Key) (Credentials, error)
}

// AuthenticatorFunc is a function that is an [Authenticator]. Functions cannot be
// compared, so with one a server is never the same as before: when the servers are
// reloaded its sessions are replaced.
type AuthenticatorFunc func(ctx context.Context, key messages.Key) (Credentials, error)

// Credentials calls f.
func (f AuthenticatorFunc) Credentials(ctx context.Context, key messages.Key) (Credentials, error) {
	return f(ctx, key)
}

// Credentials are what the requests of one key carry to the origin of
// [Server.URL], and to no other. The methods may be called from any goroutine. What
// they return appears in no log, event or error text. The text of their errors
// does, so that it must not contain secrets.
type Credentials interface {
	// Headers returns the headers of one request, such as Authorization. They go
	// before those of [Server.Headers], and are read-only once returned. It is
	// called for every request, so that it should be quick; ctx ends with the request.
	// An error fails the request with unauthorized, and nothing is sent.
	Headers(ctx context.Context) (http.Header, error)
	// Refresh gets new credentials after the server refused those that req
	// carried: with 401, or with 403 and a challenge that says insufficient_scope.
	// After it has returned nil the request is sent once more, with what Headers
	// returns then; its second refusal is the caller's.
	//
	// If several requests of one session are refused at the same time, one calls
	// Refresh, and the others wait for it, each until its own context ends. So ctx ends
	// with the session, and not with a call. Neither req, which has no body, nor
	// resp may be changed. The body of resp may be read, and need not be closed.
	//
	// For 403 it is called once per set of scopes that the server says are missing, until
	// a 401 has led to other credentials: further refusals are the caller's at once.
	Refresh(ctx context.Context, req *http.Request, resp *http.Response) error
}

// Identified is implemented by [Credentials] that know their owner. See
// [Resume.Identity].
type Identified interface {
	// Identity returns what stays the same while tokens come and go, such as the id of
	// the user. It is called when a session is dialed or attached to, and must not
	// block. Empty is the same as not to have it.
	Identity() string
}

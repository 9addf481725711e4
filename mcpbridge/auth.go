package mcpbridge

import (
	"context"
	"crypto"
	"net/http"

	"github.com/mcpactor/mcpactor/messages"
)

// Authenticator gives each key of a server its credentials, such as the tokens of
// the user that a scope stands for. Its method may be called from any goroutine.
type Authenticator interface {
	// Credentials returns the credentials for the requests of a key, or nil for none. It is called
	// for each dial, also for one that resumes a session. ctx ends with the dial. An error
	// fails the dial with class [Unauthorized].
	Credentials(ctx context.Context, key messages.Key) (Credentials, error)
}

// AuthenticatorFunc is a function that is an [Authenticator]. Functions cannot be compared:
// when the servers are reloaded, a server with an AuthenticatorFunc counts as changed, and
// its sessions are closed.
type AuthenticatorFunc func(ctx context.Context, key messages.Key) (Credentials, error)

// Credentials calls f.
func (f AuthenticatorFunc) Credentials(ctx context.Context, key messages.Key) (Credentials, error) {
	return f(ctx, key)
}

// Credentials are added to the requests of one key to the origin of [Server.URL], and to no
// other. The methods may be called from any goroutine. The headers that they return appear in no
// log, event or error text. The text of their errors does appear there, and must not
// contain secrets. If an error is an [*Error] with a Remedy, the failure has that remedy, such as
// how to log in.
type Credentials interface {
	// Headers returns the headers of one request, such as Authorization. They take
	// precedence over [Server.Headers], and are read-only once returned. Headers is called
	// for every request, and should be quick; ctx ends with the request. An error fails the
	// request with class [Unauthorized], and nothing is sent.
	//
	// ctx has the attributes and the trace of the operation that the request is sent for,
	// see [messages.AttributesOf], and the values of its caller's context until the caller
	// has the reply. During a dial it has the attributes and the trace of the first operation
	// that waits for the session. Requests for no operation, such as pings, have none.
	Headers(ctx context.Context) (http.Header, error)
	// Refresh gets new credentials after the server has refused those that req carried:
	// with 401, or with 403 and a challenge that says insufficient_scope. If it returns
	// nil, the request is sent once more, with what Headers returns then. A second refusal
	// is returned to the caller.
	//
	// If several requests of one session are refused at the same time, one of them calls
	// Refresh, and the others wait for it, each until its own context ends. For this reason
	// ctx ends with the session, and not with a call. It has the values of the call whose
	// request was refused first, as in Headers. req has no body. Refresh must not change req or resp. It
	// may read the body of resp, and need not close it.
	//
	// For a 403, Refresh is called once for each set of scopes that the server says are
	// missing. Further refusals for the same scopes are returned to the caller at once,
	// until a 401 has led to other credentials.
	Refresh(ctx context.Context, req *http.Request, resp *http.Response) error
}

// BoundCredentials is implemented by [Credentials] whose tokens can be bound to a key (DPoP, RFC 9449).
type BoundCredentials interface {
	Credentials
	// BoundHeaders returns what Headers does, and the key that the token in Authorization is bound to, or nil if it is bound to
	// none. It is called in place of Headers for the requests to the server. With a key and the scheme DPoP, each request carries a
	// proof of its own: also one that is sent once more because the server wants another nonce or time in it, which
	// is no reason for Refresh.
	BoundHeaders(ctx context.Context) (http.Header, crypto.Signer, error)
}

// Identified is implemented by [Credentials] that know their owner. See
// [Resume.Identity]. Other credentials are the same for [RateLimited] if they have the same headers.
type Identified interface {
	// Identity returns a text that stays the same while tokens change, such as the id of the user.
	// It is called for each dial, and must not block. An empty identity means the same as
	// no method Identity.
	Identity() string
}

package bridge

import (
	"context"
	"errors"
	"hash/maphash"
	"net/http"

	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// seed makes fingerprints of credentials useless outside this process.
var seed = maphash.MakeSeed()

// noCredentials is the fingerprint of credentials that could not be obtained.
const noCredentials = 0

// fingerprint returns a hash of the current headers of credentials. err is the error in place of the credentials, or
// nil.
func fingerprint(ctx context.Context, c mcpbridge.Credentials, err error) uint64 {
	var headers http.Header
	if err == nil && c != nil {
		headers, err = guard.Call(func() (http.Header, error) { return c.Headers(ctx) })
	}
	if err != nil {
		return noCredentials
	}
	var h maphash.Hash
	h.SetSeed(seed)
	headers.Write(&h) //nolint:errcheck // a hash returns no error
	return h.Sum64() | 1
}

// refusedCredentials is an underlying error that remembers the fingerprint of the credentials that were refused.
type refusedCredentials struct {
	fingerprint uint64
	err         error // the underlying error without the fingerprint, or nil
}

// Error returns the text of the underlying error.
func (r *refusedCredentials) Error() string {
	if r.err == nil {
		return "the credentials were refused"
	}
	return r.err.Error()
}

// Unwrap returns the underlying error.
func (r *refusedCredentials) Unwrap() error { return r.err }

// withFingerprint returns the error of a dial. If credentials were refused, the error remembers their fingerprint.
func withFingerprint(err error, fingerprint uint64) error {
	e := mcpbridge.AsError(err)
	if e.Class != mcpbridge.Unauthorized {
		return err
	}
	refused := *e
	refused.Err = &refusedCredentials{fingerprint, e.Err}
	return &refused
}

// fingerprintIn returns the fingerprint that an error remembers.
func fingerprintIn(e *mcpbridge.Error) uint64 {
	var r *refusedCredentials
	if errors.As(e.Err, &r) {
		return r.fingerprint
	}
	return noCredentials
}

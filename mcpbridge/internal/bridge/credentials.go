package bridge

import (
	"context"
	"errors"
	"hash/maphash"
	"net/http"

	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// seed keeps fingerprints of credentials from being compared outside of the process.
var seed = maphash.MakeSeed()

// noCredentials is the fingerprint of credentials that could not be had.
const noCredentials = 0

// fingerprint stands for the headers that credentials have now. err is why the credentials
// could not be had, or nil.
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
	headers.Write(&h) //nolint:errcheck // it takes everything, in an order of its own
	return h.Sum64() | 1
}

// refusedCredentials is the error behind a refusal of credentials. It remembers their fingerprint.
type refusedCredentials struct {
	fingerprint uint64
	err         error // the error behind it, or nil
}

// Error returns the text of the error behind it.
func (r *refusedCredentials) Error() string {
	if r.err == nil {
		return "the credentials were refused"
	}
	return r.err.Error()
}

// Unwrap returns the error behind it.
func (r *refusedCredentials) Unwrap() error { return r.err }

// withFingerprint returns the error of a dial. If it refuses credentials, it remembers their
// fingerprint.
func withFingerprint(err error, fingerprint uint64) error {
	e := mcpbridge.AsError(err)
	if e.Class != mcpbridge.Unauthorized {
		return err
	}
	refused := *e
	refused.Err = &refusedCredentials{fingerprint, e.Err}
	return &refused
}

// fingerprintIn returns the fingerprint of the credentials that an error refuses.
func fingerprintIn(e *mcpbridge.Error) uint64 {
	var r *refusedCredentials
	if errors.As(e.Err, &r) {
		return r.fingerprint
	}
	return noCredentials
}

package bridge

import (
	"context"
	"errors"
	"hash/maphash"
	"net/http"

	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"

	"github.com/mcpactor/mcpactor/internal/bridge/redact"
)

// identityOf returns whose credentials these are, as far as they know; else empty: then
// they are those of the key.
func identityOf(c mcpbridge.Credentials) string {
	if known, ok := c.(mcpbridge.Identified); ok {
		return known.Identity()
	}
	return ""
}

// unauthorized returns the error for credentials that cannot be had. A panic stays
// one.
func unauthorized(text string, err error, secrets []string) *mcpbridge.Error {
	var panicked *guard.Panic
	if errors.As(err, &panicked) {
		return &mcpbridge.Error{Class: mcpbridge.Internal, Detail: text + redact.Clean(panicked.Brief(), secrets...), Err: panicked}
	}
	return &mcpbridge.Error{Class: mcpbridge.Unauthorized, Detail: text + redact.Describe(err, secrets...), Err: err}
}

// credentials returns the credentials of a key.
func (at *endpoint) credentials(ctx context.Context, key messages.Key) (mcpbridge.Credentials, error) {
	if at.Auth == nil {
		return nil, nil
	}
	c, err := guard.Call(func() (mcpbridge.Credentials, error) { return at.Auth.Credentials(ctx, key) })
	switch {
	case err == nil:
		return c, nil
	case ctx.Err() != nil:
		return nil, mcpbridge.AsDialError(ctx.Err())
	}
	return nil, unauthorized("no credentials: ", err, at.sent.AppendTo(redact.OfServer(&at.Server)))
}

// seed keeps fingerprints of credentials from being compared outside of the process.
var seed = maphash.MakeSeed()

// noCredentials is the fingerprint of credentials that could not be had.
const noCredentials = 0

// fingerprint stands for the headers that credentials have now. err is why they
// could not be had, or nil.
func fingerprint(ctx context.Context, c mcpbridge.Credentials, err error) uint64 {
	var headers http.Header
	if err == nil && c != nil {
		headers, err = guard.Call(func() (http.Header, error) { return c.Headers(bare{ctx}) })
	}
	if err != nil {
		return noCredentials
	}
	var h maphash.Hash
	h.SetSeed(seed)
	headers.Write(&h) //nolint:errcheck // it takes everything, in an order of its own
	return h.Sum64() | 1
}

// bare is a context without values. Those of a call have the bridge told of its
// requests, and what the user's code sends is none of them.
type bare struct{ context.Context }

func (bare) Value(any) any { return nil }

// AfterFunc spares package context a goroutine that waits for the end.
func (b bare) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(b.Context, f) }

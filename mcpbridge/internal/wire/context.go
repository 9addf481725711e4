package wire

import (
	"context"

	"github.com/mcpactor/mcpactor/internal/caller"
)

// WithoutValues returns a context for code of the user, which ends with ctx. It has the values of the caller of
// the operation, and not those of the bridge: by these the bridge would take requests that the user's code sends
// for requests of the operation.
func WithoutValues(ctx context.Context) context.Context { return ForCaller(ctx, ctx) }

// ForCaller returns a context for code of the user that ends with life, and has the values of
// the caller of the operation that ctx belongs to.
func ForCaller(life, ctx context.Context) context.Context {
	values, _ := ctx.Value(callerKey{}).(context.Context)
	return callerContext{life, values}
}

type callerContext struct {
	context.Context
	values context.Context // or nil
}

// callerKey is the key of the caller's context.
type callerKey struct{}

// PrivateKey makes the key a [caller.Private].
func (callerKey) PrivateKey() {}

// Value returns a value of the caller.
func (c callerContext) Value(key any) any {
	switch {
	case c.values == nil:
		return nil
	case key == callerKey{}:
		return c.values
	case caller.Hides(key):
		return nil
	}
	return c.values.Value(key)
}

// AfterFunc makes package context start no goroutine that waits for the end.
func (c callerContext) AfterFunc(f func()) (stop func() bool) {
	return context.AfterFunc(c.Context, f)
}

type refreshKey struct{}

// PrivateKey makes the key a [caller.Private].
func (refreshKey) PrivateKey() {}

// WithoutRefresh returns a context for requests that use the current credentials, and never refresh them.
func WithoutRefresh(ctx context.Context) context.Context {
	return context.WithValue(ctx, refreshKey{}, false)
}

// MayRefresh reports whether a request may refresh credentials.
func MayRefresh(ctx context.Context) bool { return ctx.Value(refreshKey{}) == nil }

type backgroundKey struct{}

// PrivateKey makes the key a [caller.Private].
func (backgroundKey) PrivateKey() {}

// InBackground returns a context for requests that no call waits for.
func InBackground(ctx context.Context) context.Context {
	return context.WithValue(ctx, backgroundKey{}, true)
}

// IsInBackground reports whether no call waits for a request.
func IsInBackground(ctx context.Context) bool { return ctx.Value(backgroundKey{}) != nil }

package wire

import "context"

// WithoutValues returns ctx without its values. The values of a call have the bridge
// record its requests; requests that the user's code sends with ctx are none of them.
func WithoutValues(ctx context.Context) context.Context { return withoutValues{ctx} }

type withoutValues struct{ context.Context }

func (withoutValues) Value(any) any { return nil }

// AfterFunc spares package context a goroutine that waits for the end.
func (c withoutValues) AfterFunc(f func()) (stop func() bool) {
	return context.AfterFunc(c.Context, f)
}

type refreshKey struct{}

// WithoutRefresh returns a context for requests that are sent with the credentials that
// there are, and never refresh them.
func WithoutRefresh(ctx context.Context) context.Context {
	return context.WithValue(ctx, refreshKey{}, false)
}

// MayRefresh reports whether a request may refresh credentials.
func MayRefresh(ctx context.Context) bool { return ctx.Value(refreshKey{}) == nil }

type backgroundKey struct{}

// InBackground returns a context for requests that no call waits for.
func InBackground(ctx context.Context) context.Context {
	return context.WithValue(ctx, backgroundKey{}, true)
}

// IsInBackground reports whether no call waits for a request.
func IsInBackground(ctx context.Context) bool { return ctx.Value(backgroundKey{}) != nil }

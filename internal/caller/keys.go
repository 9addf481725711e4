// Package caller carries what a call has of its caller: the values of the caller's context,
// and the keys by which contexts have the attributes and the trace of an operation.
package caller

import "context"

type (
	// AttributesKey is the key of the *messages.Attributes of an operation.
	AttributesKey struct{}
	// TraceKey is the key of the *messages.Trace of an operation.
	TraceKey struct{}
)

// Shared returns base with the attributes and the trace of a caller, and no other values: the
// context of what is done for several callers at the request of this one.
func Shared(base, from context.Context) context.Context {
	base = context.WithValue(base, AttributesKey{}, from.Value(AttributesKey{}))
	return context.WithValue(base, TraceKey{}, from.Value(TraceKey{}))
}

// DurableKey is the key of the id, a string, under which a call is durable.
type DurableKey struct{}

// PrivateKey says that the value belongs to one operation.
func (DurableKey) PrivateKey() {}

// IDKey is the key of the id, a string, of the operation of a call.
type IDKey struct{}

// PrivateKey says that the value belongs to one operation.
func (IDKey) PrivateKey() {}

// RequestIDKey is the key of a func(id string) that is called with the id of each JSON-RPC request
// of an operation when it is sent.
type RequestIDKey struct{}

// PrivateKey says that the value belongs to one operation.
func (RequestIDKey) PrivateKey() {}

// SentKey is the key of a func() that is called when a request of an operation is sent. Over a pipe, no other request is sent
// meanwhile.
type SentKey struct{}

// Private is implemented by keys whose values belong to one call of this module. They are
// not handed on to what that call causes.
type Private interface{ PrivateKey() }

// cancelKey is the key by which package context finds what ends a context.
var cancelKey = KeyAsked(func(ctx context.Context) { _ = context.Cause(ctx) })

// KeyAsked returns the key of the last value that a function looks up in a context that has
// ended: the keys of other packages are not exported.
func KeyAsked(look func(context.Context)) (key any) {
	look(keyProbe{context.Background(), &key})
	return key
}

// keyProbe is a context that has ended. It notes the key of the last value that is looked up.
type keyProbe struct {
	context.Context
	key *any
}

// Err says that the context has ended.
func (keyProbe) Err() error { return context.Canceled }

// Value notes the key.
func (p keyProbe) Value(key any) any {
	*p.key = key
	return nil
}

// Hides reports whether the value of a key is not handed on: its key is [Private], or the
// value is about the end of the context.
func Hides(key any) bool {
	if key == cancelKey {
		return true
	}
	_, private := key.(Private)
	return private
}

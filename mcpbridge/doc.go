// Package mcpbridge is the only place that touches MCP: it dials a server over
// stdio, streamable HTTP, HTTP+SSE or in memory, runs one operation, closes,
// and says what an error means. It knows nothing of actors.
//
// # What an error means
//
// The errors of the SDK do not tell whether a request was sent, accepted or
// answered; what goes over the wire does. So every call carries an [exchange]
// in its context, and the two places that see the wire write into it: the
// [exchanger], an http.RoundTripper, for streamable HTTP, and the [tap], around
// the SDK's connection, for all other transports. [conn.Do] reads it back, and
// says in an [Error] what became of the call and of its session.
//
// # Expiry
//
// A request that carried a session id and was refused with 404 or 410, or with
// another 4xx whose body says that the session is unknown, was certainly not
// executed, and its session is gone: see [judge]. The exchanger hands the SDK a
// JSON-RPC error in place of such a refusal, so that one refused call does not
// fail all others in flight.
//
// # Credentials
//
// Under the exchanger of a session is its [authorizer], the only place that adds
// headers: those of the configuration, and the [Credentials] of its key. When the
// server refuses those, they are refreshed, once for all who wait, and the request is
// repeated. What was sent of late is blacked out of all error texts.
//
// # Concurrency
//
// All methods may be called from any goroutine. They may block, but no longer
// than their context and a little: each [Conn] can be cut from outside.
package mcpbridge

// Package mcpbridge is the contract of the bridge, the only part of this module that speaks
// MCP: how a server is configured, how a session with it is opened and used, and what an
// error means. Package [github.com/mcpactor/mcpactor/mcpbridge/dialer] makes the [Bridge]
// that implements this contract, over stdio, streamable HTTP, HTTP+SSE or in memory.
// Neither package knows about actors. In this package, a session is an MCP session.
//
// # What an error means
//
// The errors of the SDK do not say whether a request was sent, accepted or answered. The
// bridge therefore watches what goes over the wire, and says in an [Error] what became of a
// call ([Class]) and of its session ([Fate]).
//
// # One send
//
// A request is sent once. It counts as sent as soon as it is handed to the HTTP transport, or
// written to a pipe, unless there is proof that the server did not get it: the transport got no
// connection, an HTTP/2 server said that it did not process the request, or the closing brace
// of the message was never written.
//
// Requests have ids that no other connection of this process uses. An answer with the id of
// another connection is dropped and counted: see [Bridge].
//
// # How expiry is recognized
//
// Evidence decides whether a server knows a session, and not the wording of an error: servers
// report an unknown session with any status and in any language, and tools and logins have
// sessions, too. These rules are for requests that carry a session id. Without a session id
// nothing expires.
//
//   - A 404 or 410, unless it is a JSON-RPC error with the id of the request: the session has
//     expired. But if the session has answered nothing since initialize, the request is first
//     repeated for up to 2 s.
//   - A result, the error -32602 to a resources/read whose URI it repeats, or one of the errors
//     -32042, -32020, -32021 and -32022: the session is alive.
//   - A 429, no connection, or a connection that broke: this says nothing about the session.
//   - Any other 4xx or 5xx, a redirect that is not followed, any other JSON-RPC error, or an
//     event stream that ends empty: there is doubt.
//
// Doubt is settled once for all callers of a session. No caller waits for this longer than
// 5 s, nor past its deadline. The bridge asks the session a question: a ping, and one page
// of a list that the server has declared.
//
//   - If there is a result, the session is alive. For 30 s, a refusal with the same status and
//     code, of the same operation and tool, causes no doubt.
//   - If the question is refused with the status and code of the call, the bridge opens a second
//     session, the control, and asks it the same question. If the control answers, and the first
//     session refuses once more, the first session has expired: the next dial adopts the control,
//     and one DELETE is sent for the expired session. If the control refuses in the same way, or
//     cannot be opened, the session is alive, and the control is ended.
//   - Otherwise (no answer, another refusal, 429) the doubt remains. A later refusal that
//     causes doubt leads to another question, but not before 1 s has passed. This interval
//     grows, up to 30 s.
//
// A call that an expired session has refused did not run if the status of the call is a 4xx, or
// its answer a JSON-RPC error, and the question was refused in the same way. After a 5xx, a 302
// or 303, or an event stream that ends empty, the call may have run.
//
// HTTP+SSE and stdio have no control: if the question is refused in the same way as the
// call, and there was no result between the two, the session counts as broken. The same
// rules apply to an attempt to resume a session, to the standalone stream, and to the ping
// that keeps a session alive.
//
// Questions and controls are sent with the current credentials, which they do not refresh. None
// is sent to a server that cannot be reached.
//
// # What is sent where
//
// All HTTP requests of a session, including the DELETE that ends it, follow redirects within
// the origin of the server's URL, carry the cookies of the session, and go to no other origin.
// They carry the headers of the configuration, the user of the URL, and the [Credentials] of
// the key. When the server refuses the credentials, they are refreshed, once for all requests
// that wait, and the request is repeated. Error texts contain nothing of what was sent recently.
//
// # Concurrency
//
// All methods may be called from any goroutine. A method that takes a context may block, and
// returns soon after the context has ended.
package mcpbridge

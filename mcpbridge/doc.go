// Package mcpbridge is the contract of the bridge, the only part of this module that speaks
// MCP: how a server is configured, how a session with it is opened and used, and what an
// error means. Package [github.com/mcpactor/mcpactor/mcpbridge/dialer] makes the [Bridge]
// that implements this contract, over stdio, streamable HTTP, HTTP+SSE or in memory.
// Neither package knows about actors. In this package, a session is an MCP session.
//
// # What an error means
//
// The errors of the SDK do not say whether a request was sent, accepted or answered. The
// bridge therefore watches the wire, and says in an [Error] what became of a call ([Class]) and of its
// session ([Fate]).
//
// # One send
//
// A request is sent once. It counts as sent as soon as the bridge gives it to the HTTP transport, or
// writes it to a pipe, unless there is proof that the server did not get it: the transport got no
// connection, an HTTP/2 server said that it did not process the request, or the closing brace
// of the message was never written.
//
// Requests have ids of ten digits, which fit in 32 bits, and which no other connection of this
// process uses. A response with the id of another connection is dropped and counted: see [Bridge].
// Over streamable HTTP a response counts only in the answer to its own POST. If that was a 202 or broke
// off, the response may come on any stream of the session.
//
// [Error.MayHaveRun] lists the ways in which a request ends, and whether the call may have run.
//
// # How expiry is recognized
//
// The bridge decides by evidence whether a server knows a session. The wording of an error is no evidence: servers
// report an unknown session with any status and in any language, and tools and logins have
// sessions, too. These rules are for requests that carry a session id. Without a session id
// nothing expires.
//
//   - A 404 or 410, unless it is a JSON-RPC error with the id of the request, or a page in HTML: the
//     session has expired. If the session has answered nothing since initialize, the request is
//     first repeated for up to 2 s.
//   - A result, the error -32602 to a resources/read whose URI it repeats, or one of the errors
//     -32042, -32020, -32021 and -32022: the session is alive.
//   - A 429, no connection, or a connection that broke: this says nothing about the session.
//   - A 502, 503 or 504 without the id of the request, or a page in HTML with 404 or 410: a front
//     has answered in place of the server. The session is unheard.
//   - Any other 4xx or 5xx, a redirect that is not followed, any other JSON-RPC error, or an
//     event stream that ends empty: there is doubt.
//
// A session without an id may be in doubt as well, if its protocol is older than 2026-07-28. A 404
// without a session id is a wrong URL.
//
// Doubt is settled once for all callers of a session. A caller waits for 5 s at most, with a JSON-RPC error on
// 2xx for 1 s at most, and never past its deadline. The bridge checks the session with two requests that change
// nothing: a ping, and one page of a list that the server has declared. Each check is judged alone. A result counts
// only if its request was sent after the refusal had arrived.
//
//   - If the list has a result, or the ping where no list is declared, the session is alive. For 30 s,
//     a refusal with the same status, code and text, of the same operation and tool, causes no doubt,
//     unless a front answers in the meantime. Another text leads to other checks, once a second at most.
//   - If a check is refused with the status and code of the call, the bridge opens a second session, the
//     control, and repeats the check there. If the control answers otherwise on 2xx, and
//     the first session refuses once more, the first session has expired: the next dial adopts the
//     control, and one DELETE is sent for the expired session. If the control has the id of the first session, that
//     has expired as well, and no DELETE is sent. If the control refuses in the same way,
//     or cannot be opened, the session is alive, and the control is ended. Calls that are not sent yet
//     wait for the verdict, for 1 s at most. The error that a server has no ping (-32601) is an answer.
//   - If the server cannot be reached, a front answers, or the server answers 429 or 408, the checks are
//     repeated as long as a caller waits.
//   - After another refusal of a check, or no answer, the doubt remains. The caller gets its own error, which says
//     that the call may have run. A later refusal that causes doubt leads to other checks, but not before 1 s
//     has passed. This interval grows with each such result, up to 30 s.
//   - If the session is alive, and a check was refused with 400 in the words of the call, the check is repeated, four
//     times at most. If it is answered, and then refused again, the error says that the server may be balanced without
//     affinity.
//
// An operation that a front has answered returns at once ([Unheard]); after a page with 404 or 410 it returns with the
// verdict. If it is safe to run twice, it can be repeated. While a session is unheard, operations are withheld: they are
// not sent, see [Error]. As long as somebody waits until the session is heard again, see [Conn], the checks are repeated
// after 100 ms, and then less often, down to once a second. After 2 s a control is opened as well: some servers refuse an
// unknown session with a 503.
//
// A refusal by an expired session can prove that the call did not run: if a check, and a check with a session id that was
// never issued, are refused in the same words, the server refuses a session before it looks at a call. The
// bridge sends the latter once: before the control, or after it if the refusal has the id of its request. If
// sessions have no ids, a 4xx without the id of the call is believed. After any other refusal the call may have run: a
// 5xx, a 302, 303 or 408, an event stream that ends empty, or other words.
//
// HTTP+SSE and stdio have no control. If the list is refused in the same way as the
// call, the session counts as broken, unless the refusal is the error -32601 or -32602.
//
// An attempt to resume a session runs the same checks, and an answer to the ping is enough. Any other result leads to
// the control. Resuming fails only if the control cannot be opened.
//
// Checks and controls use the current credentials, and do not refresh them.
//
// # What is sent where
//
// All HTTP requests of a session, including the DELETE that ends it, follow redirects within
// the origin of the server's URL, carry the cookies of the session, and go to no other origin.
// They carry the headers of the configuration, the user of the URL, and the [Credentials] of
// the key. When the server refuses the credentials, they are refreshed, once for all requests
// that wait, and the request is repeated. Error texts do not contain values that were sent recently.
//
// # Concurrency
//
// All methods may be called from any goroutine. A method that takes a context may block, and
// returns soon after the context has ended.
package mcpbridge

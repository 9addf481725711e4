// Package mcpbridge is the contract of the only part of this module that touches MCP: how a
// server is configured, how a session with it is opened and used, and what an error means.
// Package [github.com/mcpactor/mcpactor/mcpbridge/dialer] makes the [Bridge] that fulfils it,
// over stdio, streamable HTTP, HTTP+SSE or in memory. Neither knows anything of actors.
//
// # What an error means
//
// The errors of the SDK do not say whether a request was sent, accepted or
// answered; what goes over the wire does. So the bridge watches the wire, and
// says in an [Error] what became of a call ([Class]) and of its session ([Fate]).
//
// # One send
//
// A request is sent once. It counts as sent as soon as it is handed to the HTTP transport, or
// written to a pipe, unless the contrary is proven: the transport got no connection, an HTTP/2
// server said that it did not process the request, or the closing brace of the message never
// went out.
//
// Requests have ids that no other connection of this process has. A response with the id of
// another connection is dropped and counted: see [Bridge].
//
// # Which evidence leads where
//
// Whether a server knows a session is decided by evidence, and not by words: servers say
// it with any status and in any language, and tools and logins have sessions, too. The table is
// about requests that carry a session id. Without a session id nothing expires.
//
//	a 404 or 410, unless it is a JSON-RPC error with the id of the    gone, at once. While the session has
//	request                                                           answered nothing since initialize, it is
//	                                                                  asked again for up to 2 s first
//	a result; -32602 to resources/read that repeats the URI;          alive
//	-32042, -32020, -32021, -32022
//	429; no connection; a connection that broke                       not about the session
//	any other 4xx or 5xx; a redirect that is not followed; any        doubt
//	other JSON-RPC error; a stream of events that ends empty
//
// Doubt is settled once for all callers of a session. No caller waits longer
// than 5 s, nor past its deadline.
//
//	the question: a ping, and one page of a list that the server has  alive, for this operation, tool, status
//	declared: a result                                                and code, for 30 s
//	refused with the status and code of a call: a control is opened,
//	a second session:
//	  it answers, and the first refuses once more                     gone. The second is adopted by the next
//	                                                                  dial, the old id gets one DELETE
//	  it refuses alike, or cannot be opened                           alive; the second is ended
//	anything else: no answer, another refusal, 429                    as it was; asked again at the next doubt,
//	                                                                  first after 1 s, later after up to 30 s
//
// A call that was refused by a session that is gone has not run if its own status is a 4xx, or its
// answer an error, and the question was refused alike. After a 5xx, a 302 or 303, or a stream that
// ends empty, it may have run. HTTP+SSE and stdio have no control: if the question is refused as the call was, and no result
// came in between, the session counts as broken. Attaching to a session, the standalone
// stream and the ping that keeps a session alive are judged by the same rule.
//
// Questions and controls are sent with the credentials that there are. None is sent to a
// server that cannot be reached.
//
// # What is sent where
//
// All HTTP requests of a session, including the DELETE that ends it, follow redirects within
// the origin of the server's URL, carry the cookies of the session, and go to no other origin.
// They carry the headers of the configuration, the user of the URL, and the [Credentials] of
// the key. When the server refuses the credentials, they are refreshed, once for all who wait,
// and the request is repeated. Error texts contain nothing of what was sent lately.
//
// # Concurrency
//
// All methods may be called from any goroutine. They may block, but hardly longer
// than their context: each [Conn] can be cut from outside.
package mcpbridge

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
// # One send
//
// A request is sent once. It counts as sent as soon as it is handed to the transport of
// HTTP, or written to a pipe, unless the contrary is proven: see [once].
//
// Requests have ids that no other connection of this process has; an answer with the id of
// another connection is dropped, and counted: see [ids].
//
// # Which evidence leads where
//
// Whether a server knows a session is decided by evidence, and not by words: servers say
// it with any status, in any language, and tools and logins have sessions, too. This is
// about requests that carry a session id; without one nothing expires.
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
// Doubt is settled once for all callers of a session: see [doubts]. None waits longer
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
// A call that was refused by a gone session has not run if its own status is a 4xx, or its
// answer an error, and the question was refused alike. After a 5xx, a 302 or 303, or such a
// stream, it may have run. HTTP+SSE and stdio have no control: if the question is refused as the call was, and no result
// came in between, the session counts as broken. Attaching to a session, the standalone
// stream and the ping that keeps a session alive are judged by the same rule.
//
// Questions and controls are sent with the credentials that there are. None is sent to a
// server that cannot be reached.
//
// # The way out
//
// Under the exchanger of a session is its [sender], through which all of its requests
// leave: also the DELETE that ends the session, and answers that are resumed. It follows
// redirects within the origin of the URL, keeps the cookies of the session, and sends
// nothing to another origin. Its [authorizer] is the only place that adds headers: those
// of the configuration, the user of the URL, and the [Credentials] of its key. When the
// server refuses those, they are refreshed, once for all who wait, and the request is
// repeated. What was sent of late is blacked out of all error texts.
//
// # Concurrency
//
// All methods may be called from any goroutine. They may block, but no longer
// than their context and a little: each [Conn] can be cut from outside.
package mcpbridge

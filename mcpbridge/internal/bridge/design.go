package bridge

/*
The path of a request over HTTP, and the path of a fault

# A request

Two goroutines take part in a call over streamable HTTP. conn.Do runs in the goroutine of its caller, and there the SDK
also sends the request. If the answer is a stream, the SDK reads it in a goroutine of its own.

	 conn.Do            makes a wire.Exchange, whose context ends with the caller's and with the session's
	   │
	   ▼
	 mcp.ClientSession  encodes the call, counts it from 1
	   │                sending (client.go) notes: Begin
	   ▼
	 roundTripper.post  replaces the id by one that no other connection has      (rpc.IDs)
	   │                                                                         streamable/round_tripper.go
	   ▼
	 Sender.Send        follows redirects within the origin                      outbound/sender.go
	   │ authorizer     adds headers and credentials; refreshes them once, for all who wait
	   │ cookies        adds and keeps the cookies of the session
	   ▼
	 once               hands the request to net/http, once; notes: Sent, or NotSent with a proof
	   │
	   ▼
	 the server answers
	   │
	   ├─ 2xx ────────▶ session.accepted notes: Accepted                         streamable/accepted.go
	   │                  202     the response comes on another stream of the     streamable/awaited_responses.go
	   │                          session, or not at all
	   │                  JSON    is read here, by wire.Answers: notes Answered and keeps the result,
	   │                          or Refused if it is no response
	   │                  stream  is read by the SDK through an answerStream, which does the same
	   │
	   ├─ other ──────▶ session.refused notes: Refused                           streamable/refused.go
	   │                  wire.Refusal.Judge returns what the status and the JSON-RPC code mean
	   │                  the SDK gets a JSON-RPC error, so that only this call fails
	   │
	   └─ no answer ──▶ the error goes through the SDK to conn.Do

	 sending            decodes the result that was kept                         (package results)
	   │
	   ▼
	 conn.Do            on an error: Exchange.Explain returns what it means, from the notes;
	                    if the refusal is in doubt: doubts.settle waits for the verdict, for 5 s at most

What may block: conn.Do until its context ends; Sender.Send in the user's Credentials and HTTPClient, until the
request's context ends; nothing else. The roundTripper holds no lock while it sends. When a call is cancelled, the
context that conn.Do has made ends it, also where the SDK ignores contexts.

Over the other transports a tap (package tap) takes the place of the roundTripper. It sees the messages between
the SDK and its connection, and notes the same steps.

# An answer

The SDK decodes an answer up to four times, each time in a new buffer of 36 KB. That would be most of the cost of a
call. So the bridge decodes an answer once, before the SDK, and keeps the result:

	 bytes ──▶ rpc.Decode      the message, in place; the SDK's function decodes what is unusual
	             │
	             ▼
	           wire.Answers    restores the id of the SDK; drops answers to other connections, and counts them,
	             │             and those to other POSTs; reports progress; notes the response in its exchange
	             │
	             ├─ the exchange wants the result ──▶ it is kept, and the SDK gets an error in its place:
	             │                                      over HTTP as JSON  the status 503, without a body
	             │                                      as an event        the end of the stream, or a small error
	             │                                      over a pipe        a small error that was never bytes
	             └─ anything else ──────────────────▶ the SDK gets it, with its id

Then the SDK fails the call, and the middleware sending returns the result in place of that error. So the other
middleware and the callers of the SDK get the result as usual.

# Text on a pipe

Some servers print other text to their stdout. rpc.Output separates the messages from it. It has no clock, and does not
depend on how the bytes are cut into pieces. tap.Pipe reads, and has the clock:

	 message             at the start of a line, or after another    ──▶ the SDK
	 response in text    at the end of a line                        ──▶ held for 1 s: one at the start of a line goes first
	 torn message        it begins like one, and cannot be read      ──▶ fails the call with its id, if one waits
	 value over limit    its id is found, and the rest skipped       ──▶ fails the call with its id, if one waits
	 text                                                            ──▶ where stderr goes, and a counter

# What a server sends unasked

The SDK answers each request of a server in a goroutine, and keeps notifications in a queue. Neither has a bound. So
wire.Backpressure admits these messages to the SDK, for all transports: in tap.connection.Read, answerStream and stream. It
admits no more while there are 128 requests whose answers the server has not accepted. At most half of them are questions
that wait for a handler: owner.ask refuses further ones at once, so that a response behind them is always read. A ping that
Backpressure.Barrier puts behind notifications shows by its answer when the SDK has handled them. Over HTTP the answers take
turns (outbound.Poster). A server that accepts no answer for 30 s, while nothing is read from it, loses its connection; over
streamable HTTP it loses only the stream.

# The handshake

The SDK asks a server with server/discover which protocols it speaks, and sends initialize after an error.
handshake.discover makes up that error for a server without a URL that has read the request and is silent. opener.open starts a
process again that has read the request and exited. dialect.go remembers both, and the store keeps them for later processes.

# A configuration for each key

A server with PerKey has one derived endpoint for each distinct result of that function. Keys with the same result share
it:

	 Bridge.Dial ──▶ endpoint.forKey (per_key.go) calls PerKey in a goroutine of its own
	                   │  dial.Request.Resolved tells the actor, which asks the registry whether
	                   │  the server of this key may be dialed
	                   ▼
	                 endpoint.derive: the endpoint with this result, made at first use, and forgotten
	                 with the last session or dial that uses it

From then on the derived endpoint takes the place of the configured one, with its own secrets, connections and fingerprint.
All of them share what is known of the protocols of the program (dialect).

# A fault

The transports find a fault, this package judges it, and the actor of the session acts on it.

	 evidence                           found in                      what it says
	 ─────────────────────────────────────────────────────────────────────────────────────────────────────
	 404 or 410 on a session's request  session.refused, stream       Gone, at once; on a fresh session the
	                                                                  request is repeated, for up to 2 s
	 the connection ended               tap.end                       Broken
	 502 to 504, or a page with 404     Refusal.Judge                 Unheard: doubts.admit sends nothing
	 any other refusal                  Exchange.Explain              Doubt ───┐
	 three streams that end at once     stream.ended                  Doubt ───┤
	                                                                           ▼
	                                            doubt.Machine: one inquiry for all callers. It decides, and
	                                            sends nothing; doubts carries out what it decides
	                                                                           │
	                            checks: ping, and one page of a list ──list──▶ alive for 30 s
	                                    ▲                        │
	                                    └── the server is away ──┼─ refused alike
	                                                             ▼
	                            the control: the checks on a second session
	                                   │                               │
	                          refused alike: alive            answers: the first is dead
	                          (the second is ended)           (the second is kept; if refusals have the ids
	                                   │                       of requests: a check with an id that was
	                                   │                       never issued)
	       ┌───────────────────────────────────────────────────────────┘
	       ▼
	 conn.Expired, conn.Broke ──▶ dial.Request.Down, once, from any goroutine
	       │                      and each call gets its own Error: Expired if it has not run, Lost if it may have
	       ▼
	 the actor restarts, and calls Bridge.Dial
	       │
	       ├─ a control is kept for the key ──▶ adopt it
	       ├─ the server may know the session ▶ attach: handshake without a request, then the checks, and
	       │                                    without an answer the control
	       └─ else ───────────────────────────▶ open a new session
	                                            over the older transport if the server refuses the newer one

Who decides: the transports decide what is evidence; this package decides what the evidence means for a session; the
strategy of the supervisor decides whether to restart, and when.

What may block: Bridge.Dial until its context ends, and then for cleanupTimeout at most; the checks and the
control of doubts, in goroutines, until the session is cut. Methods of transport.Watcher never block. What may take time, such as waiting for the end of
a process, is done in a goroutine of its own.

# A question of a server

A question belongs to an operation, and is withdrawn when that ends. With protocol 2026-07-28 the result of the operation is
the question (input_requests.go), in the context of its exchange. Over streamable HTTP an older server asks on
the stream of the operation: answerStream knows the exchange, and the SDK's handler does not. So answerStream adds a mark
to the _meta of the question (wire.Questions). The middleware receiving in client.go removes the mark, and puts the
exchange into the context. owner.ask passes the operation to dial.Request.Ask. Over the other transports, and on the
standalone stream, the operation is not known.

# Adding a transport

A transport is a type that implements transport.Server, in a package of its own beside stdio, and one case in
transports.go. If it is for URLs, the table schemes of package mcpbridge gets a row as well, with the name of the
transport. No other code changes. Package memory is the shortest; package stdio adds what is known of a process.
*/

package bridge

/*
The way of a request over HTTP, and the way of a fault

# A request

Three goroutines take part in a call over streamable HTTP: the caller's, which is where conn.Do runs; the same
goroutine again inside the SDK, which writes the request; and one of the SDK that reads an answer that is a stream.

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
	   │                  202     says nothing: the response comes on another     streamable/elsewhere.go
	   │                          stream of the session, or not at all
	   │                  JSON    is read here, by wire.Answers: notes Answered and keeps the result,
	   │                          or Refused if it is no response
	   │                  stream  is read by the SDK through an answerStream, which does the same
	   │
	   ├─ other ──────▶ session.refused notes: Refused                           streamable/refused.go
	   │                  wire.Refusal.Judge says what the status and the JSON-RPC code mean
	   │                  the SDK gets a JSON-RPC error, so that only this call fails
	   │
	   └─ no answer ──▶ the error goes through the SDK to conn.Do

	 sending            decodes the result that was kept                         (package results)
	   │
	   ▼
	 conn.Do            on an error: Exchange.Explain, from what was noted and in the order of certainty;
	                    if the refusal is in doubt: doubts.settle waits for the verdict, at most 5 s

What may block: conn.Do until its context ends; Sender.Send in the user's Credentials and HTTPClient, until the
request's context ends; nothing else. The roundTripper holds no lock while it sends. A call that is given up
ends with the context that conn.Do has made, also where the SDK ignores contexts.

Over the other transports a tap (package tap) takes the place of the roundTripper: it sees the messages between
the SDK and its connection, and notes the same steps.

# An answer

The SDK decodes an answer up to four times, each time in a new buffer of 36 KB, which is most of what a call costs.
So the bridge reads an answer once, before the SDK, and keeps what the SDK need not see:

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

Then the SDK fails the call, and sending returns the result instead, so that whatever is above it (input requests,
the list of tools that a mismatch of headers needs) sees what it always sees.

# Text on a pipe

Servers print other text on their stdout. rpc.Output tells the messages from it, without a clock and however the bytes
come; tap.Pipe reads, and has the clock:

	 message             at the start of a line, or after another    ──▶ the SDK
	 response in text    at the end of a line                        ──▶ held for 1 s: one at the start of a line goes first
	 torn message        it begins like one, and cannot be read      ──▶ fails the call with its id, if one waits
	 text                                                            ──▶ the tail of stderr, and a counter

# What a server asks

The SDK answers each request of a server in a goroutine, and keeps notifications in a queue; both have no bound. So
wire.Backpressure admits what the SDK gets, for all transports: in tap.connection.Read, answerStream and stream. It lets no more
in while 128 requests have no answer that the server has taken. Half of them may be questions that somebody thinks about:
conn.ask refuses further ones at once, so that a call's answer behind them is always read. Whether the SDK has
handled notifications shows in its answer to a ping that Backpressure.Barrier puts behind them. Over HTTP the answers take
turns (outbound.Turns). A server that takes no answer for 30 s while it waits loses its connection, or the stream where calls have
streams of their own.

# A configuration for each key

A server with PerKey has one endpoint for each distinct result of that function, which keys with the same result share:

	 Bridge.Dial ──▶ endpoint.forKey (keyed.go) calls PerKey, where it can be given up
	                   │  DialRequest.Resolved tells the actor, which asks the registry whether
	                   │  the server of this key may be dialed
	                   ▼
	                 keyed.of: the endpoint with this result, made at first use, and forgotten with the
	                 last session or dial that uses it

From then on that endpoint takes the place of the configured one: its secrets, its connections, its fingerprint. What
is known of the protocols of a program is shared by all of them (dialect).

# A fault

A fault is found where the wire is, judged here, and acted on by whoever dialed: the actor of the session.

	 evidence                           found in                      what it says
	 ─────────────────────────────────────────────────────────────────────────────────────────────────────
	 404 or 410 on a session's request  session.refused, stream       Gone, at once; a fresh session is asked
	                                                                  again first, for up to 2 s
	 the connection ended               tap.end                       Broken
	 502 to 504, or a page with 404     Refusal.Judge                 Unheard: doubts.admit sends nothing
	 any other refusal                  Exchange.Explain              Doubt ───┐
	 three streams that end at once     stream.ended                  Doubt ───┤
	                                                                           ▼
	                                            doubts: one inquiry for all callers, in a goroutine of its own;
	                                            judge.go decides, and sends nothing
	                                                                           │
	                            question: ping, and one page of a list ──list──▶ alive for 30 s
	                                    ▲                                      │
	                                    └── the server is away ──┬─ refused alike
	                                                             ▼
	                            controls.compare: a second session, asked the same
	                                   │                               │
	                          refused alike: alive            answers: the first is dead
	                          (the second is ended)           (the second is kept; a session that was never
	                                   │                       issued is asked, if refusals have ids)
	       ┌───────────────────────────────────────────────────────────┘
	       ▼
	 conn.Expired, conn.Broke ──▶ DialRequest.Down, once, from any goroutine
	       │                      and each call gets its own Error: Expired if it has not run, Lost if it may have
	       ▼
	 the actor restarts, and calls Bridge.Dial
	       │
	       ├─ a control is kept for the key ──▶ adopt it
	       ├─ the server may know the session ▶ attach: handshake without a request, then the question, and
	       │                                    the control unless that is answered
	       └─ else ───────────────────────────▶ open a new session
	                                            over the older transport if the server refuses the newer one

Who decides what: the rooms below decide what is evidence; this package decides what the evidence means for a session;
whether to restart, and when, is decided by the strategy of the supervisor.

What may block: Bridge.Dial until its context ends, and then for cleanupTimeout at most; doubts.run until the
session is cut. Methods of transport.Watcher never block: what may take time, such as waiting for the end of
a process, is done in a goroutine of its own.

# A question

A request of the server belongs to an operation, whose end makes it moot. With protocol 2026-07-28 the result of
the operation asks (input_requests.go), in the context of its exchange. Over streamable HTTP an older server asks on
the stream of the operation: answerStream knows the exchange, and the SDK's handler does not. So answerStream marks the
request in its _meta (wire.Questions), and the middleware (receiving in client.go) takes the mark out and puts the
exchange into the context. conn.ask hands the operation to DialRequest.Ask. Over the other transports, and on the
standalone stream, the connection cannot tell.

# Adding a transport

A transport is a type that implements transport.Server, in a package of its own beside stdio, and one case in
transports.go. If it is for URLs, the table schemes of package mcpbridge gets a row as well, with the name of the
transport. No other code changes. Package memory is the shortest; package stdio adds what is known of a process.
*/

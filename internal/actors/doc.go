// Package actors contains the two actors of a supervisor: the registry and the session.
// They communicate only by messages. Neither of them blocks, locks or uses atomics.
//
// # The two actors
//
// There is one registry. It is the parent of all sessions and the only sender of calls to
// them. It owns what concerns more than one session: which session a key has, which
// session is evicted next, how many may be open, which may dial, whether a server is up,
// and what happens to a session that has failed.
//
// There is one session for each key. It owns the connection of the key and the calls that
// have no reply yet. What outlives a restart is in its [durable] state. All other state
// belongs to the incarnation.
//
//	caller                  registry                          session               goroutine
//	  │ operation ──────────▶ │                                  │                      │
//	  │                       │ spawn, call ───────────────────▶ │ parks the call       │
//	  │                       │ ◀────────────────── dialRequested│                      │
//	  │       waits for a slot and a permit, then                │                      │
//	  │                       │ grant ─────────────────────────▶ │ dial ──────────────▶ │
//	  │                       │ ◀─────────────────────────opened │ ◀──────────── dialed │
//	  │                       │                                  │ run the call ──────▶ │
//	  │ ◀───────────────────────────────────────────────── reply │ ◀────── callReturned │
//	  │                       │ ◀────────────────── callReplied  │                      │
//	  │                       │                                  │                      │
//	  │                       │               the connection ends, and the session restarts
//	  │                       │ ◀────────────────────── faulted  │                      │
//	  │                  asks the strategy                       │                      │
//	  │                       │ directive ─────────────────────▶ │ detach ────────────▶ │
//	  │                       │ ◀─────── dialRequested, or       │ ◀────── connDetached │
//	  │                       │ ◀─────── becameIdle              │                      │
//	  │                       │                                  │                      │
//	  │ CloseScope ─────────▶ │ drain ─────────────────────────▶ │ close ─────────────▶ │
//	  │                       │ ◀──────────────── sessionClosed  │ ◀──────── connClosed │
//	  │ ◀────────────── Closed│ stop                             │                      │
//
// sessionClosed is the last message of a session. The registry stops the session after it
// has handled this message, so that no message is ever sent to an actor that has stopped. A
// diagram at [session] shows the states of a session.
//
// With interceptors, a third actor, the [front], takes the place of the registry. It runs
// operations through the interceptors, and gives everything else to the registry.
//
// An MCP session that could not be closed, or that the store has from before a restart of
// this process, is a leftover. A close command closes it: the registry spawns a session
// actor that takes no calls, waits for a grant, closes the leftover and sends
// sessionClosed. The next session of the key waits for it.
//
// A scope or an operation may belong to an actor of the caller, its [owner]. The registry
// watches it, and cancels and closes what belongs to it when it terminates.
//
// A [question] of a server goes from its goroutine to the session, which knows the calls that
// it may belong to, and so its handler and its deadline. The session withdraws the question when
// these calls have ended.
//
// In a cluster, the registry runs the calls of the keys that its member owns. It sends the others
// back to the node actor of the cluster, see [Cluster], and closes the sessions of keys that move
// to another member, see [Release].
//
// # What may block
//
// An actor never blocks. Each of the following runs in a goroutine, and sends its result to
// the actor as a message:
//
//   - dials, calls, pings and the closing of connections ([Config.async], [session.onGrant])
//   - interceptors ([front.intercept]) and the waiting for a handler's answer ([ask])
//   - requests to the store ([keyStore])
//
// Log lines and events leave through package relay, which queues them. The strategy is
// called by the registry, and must not block.
//
// The time of a step of the registry does not grow with the number of sessions, calls or
// operations. Work on many of them, such as [messages.CloseAll] or a burst of
// cancellations, is divided into steps of at most 64.
package actors

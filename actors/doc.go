// Package actors describes the actors of a supervisor: the registry, the session, and one that closes what
// sessions have left. They communicate only by messages. None of them blocks, locks or uses atomics.
//
// Package registry has the registry, which spawns the sessions of internal/session. This package has
// what user code implements: a [Strategy], which decides about sessions that have failed, and an
// [Interceptor], which wraps every operation. Both are fields of the configuration in package
// supervisor, which has aliases for them, and starts the registry. The configuration of a registry, and what the supervisor
// and a cluster send to it beside commands, are in internal/protocol.
//
// # The actors
//
// There is one registry. It is the parent of all sessions and the only sender of calls to
// them. It owns what concerns more than one session: which session a key has, which
// session is evicted next, how many may be open, which may dial, whether a server is up,
// and what happens to a session that has failed.
//
// There is one session for each key. It owns the connection of the key and the calls that
// have no reply yet. What outlives a restart is in its durable state. All other state
// belongs to the incarnation.
//
// An MCP session that could not be closed, or that the store has from before a restart of
// this process, is a leftover. A close command closes it: the registry spawns an actor of internal/cleanup,
// which waits for a grant, closes the leftover and sends contract.SessionClosed. The next session of the key waits for it.
//
// # The rooms of the registry
//
// The registry routes messages to its parts. What decides gets facts, and says what is to be done. What acts
// carries that out, in the actor of the registry. Both have packages in internal, and what a package
// imports is below it here:
//
//	registry                                    takes commands and reports, stops, recovers from bugs
//	calls                                       accepts, forwards and cancels calls
//	closer     dialing                          closes; dials and evicts
//	sessions                                    spawns, drains and removes session actors
//	lists      servers                          asks the catalogue; configures servers
//	interception                                runs interceptors
//	keeper                                      keeps handles: waits, calls and stores for their book
//	member                 reports              knows the cluster; logs and publishes
//	jobs                                        does what takes several steps, or a goroutine
//	                                            — all above act, all below decide —
//	refusal    closing     owners    inspection why a call cannot run; close commands; who owns what; snapshots
//	handles                                     who holds what servers have minted, and what is released
//	table                                       keys, sessions, states, calls, tenants, servers
//	admission  catalogue   faults               slots and permits; lists of scopes; faults of a session
//	alarm      pace                             times; turns
//
// The gate of internal/admission decides which sessions may dial, and which are evicted for them: the least recently used one
// that is idle. The registry tells it facts, and carries out what it decides, after each message.
//
// An eviction: a session wants to dial (dialing.Wanted) ▶ the gate has no slot for it (Gate.Next: Evict) ▶ dialing tells another
// session to drain (sessions.Drain) ▶ that is closed (registry.onSessionClosed) ▶ its slot is free (sessions.Remove) ▶ the gate lets
// the first one dial (Gate.Next: Dial).
//
// A handle: a call that mints one waits for its turn (keeper, asking handles.Book.Ask) ▶ its record is stored, and it is sent (contract.Mint.Begin) ▶ the
// answer has the handle (handles.Book.Answered) ▶ a close command ends its scope (closer.release, handles.Book.End) ▶ the keeper calls the tool that
// releases it, over the session of the scope (Decision.Release) ▶ the sessions of the scope are told to drain.
//
// # The rooms of the session
//
// The states of a session, in internal/session, are tables of messages. They carry out what its parts decide:
//
//	session                                     states, calls, dials and drains of one key
//	cleanup                                     closes leftovers of a key, in place of a session
//	                                            — all above act, all below decide or send for them —
//	questions  subscribers                      who answers the server; who gets what it sends
//	owed       connections                      calls that wait or run; which connection is used, resumed or closed
//	alarm                                       one timer
//
// # The path of a call
//
//	caller                  registry                          session               goroutine
//	  │ operation ──────────▶ │                                  │                      │
//	  │                       │ spawn, call ───────────────────▶ │ parks the call       │
//	  │                       │ ◀────────────────── DialRequested│                      │
//	  │       waits for a slot and a permit, then                │                      │
//	  │                       │ Grant ─────────────────────────▶ │ dial ──────────────▶ │
//	  │                       │ ◀─────────────────────────Opened │ ◀──────────── dialed │
//	  │                       │                                  │ run the call ──────▶ │
//	  │ ◀───────────────────────────────────────────────── reply │ ◀────── callReturned │
//	  │                       │ ◀────────────────── CallReplied  │                      │
//	  │                       │                                  │                      │
//	  │                       │               the connection ends, and the session restarts
//	  │                       │ ◀────────────────────── Faulted  │                      │
//	  │                  asks the strategy                       │                      │
//	  │                       │ Directive ─────────────────────▶ │ detach ────────────▶ │
//	  │                       │ ◀─────── DialRequested, or       │ ◀────── connDetached │
//	  │                       │ ◀─────── BecameIdle              │                      │
//	  │                       │                                  │                      │
//	  │ CloseScope ─────────▶ │ Drain ─────────────────────────▶ │ close ─────────────▶ │
//	  │                       │ ◀──────────────── SessionClosed  │ ◀──────── connClosed │
//	  │ ◀────────────── Closed│ stop                             │                      │
//
// contract.SessionClosed is the last message of a session. The registry stops the session after it
// has handled this message, so that no message is ever sent to an actor that has stopped. A
// diagram in internal/session shows the states of a session.
//
// Operations run through the interceptors, if there are any, before the registry accepts them.
//
// A list that may come from the catalogue (messages.ListTools.Shared) is such an operation also without
// interceptors. Its goroutine asks the catalogue of internal/catalogue, which the registry has told about sessions
// and announced changes. It is told what the list is, to fetch it, or to wait until another scope has fetched it.
//
// A scope or an operation may belong to an actor of the caller, its owner. The registry
// watches it, and cancels and closes what belongs to it when it terminates.
//
// A question of a server goes from its goroutine to the session, which knows the calls that
// it may belong to, and so its handler and its deadline. The session withdraws the question when
// these calls have ended.
//
// In a cluster, the registry runs the calls of the keys that its member owns. It sends the others
// back to the node actor of the cluster, see protocol.Cluster, and closes the sessions of keys that move
// to another member, see protocol.Release.
//
// # What may block
//
// An actor never blocks. Each of the following runs in a goroutine, and sends its result to
// the actor as a message:
//
//   - dials, calls, pings and the closing of connections (Config.Async, dials.start)
//   - PerKey and ListClass for the class of a key (interceptor.run in internal/lists)
//   - interceptors (Interceptors.intercept), the waiting for a turn to mint a handle (keeper.interceptor), the calls that release handles
//     (Keeper.release), and the waiting for a handler's answer (questions.Ask)
//   - requests to the store (KeyStore)
//
// # What could call out
//
// No code of others runs in the goroutine of an actor, not by way of the engine either. These could
// call such code, or wait for it:
//
//   - A send. Proto.Actor publishes what is sent to a PID without a process as a dead letter, and calls
//     all handlers of the EventStream before Send returns. It calls the middleware of the
//     receiver's mailbox, waits if that mailbox is bounded and full, runs the receiver itself if its
//     dispatcher is synchronized, runs what was piped to a future, and calls the process of a user and
//     the resolver of a remote address. Middleware of the root context sees each send. So everything
//     for others leaves through relay.Post, which only queues. Our actors send to each other by
//     posting to their mailboxes.
//   - Watch and Unwatch are sends, and go the same way. Those who watch an actor of ours are told by the
//     mailbox, through the Post, and not by the engine; so is who touches it with an actor.Touch.
//     A door tells its watchers likewise.
//   - The engine logs the failure of an actor through the logger of the system. The mailbox of a session
//     tells the registry of a failure itself. The supervision event goes to the EventStream
//     through the queue of events.
//   - The end of the registry. The engine stops its children by sends. The registry stops when it
//     knows that all of them have ended. Only if user code stops the registry, the engine may publish dead
//     letters meanwhile.
//   - Log lines and events leave through package relay, which queues them, and drops and counts those
//     beyond a bound. Handlers of the EventStream and the writer of the log run in its
//     goroutines.
//   - Producers, spawning and receivers are ours, without middleware. The process registry of Proto.Actor is
//     a map with locks that nobody holds for long.
//   - The metrics of Proto.Actor, if the user has switched them on, are recorded by the engine as it
//     handles a message. An instrument of OpenTelemetry must not block.
//   - Config.Tenant, the strategy and its deciders are called by the registry. They are policies without I/O, and must
//     not block. A panic of one is contained.
//
// # What is bounded
//
// The time of a step of the registry does not grow with the number of sessions, scopes, calls or
// operations. Work on many of them is divided into steps of at most 64 (WalkStep), which other messages
// pass: jobs, such as what concerns the sessions of a server (table.Cursor), a close command, a snapshot and the end of
// an owner (owners.End), and the calls that a session hands back or that have waited too long. One snapshot
// is put together at a time. Cancellations are paced, and the keys take turns; one that matches no call
// is dropped at once. The gate keeps places that PerKey leads to out of turn while they have no permit, until
// something changes at their endpoint. A call looks at the close commands
// that may concern its scope, of which there is a bounded number (closing.MaxOfScope). A step of a session may handle all calls of its key, which MaxInFlight and
// MaxWaiting bound.
//
// The end of a scope looks at all handles, and so does what is due for them: there are as many as servers hold open. Mints that wait, handles that are
// left, and releases at a time are bounded for each kind.
//
// The catalogue keeps 4,096 lists at most, and is asked in constant time. A snapshot and a reload look at all of them.
//
// The notifications of a connection that are on their way to the registry are bounded
// (MaxOnTheirWay), so are bindings without an owner (owners.MaxUnowned), and what waits for one process of a
// user, which holds a goroutine of its own while it blocks (relay.Post). How many processes a user has,
// and what callers send, is not bounded: they share the process.
package actors

// Package actors holds the registry and the session: two state machines that
// talk only by messages. There is no lock in it and no call that blocks. What
// may block runs in a goroutine of its own and comes back as a message.
//
// # Who owns what
//
// The [registry] is the parent of all sessions, and the only sender of calls to
// them. It owns what concerns more than one session: which key has which
// session, who was used last, how many may be open, who may dial now, and what
// the strategy has decided about those that failed. It never waits.
//
// The [session] owns one connection and the calls that it owes a reply. What
// must outlive a restart stands in its [life]; the rest is the incarnation's.
//
// # The conversation
//
//	registry → session   call, cancel, queued, grant, verdict, drain
//	session → registry   wantDial, vacant, opened, failed, settled, callsHandedBack, gone
//
// A session without a connection that wants one sends wantDial, and gets grant
// when its backoff is over and there is a slot under the cap and a dial permit
// of its server. It says opened, or fails with a [Fault], whereupon the registry
// restarts it; it says failed, and gets the verdict. A session that was told to drain sends gone
// as its last message, and lives until the registry has seen it: so nothing is
// ever sent to one that is not there.
//
// A session that no actor has is ended in the same way: one that could not be closed
// before, or one that the store remembers from before our restart. The registry spawns a
// session actor for it that takes no calls, waits for its grant as any other, and says gone.
// The next session of the key waits for it.
//
// # What may block
//
// The log and the events leave through package relay, and the rest in goroutines that
// answer with a message. A step of the registry takes time that does not grow with the
// sessions, the calls or the operations there are: what concerns many, such as closing
// everything or a burst of cancellations, is done some at a time.
package actors

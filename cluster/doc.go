// Package cluster runs one session per key across several processes, the members of a
// cluster, on Proto.Actor's cluster.
//
// Each member has a supervisor of its own. Agents send the commands of package messages to
// [Member.PID], or use [Member.Client], as with a single supervisor. A command reaches the
// member that owns its key. Replies and their codes are those of a single supervisor, and
// [messages.Receipt.Supervisor] names the member.
//
// # Guarantees
//
// They come on top of those of package supervisor. Each names the tests that prove it, with a
// simulated network in internal/node, and with real processes in tests/cluster.
//
//  1. One reply. Every command gets exactly one reply, whatever happens to members and to the
//     network. A call that did not reach another member is sent again within its deadline. If
//     the member is gone and the call may have run there, the call is replayed under the
//     conditions of guarantee 5 of package supervisor, and otherwise fails with
//     [messages.CodeLost]. (In internal/node the verifier, world.verify, at the end of every
//     scenario; TestCallsSurviveFaultsOfTheNetwork; TestKilledMemberIsReplaced; TestSoak; in
//     tests/cluster TestKilledMembersScopesWorkElsewhere)
//  2. One session per key. A key is owned by one member. Its session lives there, under the
//     supervision strategy of that member. When members join or leave, the previous owner of a
//     key closes its session before the next one opens another, unless messages between them
//     get lost, or four or more members join at once. (In internal/node
//     TestFirstCallsOfAllMembersOpenOneSession; TestGracefulLeaveAndJoinUnderLoad; in
//     tests/cluster TestConcurrentFirstCallsOpenOneSessionForEachScope;
//     TestRollingRestartLosesNothing)
//  3. Commands for many keys reach all members. Closing a scope, a server, a pattern or
//     everything, Bind, CancelScope, Forget and Inspect do so; [messages.Closed] and
//     [messages.Snapshot] name the members that did not answer. The caps are those of each
//     member. (In internal/node TestCommandsToAllMembers; TestCancelScopeReachesAllMembers)
//  4. Sessions move with a store. Members that share a store ([supervisor.Config.Store])
//     resume the MCP sessions of each other: a key that moves keeps its session id and its
//     state, and generations grow across members. Without a store a key that moves gets a new
//     MCP session, and counts its generations anew on each member. (In internal/node
//     TestMCPSessionsMoveWithASharedStore; in this package
//     TestMemberThatLeavesHandsItsSessionsOver)
//  5. A member without a lease does nothing. One that was stopped or cut off for longer than
//     [Config.Lease] is fenced: it starts no call, and writes nothing to the store, until
//     others confirm that it is still a member. If they have removed it, it drops its sessions
//     and joins again. (In internal/node TestCutOffMemberIsFenced;
//     TestStoppedProcessWaitsForConfirmation; in internal/lease TestFencedMemberStartsNothing;
//     in tests/cluster TestMemberThatIsRemovedInItsPauseIsFenced)
//  6. Who is not a member changes nothing. (TestPeerThatSpeaksGarbageChangesNothing; in
//     internal/node TestNonsenseChangesNothing; TestMemberOfAnotherVersionIsRefused)
//
// # What does not cross
//
// The values of a context stay on the member of the caller: interceptors and credentials on
// another member see the attributes and the trace only. [supervisor.Config.Handler] and
// [supervisor.Config.Subscriber] are those of the member on which a session lives. Handlers,
// owners and subscribers of operations, [messages.Bind] and [messages.Tail] may be on any
// member. Subscriptions, roots, the log level, pins and tails of a session end when its key
// moves.
//
// All members must have the same servers and the same [Config.Shards].
//
// # Concurrency
//
// All exported functions and methods may be called from any goroutine.
package cluster

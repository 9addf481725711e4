// Package cluster runs one session per key across several processes, the members of a
// cluster.
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
//  2. One session per key. A key is owned by one member of the view, the numbered list of the members. Its session lives
//     there, under the supervision strategy of that member. When the view changes, the next owner of a key waits until every
//     other member of the view has said that it does not hold the key. (In internal/node
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
//  5. No two members act for a key at the same time, whichever links are cut, if their clocks differ by less than 2 %. Etcd, or
//     the hosts with raft, do all requests of members in one order. A member that has asked to renew its lease, and got an
//     answer, holds it from when it has asked. One whose renewals have not been seen for a lease and 2 % is removed from the
//     view, if it has not renewed until that very moment: its lease has run out. Without a lease a member is fenced: it starts no
//     call, and writes nothing to the store. One that was removed drops its sessions, and joins again. The clock counts
//     the time of a suspended machine where the system has such a clock, and nobody can set it. (In internal/node
//     TestEveryCut; TestSimulation; TestMembersWithoutAnAnswerOfTheWitnessAreFenced; TestNobodyIsRemovedWhileEtcdHangs; in
//     internal/lease TestFencedMemberStartsNothing; TestClockIsNotTheWallClock; in internal/quorum TestAnsweredRequestsLast; in
//     tests/cluster TestMemberThatIsRemovedInItsPauseIsFenced)
//  6. Who is not a member changes nothing. (TestHostsOfAListFindEachOtherAndSpeakTLS; in
//     internal/node TestNonsenseChangesNothing; TestMemberOfAnotherVersionIsRefused)
//
// Of Proto.Actor, members use the actors only. Its cluster and remote packages would bring a member list, gossip,
// activations and connections of their own, which decide by other rules than the view.
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

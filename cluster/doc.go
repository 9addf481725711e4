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
//  5. No two members act for a key at the same time, whichever links are cut. The next section says why. (In internal/node
//     TestEveryCut; TestSimulation; in tests/cluster TestMemberThatIsRemovedInItsPauseIsFenced)
//  6. Who is not a member changes nothing, learns nothing, and makes no member dial. (TestHostsOfAListFindEachOtherAndSpeakTLS;
//     TestMemberDialsNoAddressThatIsNotListed; in internal/mesh TestStrangersChangeNothingAndLearnNothing;
//     TestStrangerWithACertificateOfTheSameAuthorityIsRefused; in internal/quorum TestStrangersChangeNothing; in
//     internal/node TestNonsenseChangesNothing; TestMemberOfAnotherVersionIsRefused)
//
// # Why two members never act for one key
//
// To act for a key is to dial, to start a call, or to write to the store in its name. The time in which two members do so is
// zero, under the conditions below. A call that has been started before may still run at its server when the next owner begins.
//
//  1. The witness, which is etcd or the hosts with raft, does all requests of members in one order, in which each view follows
//     from the one before. (In internal/quorum TestHostsAgreeOnTheOrderOfRequests; TestAnsweredRequestsLast; in internal/view
//     TestOneOfTwoChangesOfAViewIsMade)
//  2. A member acts for a key only by a view in which it owns the shard of the key, and once every other member of this very view
//     has said that it does not hold the shard. (In internal/view TestShardIsServedOnceAllOthersHaveCededIt;
//     TestNothingIsServedBeforeAllOthersHaveSpokenOfTheView)
//  3. A member acts only while it has a lease, which runs from when it has sent a renewal that the witness has answered. (In
//     internal/view TestLeaseRunsFromWhenTheRenewalWasSent; in internal/lease TestLeaseIsRenewedFromTheTimeOfTheQuestion)
//  4. A member that does not cede is removed from the view, by a request that the witness does only if the member has not renewed
//     since the others have last seen it do so. (In internal/view TestMemberThatHasRenewedIsNotRemoved)
//  5. Others ask for the removal when they have seen no renewal for a lease and 2 %, by their own clock, so that its lease has run
//     out by then. (In internal/view TestSilentMemberIsRemovedWhenItsLeaseHasRunOut; TestNobodyIsRemovedWhenTheWitnessIsBack)
//  6. The clocks are those that nobody can set, and that count the time of a suspended machine where the system has such a clock;
//     the rates of two of them must differ by less than 2 %. (In internal/lease TestClockIsNotTheWallClock; in internal/node
//     TestSimulation, whose clocks differ)
//  7. Without a lease a member is fenced below everything that acts: its supervisor dials nothing, starts no call and writes
//     nothing, and what it has dialed before it was removed never acts again. (In internal/lease TestFencedMemberStartsNothing;
//     TestFencedMemberStoresNothing; TestFencedMemberClosesNoSessionThatAnotherOneMayHave)
//  8. Any links may be cut, for any time and in one direction only: those between members, and those to the witness. (In
//     internal/node TestEveryCut: all 4,096 sets of links of three members and etcd, and all 64 of three hosts)
//  9. Members may be paused, and the witness may hang, because an answer that comes late counts for nothing. (In internal/view
//     TestLateAnswerCountsForNothing; in internal/node TestNobodyIsRemovedWhileEtcdHangs;
//     TestMembersWithoutAnAnswerOfTheWitnessAreFenced)
//  10. A host that forgets what it has agreed to would break the order: it needs a directory, or joins under a new id, which more
//     than half of the others must accept. (TestInvalidConfigurationsAreRefused; in internal/quorum
//     TestHostThatHasLostItsLogIsANewVoter; TestHostsThatHaveLeftAreNotEnough)
//
// A pause of a virtual machine that stops all of its clocks is outside these conditions. There is no setting with which members
// act without the witness. A single configured host needs no lease: nobody can remove it.
//
// # What is used of Proto.Actor
//
// Members use the actors, and neither its cluster nor its remote package. These would bring a member list, gossip, activations
// and connections, which decide by other rules than the view: with the membership of these packages, two members acted for one
// key in 243 of the 4,096 cuts. Rendezvous hashing over the view takes 60 lines in internal/view, and the streams between members are a service of gRPC.
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

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
//     member. (In internal/node TestCommandsToAllMembers; TestCancelScopeReachesAllMembers;
//     TestBoundScopeEndsWithItsOwner)
//  4. Sessions move with a store. Members that share a store ([supervisor.Config.Store])
//     resume the MCP sessions of each other: a key that moves keeps its session id and its
//     state, and generations grow across members. Without a store a key that moves gets a new
//     MCP session, and each member counts its generations. (In internal/node
//     TestMCPSessionsMoveWithASharedStore; in this package
//     TestMemberThatLeavesHandsItsSessionsOver; in tests/cluster TestRollingRestartLosesNothing)
//  5. No two members act for a key at the same time, whichever links are cut. The next section says why. (In internal/node
//     TestEveryCut; TestSimulation; in tests/cluster TestMemberThatIsRemovedInItsPauseIsFenced)
//  6. Who is not a member changes nothing, learns nothing, and makes no member dial. Whatever crosses says the name of the cluster
//     and the version first. (TestHostsOfAListFindEachOtherAndSpeakTLS; TestCertificatesAreReadAgainWhenTheyChange;
//     TestMemberDialsNoAddressThatIsNotListed; TestMemberWithoutTLSIsRefusedOnOtherInterfaces; in internal/mesh
//     TestStrangersChangeNothingAndLearnNothing; TestCastsOfStrangersToAHostAreNotRead; TestStreamWithoutAHelloIsNotRead;
//     TestMemberLearnsThatAnotherHasEndedOrSpeaksAnotherVersion;
//     TestStrangerWithACertificateOfTheSameAuthorityIsRefused; TestWithoutCredentialsAMemberDialsThisMachineOnly; in
//     internal/quorum TestStrangersChangeNothing; TestLateHelloOfAHostThatHasLeftAddsNoVoter; in internal/node
//     TestNonsenseChangesNothing)
//
// # Why two members never act for one key
//
// To act for a key is to dial, to start a call, or to write or delete in the store in its name. A member looks at its
// lease right before each of these. Under the conditions below, no two members act for a key at the same time. What one of them has
// begun may still take effect after the next owner has begun.
//
//  1. The witness, which is etcd or the hosts with raft, does the requests of all members in one order, and each view follows from
//     the one before. (In internal/quorum TestHostsAgreeOnTheOrderOfRequests; TestAnsweredRequestsLast;
//     TestHostVotesOnceInATermAlsoWhenItIsRestarted; in internal/view TestOneOfTwoChangesOfAViewIsMade)
//  2. A member acts for a key only by a view in which it owns the shard of the key, and only after every other member of this very
//     view has said that it does not hold the shard. (In internal/view TestShardIsServedOnceAllOthersHaveCededIt;
//     TestNothingIsServedBeforeAllOthersHaveSpokenOfTheView)
//  3. A member acts only while it has a lease, which begins when the member sends a renewal that the witness then answers. (In
//     internal/view TestLeaseRunsFromWhenTheRenewalWasSent; in internal/lease TestLeaseIsRenewedFromTheTimeOfTheQuestion)
//  4. A silent member is removed from the view at the request of another member, which names the last renewal that it has seen: if
//     there is a later one, the witness refuses. (In internal/view TestMemberThatHasRenewedIsNotRemoved)
//  5. A member asks for that when, by its own clock, it has seen no renewal for the lease of the silent member and 2 %, so that this
//     lease has run out. (In internal/view TestSilentMemberIsRemovedWhenItsLeaseHasRunOut; TestMemberWithALongLeaseIsNotRemovedInIt;
//     TestNobodyIsRemovedWhenTheWitnessIsBack)
//  6. Nobody can set these clocks, which are not the wall clock and on Linux count the time in which the machine is suspended, but
//     the rates of two of them must differ by less than 2 %. (In internal/lease TestClockIsNotTheWallClock; in internal/view
//     TestMemberWithASlowClockIsNotRemovedInItsLease)
//  7. Without a lease a member is fenced: its supervisor dials nothing, starts no call and writes nothing, and a connection that was
//     made before the member was removed never acts again. (In internal/lease TestFencedMemberStartsNothing;
//     TestFencedMemberStoresNothing; TestFencedMemberClosesNoSessionThatAnotherOneMayHave)
//  8. Any links may be cut, for any time and in one direction only: those between members, and those to the witness. (In
//     internal/node TestEveryCut: with -simulation.cuts=1, all 4,096 sets of links of three members and etcd, and all 64 of three
//     hosts)
//  9. Members may be paused, and the witness may hang, because an answer that comes late counts for nothing. (In internal/view
//     TestLateAnswerCountsForNothing; in internal/node TestNobodyIsRemovedWhileEtcdHangs;
//     TestMembersWithoutAnAnswerOfTheWitnessAreFenced)
//  10. A host that forgets what it has agreed to would break the order: it needs a directory, or joins under a new id, which more
//     than half of all hosts must accept. One process at a time uses its log there, and one that is damaged is refused.
//     (TestInvalidConfigurationsAreRefused; TestSecondStartOfAHostIsRefused; TestHostThatCannotWriteItsLogIsFenced; in
//     internal/quorum TestLogIsLockedWhileItIsOpen; TestDamagedLogIsRefused; TestLogThatWasCutAnywhereHasWhatWasStored;
//     TestHostThatHasLostItsLogIsANewVoter; TestHostsThatHaveLeftAreNotEnough)
//
// A pause of a virtual machine that stops all of its clocks is outside these conditions. So is etcd that forgets what it has
// acknowledged, because it has lost its data, or was restored from a backup: two members may then act for a key, for up to a lease.
// A member that sees a view that does not follow its last one drops its sessions, and joins anew. (In internal/view
// TestMemberJoinsAnewWhenTheWitnessHasLostViews; in internal/node TestMembersJoinAnewWhenEtcdHasLostViews; in tests/cluster
// TestMembersJoinAnewWhenEtcdHasLostItsData) A single host needs no lease, because nobody can remove it. (In internal/lease
// TestLeaseOfTheOnlyHostDoesNotRunOut; in tests/cluster TestOnlyHostIsNotFencedByItsPause)
//
// # What is used of Proto.Actor
//
// Members use the actors of Proto.Actor, and link neither its cluster nor its remote package
// (TestNothingOfTheEnginesClusterIsLinked). With the membership of these, two members acted for one key in 243 of the 4,096 cuts. (In
// commit d330122, go -C cluster test -v -run '^TestEveryCut$' ./internal/node -simulation.cuts=1 prints this number.)
//
// # What does not cross
//
// The values of a context stay on the member of the caller: interceptors and credentials on
// another member see the attributes and the trace only. [supervisor.Config.Handler] and
// [supervisor.Config.Subscriber] are those of the member on which a session lives. Handlers,
// owners and subscribers of operations and of [messages.Bind] may be on any member. Subscriptions, roots, the log level and
// pins of a session end when its key moves.
//
// # Concurrency
//
// All exported functions and methods may be called from any goroutine.
package cluster

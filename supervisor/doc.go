// Package supervisor runs MCP client sessions as supervised actors in the actor system of
// the caller.
//
// Actors send the commands of package messages to [Supervisor.PID]. Go code that is not an
// actor uses a [Client]. Each key, a pair of server and scope, has a session of its own.
// The session is opened on first use, kept open, restarted when its MCP session has expired
// or its connection has broken, and closed when it is idle, when the cap is reached, or on
// command.
//
// # Guarantees
//
// Each guarantee names the tests that prove it. They are in package tests unless it says
// otherwise.
//
//  1. One reply. Every command gets exactly one reply, a result or a [messages.Failure], at
//     most a second after its deadline, even if a server, a process, the network or an
//     actor fails. (The verifier, world.verify, at the end of every scenario;
//     TestDeadlinePassesInFlightAndWhileWaiting;
//     TestSupervisorThatIsStoppedFromOutsideAnswersAndClosesEverything;
//     TestCommandsToAStoppedSupervisorAreAnswered; in actors/registry
//     TestBugInASessionLosesNothing)
//  2. One session per key. A key has at most one live MCP session and transport at any
//     moment. Exception: while the module finds out whether a session still exists, the key
//     may have a second one, for the connect timeout at most. It takes no calls, and uses the
//     slot of the first. (The verifier;
//     TestSecondSessionIsEndedWhenNobodyAdoptsIt, in mcpbridge/internal/bridge;
//     TestKeyThatIsCalledWhileItsSessionClosesGetsASuccessorAfterwards;
//     TestConnectionThatComesAfterTheCloseIsClosed)
//  3. One creation. Concurrent first calls of a key cause one dial and one initialize. If
//     the dial fails, all of these calls fail. A caller that gives up does not cancel the
//     dial for the others. (TestManyFirstCallsCauseOneInitialize;
//     TestFailedCreationFailsAllWhoWaitedAndTheNextCallTriesAnew;
//     TestCallerWhoGivesUpDoesNotCancelTheCreationForOthers)
//  4. One rebuild. An MCP session that has expired is rebuilt once, however many calls
//     find that it has expired. (TestEveryFormOfExpiryIsRecognised;
//     TestCallOfTheOldSessionGetsItsResultAndItsReportIsIgnored)
//  5. At most one replay, and only if it is safe: the call was certainly not executed, it
//     is idempotent, or the caller allows it. A call that never reached the server, or that an
//     HTTP/2 server says it did not process, may be sent again, up to six times. This does not
//     count as a replay. State is not discarded: after a connection broke, its MCP session is
//     resumed if the server still has it.
//     (TestLostCallIsReplayedWhenThatIsSafe; TestEachCallIsTreatedByWhatHappenedToIt;
//     TestReplayThatExpiresAgainIsTheCallersFailure;
//     TestSessionsOfBrokenConnectionsAreResumedWithTheirState;
//     TestSettingsOfTheCallerAreSentAgainBeforeAnyReplay; with a store
//     TestSessionIsResumedAfterARestartOfOurProcess)
//  6. Only expiry and loss restart a session. Tool errors, invalid parameters, 401, 403,
//     429 and 5xx reach the caller unchanged. No words of a server restart a session. Only the
//     statuses 404 and 410 restart it at once, see package mcpbridge; after any other refusal
//     the session is asked. The server must answer initialize and what the caller asks for.
//     Whether it answers what the module asks by itself, such as a ping or a list, decides
//     nothing.
//     (TestErrorsThatAreNotAboutTheSessionNeverRestartIt;
//     TestRefusalsThatAreNotAboutTheSessionAreTheCallersOwn;
//     TestRequestsOfOurOwnThatAreRefusedChangeNoCall; TestFrontsChangeNothing)
//  7. The cap holds. Open sessions, including those that drain, never exceed it, nor the
//     cap of their server, nor the quota of their tenant. The least recently used idle
//     session is evicted first: for the cap of a server one of that server, and for the
//     quota of a tenant one of that tenant. A busy session is evicted only if all are busy,
//     and its running calls finish. A pinned session is not evicted.
//     (TestLeastRecentlyUsedIdleSessionMakesRoom;
//     TestBusySessionIsEvictedByDrainingAndNothingIsCut;
//     TestSessionsThatAreOpenAreThoseOfASimpleModel;
//     in actors/internal/admission FuzzLRU, FuzzGate; in actors/registry TestSimulation)
//  8. Closing is complete. It answers each call, and ends each MCP session on its server
//     and each process with its children, in bounded time. No session is opened again
//     without a new call. A close command can be repeated, and its reply names the keys
//     that could not be closed.
//     (TestClosingAnswersEachCallAndEndsEachSession;
//     TestClosingEndsTheSessionOnTheServer;
//     TestStubbornProcessIsEndedWithItsChildren;
//     TestCloseThatFailedSaysWhatIsLeftAndCanBeTriedAgain;
//     TestAllSessionsOfAKeyThatCouldNotBeClosedAreKept;
//     TestRememberedSessionThatCouldNotBeEndedIsTriedAgain;
//     TestOpeningThatWasAbandonedAndCouldNotBeEndedIsNamed)
//  9. Keys are isolated. A key that hangs delays no other key; no actor blocks, or
//     takes a step whose work grows with the number of keys or calls. No actor runs code of
//     others but functions that must not block: those of the configuration for tenants and for
//     the strategy, and Hint, Info and Resume of a connection that the program has wrapped.
//     What a server
//     can make this process hold is bounded for each connection. A response with a request id
//     that its connection did not send is dropped. A server that asks for a pause, with 429 and Retry-After,
//     gets no calls with the same credentials until then; others are sent.
//     (TestNobodyWhoFloodsDelaysAnotherKey; TestNotificationsOnTheirWayAreBounded; in
//     actors/registry TestNoStepGrowsWithTheKeys; in
//     mcpbridge/internal/bridge TestFloodOverAPipeIsBounded, TestIDsOfAConnectionAreUsedByNoOther;
//     TestDialThatHangsEndsAtTheConnectTimeoutAndDelaysNoOtherKey;
//     TestStopReturnsAtTheEndOfItsContextAndSaysWhatIsLeft;
//     TestReloadTouchesOnlyWhatChanged;
//     TestLogWriterThatBlocksDelaysNothing;
//     TestEventHandlerThatBlocksDelaysNothing;
//     TestTokenOfAScopeIsRefreshedWithinTheCallAndIsItsOwn;
//     TestCallsWithTheSameCredentialsAreHeldUntilTheServerWantsThem;
//     TestTokensOfKeysAreHeldApart)
//  10. Cancel reaches the server. notifications/cancelled is sent for calls that are
//     cancelled or time out, and no other call is affected.
//     (TestCancelledCallIsCancelledOnTheServer;
//     TestCancelledCallIsAnsweredOnceWhereverItIs)
//  11. Bounded. Running and waiting calls are bounded for each session; calls beyond the
//     bounds fail with busy at once. After load, memory and goroutines return to what
//     they were. (TestFloodOnOneSessionIsBounded;
//     TestWaitingCallsAreBoundedOverAllSessions;
//     TestFloodOfNotificationsIsBounded; goleak at the end of each package)
//  12. Secrets stay secret. Session ids, headers, environment, arguments and results are
//     in no log line, event or snapshot, and a server cannot forge a log line. (TestNothingSecretIsLogged, TestNoTokenIsLogged)
//
// # Concurrency
//
// All exported functions and methods may be called from any goroutine. Values in a [Config]
// or in a message are read-only once they are passed.
package supervisor

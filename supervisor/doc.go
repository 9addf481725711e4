// Package supervisor is the front door: it runs MCP client sessions as
// supervised actors in the caller's actor system.
//
// Actors send the commands of package messages to [Supervisor.PID], plain Go
// code uses a [Client]. Each pair of server and scope, a key, has a session of
// its own. It is opened on first use, kept warm, rebuilt when it expired or
// broke, and closed when it is idle, when the cap needs room, or on command.
//
// # Guarantees
//
// Each names the tests that prove it; they are in the package tests unless it
// says otherwise.
//
//  1. One reply. Every command gets exactly one reply, a result or a
//     [messages.Failure], not later than its deadline plus a second, whatever
//     dies. (The verifier, world.verify, at the end of every scenario;
//     TestDeadlinePassesInFlightAndWhileWaiting;
//     TestSupervisorThatIsStoppedFromOutsideAnswersAndClosesEverything;
//     TestCommandsToAStoppedSupervisorAreAnswered; in package actors
//     TestBugInASessionLosesNothing)
//  2. One session per key. At most one live session and transport per key at
//     any moment. (The verifier;
//     TestKeyThatIsCalledWhileItsSessionClosesGetsASuccessorAfterwards;
//     TestConnectionThatComesAfterTheCloseIsClosed)
//  3. One creation. Concurrent first calls cause one dial and one initialize.
//     One that fails fails all who waited, and a caller that gives up cancels
//     nobody else's. (TestManyFirstCallsCauseOneInitialize;
//     TestFailedCreationFailsAllWhoWaitedAndTheNextCallTriesAnew;
//     TestCallerWhoGivesUpDoesNotCancelTheCreationForOthers)
//  4. One rebuild. However many calls notice that a session expired, it is
//     rebuilt once. (TestManyCallsThatFindTheSessionExpiredCauseOneRebuild;
//     TestEveryFormOfExpiryIsRecognised)
//  5. At most one replay, and only when safe: provably not executed, read-only,
//     idempotent, or allowed by the caller. And state is not thrown away: a
//     connection that broke is attached to its session again before there is a
//     new one. (TestLostCallIsReplayedWhenThatIsSafe;
//     TestEachCallIsTreatedByWhatHappenedToIt;
//     TestReplayThatExpiresAgainIsTheCallersFailure;
//     TestBrokenConnectionsAreAttachedAgainWithTheStateKept;
//     TestStateHeldForTheCallerIsPutBackBeforeAnyReplay; with a store
//     TestSessionGoesOnAfterARestartOfOurProcess)
//  6. Only expiry and loss restart. Tool errors, invalid parameters, 401, 403,
//     429 and 5xx reach the caller as what they are.
//     (TestErrorsThatAreNotAboutTheSessionNeverRestartIt;
//     TestRefusalsThatAreNotAboutTheSessionAreTheCallersOwn)
//  7. The cap holds. Open sessions, those draining included, never exceed it.
//     The least recently used idle one goes first, a busy one only if all are,
//     and by draining. (TestLeastRecentlyUsedIdleSessionMakesRoom;
//     TestBusySessionIsEvictedByDrainingAndNothingIsCut; in package actors
//     FuzzLRU)
//  8. Closing is complete. It answers each call, ends each session on its
//     server and each process with its children, in bounded time, and
//     resurrects nothing. It may be repeated, and says what is left.
//     (TestClosingAnswersEachCallAndEndsEachSession;
//     TestClosingEndsTheSessionOnTheServer;
//     TestStubbornProcessIsEndedWithItsChildren;
//     TestCloseThatFailedSaysWhatIsLeftAndCanBeTriedAgain;
//     TestAllSessionsOfAKeyThatCouldNotBeClosedAreKept;
//     TestRememberedSessionThatCouldNotBeEndedIsTriedAgain)
//  9. Keys are isolated. One that hangs delays no other; no actor blocks.
//     (TestDialThatHangsEndsAtTheConnectTimeoutAndDelaysNoOtherKey;
//     TestStopReturnsAtTheEndOfItsContextAndSaysWhatIsLeft;
//     TestReloadTouchesOnlyWhatChanged;
//     TestLogWriterThatBlocksDelaysNothing;
//     TestEventHandlerThatBlocksDelaysNothing;
//     TestTokenOfAScopeIsRefreshedWithinTheCallAndIsItsOwn)
//  10. Cancel reaches the server: notifications/cancelled is sent for calls
//     that are cancelled or time out, and no other call is harmed.
//     (TestCancelledCallIsCancelledOnTheServer;
//     TestCancelledCallIsAnsweredOnceWhereverItIs)
//  11. Bounded. Calls in flight and waiting are bounded per session; past that
//     the reply is busy, at once. Memory and goroutines return to where they
//     were. (TestFloodOnOneSessionIsBounded;
//     TestWaitingCallsAreBoundedOverAllSessions;
//     TestFloodOfNotificationsIsBounded; goleak at the end of each package)
//  12. Quiet about secrets. Session ids, headers, environment, arguments and
//     results are in no log line, event or snapshot, and what a server sends
//     cannot forge a log line. (TestNothingSecretIsLogged, TestNoTokenIsLogged)
//
// # Concurrency
//
// All exported functions and methods may be called from any goroutine. Values
// given to a [Config] or sent in a message are read-only from then on.
package supervisor

// Package tests tests the behavior of supervisors from outside: a test sends
// messages, injects faults, and checks replies and events. Each test is a scenario
// on a harness (harness_test.go), and ends with the same verifier
// (verifier_test.go), which has tests of its own (broken_session_test.go).
//
// Scenarios about order and time run in the fake time of testing/synctest, on a fake
// server (fake_server_test.go) or on the servers of package faults without a socket
// (local_server_test.go). Poor and odd servers have no SDK (raw_server_test.go, package oddtest).
// Scenarios about transports run on real sockets (http_server_test.go) and real
// processes (process_test.go). A soak combines all faults at random, on all transports
// (soak_test.go).
//
// # The fault catalogue
//
// Each row has a fault and its outcome. The letters are for opening a session (A), expiry (B),
// loss (C), outages (D), closing (E), callers (F) and bugs (G).
//
//	A1, A2: 200 first calls for a key arrive at once → one dial and one initialize; 200 results,
//	    or 200 failures with the cause
//	A3, A4: the first caller, or all callers, give up while the session opens → the others get
//	    their results; the session is kept, and nothing leaks
//	A5: the key is closed while its session is dialed → closed; the connection that was half
//	    open is closed, and nothing is opened again
//	A6: the server accepts connections and never answers → unavailable at the connect timeout;
//	    other keys are not affected
//	A7, A8: the command does not exist, or exits at once → unavailable, with the reason of the
//	    operating system or the last lines of stderr; no loop of restarts
//	A9, A10, A11: initialize is answered with garbage, a wrong version or 401, or the URL is
//	    wrong → a failure that says which; no loop of restarts
//	A12: the configuration has two servers of one name, a bad URL or an empty command → Start
//	    returns an error that names the field
//	B1, B2: a session expires under 200 calls, in each form that servers in use have for it →
//	    one rebuild; each call is replayed once; 200 results
//	B3: the replay finds the next session expired too → expired
//	B4: an old session is reported as expired after it was replaced → the report is ignored
//	B5: a long call runs on the old session → the call gets its own result, or lost when the
//	    drain timeout ends
//	B6: a listing, a ping or the stream finds that the session expired → as B1
//	B7: the session expires while it drains → no rebuild
//	B8: the server restarts on another address → the next dial finds it
//	B9: a tool returns the text "session not found" → the text is the tool's result; no restart
//	B10: the session had a log level, subscriptions, roots and set-up calls → they are sent
//	    again before any replay
//	B11: over HTTP with protocol 2026-07-28, which has no sessions, the server restarts → nothing
//	    expires, and nothing is opened again
//	C1, C2: the connection breaks, or the process is killed, during a call → lost, or a replay
//	    if that is safe; the next call works
//	C3: the process dies between two calls → the next call runs on a new process
//	C4: the answer breaks off → the rest of the answer is fetched, or the call is lost, within
//	    the deadline
//	C5: the server hangs, also with a full pipe → deadlines hold; the session is replaced when
//	    it misses a ping; the process is killed in bounded time
//	C6, C7: stdout has other text than messages (a banner, a log, a copy of the traffic), or
//	    stderr is flooded → text is skipped, counted and logged once; a call whose answer is
//	    torn is protocol; a flood restarts the process; memory is bounded (also FuzzOutput,
//	    TestWhatACallOverAPipeComesTo)
//	C8, C9: the stream is cut repeatedly; the connection breaks while the server still has the
//	    session → the session is resumed, with its generation and its state
//	C10: of 64 calls, some are refused, some are not sent and some run → each call is replayed
//	    or answered according to its own outcome
//	C11: the server refuses, ignores or garbles what a session asks by itself: ping, lists,
//	    server/discover, streams, DELETE, notifications → no call fails for it, and none waits a
//	    second longer; the tests name the exceptions
//	C12: a proxy answers 502, 503 or 504, or closes connections, while the server behind it
//	    restarts and forgets its sessions → once the server is back, calls work within 3 s; a
//	    call that the proxy has answered is repeated if that is safe, and otherwise fails with
//	    server_error or lost
//	C13: a server floods its connection with requests or notifications, and does not take the
//	    answers → it is read no further, and after 30 s it is lost; goroutines, memory and
//	    connections are bounded, and other keys are not affected
//	C14: a tool acts, breaks its session, and answers an error → lost, or the error itself; in
//	    both cases it may have run (also TestErrorOfACallThatBrokeItsSessionProvesNothing)
//	C15: a server that has turned a call into a task is killed, is away, or forgets the task → the
//	    task is followed when the server is back; lost if it does not know the task
//	C16: the answer to a call is lost without a session, where the protocol tells clients to send
//	    the request again → lost, may have run; it is sent again only if that is safe
//	C17: without a session the server hangs, or is away → one reply to each call, in time; a call
//	    that waits runs once when the server is back
//	D1, D2, D3: the server is down for a while, permanently, or repeatedly → one key at a time
//	    probes, at growing intervals; calls that reach their deadline fail with the last cause;
//	    all keys work within 3 s of the server's return
//	D4: a deadline, a cancellation or a close during the backoff → served at once
//	D5: 1,000 sessions of one server expire in the same second → they are rebuilt a few at a
//	    time; all work again
//	E1, E2: the cap is reached → the least recently used idle session is closed; a busy one
//	    drains if all are busy; else busy at the deadline
//	E3: a key is called while its session closes → one transport at a time; the next session
//	    answers
//	E4: a session is idle → it is closed after the idle timeout, and not before
//	E5, E6: sessions are closed with calls in flight, or the server refuses to end them → each
//	    call is answered, and DELETE is sent; the reply says what is left, and closing can be
//	    repeated
//	E7: a process ignores all signals but SIGKILL, and its child holds its stdout → the process
//	    group is gone in bounded time
//	E8: Stop is called while everything hangs → it returns when its context ends, with the keys
//	    that are left
//	E9: your own process gets SIGKILL → no server process outlives it by more than seconds
//	E10: your own process ends, or is killed, while a server works on the task of a durable call →
//	    whoever asks again with the id of the call gets the result; lost if that is not known
//	F1, F2: a cancellation or a deadline hits a call in flight, a waiting call, or a call that
//	    is just being answered → one reply; the server gets notifications/cancelled
//	F3: the actor that asked stops → nothing leaks, and nothing is logged
//	F4, F5: 10,000 calls arrive at once on one session → calls beyond the bounds are busy at
//	    once; other keys are not affected
//	F6, F7: unknown servers, bad arguments, forged scopes, foreign messages → unknown_server or
//	    invalid; no forged log line
//	F8: a result has many megabytes, or is over the limit → it is passed on, or fails with
//	    protocol and the limit
//	G1: a session actor panics, in any state → internal for its callers; the key works again
//	G2: a hook panics or hangs → its call fails, or ends at its deadline; the session lives
//	G3: a seeded mix of all faults at random, on all transports → all guarantees hold
//
// These are the tests of each row:
//
//	A1  TestManyFirstCallsCauseOneInitialize
//	    TestOpenOpensOnceAndTellsOfTheServer
//	A2  TestFailedCreationFailsAllWhoWaitedAndTheNextCallTriesAnew
//	A3  TestCallerWhoGivesUpDoesNotCancelTheCreationForOthers
//	A4  TestCreationNobodyWaitsForIsKeptForTheNextCall
//	A5  TestClosingDuringTheCreationAnswersAndResurrectsNothing
//	    TestConnectionThatComesAfterTheCloseIsClosed
//	    TestSessionThatOpensWhenNobodyWaitsForItIsEnded
//	A6  TestDialThatHangsEndsAtTheConnectTimeoutAndDelaysNoOtherKey
//	    TestDialThatHeedsNothingIsGivenUp
//	    TestProcessThatDoesNotInitializeSaysWhy
//	    TestServerThatDoesNotKnowInitializedWorks
//	    TestServerThatNeverAnswersIsUnavailableAtTheConnectTimeout
//	A7  TestCommandThatCannotBeStartedSaysWhy
//	A8  TestLastWordsOfAProcessAreForItsCallersOnly
//	A9  TestProcessThatDoesNotInitializeSaysWhy
//	    TestServersThatCannotBeConnectedToSayWhy
//	A10 TestRefusedAuthorizationIsNotTriedAgainBeforeTheCoolDown
//	    TestServersThatCannotBeConnectedToSayWhy
//	A11 TestServersThatCannotBeConnectedToSayWhy
//	A12 TestConfigurationThatCannotWorkIsRefused
//	B1  TestEveryFormOfExpiryIsRecognised
//	    TestExpiredSessionIsRebuiltAndItsCallReplayed
//	    TestLegacySSESessionIsRebuilt
//	B2  TestEveryFormOfExpiryIsRecognised
//	B3  TestReplayThatExpiresAgainIsTheCallersFailure
//	B4  TestCallOfTheOldSessionGetsItsResultAndItsReportIsIgnored
//	B5  TestCallOfTheOldSessionGetsItsResultAndItsReportIsIgnored
//	    TestCallOfTheOldSessionIsCutWhenItsGraceIsOver
//	    TestSessionThatIsFoundExpiredAfterItsRestartIsNotResumed
//	B6  TestExpiryIsNoticedByEveryOperation
//	    TestExpiryIsNoticedByReads
//	    TestExpiryIsNoticedByTheStandaloneStream
//	    TestSessionThatIsFoundExpiredAfterItsRestartIsNotResumed
//	B7  TestSessionThatExpiresWhileDrainingIsNotRebuilt
//	B8  TestServerThatComesBackOnAnotherAddressIsFound
//	B9  TestErrorsThatAreNotAboutTheSessionNeverRestartIt
//	B10 TestRootsAreSentAgainOnTheNextSession
//	    TestSettingsOfTheCallerAreSentAgainBeforeAnyReplay
//	B11 TestNothingExpiresWhereThereAreNoSessions
//	C1  TestKilledProcessWhoseChildHoldsItsStdoutIsNoticed
//	    TestLastWordsOfAProcessAreForItsCallersOnly
//	    TestLegacySSESessionIsRebuilt
//	    TestLostCallIsNotReplayedAndTheSessionIsResumed
//	    TestProcessThatIsKilledDuringACall
//	    TestSessionThatIsGoneAfterALossGetsANewGeneration
//	    TestSessionsOfBrokenConnectionsAreResumedWithTheirState
//	C2  TestLostCallIsReplayedWhenThatIsSafe
//	    TestLostCallThatIsHandedBackMayHaveRun
//	    TestLostCallThatIsNotRepeatedIsNotSaidToBeUnsent
//	    TestProcessThatIsKilledDuringACall
//	    TestSessionsOfBrokenConnectionsAreResumedWithTheirState
//	C3  TestCallOnAConnectionThatDiedUnnoticedRunsOnTheNext
//	    TestProcessesThatArePoorOrOddWorkAgainAfterEachEnd
//	C4  TestAnswerThatBreaksOffIsResumedOrLost
//	    TestSessionWithAnIDThatIsTooLongIsClosed
//	C5  TestConnectionWhoseCallDoesNotReturnIsReplaced
//	    TestProcessThatHangsIsEndedWithinBounds
//	    TestServerThatHangsIsReplacedWhenItMissesAPing
//	C6  TestEndlessOrHalfLineOnStdoutRestartsTheProcess
//	    TestTextOnStdoutIsSkipped
//	C7  TestFloodOnStderrBlocksNobodyAndIsNotKept
//	C8  TestStandaloneStreamThatIsCutOrRefusedHarmsNothing
//	C9  TestLostCallIsNotReplayedAndTheSessionIsResumed
//	    TestSessionsOfBrokenConnectionsAreResumedWithTheirState
//	C10 TestCallsThatRunWhenTheSessionExpiresGetTheirOwnResult
//	    TestEachCallIsTreatedByWhatHappenedToIt
//	C11 TestNotificationThatIsNotFoundEndsNoSession
//	    TestProcessThatRefusesOurListsKeepsItsState
//	    TestProcessesThatArePoorOrOddWorkAgainAfterEachEnd
//	    TestRequestsOfOurOwnThatAProcessRefusesChangeNoCall
//	    TestRequestsOfOurOwnThatAServerInMemoryRefusesChangeNoCall
//	    TestRequestsOfOurOwnThatAreRefusedChangeNoCall
//	    TestRequestsOfOurOwnThatAreRefusedOverHTTPAndSSEChangeNoCall
//	    TestServersThatArePoorOrOddWorkAgainAfterEachOutage
//	    TestStoreRemembersWhichProcessesEndAtDiscovery
//	C12 TestCallsFailFastBehindAFront
//	    TestCallsOfAnUnheardSessionAreParked
//	    TestFrontsChangeNothing
//	    TestStatelessCallsWaitBehindAFront
//	    TestUnheardSessionMakesRoom
//	C13 TestNobodyWhoFloodsDelaysAnotherKey
//	C14 TestCallThatHasRunAndBrokenItsSessionIsNeverSaidNotToHaveRun
//	C15 TestTaskOutlivesItsConnectionAndItsServer
//	    TestTaskThatIsForgottenIsLost
//	C16 TestLostCallIsSentAgainWhereThereAreNoSessionsOnlyIfThatIsSafe
//	C17 TestEachCallHasOneReplyWhereThereAreNoSessions
//	D1  TestServerThatIsDownForAWhileHealsWithoutHelp
//	D2  TestCallsOfAServerThatNeverComesBackGetTheLastCauseAtTheirDeadline
//	D3  TestServerThatFlapsIsDialedABoundedNumberOfTimes
//	D4  TestSessionThatBacksOffServesDeadlinesCancelsAndCloses
//	D5  TestManySessionsThatExpireAtOnceAreRebuiltAFewAtATime
//	E1  TestLeastRecentlyUsedIdleSessionMakesRoom
//	E2  TestBusySessionIsEvictedByDrainingAndNothingIsCut
//	    TestCallThatGetsNoSlotIsBusyAtItsDeadline
//	    TestCallsThatWaitInAnEvictedSessionRunInItsSuccessor
//	    TestLeastRecentlyUsedBusySessionMakesRoomIfAllAreBusy
//	E3  TestKeyThatIsCalledWhileItsSessionClosesGetsASuccessorAfterwards
//	E4  TestIdleSessionIsClosedAfterTheIdleTimeoutAndNotBefore
//	E5  TestClosingAnswersEachCallAndEndsEachSession
//	    TestClosingEndsTheSessionOnTheServer
//	    TestTwoClosesAtOnceAreBothAnswered
//	E6  TestCloseThatFailedSaysWhatIsLeftAndCanBeTriedAgain
//	    TestClosingEndsTheSessionOnTheServer
//	E7  TestStubbornProcessIsEndedWithItsChildren
//	E8  TestStopReturnsAtTheEndOfItsContextAndSaysWhatIsLeft
//	E9  TestNoServerOutlivesOurOwnDeath
//	E10 TestDurableCallOutlivesOurOwnDeath
//	    TestDurableCallOutlivesOurProcess
//	F1  TestCallThatIsCutByAnImpatientCloseIsCancelledOnTheServer
//	    TestCancelledCallIsAnsweredOnceWhereverItIs
//	    TestCancelledCallIsCancelledOnTheServer
//	F2  TestACallWaitsNoLongerThanItMay
//	    TestDeadlinePassesInFlightAndWhileWaiting
//	    TestSessionThatBacksOffServesDeadlinesCancelsAndCloses
//	F3  TestAskerThatStopsBeforeItsAnswerHarmsNothing
//	F4  TestFloodOnOneSessionIsBounded
//	F5  TestFloodOnOneKeyDelaysNoOther
//	F6  TestBadCommandsAreRefusedByName
//	    TestForeignMessageIsLoggedOnceByItsType
//	F7  TestBadCommandsAreRefusedByName
//	F8  TestResultOfManyMegabytesIsPassedOn
//	    TestResultOverTheLimitIsAProtocolFailureThatNamesIt
//	G1  TestSessionActorThatPanicsAnswersItsCallersAndIsReplaced
//	    registry.TestBugInASessionLosesNothing
//	G2  TestHTTPClientThatPanicsFailsItsCallAlone
//	    TestHookThatHangsEndsAtTheDeadlineOfItsCall
//	    TestHookThatPanicsFailsItsCallAlone
//	    TestStrategyThatPanicsIsSurvived
//	G3  TestSoak
//
// The comments of tests name these further rows, each with one of its tests, or their file:
//
//	H-A1: TestCallOverHTTP2IsSentOnce
//	    an HTTP/2 server resets a stream after the tool ran → one POST is one send; what was
//	    provably not processed is sent again at most six times
//	H-A2: TestRequestHandedToAnyTransportCountsAsSent
//	    a RoundTripper reports nothing about its connections → a request that was handed to it
//	    counts as sent
//	H-A3: TestCallThatWasReadUpToItsClosingBraceMayHaveRun
//	    a process dies after it read all of a call but the newline → the call may have run
//	H-A4: annotations_test.go
//	    the annotations of a lost call's tool are not known, and the server hangs → one listing
//	    for all such calls, for half a second; then lost
//	H-A5: TestHintsAreUnlearnedWhenAChangeMayHaveBeenMissed
//	    a change of the tools may have been missed → the annotations are discarded
//	H-A6: TestIDsOfAConnectionAreUsedByNoOther
//	    a server sends each answer to all its sessions → request ids are unique across
//	    connections; stray answers are dropped and counted
//	H-A7: TestCallThatHasRunIsNeverSaidNotToHaveRun
//	    a server runs a call, and answers as if it had not → the failure says that the call may
//	    have run, and it is not run again
//	H-A8: TestResponsesOnTheStreamReachTheirCallers
//	    a server answers 202, and sends the response on another stream, or never → the response
//	    is taken from any stream; without a stream protocol, otherwise deadline, and the call
//	    may have run
//	H-A9: TestHintsAreThoseOfTheSessionUntilItsToolsChange
//	    a list of tools is answered after the tools have changed → its annotations are not used
//	H-A10: TestInputThatIsRefusedInALaterRoundMayFollowAnEffect
//	    a call asks for input again after it has acted, and does not get it → the call may have
//	    run
//	H-A11: TestAnswerThatBrokeOffIsNotResumedOnASessionThatHasExpired
//	    an answer breaks off, and the session has expired, or the server refuses every stream →
//	    the call is judged at once; a call whose own answer is open goes on
//	H-A12: TestGarbageOnTheStandaloneStreamCostsNoCall
//	    the standalone stream brings what is no message → it is dropped; calls go on
//	H-B1, H-B2, H-B3: TestUnknownSessionIsFoundOutByChecksAndControl
//	    an unknown session is refused with 400 and HTML, 200 and an error, 5xx, 401 or 422 →
//	    checks and control find that it expired; one rebuild
//	H-B4: TestRefusalOfASessionThatLivesIsTheCallersOwn
//	    a login, a tool or a resource says "session expired" → the caller gets that error; the
//	    session lives
//	H-B5: TestStreamThatEndsAtOnceIsOpenedLessOftenAndMakesTheSessionDoubtful
//	    a stream ends as soon as it is opened, every time → it is opened less often, and the
//	    session is asked
//	H-B6: TestNewSessionThatIsNotKnownYetIsAskedAgain
//	    a session is not known yet just after initialize → the request is repeated for up to 2 s
//	H-B7: TestServerThatIsBalancedWithoutAffinityIsNamedAsSuch
//	    a server is balanced over several pods without affinity, or with affinity by cookie →
//	    without affinity, the failure says so; with cookies, each session keeps its own
//	H-B8: TestServerThatRefusesDiscoveryForTheMomentIsInitialized
//	    server/discover is answered with 5xx, 408 or 429 → initialize is sent; nothing is
//	    remembered about the server
//	H-B9: TestSessionOpensThoughItsStreamIsNotAnswered
//	    a proxy holds back the headers of the stream → the session opens without the stream
//	H-B10: TestServerThatHasOnlySSEIsSpokenToOverSSE
//	    the URL speaks HTTP+SSE only → HTTP+SSE is used, and remembered
//	H-B11: TestProcessThatRefusesEverythingCountsAsBroken
//	    a gateway refuses everything because its child process died → the session is rebuilt
//	H-B12: TestSessionWithTheIDOfTheControlHasExpired
//	    a server gives all sessions the same id → a session that it has forgotten is replaced
//	H-C1, H-C7: TestAllKeysWorkSoonAfterAnOutageOfAnyLength
//	    a server is down for seconds or minutes, under 40 or 400 keys → all keys work soon after
//	    its return; the number of dials does not grow with the keys
//	H-C2: TestKeyThatIsGivenCredentialsWorksAtOnce
//	    credentials arrive late → the next call asks for them
//	H-C3: TestRetryAfterIsBounded
//	    Retry-After names the year 9999 → the wait is bounded
//	H-C4: TestServerThatHangsTakesNoSlotsFromOthers
//	    a server hangs under many keys → other servers keep their slots
//	H-C5: real/npx_test.go
//	    many processes start at once → they start a few at a time, across all servers
//	H-C6: TestSessionThatNobodyWaitsForIsOpenedAtTheNextCallOnly
//	    sessions fail that nobody waits for → they are opened at the next call
//	H-D1 to H-D4, H-D7: blocked_test.go
//	    bursts of cancellations, many waiting keys, writers and handlers that block → nobody
//	    else is delayed; what is dropped is counted
//	H-D5, H-D6: TestListIsBoundedOverAllItsPages
//	    lists and schemas without an end → bounded, in linear time
//	H-D8: flood_test.go
//	    a server, a caller or an owner floods; a handler, a process or a store blocks or panics
//	    → other keys notice nothing; goroutines and memory are bounded
//	H-D9: TestStoreThatIgnoresItsContextDelaysOneSession
//	    a store hangs, ignores its context or panics → at most one session every 5 s opens up to
//	    2.5 s late, all others at once and without the store
//	H-E1 to H-E10: docs/security.md has each claim with its test
//	    redirects, endpoint events, stderr, environment, scopes, plain http
//	H-E11: TestRequestsThatAreNotUnicodeAreRefused
//	    a scope is not valid UTF-8 → invalid
//	H-E12: TestWordsOfAServerReachTheKeyThatTheyWereSaidToOnly
//	    a server that is down says something about one key → that key's callers read it; all
//	    others learn the status
//	H-F1: TestClosingMayBeTriedAgain
//	    a server refuses a DELETE → the session is kept and tried again, unless it is gone
//	H-F2, H-F3: leftovers_test.go
//	    remembered sessions, and closes that fail → all sessions end in the same way, and every
//	    leftover is kept
//	H-F4: TestSubscriptionsOfOneResourceChangeInTheOrderOfTheirCommands
//	    Subscribe and Unsubscribe of one URI → they run in the order in which they were sent
//	H-F5: TestWrapperOfTheDefaultTransportIsUsed
//	    the program has wrapped http.DefaultTransport → the wrapper is used
//	H-G: TestCommandThatIsSentAsAValueIsUnderstood
//	    commands as values, nil, after Stop, or in another actor system → each gets an answer,
//	    or an error that says what to do
//	H-H: TestFilesOfOtherClientsAreRead
//	    configuration files of other clients, misspelt fields, variables → they are read, or an
//	    error names the field and the line
package tests

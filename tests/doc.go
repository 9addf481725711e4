// Package tests injects faults from outside: only messages go in, only replies
// and events come out. Every scenario ends with the same verifier, see
// world.wrong, which is tested itself.
//
// Scenarios about the order and the time of things run on a fake dialer inside
// testing/synctest. What the wire looks like runs on real sockets (http_test.go,
// wire_test.go) and real processes (process_test.go), with the faults of package
// faults. A seeded soak does all of it at random, on all transports (soak_test.go).
//
// The rows of the fault catalogue, docs/faults.md, and the tests of each:
//
//	A1  TestManyFirstCallsCauseOneDial
//	    TestManyFirstCallsCauseOneInitialize
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
//	    TestServerThatNeverAnswersIsUnavailableAtTheConnectTimeout
//	A7  TestCommandThatCannotBeStartedSaysWhy
//	A8  TestProcessThatDiesInACallIsQuotedInTheFailure
//	    TestProcessThatExitsAtOnceIsQuotedInTheFailure
//	A9  TestProcessThatDoesNotInitializeSaysWhy
//	    TestServersThatCannotBeConnectedToSayWhy
//	A10 TestRefusedAuthorizationIsNotTriedAgainBeforeTheCoolDown
//	    TestServersThatCannotBeConnectedToSayWhy
//	A11 TestServersThatCannotBeConnectedToSayWhy
//	A12 TestBadConfigurationsAreRefusedByField
//	B1  TestEveryFormOfExpiryIsRecognised
//	    TestExpiredSessionIsRebuiltAndItsCallReplayed
//	    TestLegacySSESessionIsRebuilt
//	    TestRestartedServerIsFoundAgain
//	B2  TestEveryFormOfExpiryIsRecognised
//	    TestManyCallsThatFindTheSessionExpiredCauseOneRebuild
//	B3  TestReplayThatExpiresAgainIsTheCallersFailure
//	B4  TestCallOfTheOldSessionGetsItsResultAndItsReportIsIgnored
//	B5  TestCallOfTheOldSessionGetsItsResultAndItsReportIsIgnored
//	    TestCallOfTheOldSessionIsCutWhenItsGraceIsOver
//	B6  TestExpiryIsNoticedByEveryOperation
//	    TestExpiryIsNoticedByReads
//	    TestExpiryIsNoticedByTheStandaloneStream
//	B7  TestSessionThatExpiresWhileDrainingIsNotRebuilt
//	B8  TestServerThatComesBackOnAnotherAddressIsFound
//	B9  TestErrorsThatAreNotAboutTheSessionNeverRestartIt
//	B10 TestRootsAreSentAgainOnTheNextSession
//	    TestSettingsOfTheCallerAreSentAgainBeforeAnyReplay
//	C1  TestKilledProcessWhoseChildHoldsItsStdoutIsNoticed
//	    TestLegacySSESessionIsRebuilt
//	    TestLostCallIsNotReplayedAndTheSessionIsResumed
//	    TestProcessThatDiesInACallIsQuotedInTheFailure
//	    TestProcessThatIsKilledDuringACall
//	    TestRestartedServerIsFoundAgain
//	    TestSessionThatIsGoneAfterALossGetsANewGeneration
//	    TestSessionsOfBrokenConnectionsAreResumedWithTheirState
//	C2  TestIdempotentCallOfAKilledProcessIsReplayed
//	    TestLostCallIsReplayedWhenThatIsSafe
//	    TestLostCallThatIsHandedBackMayHaveRun
//	    TestProcessThatIsKilledDuringACall
//	    TestSessionsOfBrokenConnectionsAreResumedWithTheirState
//	C3  TestCallOnAConnectionThatDiedUnnoticedRunsOnTheNext
//	    TestProcessThatIsKilledBetweenCallsIsReplaced
//	C4  TestAnswerThatBreaksOffIsResumedOrLost
//	C5  TestConnectionWhoseCallDoesNotReturnIsReplaced
//	    TestProcessThatHangsIsEndedWithinBounds
//	    TestServerThatHangsIsReplacedWhenItMissesAPing
//	    TestServerThatStopsAnsweringPingsIsReplaced
//	C6  TestGarbageOnStdoutRestartsTheProcess
//	C7  TestFloodOnStderrBlocksNobodyAndIsNotKept
//	C8  TestStandaloneStreamThatIsCutOrRefusedHarmsNothing
//	C9  TestLostCallIsNotReplayedAndTheSessionIsResumed
//	    TestSessionsOfBrokenConnectionsAreResumedWithTheirState
//	C10 TestCallsThatRunWhenTheSessionExpiresGetTheirOwnResult
//	    TestEachCallIsTreatedByWhatHappenedToIt
//	D1  TestServerThatIsDownForAWhileHealsWithoutHelp
//	D2  TestCallsOfAServerThatNeverComesBackGetTheLastCauseAtTheirDeadline
//	D3  TestServerThatFlapsIsDialedABoundedNumberOfTimes
//	D4  TestSessionThatBacksOffServesDeadlinesCancelsAndCloses
//	D5  TestManySessionsThatExpireAtOnceAreRebuiltAFewAtATime
//	E1  TestLeastRecentlyUsedIdleSessionMakesRoom
//	E2  TestBusySessionIsEvictedByDrainingAndNothingIsCut
//	    TestCallThatGetsNoSlotIsBusyAtItsDeadline
//	    TestCallsThatWaitInAnEvictedSessionRunInItsSuccessor
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
//	F1  TestCallThatIsCutByAnImpatientCloseIsCancelledOnTheServer
//	    TestCancelledCallIsAnsweredOnceWhereverItIs
//	    TestCancelledCallIsCancelledOnTheServer
//	F2  TestDeadlinePassesInFlightAndWhileWaiting
//	    TestSessionThatBacksOffServesDeadlinesCancelsAndCloses
//	F3  TestAskerThatStopsBeforeItsAnswerHarmsNothing
//	F4  TestFloodOnOneSessionIsBounded
//	F5  TestFloodOnOneKeyDelaysNoOther
//	F6  TestBadCommandsAreRefusedByName
//	    TestForeignMessageIsLoggedOnceByItsType
//	    TestForeignMessagesHarmNothing
//	F7  TestBadCommandsAreRefusedByName
//	F8  TestResultOfManyMegabytesIsPassedOn
//	    TestResultOverTheLimitIsAProtocolFailureThatNamesIt
//	G1  TestSessionActorThatPanicsAnswersItsCallersAndIsReplaced
//	    actors.TestBugInASessionLosesNothing
//	G2  TestHTTPClientThatPanicsFailsItsCallAlone
//	    TestHookThatHangsEndsAtTheDeadlineOfItsCall
//	    TestHookThatPanicsFailsItsCallAlone
//	    TestStrategyThatPanicsIsSurvived
//	G3  TestSoak
package tests

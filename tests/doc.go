// Package tests tests the behavior of supervisors from outside: a test sends
// messages, injects faults, and checks replies and events. Each test is a scenario
// on a harness (harness_test.go), and ends with the same verifier
// (verifier_test.go), which has tests of its own (broken_session_test.go).
//
// Scenarios about order and time run in the fake time of testing/synctest, on a fake
// server (fake_server_test.go) or on the servers of package faults without a socket
// (local_server_test.go). Poor and odd servers have no SDK (raw_server_test.go).
// Scenarios about transports run on real sockets (http_server_test.go) and real
// processes (process_test.go). A soak combines all faults at random, on all transports
// (soak_test.go).
//
// The rows of the fault catalogue, docs/testing.md, and the tests of each:
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
//	B6  TestExpiryIsNoticedByEveryOperation
//	    TestExpiryIsNoticedByReads
//	    TestExpiryIsNoticedByTheStandaloneStream
//	B7  TestSessionThatExpiresWhileDrainingIsNotRebuilt
//	B8  TestServerThatComesBackOnAnotherAddressIsFound
//	B9  TestErrorsThatAreNotAboutTheSessionNeverRestartIt
//	B10 TestRootsAreSentAgainOnTheNextSession
//	    TestSettingsOfTheCallerAreSentAgainBeforeAnyReplay
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
//	C12 TestCallsFailFastBehindAFront
//	    TestCallsOfAnUnheardSessionAreParked
//	    TestFrontsChangeNothing
//	    TestStatelessCallsWaitBehindAFront
//	    TestUnheardSessionMakesRoom
//	C13 TestNobodyWhoFloodsDelaysAnotherKey
//	C14 TestCallThatHasRunAndBrokenItsSessionIsNeverSaidNotToHaveRun
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
package tests

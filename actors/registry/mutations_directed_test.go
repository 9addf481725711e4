package registry

import "slices"

// directedMutation is a bug that one directed test must find: the test of a guarantee of the package documentation of
// supervisor. 0 is none: its row of the fault catalogue is the only place that names it.
type directedMutation struct {
	guarantee int
	pkg, test string
	mutation
}

// plantedBug returns a mutation of the simulations.
func plantedBug(name string) mutation {
	all := slices.Concat(mutations, doubtMutations)
	return all[slices.IndexFunc(all, func(m mutation) bool { return m.name == name })]
}

// The tests were drawn from those that the package documentation of supervisor names, at least two mutations for each
// guarantee, and are tried by make mutations.
var directedMutations = []directedMutation{
	{1, "./tests", "TestDeadlinePassesInFlightAndWhileWaiting", plantedBug("a call that waits has no deadline")},
	{1, "./tests", "TestDeadlinePassesInFlightAndWhileWaiting", plantedBug("a call that runs has no deadline")},
	{1, "./tests", "TestCommandsToAStoppedSupervisorAreAnswered", mutation{"what comes too late is not answered", []change{
		{"actors/registry/registry.go", "{ protocol.Answer(post, name, message, sender) }", "{ _ = post }"},
	}}},
	{2, "./tests", "TestConnectionThatComesAfterTheCloseIsClosed", mutation{"the connection of a dial that ends in a drain is not closed", []change{
		{inDrain, "	s.dialEnded(msg)\n	s.conn = msg.conn\n", "	s.dialEnded(msg)\n"},
		{inDial, "conn != nil && errors.Is(context.Cause(wanted), context.Canceled) {", "false {"},
	}}},
	{2, "./tests", "TestKeyThatIsCalledWhileItsSessionClosesGetsASuccessorAfterwards", plantedBug("a session does not wait for the one before it")},
	{3, "./tests", "TestFailedCreationFailsAllWhoWaitedAndTheNextCallTriesAnew", mutation{"calls wait after the first dial has failed", []change{
		{"actors/registry/faults.go", "FailParked: d.GiveUp || !reg.wasOpen,", "FailParked: d.GiveUp,"},
	}}},
	{3, "./tests", "TestCallerWhoGivesUpDoesNotCancelTheCreationForOthers", mutation{"a caller who gives up ends the dial", []change{
		{inCalls, "			s.parked.Remove(k)\n			s.reply(c, k, k.Failure(messages.CodeCancelled, msg.Detail))\n", "			s.parked.Remove(k)\n			s.reply(c, k, k.Failure(messages.CodeCancelled, msg.Detail))\n			if s.abortDial != nil {\n				s.abortDial(nil)\n			}\n"},
	}}},
	{4, "./tests", "TestEveryFormOfExpiryIsRecognised", plantedBug("the dead session is forgotten")},
	{4, "./tests", "TestEveryFormOfExpiryIsRecognised", plantedBug("each caller has an inquiry of its own")},
	{5, "./tests", "TestLostCallIsReplayedWhenThatIsSafe", plantedBug("a call is replayed although it may not be")},
	{5, "./tests", "TestEachCallIsTreatedByWhatHappenedToIt", mutation{"a call that may have run is said not to have run", []change{
		{inCalls, "	f.MayHaveRun = true\n	s.reply(c, k, f)\n	s.endQuestions", "	s.reply(c, k, f)\n	s.endQuestions"},
	}}},
	{6, "./tests", "TestErrorsThatAreNotAboutTheSessionNeverRestartIt", mutation{"any refusal ends the session", []change{
		{inCalls, "	if e != nil && e.Session.HasEnded() && msg.conn == s.conn", "	if e != nil && (e.Session.HasEnded() || e.Class == mcpbridge.Invalid) && msg.conn == s.conn"},
	}}},
	{6, "./tests", "TestFrontsChangeNothing", mutation{"503 is the server's own", []change{
		{"mcpbridge/internal/wire/refusal.go", "status == http.StatusBadGateway, status == http.StatusServiceUnavailable, status", "status == http.StatusBadGateway, status"},
	}}},
	{7, "./tests", "TestLeastRecentlyUsedIdleSessionMakesRoom", plantedBug("busy sessions are evicted before idle ones")},
	{7, "./tests", "TestSessionsThatAreOpenAreThoseOfASimpleModel", plantedBug("the quota of a tenant is not looked at")},
	{8, "./tests", "TestCloseThatFailedSaysWhatIsLeftAndCanBeTriedAgain", plantedBug("what could not be closed is forgotten")},
	{8, "./tests", "TestAllSessionsOfAKeyThatCouldNotBeClosedAreKept", plantedBug("a connection that could not be closed is forgotten")},
	{9, "./actors/registry", "TestNoStepGrowsWithTheKeys", mutation{"a snapshot is taken in one step", []change{
		{"actors/registry/inspect.go", "n := min(contract.WalkStep, len(l.regs))", "n := len(l.regs)"},
	}}},
	{9, "./tests", "TestReloadTouchesOnlyWhatChanged", mutation{"a reload changes all servers", []change{
		{"actors/registry/reload.go", "		case before.Same(&srv):", "		case before.Same(&srv) && srv.Name == \"\":"},
	}}},
	{10, "./tests", "TestCancelledCallIsCancelledOnTheServer", mutation{"the server is not told of a cancellation", []change{
		{"mcpbridge/internal/outbound/poster.go", "		defer release()\n	}\n	return p.Deliver(m)", "		defer release()\n		return Respond(m.Request, http.StatusAccepted, \"\", nil), nil\n	}\n	return p.Deliver(m)"},
	}}},
	{10, "./tests", "TestCancelledCallIsAnsweredOnceWhereverItIs", mutation{"a call that waits is not cancelled", []change{
		{inCalls, "	for k := range s.parked.All() {\n		if msg.Matches(k) {\n			s.parked", "	for k := range s.parked.All() {\n		if msg.Matches(k) && k.Runs > 0 {\n			s.parked"},
	}}},
	{11, "./tests", "TestWaitingCallsAreBoundedOverAllSessions", mutation{"waiting calls are not bounded over all sessions", []change{
		{"actors/registry/registration.go", "	case r.waiting >= r.cfg.MaxWaitingTotal:", "	case r.waiting < 0:"},
	}}},
	{11, "./tests", "TestFloodOnOneSessionIsBounded", plantedBug("one call more than MaxInFlight runs")},
	{12, "./tests", "TestNoTokenIsLogged", mutation{"what servers say is not redacted", []change{
		{"mcpbridge/internal/redact/text.go", "blackOut(visible.Line(strings.ToValidUTF8(text, \"�\")), secrets))", "visible.Line(strings.ToValidUTF8(text, \"�\")))"},
	}}},
	{12, "./tests", "TestNothingSecretIsLogged", mutation{"arguments are logged", []change{
		{"actors/registry/log.go", "contract.About(e, k.Key, k.Generation)", "contract.About(e.Interface(\"params\", k.Op), k.Key, k.Generation)"},
	}}},
	{0, "./tests", "TestServerThatFlapsIsDialedABoundedNumberOfTimes", mutation{"a session that was lost restarts at once", []change{
		{"supervisor/strategy.go", "Delay: max(jittered, asked), Attempt", "Delay: min(jittered, asked), Attempt"},
	}}},
	{0, "./tests", "TestServerThatFlapsIsDialedABoundedNumberOfTimes", mutation{"a session forgets its failures", []change{
		{"supervisor/strategy.go", "d.count, d.last = d.count+1, now", "d.count, d.last = 1, now"},
	}}},
	{0, "./tests", "TestUnheardSessionMakesRoom", mutation{"calls of an unheard session do not wait in it", []change{
		{inCalls, "		if s.unheard != nil {", "		if false {"},
	}}},
	{0, "./tests", "TestASessionWaitsForOtherProcessesToStart", mutation{"processes that start are not bounded", []change{
		{"actors/internal/admission/place.go", "	if !srv.command {\n		return math.MaxInt", "	if srv.starts < 1<<20 {\n		return math.MaxInt"},
	}}},
}

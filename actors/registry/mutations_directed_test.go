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

// Each test that the package documentation of supervisor names for a guarantee has at least one of these bugs, which it finds: make
// mutations tries all of them.
var directedMutations = []directedMutation{
	{1, "./tests", "TestDeadlinePassesInFlightAndWhileWaiting", plantedBug("a call that waits has no deadline")},
	{1, "./tests", "TestDeadlinePassesInFlightAndWhileWaiting", plantedBug("a call that runs has no deadline")},
	{1, "./tests", "TestCommandsToAStoppedSupervisorAreAnswered", mutation{"what comes too late is not answered", []change{
		{"actors/registry/start.go", "{ protocol.Answer(post, name, message, sender) }", "{ _, _ = post, protocol.Answer }"},
	}}},
	{1, "./tests", "TestSupervisorThatIsStoppedFromOutsideAnswersAndClosesEverything", mutation{"close commands that are left are not answered", []change{
		{"actors/registry/stop.go", "		r.closer.GiveUp(closes)\n", "		_ = closes\n"},
	}}},
	{1, "./tests", "TestSupervisorThatIsStoppedFromOutsideAnswersAndClosesEverything", mutation{"what a registry has not read is not answered", []change{
		{"actors/registry/stop.go", "			r.cfg.AnswerUnread(msg, actor.UnwrapEnvelopeSender(message))\n", "			_ = msg\n"},
	}}},
	{1, "./tests", "TestSupervisorThatIsStoppedFromOutsideAnswersAndClosesEverything", mutation{"a session that other code stops leaves its connection open", []change{
		{"actors/internal/session/stop.go", "		go contract.CloseWithin(s.limits.CloseTimeout, conn.Close) //nolint:errcheck // nobody is left who could be told\n", "		_ = conn\n"},
	}}},
	{1, "./actors/registry", "TestBugInASessionLosesNothing", mutation{"a bug forgets the call of its message", []change{
		{"actors/internal/session/bug.go", "		if !msg.Queued() && !msg.Run.Replied {\n			s.calls.Parked.Push(msg)", "		if msg.Queued() && !msg.Run.Replied {\n			s.calls.Parked.Push(msg)"},
	}}},
	{2, "./tests", "TestConnectionThatComesAfterTheCloseIsClosed", mutation{"the connection of a dial that ends in a drain is not closed", []change{
		{"actors/internal/session/states.go", "		s.dials.returnedLate(msg, s.limits.CloseTimeout)\n		s.conns.Current = msg.conn\n", "		s.dials.returnedLate(msg, s.limits.CloseTimeout)\n"},
		{inDials, "conn != nil && errors.Is(context.Cause(wanted), context.Canceled) {", "false {"},
	}}},
	{2, "./tests", "TestKeyThatIsCalledWhileItsSessionClosesGetsASuccessorAfterwards", plantedBug("a session does not wait for the one before it")},
	{2, "./mcpbridge/internal/bridge", "TestSecondSessionIsEndedWhenNobodyAdoptsIt", mutation{"a second session that no dial adopts is forgotten", []change{
		{"mcpbridge/internal/bridge/control.go", "		cs.mu.Unlock()\n		k.end()\n	})", "		cs.mu.Unlock()\n	})"},
	}}},
	{3, "./tests", "TestFailedCreationFailsAllWhoWaitedAndTheNextCallTriesAnew", mutation{"calls wait after the first dial has failed", []change{
		{"actors/internal/dialing/faults.go", "FailParked: decided.GiveUp || !reg.WasOpen,", "FailParked: decided.GiveUp,"},
	}}},
	{3, "./tests", "TestCallerWhoGivesUpDoesNotCancelTheCreationForOthers", mutation{"a caller who gives up ends the dial", []change{
		{inCalls, "			s.calls.Parked.Remove(k)\n			s.out.reply(k, k.Failure(messages.CodeCancelled, msg.Detail))\n", "			s.calls.Parked.Remove(k)\n			s.out.reply(k, k.Failure(messages.CodeCancelled, msg.Detail))\n			s.dials.end(nil)\n"},
	}}},
	{3, "./tests", "TestManyFirstCallsCauseOneInitialize", mutation{"a call that comes as its session opens gets another one", []change{
		{"actors/internal/sessions/sessions.go", "	if e.Current != nil {\n		return e.Current", "	if e.Current != nil && e.Current.WasOpen {\n		return e.Current"},
	}}},
	{4, "./tests", "TestEveryFormOfExpiryIsRecognised", plantedBug("the dead session is forgotten")},
	{4, "./tests", "TestEveryFormOfExpiryIsRecognised", plantedBug("each caller has an inquiry of its own")},
	{4, "./tests", "TestCallOfTheOldSessionGetsItsResultAndItsReportIsIgnored", mutation{"what a call of an earlier connection says ends the current one", []change{
		{inCalls, "e.Session.HasEnded() && msg.conn == s.conns.Current && s.drainOrder == nil", "e.Session.HasEnded() && s.drainOrder == nil"},
	}}},
	{5, "./tests", "TestLostCallIsReplayedWhenThatIsSafe", plantedBug("a call is replayed although it may not be")},
	{5, "./tests", "TestEachCallIsTreatedByWhatHappenedToIt", mutation{"a call that may have run is said not to have run", []change{
		{inCalls, "	f.MayHaveRun = true\n	s.out.reply(k, f)\n	s.questions.End", "	s.out.reply(k, f)\n	s.questions.End"},
	}}},
	{5, "./tests", "TestSessionsOfBrokenConnectionsAreResumedWithTheirState", mutation{"a session is not resumed after its connection broke", []change{
		{inConns, "	if c.IsGone(conn) || conn.Resume() != nil {", "	if c.IsGone(conn) {"},
	}}},
	{5, "./tests", "TestSettingsOfTheCallerAreSentAgainBeforeAnyReplay", mutation{"what was unsubscribed is subscribed again", []change{
		{"actors/internal/contract/settings.go", "	case *messages.Unsubscribe:\n		s.remove(op.URI, op.Subscriber)\n", "	case *messages.Unsubscribe:\n"},
	}}},
	{5, "./tests", "TestSettingsOfTheCallerAreSentAgainBeforeAnyReplay", mutation{"the set-up calls of a session that is resumed run again", []change{
		{inAttempt, "	if attached {\n		d.setup = nil\n	}\n", ""},
	}}},
	{5, "./tests", "TestSessionIsResumedAfterARestartOfOurProcess", mutation{"a session that replaces an expired one is not saved", []change{
		{inAttempt, "	if !info.Attached || msg.generation != d.last.generation {", "	if !info.Attached && !d.reopens {"},
	}}},
	{5, "./tests", "TestReplayThatExpiresAgainIsTheCallersFailure", mutation{"a call is replayed twice", []change{
		{inReplay, "	case k.Run.Attempts-k.Run.unprocessed > 1 ||", "	case k.Run.Attempts-k.Run.unprocessed > 2 ||"},
	}}},
	{6, "./tests", "TestErrorsThatAreNotAboutTheSessionNeverRestartIt", mutation{"any refusal ends the session", []change{
		{inCalls, "	if e != nil && e.Session.HasEnded() && msg.conn == s.conns.Current", "	if e != nil && (e.Session.HasEnded() || e.Class == mcpbridge.Invalid) && msg.conn == s.conns.Current"},
	}}},
	{6, "./tests", "TestFrontsChangeNothing", mutation{"503 is the server's own", []change{
		{"mcpbridge/internal/wire/refusal.go", "status == http.StatusBadGateway, status == http.StatusServiceUnavailable, status", "status == http.StatusBadGateway, status"},
	}}},
	{6, "./tests", "TestRefusalsThatAreNotAboutTheSessionAreTheCallersOwn", mutation{"400 says that the session is unknown", []change{
		{"mcpbridge/internal/wire/refusal.go", "	return status == http.StatusNotFound || status == http.StatusGone", "	return status == http.StatusNotFound || status == http.StatusGone || status == http.StatusBadRequest"},
	}}},
	{6, "./tests", "TestRequestsOfOurOwnThatAreRefusedChangeNoCall", mutation{"a call is replayed if the server refuses to list its tools", []change{
		{inCalls, "	case safe && known:\n", "	case safe && known || s.toolLists == maxToolLists:\n"},
	}}},
	{6, "./tests", "TestRequestsOfOurOwnThatAreRefusedChangeNoCall", mutation{"a ping that is refused ends the connection", []change{
		{"actors/internal/session/keepalive.go", "	case e == nil || !e.Session.HasEnded() && e.Class != mcpbridge.Deadline:\n		k.pinging = false\n	case e.Session.HasEnded():", "	case e == nil:\n		k.pinging = false\n	case e.Class != mcpbridge.Deadline:"},
	}}},
	{7, "./tests", "TestLeastRecentlyUsedIdleSessionMakesRoom", plantedBug("busy sessions are evicted before idle ones")},
	{7, "./tests", "TestSessionsThatAreOpenAreThoseOfASimpleModel", plantedBug("the quota of a tenant is not looked at")},
	{7, "./tests", "TestBusySessionIsEvictedByDrainingAndNothingIsCut", mutation{"an eviction cuts the calls that run", []change{
		{inDrain, "	case order.Now:\n", "	case order.Now || order.Evict && !order.Restart:\n"},
	}}},
	{8, "./tests", "TestCloseThatFailedSaysWhatIsLeftAndCanBeTriedAgain", plantedBug("what could not be closed is forgotten")},
	{8, "./tests", "TestAllSessionsOfAKeyThatCouldNotBeClosedAreKept", plantedBug("a connection that could not be closed is forgotten")},
	{8, "./tests", "TestClosingAnswersEachCallAndEndsEachSession", mutation{"calls that wait in a session that is closed are not answered", []change{
		{inDrain, "			s.out.reply(k, k.ClosedWhileParked())\n", "			_ = k\n"},
	}}},
	{8, "./tests", "TestClosingEndsTheSessionOnTheServer", mutation{"a session is not ended on its server", []change{
		{"mcpbridge/internal/streamable/ending.go", "	if done || !s.leave() {", "	if done || s.leave() {"},
	}}},
	{8, "./tests", "TestStubbornProcessIsEndedWithItsChildren", mutation{"a process that ignores SIGTERM is not killed", []change{
		{"mcpbridge/internal/stdio/process.go", "	p.kill()\n	// The kill needs", "	// The kill needs"},
	}}},
	{8, "./tests", "TestStubbornProcessIsEndedWithItsChildren", mutation{"the children of a process without a cgroup are not killed", []change{
		{"mcpbridge/internal/stdio/cgroup_linux.go", "	own := ownCgroup()\n", "	own := ownCgroup()[:0]\n"},
		{"mcpbridge/internal/stdio/group_unix.go", "	g.cgroup.kill()\n	syscall.Kill(-g.number(), syscall.SIGKILL) //nolint:errcheck // as above\n", ""},
	}}},
	{8, "./tests", "TestRememberedSessionThatCouldNotBeEndedIsTriedAgain", mutation{"the store forgets a session that could not be ended", []change{
		{inDrain, "		if err == nil && !keep {", "		if !keep {"},
	}}},
	{8, "./tests", "TestOpeningThatWasAbandonedAndCouldNotBeEndedIsNamed", mutation{"an opening that was abandoned is not named", []change{
		{inRelease, "	if msg.err == nil || s.drainOrder == nil && errors.Is(", "	if msg.err == nil || errors.Is("},
	}}},
	{9, "./tests", "TestCallsWithTheSameCredentialsAreHeldUntilTheServerWantsThem", mutation{"a 429 holds no calls", []change{
		{"mcpbridge/internal/outbound/holds.go", "		h.book.Note(h.key(credentials), time.Now(), wanted)\n", "		_ = wanted\n"},
	}}},
	{9, "./tests", "TestTokensOfKeysAreHeldApart", mutation{"a 429 holds the calls with other credentials", []change{
		{"mcpbridge/internal/outbound/holds.go", "	sum.AddMap(h.config.Headers)\n", ""},
	}}},
	{9, "./actors/registry", "TestNoStepGrowsWithTheKeys", mutation{"a snapshot is taken in one step", []change{
		{"actors/internal/inspection/book.go", "n := min(contract.WalkStep, len(i.regs))", "n := max(0*contract.WalkStep, len(i.regs))"},
	}}},
	{9, "./tests", "TestReloadTouchesOnlyWhatChanged", mutation{"a reload changes all servers", []change{
		{"actors/internal/servers/servers.go", "if before != nil && before.Same(&srv) {", "if before != nil && before.Same(&srv) && srv.Name == \"\" {"},
	}}},
	{9, "./mcpbridge/internal/bridge", "TestIDsOfAConnectionAreUsedByNoOther", mutation{"all connections begin with the same request id", []change{
		{"mcpbridge/internal/rpc/ids.go", "		b.from = idsNext.Add(uint64(b.size)) - uint64(b.size)", "		b.from = idsNext.Load()"},
	}}},
	{9, "./mcpbridge/internal/bridge", "TestFloodOverAPipeIsBounded", mutation{"a server may have 4,096 requests open", []change{
		{"mcpbridge/internal/wire/backpressure.go", "	maxRequests = 128\n", "	maxRequests = 4096\n"},
	}}},
	{9, "./tests", "TestDialThatHangsEndsAtTheConnectTimeoutAndDelaysNoOtherKey", mutation{"a dial may take an hour", []change{
		{inAttempt, "d.req.Attributes), d.req.Trace), d.limits.ConnectTimeout)", "d.req.Attributes), d.req.Trace), time.Hour)"},
	}}},
	{9, "./tests", "TestDialThatHangsEndsAtTheConnectTimeoutAndDelaysNoOtherKey", mutation{"the keys of a server dial one after the other", []change{
		{"actors/internal/admission/server.go", "	n := min(p.server.maxDials-p.dialing, p", "	n := min(1-p.dialing, p"},
	}}},
	{9, "./tests", "TestStopReturnsAtTheEndOfItsContextAndSaysWhatIsLeft", mutation{"Stop does not say what is left", []change{
		{"supervisor/supervisor.go", "		for _, one := range snap.Sessions {\n			err.Left", "		for _, one := range snap.Sessions[:0] {\n			err.Left"},
	}}},
	{9, "./tests", "TestLogWriterThatBlocksDelaysNothing", mutation{"an actor waits until its log line is written", []change{
		{"internal/relay/logger.go", "	l.lines.PutOf(detail, most, line{level: level, text: bytes.Clone(p), at: time.Now()})", "	_, _ = detail, most\n	l.take(line{level: level, text: bytes.Clone(p), at: time.Now()})"},
	}}},
	{9, "./tests", "TestEventHandlerThatBlocksDelaysNothing", mutation{"Stop does not say that an event handler blocks", []change{
		{"supervisor/supervisor.go", "	if !s.events.Flush(ctx) {", "	if !s.events.Flush(ctx) && ctx.Err() == nil {"},
	}}},
	{9, "./tests", "TestNobodyWhoFloodsDelaysAnotherKey", mutation{"processes of others get their messages from our actors", []change{
		{"internal/relay/post.go", "	case process != nil && isPrompt(process):", "	case process != nil:"},
	}}},
	{9, "./tests", "TestTokenOfAScopeIsRefreshedWithinTheCallAndIsItsOwn", mutation{"each call that is refused refreshes the token", []change{
		{"mcpbridge/internal/outbound/authorizer.go", "	case a.refreshes > before:\n		return nil, a.failure\n", ""},
	}}},
	{9, "./tests", "TestNotificationsOnTheirWayAreBounded", mutation{"the notifications of a connection that the registry has not read are not bounded", []change{
		{"actors/internal/session/callbacks.go", "			if !heard.Add() {", "			if heard.Add(); cap(heard) == 0 {"},
	}}},
	{10, "./tests", "TestCancelledCallIsCancelledOnTheServer", mutation{"the server is not told of a cancellation", []change{
		{"mcpbridge/internal/outbound/poster.go", "		defer release()\n	}\n	return p.Deliver(m)", "		defer release()\n		return Respond(m.Request, http.StatusAccepted, \"\", nil), nil\n	}\n	return p.Deliver(m)"},
	}}},
	{10, "./tests", "TestCancelledCallIsAnsweredOnceWhereverItIs", mutation{"a call that waits is not cancelled", []change{
		{inCalls, "	for k := range s.calls.Parked.All() {\n		if msg.Matches(k) {\n			s.calls.Parked", "	for k := range s.calls.Parked.All() {\n		if msg.Matches(k) && k.Run.Attempts > 0 {\n			s.calls.Parked"},
	}}},
	{11, "./tests", "TestWaitingCallsAreBoundedOverAllSessions", mutation{"waiting calls are not bounded over all sessions", []change{
		{"actors/internal/refusal/call.go", "	case r.table.Waiting >= r.cfg.MaxWaitingTotal:", "	case r.table.Waiting < 0:"},
	}}},
	{11, "./tests", "TestFloodOnOneSessionIsBounded", plantedBug("one call more than MaxInFlight runs")},
	{11, "./tests", "TestFloodOfNotificationsIsBounded", mutation{"the events of one session take the whole queue", []change{
		{"actors/registry/notifications.go", "	r.cfg.Events.PutOf(msg.Of, contract.MaxQueuedNotifications, msg.Note)\n", "	r.cfg.Events.Put(msg.Note)\n"},
	}}},
	{12, "./tests", "TestNoTokenIsLogged", mutation{"what servers say is not redacted", []change{
		{"mcpbridge/internal/redact/text.go", "blackOut(visible.Line(strings.ToValidUTF8(text, \"�\")), secrets))", "visible.Line(strings.ToValidUTF8(text, \"�\")))"},
	}}},
	{12, "./tests", "TestNothingSecretIsLogged", mutation{"arguments are logged", []change{
		{"actors/internal/reports/reports.go", "contract.About(e, k.Key, k.Run.Generation)", "contract.About(e.Interface(\"params\", k.Op), k.Key, k.Run.Generation)"},
	}}},
	{0, "./tests", "TestServerThatFlapsIsDialedABoundedNumberOfTimes", mutation{"a session that was lost restarts at once", []change{
		{"supervisor/strategy.go", "Delay: max(jittered, asked), Attempt", "Delay: min(jittered, asked), Attempt"},
	}}},
	{0, "./tests", "TestServerThatFlapsIsDialedABoundedNumberOfTimes", mutation{"a session forgets its failures", []change{
		{"supervisor/strategy.go", "d.count, d.last = d.count+1, now", "d.count, d.last = 1, now"},
	}}},
	{0, "./tests", "TestUnheardSessionMakesRoom", mutation{"a session with calls is not evicted", []change{
		{"actors/internal/admission/session.go", "	case s.Held && (s.open || s.onlyControls):", "	case s.Held && s.onlyControls:"},
	}}},
	{0, "./tests", "TestASessionWaitsForOtherProcessesToStart", mutation{"processes that start are not bounded", []change{
		{"actors/internal/admission/server.go", "	if srv.starts == nil {\n		return math.MaxInt", "	if srv.maxDials < 1<<20 {\n		return math.MaxInt"},
	}}},
	{0, "./internal/callbook", "TestWhoeverAsksAgainWaitsForARunThatWasGivenUp", mutation{"nobody keeps the entry of a call that runs", []change{
		{inEntry, "	e.users++\n	return true\n", "	return true\n"},
		{inEntry, "	if e.users--; e.users == 0 {", "	if e.users--; e.users == 0 && e.book.entries[e.key] == e {"},
	}}},
	{0, "./internal/callbook", "TestTheTaskOfAnotherCallIsNotFollowed", mutation{"the task of another call is followed", []change{
		{inEntry, "r.State != Task || r.Call != e.call {", "r.State != Task {"},
	}}},
	{0, "./internal/callbook", "TestATaskThatIsNotFollowedMayHaveRun", mutation{"a task is followed again at once", []change{
		{inDo, "	case e.Task() != \"\", e.Round() != nil: // whoever asks again follows it\n		return Tell\n", ""},
	}}},
	{0, "./internal/callbook", "TestACallWithoutADeadlineIsFoundAgain", mutation{"a call without a deadline has ended when it is sent", []change{
		{inEntry, "	if !limited {\n", "	if !limited && e.token == \"\" {\n"},
	}}},
	{0, "./internal/callbook", "TestRecordThatIsUsedAgainIsNotDeleted", mutation{"a record that is used again is deleted", []change{
		{inBook, "_, err = b.store.Swap(ctx, key, kept.Version, nil)", "err = b.store.Delete(ctx, key)"},
	}}},
	{0, "./actors/internal/handles", "TestAHandleThatWaitsForItsReleaseMayBeAnotherOne", mutation{"an attempt is not told of what was known before", []change{
		{inHandleAttempt, "suspect: h.suspect}", "suspect: make(suspicion)}"},
	}}},
	{0, "./actors/internal/handles", "TestWhatIsRefusedUsesNothing", mutation{"a call that is refused uses the handles of other kinds", []change{
		{inHandleUse, "			uses = append(uses, &Use{", "			h.busy++\n			uses = append(uses, &Use{"},
	}}},
	{0, "./actors/internal/handles", "TestAHandleIsNotKeptForWhoDoesNotComeBack", mutation{"who has held a handle in an earlier process holds it for ever", []change{
		{inHandleEnd, "h.isOrphan, h.holders = false, without(", "h.isOrphan, _ = false, without("},
	}}},
	{0, "./actors/internal/handles", "TestTheSchemaSaysWhetherAHandleIsANumber", mutation{"a number is released as a string", []change{
		{"actors/internal/handles/kind.go", "return kind == \"number\" || kind == \"integer\"", "return kind == \"number\""},
	}}},
	{0, "./actors/internal/handles", "TestAnEndWaitsForWhatAnEarlierOneWaitsFor", mutation{"an end does not wait for what an earlier one waits for", []change{{inHandleEnd, " || len(h.holders) == 0)\n", ")\n"}}}},
}

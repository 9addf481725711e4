package bridge

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

// fakeSubject is a session that answers checks as it is told.
type fakeSubject struct {
	refusal  *mcpbridge.Error // of both checks; nil: a result
	takes    time.Duration    // how long the checks take
	verdict  verdict          // of the control
	unknown  *mcpbridge.Error // of a session that was never issued
	plain    bool             // its transport has no sessions
	list     *answer          // to the list, or nil: as refusal says
	pings    []*answer        // to ping then, one after the other; then none
	back     time.Time        // until then, checks get putOff, or no answer if that is nil
	putOff   *mcpbridge.Error
	asked    int
	controls int
	proofs   int
	expired  []*mcpbridge.Error
}

func (a *fakeSubject) mayRefuse() bool                            { return true }
func (a *fakeSubject) hasID() bool                                { return !a.plain }
func (a *fakeSubject) isResumable() bool                          { return !a.plain }
func (a *fakeSubject) hasList() bool                              { return true }
func (a *fakeSubject) operations() uint64                         { return 0 }
func (a *fakeSubject) succeededSince(uint64) bool                 { return false }
func (a *fakeSubject) untilCut() context.Context                  { return context.Background() }
func (a *fakeSubject) becomesKnown(context.Context, answers) bool { return false }
func (a *fakeSubject) expire(e *mcpbridge.Error)                  { a.expired = append(a.expired, e) }

func (a *fakeSubject) control(context.Context, answers, []check, bool) verdict {
	a.controls++
	return a.verdict
}

func (a *fakeSubject) asUnknown(context.Context, check) *mcpbridge.Error {
	a.proofs++
	return a.unknown
}

func (a *fakeSubject) repeat(context.Context, check) *answer {
	if len(a.pings) == 0 {
		return nil
	}
	next := a.pings[0]
	a.pings = a.pings[1:]
	return next
}

func (a *fakeSubject) runChecks(ctx context.Context, limit time.Duration, _ func(answers) (enough, half bool), _ ...check) answers {
	a.asked++
	if time.Now().Before(a.back) {
		if a.putOff == nil {
			wire.Sleep(ctx, limit)
			return answers{}
		}
		return answers{{refusal: a.putOff}, {refusal: a.putOff}}
	}
	if !wire.Sleep(ctx, min(a.takes, limit)) || a.takes > limit {
		return answers{}
	}
	if a.list != nil {
		return answers{a.repeat(ctx, checkPing), a.list}
	}
	return answers{{refusal: a.refusal}, {refusal: a.refusal}}
}

func TestVerdictFollowsFromTheChecksAndTheControl(t *testing.T) {
	refused := func(status int) *mcpbridge.Error {
		return &mcpbridge.Error{Class: mcpbridge.Invalid, Sent: true, Status: status, Doubt: true, Err: &wire.Evidence{Digest: [16]byte{1}}}
	}
	own := func(e *mcpbridge.Error, said byte) *mcpbridge.Error {
		e.Own, e.Err = true, &wire.Evidence{Digest: [16]byte{said}}
		return e
	}
	inOtherWords := refused(400)
	inOtherWords.Err = &wire.Evidence{Digest: [16]byte{2}}
	page := &mcpbridge.Error{Class: mcpbridge.ServerError, Sent: true, Status: 404, Doubt: true, Err: &wire.Evidence{Front: true, Digest: [16]byte{1}}}
	gone := &mcpbridge.Error{Class: mcpbridge.Expired, Session: mcpbridge.Gone, Status: 404}
	for name, c := range map[string]struct {
		subject  fakeSubject
		call     *mcpbridge.Error
		want     mcpbridge.Error // class and session
		controls int
		expired  int
	}{
		"a result":                                                       {fakeSubject{}, refused(400), mcpbridge.Error{Class: mcpbridge.Invalid}, 0, 0},
		"refused alike, and the control":                                 {fakeSubject{refusal: refused(400), verdict: verdictAlive}, refused(400), mcpbridge.Error{Class: mcpbridge.Invalid}, 1, 0},
		"refused alike, the control not":                                 {fakeSubject{refusal: refused(400), unknown: refused(400), verdict: verdictDead}, refused(400), mcpbridge.Error{Class: mcpbridge.Expired, Session: mcpbridge.Gone}, 1, 1},
		"refused in other words than the call":                           {fakeSubject{refusal: refused(400), unknown: refused(400), verdict: verdictDead}, inOtherWords, mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Gone}, 1, 1},
		"a session that was never issued is refused in other words":      {fakeSubject{refusal: refused(400), unknown: inOtherWords, verdict: verdictDead}, refused(400), mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Gone}, 1, 1},
		"a session that was never issued is refused with the id":         {fakeSubject{refusal: refused(400), unknown: own(refused(400), 1), verdict: verdictDead}, refused(400), mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Gone}, 1, 1},
		"a session that was never issued is not refused":                 {fakeSubject{refusal: refused(400), verdict: verdictDead}, refused(400), mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Gone}, 1, 1},
		"a 408 may have run":                                             {fakeSubject{refusal: refused(408), unknown: refused(408), verdict: verdictDead}, refused(408), mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Gone}, 1, 1},
		"a page, and the session lives":                                  {fakeSubject{}, page, mcpbridge.Error{Class: mcpbridge.ServerError, Session: mcpbridge.Unheard}, 0, 0},
		"a page to all but the control":                                  {fakeSubject{refusal: page, unknown: page, verdict: verdictDead}, page, mcpbridge.Error{Class: mcpbridge.Expired, Session: mcpbridge.Gone}, 1, 1},
		"a page to this session only":                                    {fakeSubject{refusal: page, verdict: verdictDead}, page, mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Gone}, 1, 1},
		"a 5xx may have run":                                             {fakeSubject{refusal: refused(500), verdict: verdictDead}, refused(500), mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Gone}, 1, 1},
		"refused otherwise":                                              {fakeSubject{refusal: refused(401), verdict: verdictDead}, refused(400), mcpbridge.Error{Class: mcpbridge.Invalid}, 0, 0},
		"the checks find it gone":                                        {fakeSubject{refusal: gone}, refused(400), mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Gone}, 0, 1},
		"with its id, as a session that was never issued":                {fakeSubject{refusal: own(refused(400), 1), unknown: own(refused(400), 1), verdict: verdictDead}, own(refused(400), 1), mcpbridge.Error{Class: mcpbridge.Expired, Session: mcpbridge.Gone}, 1, 1},
		"with its id, in other words":                                    {fakeSubject{refusal: own(refused(400), 1), unknown: own(refused(400), 1), verdict: verdictDead}, own(refused(400), 2), mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Gone}, 1, 1},
		"with its id, and a session that was never issued gets a result": {fakeSubject{refusal: own(refused(400), 1), verdict: verdictDead}, own(refused(400), 1), mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Gone}, 1, 1},
		"no sessions, refused alike":                                     {fakeSubject{refusal: refused(400), plain: true}, refused(400), mcpbridge.Error{Class: mcpbridge.Expired, Session: mcpbridge.Broken}, 0, 0},
		"no sessions, an error on a pipe":                                {fakeSubject{refusal: refused(200), plain: true}, refused(200), mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Broken}, 0, 0},
		"the checks take too long":                                       {fakeSubject{refusal: refused(400), takes: time.Minute}, refused(400), mcpbridge.Error{Class: mcpbridge.Invalid}, 0, 0},
		"a refusal that is not in doubt":                                 {fakeSubject{refusal: refused(400)}, &mcpbridge.Error{Class: mcpbridge.RateLimited, Status: 429}, mcpbridge.Error{Class: mcpbridge.RateLimited}, 0, 0},
		"late, and a check refused":                                      {fakeSubject{refusal: refused(400), unknown: refused(400), verdict: verdictLate}, refused(400), mcpbridge.Error{Class: mcpbridge.NotSent}, 1, 0},
		"unsettled: the control is absent":                               {fakeSubject{refusal: refused(400), verdict: verdictUnsettled}, refused(400), mcpbridge.Error{Class: mcpbridge.Invalid}, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := doubts{about: &c.subject}
				began := time.Now()
				e := d.settle(t.Context(), &messages.Ping{}, new(wire.Exchange), c.call)
				require.LessOrEqual(t, time.Since(began), verdictTimeout)
				require.Equal(t, c.want, mcpbridge.Error{Class: e.Class, Session: e.Session}, "%v", e)
				time.Sleep(time.Hour) // until checks that take long have ended
				synctest.Wait()
				require.Equal(t, c.controls, c.subject.controls)
				require.Len(t, c.subject.expired, c.expired)
			})
		})
	}
}

func TestDoubtIsSettledOnceForAllCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusal := &mcpbridge.Error{Class: mcpbridge.Invalid, Sent: true, Status: 400, Doubt: true, Err: &wire.Evidence{Digest: [16]byte{1}}}
		a := &fakeSubject{refusal: refusal, unknown: refusal, takes: time.Second, verdict: verdictDead}
		d := doubts{about: a}
		settled := make(chan *mcpbridge.Error, 20)
		for range cap(settled) {
			go func() { settled <- d.settle(t.Context(), &messages.Ping{}, new(wire.Exchange), refusal) }()
		}
		for range cap(settled) {
			require.Equal(t, mcpbridge.Expired, (<-settled).Class)
		}
		require.Equal(t, 1, a.asked)
		require.Equal(t, 1, a.controls)
		require.Len(t, a.expired, 1)
	})
}

func TestInquiryThatMetAFrontGoesOnUntilTheServerIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusal := &mcpbridge.Error{Class: mcpbridge.Invalid, Sent: true, Status: 400, Doubt: true, Err: &wire.Evidence{Digest: [16]byte{1}}}
		a := &fakeSubject{refusal: refusal, unknown: refusal, verdict: verdictAway}
		d := doubts{about: a}
		require.True(t, d.settle(t.Context(), &messages.Ping{}, new(wire.Exchange), refusal).Doubt)
		time.Sleep(paceMax)
		synctest.Wait()
		a.verdict = verdictDead
		back := time.Now()
		require.Equal(t, mcpbridge.Expired, d.settle(t.Context(), &messages.Ping{}, new(wire.Exchange), refusal).Class)
		require.LessOrEqual(t, time.Since(back), paceMax)
		require.Greater(t, a.asked, 3, "again and again, while somebody waits")
	})
}

// A server forgets its sessions, and for 8 s has no time for checks: then calls wait, and work soon afterwards.
func TestCheckThatIsPutOffIsRepeatedSoon(t *testing.T) {
	refusal := &mcpbridge.Error{Class: mcpbridge.Invalid, Sent: true, Status: 400, Doubt: true}
	for name, c := range map[string]struct {
		putOff *mcpbridge.Error // nil: there is no answer
		pause  time.Duration    // in which refusals are passed on at once
	}{
		"429":    {&mcpbridge.Error{Class: mcpbridge.RateLimited, Status: 429}, 0},
		"408":    {&mcpbridge.Error{Class: mcpbridge.Invalid, Status: 408, Doubt: true}, 0},
		"silent": {nil, pauseMin},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				a := &fakeSubject{refusal: refusal, verdict: verdictDead, back: began.Add(8 * time.Second), putOff: c.putOff}
				d := doubts{about: a}
				var atOnce time.Duration
				for {
					at := time.Now()
					require.LessOrEqual(t, at.Sub(a.back), checkTimeout+pauseMin)
					if d.settle(t.Context(), &messages.Ping{}, new(wire.Exchange), refusal).Session == mcpbridge.Gone {
						break
					}
					if time.Since(at) == 0 {
						time.Sleep(time.Second / 10)
						atOnce += time.Second / 10
					}
				}
				require.LessOrEqual(t, atOnce, 2*c.pause)
				require.LessOrEqual(t, a.asked, 11, "once a second at most")
			})
		})
	}
}

func TestVerdictHoldsForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusal := &mcpbridge.Error{Class: mcpbridge.Invalid, Sent: true, Status: 400, Doubt: true}
		a := new(fakeSubject)
		d := doubts{about: a}
		ask := func() int {
			d.settle(t.Context(), &messages.Ping{}, new(wire.Exchange), refusal)
			synctest.Wait()
			return a.asked
		}
		require.Equal(t, 1, ask())
		require.Equal(t, 1, ask(), "alive, for 30 s")
		time.Sleep(aliveFor)
		require.Equal(t, 2, ask())
		time.Sleep(aliveFor)
		a.refusal = &mcpbridge.Error{Status: 500, Doubt: true} // another one: nothing is settled
		require.Equal(t, 3, ask())
		require.Equal(t, 3, ask(), "not again at once")
		time.Sleep(pauseMin)
		require.Equal(t, 4, ask())
		time.Sleep(pauseMin)
		require.Equal(t, 4, ask(), "the pause grows")
		time.Sleep(pauseMin)
		require.Equal(t, 5, ask())
	})
}

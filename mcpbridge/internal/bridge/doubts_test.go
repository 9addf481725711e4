package bridge

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/doubt"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

// fakeSession is a session that answers checks as it is told.
type fakeSession struct {
	mu       sync.Mutex
	refusal  *mcpbridge.Error // of both checks; nil: a result
	takes    time.Duration    // how long the checks take
	verdict  doubt.Verdict    // of the control; or Late, for a fresh session
	unknown  *mcpbridge.Error // of a session that was never issued
	plain    bool             // its transport has no sessions
	list     *doubt.Answer    // to the list, or nil: as refusal says
	pings    []*doubt.Answer  // to ping then, one after the other; then none
	back     time.Time        // until then, checks get putOff, or no answer if that is nil
	putOff   *mcpbridge.Error
	rounds   int
	controls int
	ended    int // controls
	isOpen   bool
	expired  []*mcpbridge.Error
}

func (a *fakeSession) state() doubt.Session {
	return doubt.Session{
		Now: time.Now(), ConnectTimeout: time.Minute, HasID: !a.plain, HasList: true, MayRefuse: true,
		Resumable: !a.plain, IsFresh: a.verdict == doubt.Late,
	}
}

func (a *fakeSession) untilCut() context.Context { return context.Background() }
func (a *fakeSession) known()                    {}
func (a *fakeSession) expire(e *mcpbridge.Error) { a.expired = append(a.expired, e) }

func (a *fakeSession) open(context.Context, doubt.Decision) (control, *mcpbridge.Error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.controls++
	switch a.verdict {
	case doubt.Unsettled:
		return nil, &mcpbridge.Error{Status: 500, Server: mcpbridge.Present}
	case doubt.Away:
		return nil, nil
	}
	a.isOpen = true
	return fakeControl{a}, nil
}

func (a *fakeSession) send(ctx context.Context, do doubt.Do, which doubt.Check) *doubt.Answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	if do == doubt.Unknown {
		return &doubt.Answer{Refusal: a.unknown}
	}
	if which == doubt.List && !a.isOpen {
		a.rounds++
	}
	switch {
	case time.Now().Before(a.back) && a.putOff != nil:
		return &doubt.Answer{Refusal: a.putOff}
	case time.Now().Before(a.back):
		a.sleep(ctx, time.Hour)
		return nil
	case a.takes > 0 && !a.sleep(ctx, a.takes):
		return nil
	case which == doubt.List && a.list != nil: // after the answer to ping
		a.sleep(ctx, time.Millisecond)
		return a.list
	case a.verdict == doubt.Late && a.rounds > 1:
		return &doubt.Answer{}
	case a.list == nil:
		return &doubt.Answer{Refusal: a.refusal}
	case len(a.pings) == 0:
		return nil
	}
	next := a.pings[0]
	a.pings = a.pings[1:]
	return next
}

// sleep sleeps without the lock.
func (a *fakeSession) sleep(ctx context.Context, d time.Duration) bool {
	a.mu.Unlock()
	defer a.mu.Lock()
	return wire.Sleep(ctx, d)
}

// fakeControl is a control that leads to the verdict of a [fakeSession].
type fakeControl struct{ of *fakeSession }

func (k fakeControl) isSame() bool { return false }
func (k fakeControl) keep()        { k.of.isOpen = false }
func (k fakeControl) end()         { k.of.isOpen, k.of.ended = false, k.of.ended+1 }

func (k fakeControl) send(context.Context, doubt.Do, doubt.Check) *doubt.Answer {
	if k.of.verdict == doubt.Alive {
		return &doubt.Answer{Refusal: k.of.refusal}
	}
	return &doubt.Answer{}
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
		subject  *fakeSession
		call     *mcpbridge.Error
		want     mcpbridge.Error // class and session
		controls int
		expired  int
	}{
		"a result":                                                       {&fakeSession{}, refused(400), mcpbridge.Error{Class: mcpbridge.Invalid}, 0, 0},
		"refused alike, and the control":                                 {&fakeSession{refusal: refused(400), verdict: doubt.Alive}, refused(400), mcpbridge.Error{Class: mcpbridge.Invalid}, 1, 0},
		"refused alike, the control not":                                 {&fakeSession{refusal: refused(400), unknown: refused(400), verdict: doubt.Dead}, refused(400), mcpbridge.Error{Class: mcpbridge.Expired, Session: mcpbridge.Gone}, 1, 1},
		"refused in other words than the call":                           {&fakeSession{refusal: refused(400), unknown: refused(400), verdict: doubt.Dead}, inOtherWords, mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Gone}, 1, 1},
		"a session that was never issued is refused in other words":      {&fakeSession{refusal: refused(400), unknown: inOtherWords, verdict: doubt.Dead}, refused(400), mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Gone}, 1, 1},
		"a session that was never issued is refused with the id":         {&fakeSession{refusal: refused(400), unknown: own(refused(400), 1), verdict: doubt.Dead}, refused(400), mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Gone}, 1, 1},
		"a session that was never issued is not refused":                 {&fakeSession{refusal: refused(400), verdict: doubt.Dead}, refused(400), mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Gone}, 1, 1},
		"a 408 may have run":                                             {&fakeSession{refusal: refused(408), unknown: refused(408), verdict: doubt.Dead}, refused(408), mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Gone}, 1, 1},
		"a page, and the session lives":                                  {&fakeSession{}, page, mcpbridge.Error{Class: mcpbridge.ServerError, Session: mcpbridge.Unheard}, 0, 0},
		"a page to all but the control":                                  {&fakeSession{refusal: page, unknown: page, verdict: doubt.Dead}, page, mcpbridge.Error{Class: mcpbridge.Expired, Session: mcpbridge.Gone}, 1, 1},
		"a page to this session only":                                    {&fakeSession{refusal: page, verdict: doubt.Dead}, page, mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Gone}, 1, 1},
		"a 5xx may have run":                                             {&fakeSession{refusal: refused(500), verdict: doubt.Dead}, refused(500), mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Gone}, 1, 1},
		"refused otherwise":                                              {&fakeSession{refusal: refused(401), verdict: doubt.Dead}, refused(400), mcpbridge.Error{Class: mcpbridge.Invalid}, 0, 0},
		"the checks find it gone":                                        {&fakeSession{refusal: gone}, refused(400), mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Gone}, 0, 1},
		"with its id, as a session that was never issued":                {&fakeSession{refusal: own(refused(400), 1), unknown: own(refused(400), 1), verdict: doubt.Dead}, own(refused(400), 1), mcpbridge.Error{Class: mcpbridge.Expired, Session: mcpbridge.Gone}, 1, 1},
		"with its id, in other words":                                    {&fakeSession{refusal: own(refused(400), 1), unknown: own(refused(400), 1), verdict: doubt.Dead}, own(refused(400), 2), mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Gone}, 1, 1},
		"with its id, and a session that was never issued gets a result": {&fakeSession{refusal: own(refused(400), 1), verdict: doubt.Dead}, own(refused(400), 1), mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Gone}, 1, 1},
		"no sessions, refused alike":                                     {&fakeSession{refusal: refused(400), plain: true}, refused(400), mcpbridge.Error{Class: mcpbridge.Expired, Session: mcpbridge.Broken}, 0, 0},
		"no sessions, an error on a pipe":                                {&fakeSession{refusal: refused(200), plain: true}, refused(200), mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Broken}, 0, 0},
		"the checks take too long":                                       {&fakeSession{refusal: refused(400), takes: time.Minute}, refused(400), mcpbridge.Error{Class: mcpbridge.Invalid}, 0, 0},
		"a refusal that is not in doubt":                                 {&fakeSession{refusal: refused(400)}, &mcpbridge.Error{Class: mcpbridge.RateLimited, Status: 429}, mcpbridge.Error{Class: mcpbridge.RateLimited}, 0, 0},
		"late, and a check refused":                                      {&fakeSession{refusal: refused(400), unknown: refused(400), verdict: doubt.Late}, refused(400), mcpbridge.Error{Class: mcpbridge.NotSent}, 0, 0},
		"unsettled: the control is absent":                               {&fakeSession{refusal: refused(400), verdict: doubt.Unsettled}, refused(400), mcpbridge.Error{Class: mcpbridge.Invalid}, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := doubts{about: c.subject}
				began := time.Now()
				e := d.settle(t.Context(), &messages.Ping{}, new(wire.Exchange), c.call)
				require.LessOrEqual(t, time.Since(began), verdictTimeout)
				require.Equal(t, c.want, mcpbridge.Error{Class: e.Class, Session: e.Session}, "%v", e)
				time.Sleep(time.Hour) // until checks that take long have ended
				synctest.Wait()
				require.Equal(t, c.controls, c.subject.controls)
				require.Len(t, c.subject.expired, c.expired)
				require.False(t, c.subject.isOpen, "the control is kept or ended")
			})
		})
	}
}

func TestDoubtIsSettledOnceForAllCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusal := &mcpbridge.Error{Class: mcpbridge.Invalid, Sent: true, Status: 400, Doubt: true, Err: &wire.Evidence{Digest: [16]byte{1}}}
		a := &fakeSession{refusal: refusal, unknown: refusal, takes: time.Second, verdict: doubt.Dead}
		d := doubts{about: a}
		settled := make(chan *mcpbridge.Error, 20)
		for range cap(settled) {
			go func() { settled <- d.settle(t.Context(), &messages.Ping{}, new(wire.Exchange), refusal) }()
		}
		for range cap(settled) {
			require.Equal(t, mcpbridge.Expired, (<-settled).Class)
		}
		require.Equal(t, 1, a.rounds)
		require.Equal(t, 1, a.controls)
		require.Len(t, a.expired, 1)
	})
}

func TestInquiryThatMetAFrontGoesOnUntilTheServerIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusal := &mcpbridge.Error{Class: mcpbridge.Invalid, Sent: true, Status: 400, Doubt: true, Err: &wire.Evidence{Digest: [16]byte{1}}}
		a := &fakeSession{refusal: refusal, unknown: refusal, verdict: doubt.Away}
		d := doubts{about: a}
		require.True(t, d.settle(t.Context(), &messages.Ping{}, new(wire.Exchange), refusal).Doubt)
		time.Sleep(doubt.PaceMax)
		synctest.Wait()
		a.verdict = doubt.Dead
		back := time.Now()
		require.Equal(t, mcpbridge.Expired, d.settle(t.Context(), &messages.Ping{}, new(wire.Exchange), refusal).Class)
		require.LessOrEqual(t, time.Since(back), doubt.PaceMax)
		require.Greater(t, a.rounds, 3, "again and again, while somebody waits")
	})
}

// C12: doubt that remained is no reason to pass on refusals once a front has answered.
func TestAFrontEndsThePauseOfAnInquiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusal := &mcpbridge.Error{Class: mcpbridge.Invalid, Sent: true, Status: 400, Doubt: true, Err: &wire.Evidence{Digest: [16]byte{1}}}
		page := &mcpbridge.Error{Class: mcpbridge.ServerError, Sent: true, Status: 502, Doubt: true, Err: &wire.Evidence{Front: true}}
		a := &fakeSession{refusal: refusal, unknown: refusal, verdict: doubt.Unsettled}
		d := doubts{about: a}
		settle := func(e *mcpbridge.Error) *mcpbridge.Error {
			return d.settle(t.Context(), &messages.Ping{}, new(wire.Exchange), e)
		}
		require.Equal(t, mcpbridge.Invalid, settle(refusal).Class)
		a.back, a.putOff, a.verdict = time.Now().Add(200*time.Millisecond), page, doubt.Dead
		require.Equal(t, mcpbridge.Unheard, settle(page).Session)
		time.Sleep(150 * time.Millisecond) // until the checks have met the front
		require.Equal(t, mcpbridge.Expired, settle(refusal).Class)
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
		"silent": {nil, doubt.PauseMin},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				a := &fakeSession{refusal: refusal, verdict: doubt.Dead, back: began.Add(8 * time.Second), putOff: c.putOff}
				d := doubts{about: a}
				var atOnce time.Duration
				for {
					at := time.Now()
					require.LessOrEqual(t, at.Sub(a.back), verdictTimeout+doubt.PauseMin)
					if d.settle(t.Context(), &messages.Ping{}, new(wire.Exchange), refusal).Session == mcpbridge.Gone {
						break
					}
					if time.Since(at) == 0 {
						time.Sleep(time.Second / 10)
						atOnce += time.Second / 10
					}
				}
				require.LessOrEqual(t, atOnce, 2*c.pause)
				require.LessOrEqual(t, a.rounds, 11, "once a second at most")
			})
		})
	}
}

func TestVerdictHoldsForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusal := &mcpbridge.Error{Class: mcpbridge.Invalid, Sent: true, Status: 400, Doubt: true}
		a := new(fakeSession)
		d := doubts{about: a}
		ask := func() int {
			d.settle(t.Context(), &messages.Ping{}, new(wire.Exchange), refusal)
			synctest.Wait()
			return a.rounds
		}
		require.Equal(t, 1, ask())
		require.Equal(t, 1, ask(), "alive, for 30 s")
		time.Sleep(doubt.AliveFor)
		require.Equal(t, 2, ask())
		time.Sleep(doubt.AliveFor)
		a.refusal = &mcpbridge.Error{Status: 500, Doubt: true} // another one: nothing is settled
		require.Equal(t, 3, ask())
		require.Equal(t, 3, ask(), "not again at once")
		time.Sleep(doubt.PauseMin)
		require.Equal(t, 4, ask())
		time.Sleep(doubt.PauseMin)
		require.Equal(t, 4, ask(), "the pause grows")
		time.Sleep(doubt.PauseMin)
		require.Equal(t, 5, ask())
	})
}

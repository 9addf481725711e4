//go:build linux

package calls

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// atOnce is how many calls are made at a time. Most of them wait for what a program that was killed has sent.
	atOnce = 160
	// maxReplies is how many replies are asked for at most.
	maxReplies = 20
	// The time between two kills. On a slow machine it is longer, so that calls are over as well: up to maxWait.
	minCalm, maxCalm, maxWait = 100 * time.Millisecond, 300 * time.Millisecond, time.Second
	// minOver is how many calls are over between two kills, unless maxWait is.
	minOver = 40
	// maxCut is how long the store is cut off at most.
	maxCut = 200 * time.Millisecond
)

// call is a call that the driver makes.
type call struct {
	n        int
	id       string
	approved bool // it is proposed, and then answered
	met      atomic.Bool
}

// slot is the place of a program: when it is killed, another one takes its place.
type slot struct {
	dir  string
	role role

	mu sync.Mutex // also while one takes the place of another
	p  *process
}

// startSlot starts the first program of a slot.
func startSlot(dir string, r role) (*slot, error) {
	p, err := startProcess(dir, r)
	return &slot{dir: dir, role: r, p: p}, err
}

// current returns the program that runs.
func (s *slot) current() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.p
}

// kill kills the program, and starts the next one. It returns the calls that were in flight.
func (s *slot) kill() (met []*call, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	met = s.p.kill()
	next, err := startProcess(s.dir, s.role)
	if err == nil {
		s.p = next
	}
	return met, err
}

// ask asks the program. It fails if the program was killed, with errEnded, or has ended by itself.
func (s *slot) ask(c *call, a ask) (told, error) {
	p := s.current()
	t, err := p.ask(c, a)
	if errors.Is(err, errEnded) && s.current() == p {
		log, _ := os.ReadFile(filepath.Join(s.dir, s.role.Kind+".log"))
		return t, fmt.Errorf("a program has ended by itself: %s", log[max(0, len(log)-2000):])
	}
	return t, err
}

// kills counts what was done to the programs.
type kills struct{ programs, servers, cuts int }

// driver makes calls, and kills the programs meanwhile.
type driver struct {
	slots   []*slot // of the programs
	server  *slot
	store   *wire // nil if it cannot be cut
	ledger  *ledger
	isBare  bool
	isTwice bool // some calls are asked for in two programs at once

	over atomic.Int64 // how many calls are
}

// run makes calls, and returns what was told of them. It fails if the programs do, or at the end of ctx.
func (d *driver) run(ctx context.Context, calls int, dice *rand.Rand) (outcomes []outcome, done kills, err error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	calm, stop := context.WithCancel(ctx)
	var disturbing sync.WaitGroup
	disturbing.Go(func() {
		var err error
		if done, err = d.disturb(calm, dice); err != nil {
			end(err)
		}
	})
	var mu sync.Mutex
	var working sync.WaitGroup
	work := make(chan func() (outcome, error))
	for range atOnce {
		working.Go(func() {
			for job := range work {
				o, err := job()
				if err != nil {
					end(fmt.Errorf("%v: %w", o, err))
					continue
				}
				d.over.Add(1)
				mu.Lock()
				outcomes = append(outcomes, o)
				mu.Unlock()
			}
		})
	}
	for n := range calls {
		c := &call{n: n, id: fmt.Sprint("call-", n), approved: n%2 == 1}
		first := rand.IntN(len(d.slots))
		work <- func() (outcome, error) { return d.complete(ctx, c, first) }
		if d.isTwin(c) {
			work <- func() (outcome, error) { return d.complete(ctx, c, first+1) }
		}
		if ctx.Err() != nil {
			break
		}
	}
	close(work)
	working.Wait()
	stop()
	disturbing.Wait()
	return outcomes, done, context.Cause(ctx)
}

// disturb kills programs, and cuts the store, until ctx ends.
func (d *driver) disturb(ctx context.Context, dice *rand.Rand) (done kills, err error) {
	targets := len(d.slots) + 1
	if d.store != nil {
		targets++
	}
	for err == nil && d.calm(ctx) {
		var met []*call
		switch target := dice.IntN(targets); {
		case target < len(d.slots):
			met, err = d.slots[target].kill()
			done.programs++
		case target == len(d.slots):
			for _, s := range d.slots {
				met = append(met, s.current().inFlight()...)
			}
			_, err = d.server.kill()
			done.servers++
		default:
			d.store.cut()
			pause(ctx, rand.N(maxCut))
			d.store.heal()
			done.cuts++
		}
		for _, c := range met {
			c.met.Store(true)
		}
	}
	return done, err
}

// calm waits until something may be killed again, and reports whether ctx has not ended.
func (d *driver) calm(ctx context.Context) bool {
	enough, limit := d.over.Load()+minOver, time.Now().Add(maxWait)
	goes := pause(ctx, minCalm+rand.N(maxCalm-minCalm))
	for goes && d.over.Load() < enough && time.Now().Before(limit) {
		goes = pause(ctx, 5*time.Millisecond)
	}
	return goes
}

// pause waits, and reports whether ctx has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// complete makes a call: it asks one program after the other, from the first one, until it is told what became of the call. Half of the
// calls are asked for once more then.
func (d *driver) complete(ctx context.Context, c *call, first int) (o outcome, err error) {
	o = outcome{n: c.n, id: c.id}
	a := ask{ID: c.id, N: c.n, Mode: durableMode}
	if c.approved && !d.isBare {
		a.Mode = proposeMode
	}
	isOver := false
	for replies := 0; !isOver && replies < maxReplies && ctx.Err() == nil; o.asked++ {
		o.told = told{Code: "killed", Detail: "the program has not replied", MayHaveRun: true}
		before, err := d.ledger.runsOf(c.n)
		if err != nil {
			return o, err
		}
		t, err := d.slots[(first+o.asked)%len(d.slots)].ask(c, a)
		if errors.Is(err, errEnded) {
			continue
		}
		if err == nil && o.wrong == "" {
			o.wrong, err = d.refute(c, t, before)
		}
		if err != nil {
			return o, err
		}
		o.told = t
		replies++
		if isOver = d.isOver(a, t); !isOver && (t.Digest == "" || t.Digest == a.Digest) {
			pause(ctx, 20*time.Millisecond+rand.N(80*time.Millisecond))
		}
		if t.Digest != "" {
			a.Mode, a.Digest = answerMode, t.Digest
		}
	}
	if isOver && !d.isBare && c.n%4 < 2 {
		t, err := d.slots[(first+o.asked)%len(d.slots)].ask(c, a)
		if err == nil && contradict(o.told, t) {
			o.wrong = "first " + o.told.String() + ", and then " + t.String()
		}
		if err != nil && !errors.Is(err, errEnded) {
			return o, err
		}
	}
	o.met = c.met.Load()
	return o, context.Cause(ctx)
}

// contradict reports whether what was told last contradicts what was told before, and was said to be final.
func contradict(before, last told) bool {
	if before.isOK() {
		return last.isOK() && last.Text != before.Text || !last.isOK() && !last.MayHaveRun
	}
	return last.isOK()
}

// isOver reports whether what was told of a call does not change any more.
func (d *driver) isOver(a ask, t told) bool {
	switch {
	case t.isOK(), d.isBare:
		return true
	default: // what was approved, and has not run, is given up
		return a.Mode == answerMode && t.Digest == "" && !t.MayHaveRun
	}
}

// refute returns what was told of a call, if that is that the call has not run, and it has. before is how often it had when it was asked
// for: another program that is asked for it as well may have run it since.
func (d *driver) refute(c *call, t told, before int) (wrong string, err error) {
	if t.isOK() || t.MayHaveRun {
		return "", nil
	}
	runs := before
	if !d.isTwin(c) {
		runs, err = d.ledger.runsOf(c.n)
	}
	if runs == 0 || err != nil {
		return "", err
	}
	return t.String(), nil
}

// isTwin reports whether a call is asked for in two programs at once.
func (d *driver) isTwin(c *call) bool { return d.isTwice && c.n%16 < 2 }

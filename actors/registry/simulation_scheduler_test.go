package registry

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/internal/schedule"
)

// scheduler is the dispatcher of the actors of a simulation. Only one goroutine runs at a time: all others wait for
// their turns, at each message that an actor reads or a goroutine posts, and wherever the bridge would wait for
// the world. When the one that runs has come to rest, the scheduler chooses the next one. It runs in the goroutine
// of the test, and lets time pass.
type scheduler struct {
	*schedule.Run
	self    uintptr       // the origin of its goroutine
	actors  uintptr       // that of all actors, of which one runs at a time
	acting  atomic.Bool   // the scheduler runs itself
	pauses  int           // the post at which the actor that runs lets others run; 0 is none
	arrived chan struct{} // has an element when a goroutine has come to wait

	mu    sync.Mutex
	fresh []*turn // that have come since the last step

	waiting  []*turn // the others, the oldest first
	names    map[*mailbox.Mailbox]string
	nameOf   func(*mailbox.Mailbox) string // of a mailbox that has none yet
	in       func(*mailbox.Mailbox) *supervisor
	observe  func(to *mailbox.Mailbox, message any)
	policy   int // how many steps a priority lasts, or 0 without priorities
	preempts bool
	late     time.Duration // for how long time has passed while an actor had something to do
	ran      *supervisor   // the process that had the last turn, or nil
	ended    bool          // nothing waits any more
}

// turn is a goroutine that waits for its turn.
type turn struct {
	label   string
	in      *supervisor      // the process, or nil
	mailbox *mailbox.Mailbox // of an actor that reads, or the one that is posted to; or nil
	actor   bool             // an actor runs
	ctx     context.Context  // of work of the bridge; nil for what takes no time
	ready   func() bool      // nil is always
	chosen  chan struct{}
}

// origin returns the function that the goroutine that calls it has begun with: the kind of the goroutine.
func origin() uintptr {
	var stack [32]uintptr // a larger one would make the stack grow
	for skip := 0; ; skip += len(stack) - 2 {
		if depth := runtime.Callers(skip, stack[:]); depth < len(stack) { // ends with runtime.goexit
			return runtime.FuncForPC(stack[depth-2]).Entry()
		}
	}
}

// Schedule runs an actor, which waits for its turn by itself.
func (s *scheduler) Schedule(f func()) {
	if s.actors == 0 {
		s.actors = reflect.ValueOf(f).Pointer()
	}
	go f()
}

// Throughput is without a limit, because there is a turn for each message.
func (s *scheduler) Throughput() int { return 1 << 30 }

// Posting waits for the turn of a goroutine that is not an actor. An actor posts in its turn.
func (s *scheduler) Posting(to *mailbox.Mailbox, message any) {
	t := &turn{mailbox: to, label: describe(message)}
	switch acting, by := s.acting.Load(), origin(); {
	case acting && by == s.self: // goroutines that it wakes may post as well
		return
	case !acting && by == s.actors:
		if s.pauses == 0 {
			return
		}
		if s.pauses--; s.pauses > 0 {
			return
		}
		t.actor, t.in = true, s.ran // what it posts may be for another process
	}
	s.wait(t)
}

// Reading waits for the turn of an actor.
func (s *scheduler) Reading(by *mailbox.Mailbox) { s.wait(&turn{mailbox: by, actor: true}) }

// Read notes what an actor reads.
func (s *scheduler) Read(by *mailbox.Mailbox, message any) {
	s.observe(by, message)
	if s.Keep {
		s.Logf("%s reads %s", s.names[by], describe(message))
	}
}

// work waits for the turn of what the world does in a process, or elsewhere. If it is not ready, it waits until it is.
func (s *scheduler) work(in *supervisor, ctx context.Context, label string, ready func() bool) {
	if _, known := ctx.Deadline(); !known && ctx.Done() != nil { // sleep does not know when it ends
		defer context.AfterFunc(ctx, s.arrive)()
	}
	s.wait(&turn{label: label, in: in, ctx: ctx, ready: ready})
}

// wait waits until the goroutine is chosen.
func (s *scheduler) wait(t *turn) {
	t.chosen = make(chan struct{})
	s.mu.Lock()
	s.fresh = append(s.fresh, t)
	s.mu.Unlock()
	s.arrive()
	<-t.chosen
}

// arrive ends a sleep of the scheduler.
func (s *scheduler) arrive() {
	select {
	case s.arrived <- struct{}{}:
	default:
	}
}

// rest waits until no goroutine runs, and takes up those that have come to wait.
func (s *scheduler) rest() {
	synctest.Wait()
	s.mu.Lock()
	fresh := s.fresh
	s.fresh = nil
	s.mu.Unlock()
	for _, t := range fresh {
		if t.mailbox == nil {
			continue
		}
		if t.in == nil {
			t.in = s.in(t.mailbox)
		}
		if s.names[t.mailbox] == "" {
			s.names[t.mailbox] = s.nameOf(t.mailbox)
		}
		if t.label == "" {
			t.label = s.names[t.mailbox] + " reads"
		} else {
			t.label = t.label + " to " + s.names[t.mailbox]
		}
	}
	slices.SortStableFunc(fresh, func(a, b *turn) int { return cmp.Compare(a.label, b.label) })
	s.waiting = append(s.waiting, fresh...)
}

// isReady reports whether the goroutine may be chosen.
func (s *scheduler) isReady(t *turn) bool {
	return s.ended || t.in.runs() && (t.ready == nil || t.ready())
}

// isDone reports whether nothing waits, but in processes that were killed.
func (s *scheduler) isDone() bool {
	return !slices.ContainsFunc(s.waiting, func(t *turn) bool { return t.in.runs() })
}

// isQuick reports whether the goroutine waits for nothing but a processor: time does not pass before its turn.
func (s *scheduler) isQuick(t *turn) bool {
	return (t.ctx == nil || t.ctx.Err() != nil) && s.isReady(t)
}

// maxSteps bounds a schedule: one without end is not in time.
const maxSteps = 50_000

// step lets one of the goroutines run. It reports whether there was one.
func (s *scheduler) step(may func(*turn) bool) bool {
	s.rest()
	var ready []*turn
	for _, t := range s.waiting {
		if may(t) {
			ready = append(ready, t)
		}
	}
	if len(ready) == 0 || s.Steps > maxSteps {
		return false
	}
	t := ready[s.Choose(len(ready), func(r *rand.Rand) int { return s.pick(r, ready) })]
	s.waiting = slices.DeleteFunc(s.waiting, func(other *turn) bool { return other == t })
	s.pauses = 0
	if t.actor && s.preempts {
		s.pauses = s.Rarely(4, 3)
	}
	s.Steps++
	s.ran = t.in
	if s.Keep && t.label != "" && (!t.actor || t.mailbox == nil) {
		s.Logf("%s (of %d)", t.label, len(ready))
	}
	s.acting.Store(false)
	t.chosen <- struct{}{}
	synctest.Wait()
	s.acting.Store(true)
	return true
}

// pick proposes a goroutine: the oldest, any, or that with the highest priority, which it has for some steps. So some
// wait for long.
func (s *scheduler) pick(r *rand.Rand, ready []*turn) (at int) {
	switch {
	case r.IntN(8) == 0:
		return 0
	case s.policy == 0 || r.IntN(16) == 0:
		return r.IntN(len(ready))
	}
	var best uint64
	for i, t := range ready {
		if priority := priorityOf(t.label, s.Steps/s.policy); priority > best {
			best, at = priority, i
		}
	}
	return at
}

// priorityOf returns the priority of a goroutine in a period.
func priorityOf(label string, period int) uint64 {
	hash := fnv.New64a()
	fmt.Fprint(hash, period, label)
	sum := hash.Sum64() * 0x9e3779b97f4a7c15 // mixes the last bytes into the first bits
	return sum ^ sum>>32
}

// tick lets time pass although actors have something to do, as on a machine that is slow.
func (s *scheduler) tick() {
	time.Sleep(time.Millisecond)
	s.late += time.Millisecond
	s.rest()
}

// pass lets time pass. Whatever takes no time is done before that, and also what the world does, if it works.
func (s *scheduler) pass(d time.Duration, works bool) {
	may := s.isQuick
	if works {
		may = s.isReady
	}
	for until := time.Now().Add(d); ; {
		for s.step(may) {
		}
		left := time.Until(until)
		if left <= 0 {
			return
		}
		s.sleep(left)
	}
}

// sleep lets time pass until something comes to wait, or the work of the bridge is over because its context is.
func (s *scheduler) sleep(d time.Duration) {
	for _, t := range s.waiting {
		if t.ctx == nil || !t.in.runs() {
			continue
		}
		if at, ok := t.ctx.Deadline(); ok && time.Until(at) > 0 {
			d = min(d, time.Until(at))
		}
	}
	select {
	case <-s.arrived:
	default:
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.arrived:
	}
	s.rest()
}

var _ mailbox.Stepper = (*scheduler)(nil)

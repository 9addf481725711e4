package registry

import (
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/eventstream"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/internal/relay"
	"github.com/mcpactor/mcpactor/internal/schedule"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

type random = rand.Rand

// simulation is one schedule of the registries of some supervisors and their sessions: what callers do, what happens to the
// servers and to the processes, and in which order the actors and all that waits for them take their turns.
type simulation struct {
	scheduler
	world

	cfg        protocol.Config
	intercepts bool // there are interceptors
	maxDials   int
	store      *world // nil without a store
	most       int    // how many supervisors run at once
	isCluster  bool   // they share the keys
	system     *actor.ActorSystem
	all        []*supervisor
	owners     ownership
	router     *router

	generations map[messages.Key]messages.Stamp // of the last session that was opened
	sessionOf   map[generation]*served          // that has run calls

	commands    []*command
	unanswered  int
	processes   []*process
	registered  []*actor.PID
	twice       map[string]bool // operations that an interceptor has run more than once
	lost        map[string]bool // operations that a process had that was killed, or left
	version     int             // of the servers
	plantedIn   int             // messages of sessions until one has a bug; 0 is none
	bugs        int
	meddles     bool // user code stops actors
	meddledWith map[messages.Key]bool
	outlived    bool // a dial goes on whose actor was stopped, or has a bug: it has no permit any more
	isStopping  bool // all supervisors are told to stop

	subscription *eventstream.Subscription // to what the engine publishes
	events       []any                     // since the last step; guarded by scheduler.mu
	dials        map[*mailbox.Mailbox]bool // sessions that dial
}

// generation identifies an MCP session for callers.
type generation struct {
	key messages.Key
	n   uint64
}

const (
	callTimeout    = 20 * time.Second
	connectTimeout = 5 * time.Second
	drainTimeout   = 2 * time.Second
	closeTimeout   = time.Second
	recovery       = 15 * time.Second // after the end of all faults
	startsOfOne    = 2                // processes of the one server that has processes
)

var (
	serverNames = []string{"one", "command", "keyed", "other"}
	scopes      = []string{"a", "b", "cc"}
)

// violate notes that something does not hold. Only the first violation counts. Whoever has the turn, or the
// scheduler, calls it.
func (s *simulation) violate(kind, format string, args ...any) {
	if !s.ended {
		s.Violate(kind, format, args...)
	}
}

// simulate runs a schedule of some actions.
func simulate(t *testing.T, choices *schedule.Tape, actions int, keep bool) (r *schedule.Run) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // one goroutine runs at a time
	if n, given := choices.Actions(); given {
		actions = n
	}
	s := &simulation{}
	defer func() {
		if reason := recover(); reason != nil { // of synctest: goroutines are left
			s.Violate("goroutines are left", "%v", reason)
		}
		r = s.Run
	}()
	synctest.Test(t, func(*testing.T) {
		s.Run = schedule.Begin(choices, keep, time.Now)
		s.start()
		for ; actions > 0 && s.Intact(); actions-- {
			s.act()
		}
		s.finish()
	})
	return r
}

// simulatedSystem returns the actor system of all schedules: to make one takes longer than to run a short schedule.
var simulatedSystem = sync.OnceValue(func() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
})

// start makes the configuration, and starts the supervisors.
func (s *simulation) start() {
	s.Part()
	s.acting.Store(true)
	s.scheduler.self, s.arrived = origin(), make(chan struct{}, 1)
	s.scheduler.names, s.nameOf, s.in, s.observe = map[*mailbox.Mailbox]string{}, s.nameOfMailbox, s.supervisorOf, s.onRead
	s.twice, s.lost = map[string]bool{}, map[string]bool{}
	s.dials, s.sessionOf, s.generations = map[*mailbox.Mailbox]bool{}, map[generation]*served{}, map[messages.Key]messages.Stamp{}
	s.world, s.router = newWorld(s), &router{s: s}
	s.world.rate, s.world.dialRate = []int{6, 3, 30, 0}[s.N(4)], []int{6, 3, 30, 0}[s.N(4)]
	s.policy, s.preempts = []int{0, 30, 100, 300}[s.N(4)], s.N(2) == 1
	s.maxDials = []int{1, 1, 2, 4}[s.N(4)]
	s.meddles, s.meddledWith = s.N(8) == 1, map[messages.Key]bool{}
	s.system = simulatedSystem()
	s.subscription = s.system.EventStream.Subscribe(s.take)
	events := relay.New(1<<14, s.take, nil, nil)
	s.cfg = protocol.Config{
		Strategy: patience{s}, Logger: relay.NewLogger(zerolog.New(errorLog{s}).Level(zerolog.ErrorLevel)),
		Events: events, Post: relay.NewPost(s.system, events, nil), Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{}},
		Bounds:      []mcpbridge.Bound{{InFlight: 1 << 20}}, // never reached: only what is counted is checked
		MaxSessions: 1 + s.N(4), MaxInFlight: 1 + s.N(3), MaxWaiting: max(0, s.N(8)-1), MaxWaitingTotal: 20, MaxDials: s.maxDials, MaxStarts: 4 * startsOfOne, FailFast: s.N(4) == 1,
		Random:      func() float64 { return float64(s.N(8)) / 8 },
		IdleTimeout: time.Duration(s.N(3)) * 10 * time.Second, ConnectTimeout: connectTimeout, CallTimeout: callTimeout,
		DrainTimeout: drainTimeout, CloseTimeout: closeTimeout, HandlerTimeout: time.Second,
	}
	if s.N(2) == 1 {
		s.cfg.Tenant, s.cfg.MaxSessionsPerTenant = tenantOfScope, 1+s.N(2)
	}
	s.intercepts = s.N(3) == 1
	if s.N(3) == 1 {
		s.cfg.Handler = s.process("handler").pid
	}
	if s.N(3) == 1 {
		s.cfg.Subscriber = s.process("subscriber").pid
	}
	for _, name := range serverNames {
		s.world.servers[name] = s.newServer(name, 0)
	}
	if s.most = 1; s.N(2) == 1 {
		s.store, s.slowStore, s.cfg.LeaveOpen = &s.world, s.N(2) == 1, s.N(2) == 1
		s.most = 1 + s.N(3)
		s.remember()
	}
	s.isCluster = s.most > 1
	s.owners = ownership{map[string]*supervisor{}, map[string]*supervisor{}, map[string]bool{}}
	s.Logf("sessions %d, in flight %d, waiting %d, dials %d, per tenant %d, interceptors %v, store %v, leave open %v, fail fast %v, processes %d", s.cfg.MaxSessions, s.cfg.MaxInFlight,
		s.cfg.MaxWaiting, s.maxDials, s.cfg.MaxSessionsPerTenant, s.intercepts, s.store != nil, s.cfg.LeaveOpen, s.cfg.FailFast, s.most)
	for range s.most {
		s.startSupervisor()
	}
	for i, scope := range scopes {
		s.owners.of[scope] = s.all[i%len(s.all)]
	}
}

// finish ends all faults, waits until all is answered and at rest, and stops the supervisors; or stops them at once.
func (s *simulation) finish() {
	s.Part()
	switch s.N(3) {
	case 0:
		s.heal()
		s.unpin()
		s.runUntil(recovery, "all commands are answered", func() bool { return s.unanswered == 0 })
		s.awaitGone()
		s.runUntil(2*time.Minute, "all is at rest", s.atRest)
		s.checkRest()
		s.checkRecovery()
		s.stop()
	case 1:
		s.heal()
		s.stop()
	case 2:
		s.stop()
		s.some(30)
		s.heal()
	}
	s.runUntil(2*time.Minute, "the supervisors have stopped", func() bool { return s.haveStopped() && s.unanswered == 0 })
	s.runUntil(time.Minute, "nothing waits", s.isQuiet)
	s.checkEnd()
	s.ended = true
	s.drainGoroutines()
	s.system.EventStream.Unsubscribe(s.subscription)
	for _, pid := range s.registered {
		s.system.ProcessRegistry.Remove(pid)
	}
	time.Sleep(3 * time.Second) // for the throttle of the dead letters
}

// haveStopped reports whether all supervisors have stopped, but those that were killed.
func (s *simulation) haveStopped() bool {
	return !slices.ContainsFunc(s.living(), func(p *supervisor) bool { return !p.stopped })
}

// isQuiet reports whether nothing waits or lets time pass.
func (s *simulation) isQuiet() bool {
	return s.isDone() && !slices.ContainsFunc(s.living(), func(p *supervisor) bool { return p.lingering > 0 })
}

// heal ends all faults.
func (s *simulation) heal() {
	s.Logf("== all faults end")
	s.healed, s.plantedIn = true, 0
	for _, at := range s.addresses {
		at.down, at.front = false, false
	}
}

// unpin ends all pins, which may keep calls waiting.
func (s *simulation) unpin() {
	s.rest()
	for _, p := range s.living() {
		for _, name := range serverNames {
			for _, scope := range scopes {
				s.pin(p, messages.Key{Server: name, Scope: scope}, true)
			}
		}
	}
}

// stop tells all supervisors to stop.
func (s *simulation) stop() {
	s.rest()
	s.Logf("== stop")
	s.isStopping = true
	for _, p := range s.living() {
		if p.takes() {
			p.stop()
		}
	}
}

// runUntil lets everything happen until a condition holds, which must be soon.
func (s *simulation) runUntil(limit time.Duration, what string, until func() bool) {
	end := time.Now().Add(limit)
	for s.rest(); s.Intact() && !until(); s.rest() {
		switch {
		case time.Now().After(end):
			s.violate("not in time", "%s", what)
		case s.step(s.isReady):
			s.afterStep()
		default:
			s.sleepChecked(time.Minute)
		}
	}
}

// atRest reports whether nothing happens for a while, and no session is about to be opened or closed.
func (s *simulation) atRest() bool {
	if s.isDone() {
		s.sleepChecked(400 * time.Millisecond)
	}
	for _, p := range s.living() {
		for reg := range p.registry.table.All() {
			if reg.Dialing || reg.Draining || reg.Queued() && p.registry.refusal.Exhausted(reg) == "" {
				return false
			}
		}
	}
	return s.isQuiet()
}

// drainGoroutines lets all goroutines end after a violation, and those of processes that were killed.
func (s *simulation) drainGoroutines() {
	s.healed = true
	for _, p := range s.all {
		if !p.stopping {
			p.stop()
		}
	}
	running := func(p *supervisor) bool { return !p.stopped || p.lingering > 0 }
	for n, quiet := 0, 0; n < 100_000 && (quiet < 2 || slices.ContainsFunc(s.all, running)); n++ {
		if quiet++; s.step(s.isReady) {
			quiet = 0
			continue
		}
		time.Sleep(time.Minute)
	}
}

// take takes what is published.
func (s *simulation) take(event any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, event)
}

// errorLog finds the lines that tell of bugs.
type errorLog struct{ s *simulation }

func (l errorLog) Write(line []byte) (int, error) {
	if !strings.Contains(string(line), planted) {
		l.s.take(bugLine(line))
	}
	return len(line), nil
}

// bugLine is a line of the log that tells of a bug.
type bugLine string

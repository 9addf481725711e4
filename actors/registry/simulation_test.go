package registry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/eventstream"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/internal/relay"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

type random = rand.Rand

// simulation is one schedule of a registry and its sessions: what callers do and what happens to the servers, and
// in which order the actors and all that waits for them take their turns.
type simulation struct {
	scheduler
	world

	cfg          actors.Config
	maxDials     int
	system       *actor.ActorSystem
	registry     *registry
	intercepting *intercepting // nil without interceptors
	pid          *actor.PID

	generations map[messages.Key]uint64 // of the last session that was opened
	sessionOf   map[generation]*served  // that has run calls
	pins        map[messages.Key]bool   // sessions that must not be evicted

	commands   []*command
	unanswered int
	processes  []*process
	codes      map[messages.Code]int
	twice      map[string]bool // operations that an interceptor has run more than once
	version    int             // of the servers
	plantedIn  int             // messages of sessions until one has a bug; 0 is none
	bugs       int
	stopping   bool
	stopped    bool
	left       []messages.Left

	subscription *eventstream.Subscription // to what the engine publishes
	events       []any                     // since the last step; guarded by scheduler.mu
	dialing      map[*mailbox.Mailbox]bool
	crossings    map[string]int

	violation string // the first one, or ""
	kind      string // of it
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
)

var (
	serverNames = []string{"one", "command", "keyed", "other"}
	scopes      = []string{"a", "b", "cc"}
)

// notCalled is the PerKey of a server: the scripted bridge knows its results.
func notCalled(context.Context, messages.Key) (mcpbridge.Server, error) {
	return mcpbridge.Server{}, errors.New("is not called")
}

// violate notes that something does not hold. Only the first violation counts. Whoever has the turn, or the
// scheduler, calls it.
func (s *simulation) violate(kind, format string, args ...any) {
	if s.violation == "" && !s.ended {
		s.kind, s.violation = kind, kind+": "+fmt.Sprintf(format, args...)
		s.logf("VIOLATION %s", s.violation)
	}
}

// intact reports whether all holds so far.
func (s *simulation) intact() bool { return s.violation == "" }

// crossed counts a crossing of messages.
func (s *simulation) crossed(what string) { s.crossings[what]++ }

// simulate runs a schedule of some actions.
func simulate(t *testing.T, choices *tape, actions int, keep bool) (s *simulation) {
	if n, given := choices.Actions(); given {
		actions = n
	}
	s = &simulation{}
	defer func() {
		if reason := recover(); reason != nil { // of synctest: goroutines are left
			s.ended = false
			s.violate("goroutines are left", "%v", reason)
		}
	}()
	synctest.Test(t, func(*testing.T) {
		s.tape, s.keep = choices, keep
		s.start()
		for ; actions > 0 && s.intact(); actions-- {
			s.act()
		}
		s.finish()
	})
	return s
}

// simulatedSystem returns the actor system of all schedules: to make one takes longer than to run a short schedule.
var simulatedSystem = sync.OnceValue(func() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
})

// start makes the configuration, and starts the registry.
func (s *simulation) start() {
	s.part()
	s.acting.Store(true)
	s.scheduler.self, s.arrived, s.began = goroutine(), make(chan struct{}, 1), time.Now()
	s.scheduler.names, s.nameOf, s.observe = map[*mailbox.Mailbox]string{}, s.nameOfMailbox, s.onRead
	s.codes, s.twice, s.dialing, s.crossings = map[messages.Code]int{}, map[string]bool{}, map[*mailbox.Mailbox]bool{}, map[string]int{}
	s.sessionOf = map[generation]*served{}
	s.generations, s.pins = map[messages.Key]uint64{}, map[messages.Key]bool{}
	s.world = world{
		s: s, servers: map[string]mcpbridge.Server{}, addresses: map[string]*address{}, adoptable: map[messages.Key]*control{},
		live: map[messages.Key]int{}, tenants: map[string]int{}, dialing: map[string]int{}, ranOn: map[string]*served{}, executed: map[string]int{}, mayRun: map[string]int{}, sent: map[string]int{},
		causes: map[messages.Key]int{}, changed: map[string]bool{}, stored: map[messages.Key]*mcpbridge.Record{},
	}
	s.world.rate, s.world.dialRate = []int{6, 3, 30, 0}[s.n(4)], []int{6, 3, 30, 0}[s.n(4)]
	s.policy, s.preempts = []int{0, 30, 100, 300}[s.n(4)], s.n(2) == 1
	s.maxDials = 1 + s.n(2)
	s.system = simulatedSystem()
	s.subscription = s.system.EventStream.Subscribe(s.take)
	events := relay.New(1<<14, s.take, nil, nil)
	s.cfg = actors.Config{
		Name: "simulated", Dialer: &s.world, Strategy: patience{s}, Logger: relay.NewLogger(zerolog.New(errorLog{s}).Level(zerolog.ErrorLevel)),
		Events: events, Post: relay.NewPost(s.system, events, nil), Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{}},
		MaxSessions: 1 + s.n(4), MaxInFlight: 1 + s.n(3), MaxWaiting: 1 + s.n(8), MaxWaitingTotal: 20, MaxDials: s.maxDials, FailFast: s.n(4) == 1,
		IdleTimeout: time.Duration(s.n(3)) * 10 * time.Second, ConnectTimeout: connectTimeout, CallTimeout: callTimeout,
		DrainTimeout: drainTimeout, CloseTimeout: closeTimeout, HandlerTimeout: time.Second,
		Stopped: func(left []messages.Left) { s.stopped, s.left = true, left },
		Probe:   s.probe,
	}
	if s.n(2) == 1 {
		s.cfg.Tenant, s.cfg.MaxSessionsPerTenant = tenantOfScope, 1+s.n(2)
	}
	if s.n(3) == 1 {
		s.cfg.Interceptors = []actors.Interceptor{s.intercept}
	}
	if s.n(3) == 1 {
		s.cfg.Handler = s.process("handler").pid
	}
	if s.n(3) == 1 {
		s.cfg.Subscriber = s.process("subscriber").pid
	}
	for _, name := range serverNames {
		srv := s.newServer(name, 0)
		s.world.servers[name] = srv
		s.cfg.Servers = append(s.cfg.Servers, srv)
	}
	if s.n(3) == 1 {
		s.cfg.Store, s.world.slowStore = &s.world, s.n(2) == 1
		s.remember()
	}
	s.logf("sessions %d, in flight %d, waiting %d, dials %d, per tenant %d, interceptors %d, store %v, fail fast %v", s.cfg.MaxSessions, s.cfg.MaxInFlight,
		s.cfg.MaxWaiting, s.maxDials, s.cfg.MaxSessionsPerTenant, len(s.cfg.Interceptors), s.cfg.Store != nil, s.cfg.FailFast)
	m := new(mailbox.Mailbox)
	shared := contract.Config{Config: s.cfg, Dispatcher: &s.scheduler, Random: func() float64 { return float64(s.n(8)) / 8 }}
	s.registry = newRegistry(&shared, m)
	var root actor.Actor = s.registry
	if len(s.cfg.Interceptors) > 0 {
		s.intercepting = newIntercepting(s.registry)
		root = s.intercepting
	}
	s.scheduler.names[m] = "registry"
	s.pid = s.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return root }, shared.RunsOn(m)...))
}

// finish ends all faults, waits until all is answered and at rest, and stops the registry; or stops it at once.
func (s *simulation) finish() {
	s.part()
	switch s.n(3) {
	case 0:
		s.heal()
		s.unpin()
		s.runUntil(recovery, "all commands are answered", func() bool { return s.unanswered == 0 })
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
	s.runUntil(2*time.Minute, "the registry has stopped", func() bool { return s.stopped && s.unanswered == 0 })
	s.runUntil(time.Minute, "nothing waits", func() bool { return len(s.waiting)+s.lingering == 0 })
	s.checkEnd()
	s.ended = true
	s.drainAfterViolation()
	s.system.EventStream.Unsubscribe(s.subscription)
	for _, k := range s.commands {
		s.system.ProcessRegistry.Remove(k.pid)
	}
	for _, p := range s.processes {
		s.system.ProcessRegistry.Remove(p.pid)
	}
	time.Sleep(3 * time.Second) // for the throttle of the dead letters
}

// heal ends all faults.
func (s *simulation) heal() {
	s.logf("== all faults end")
	s.healed, s.plantedIn = true, 0
	for _, at := range s.addresses {
		at.down, at.front = false, false
	}
}

// unpin ends all pins, which may keep calls waiting.
func (s *simulation) unpin() {
	s.rest()
	for _, name := range serverNames {
		for _, scope := range scopes {
			s.pin(messages.Key{Server: name, Scope: scope}, true)
		}
	}
}

// stop tells the registry to stop.
func (s *simulation) stop() {
	s.rest()
	s.logf("== stop")
	s.stopping = true
	s.system.Root.Send(s.pid, &protocol.Stop{})
}

// runUntil lets everything happen until a condition holds, which must be soon.
func (s *simulation) runUntil(limit time.Duration, what string, until func() bool) {
	end := time.Now().Add(limit)
	for s.rest(); s.intact() && !until(); s.rest() {
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
	if len(s.waiting) == 0 {
		s.sleepChecked(400 * time.Millisecond)
	}
	for _, reg := range s.registry.registrations {
		if reg.Dialing || reg.Draining || reg.Queued() && s.registry.exhausted(reg) == "" {
			return false
		}
	}
	return len(s.waiting)+s.lingering == 0
}

// drainAfterViolation lets all goroutines end after a violation.
func (s *simulation) drainAfterViolation() {
	if s.intact() {
		return
	}
	if !s.stopping {
		s.stop()
	}
	for n := 0; n < 100_000 && (!s.stopped || len(s.waiting)+s.lingering > 0); n++ {
		if !s.step(s.isReady) {
			time.Sleep(time.Minute)
			s.rest()
		}
	}
}

// nameOfMailbox returns the name of the actor of a session.
func (s *simulation) nameOfMailbox(m *mailbox.Mailbox) string {
	for _, reg := range s.registry.registrations {
		if reg.mailbox == m {
			return fmt.Sprintf("%s session %d", reg.key, reg.serial)
		}
	}
	return "a session that has ended"
}

// probe panics at a message of a session, once a bug was planted.
func (s *simulation) probe(c actor.Context) {
	if s.plantedIn == 0 {
		return
	}
	if s.plantedIn--; s.plantedIn > 0 {
		return
	}
	if reg := s.registry.registrations[c.Self().Id]; reg != nil {
		s.logf("a bug in %s at %T", reg.key, c.Message())
		s.causes[reg.key]++
		s.crossed("a bug in a session")
		panic(planted)
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

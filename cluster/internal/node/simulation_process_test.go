package node

import (
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/cluster/internal/lease"
	"github.com/mcpactor/mcpactor/cluster/internal/quorum"
	"github.com/mcpactor/mcpactor/messages"
)

// process is a member: its node, its supervisor, and its clock.
type process struct {
	s       *simulation
	name    string
	address string
	rate    float64 // of its clock
	system  *actor.ActorSystem
	node    *node
	pid     *actor.PID
	lease   *lease.Lease
	runs    *runner
	mailbox *lane
	invoker actor.MessageInvoker

	port    *port
	host    *quorum.Host // of raft, or nil
	paused  bool
	resumed time.Time // after the last pause
	leaving bool
	ending  int // how often it has looked whether raft needs it
	left    bool
	dead    bool
}

// maxProcesses is how many processes a schedule has.
const maxProcesses = 8

// simulatedSystems returns the actor systems of all schedules: to make one takes longer than to run a schedule.
var simulatedSystems = sync.OnceValue(func() (all []*actor.ActorSystem) {
	for range maxProcesses {
		system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
		pids := system.ProcessRegistry.LocalPIDs
		pids.LocalPIDs = pids.LocalPIDs[:1] // to clear one is fast
		all = append(all, system)
	}
	return all
})

// spawn starts a process, whose name may be that of one that has ended.
func (s *simulation) spawn(name string) {
	p := &process{s: s, name: name, address: name + ":1", rate: s.clock(), system: simulatedSystems()[len(s.processes)]}
	registry := p.system.ProcessRegistry
	registry.LocalPIDs.LocalPIDs[0].Clear()
	registry.SequenceID = 0
	p.mailbox = s.newLane(nil)
	p.port = &port{p: p}
	p.lease = lease.New(clusterLease, func() time.Duration { return time.Duration(float64(time.Since(s.Began)) * p.rate) })
	p.runs = newRunner(p)
	s.processes = append(s.processes, p)
	p.node = newNode(&Config{
		Name: name, Address: p.address, System: p.system, Supervisor: p.runs.pid, Shards: clusterSize, Logger: zerolog.New(&nodeLog{p}),
		Placement: new(Placement), Lease: p.lease, LeaseTime: clusterLease, Ask: p.ask,
		Joined: func(error) {}, Observe: func(func(messages.Event)) func() { return func() {} },
		CallTimeout: callTime, MaxWaiting: 1000, KeepOpen: s.cfg.store,
	})
	p.node.outside = outside{
		after: func(d time.Duration, f func()) timer { return s.later(p, d, "", f) },
		work:  func(f func()) { s.later(p, 0, p.name+" works", f) },
		newID: func() string {
			s.entered++
			return fmt.Sprintf("%s%d", name, s.entered)
		},
		random: func(below time.Duration) time.Duration { return below * time.Duration(s.N(8)) / 8 },
		props:  []actor.PropsOption{actor.WithMailbox(func() actor.Mailbox { return simulatedMailbox{p} })},
	}
	s.Logf("%s starts", name)
	var err error
	if p.pid, err = p.node.spawn(); err != nil {
		panic(err)
	}
	p.enter()
}

// clock returns the rate of a clock.
func (s *simulation) clock() float64 {
	if !s.cfg.drifts {
		return 1
	}
	return []float64{1, 0.991, 1.009}[s.N(3)]
}

// stretched returns how long a time by the clock of the process is. Deadlines are by the clock of the world: a timer that is
// early is set again.
func (p *process) stretched(d time.Duration) time.Duration {
	if p.rate == 1 || d <= 0 {
		return d
	}
	return time.Duration(float64(d)/p.rate) + time.Microsecond
}

// tell sends a message to the node.
func (p *process) tell(msg any) {
	if !p.dead {
		p.system.Root.Send(p.pid, msg)
	}
}

// simulatedMailbox is the mailbox of a node. Whatever is in it waits for its turn.
type simulatedMailbox struct{ p *process }

func (m simulatedMailbox) RegisterHandlers(invoker actor.MessageInvoker, _ actor.Dispatcher) {
	m.p.invoker = invoker
}
func (simulatedMailbox) Start()                {}
func (simulatedMailbox) Prompt()               {}
func (simulatedMailbox) UserMessageCount() int { return 0 }

func (m simulatedMailbox) PostUserMessage(msg any) {
	m.post(msg, func() { m.p.invoker.InvokeUserMessage(msg) })
}

func (m simulatedMailbox) PostSystemMessage(msg any) {
	m.post(msg, func() { m.p.invoker.InvokeSystemMessage(msg) })
}

func (m simulatedMailbox) post(msg any, read func()) {
	label := ""
	if m.p.s.Keep {
		label = m.p.name + " reads " + describe(msg)
	}
	m.p.mailbox.events = append(m.p.mailbox.events, m.p.s.event(m.p, 0, label, read))
}

// describe says what a message is about.
func describe(msg any) string {
	switch msg := actor.UnwrapEnvelopeMessage(msg).(type) {
	case *Received:
		return fmt.Sprintf("%T of %s, id %d", msg.value, msg.From, msg.id&^isReply)
	case *Answered:
		return fmt.Sprintf("answer %d: %v", msg.Number, msg.Answer)
	case task:
		return runtime.FuncForPC(reflect.ValueOf(msg).Pointer()).Name()
	case messages.Command:
		return fmt.Sprintf("%T %s", msg, msg.RequestID())
	default:
		return fmt.Sprintf("%T", msg)
	}
}

// nodeLog finds the lines that tell of bugs.
type nodeLog struct{ p *process }

func (l *nodeLog) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	if l.p.s.Logf("%s logs %s", l.p.name, text); strings.Contains(text, `"level":"error"`) {
		l.p.s.Violate("an error was logged", "%s", text)
	}
	if strings.Contains(text, "lost the last views") && l.p.s.etcd.lostAt.IsZero() {
		l.p.s.Violate("a view is earlier than the one before", "%s", text)
	}
	return len(line), nil
}

// live returns the processes that run, and have not left.
func (s *simulation) live() (list []*process) {
	for _, p := range s.processes {
		if !p.dead && !p.left {
			list = append(list, p)
		}
	}
	return list
}

// byName returns the process with a name that runs, or nil.
func (s *simulation) byName(name string) *process {
	for _, p := range slices.Backward(s.processes) {
		if p.name == name && !p.dead && !p.left {
			return p
		}
	}
	return nil
}

// pause stops a process for a time, by any clock but not by its own.
func (p *process) pause(d time.Duration) {
	p.s.Logf("%s is paused for %v", p.name, d)
	p.paused = true
	p.s.later(nil, d, "", p.resume)
}

// resume ends a pause.
func (p *process) resume() {
	if p.paused {
		p.s.Logf("%s is resumed", p.name)
		p.paused, p.resumed = false, time.Now()
	}
}

// kill ends a process.
func (p *process) kill() {
	p.s.Logf("%s is killed", p.name)
	p.dead, p.paused = true, false
	for _, other := range p.s.live() {
		if p.s.connected(p.name, other.name) {
			for id := range inOrder(other.port.links) {
				if l := other.port.links[id]; l.to.Host == p.address {
					p.s.later(nil, 5*time.Millisecond, "", func() { l.breaks() })
				}
			}
		}
	}
}

// leave has a process leave, and ends it, as package cluster does.
func (p *process) leave() {
	if p.leaving {
		return
	}
	p.s.Logf("%s leaves", p.name)
	p.leaving = true
	done := p.s.box(p, func(any) {
		p.s.later(p, 0, p.name+" has left", func() {
			p.runs.stop()
			p.s.later(p, time.Millisecond, "", p.end) // what is in its mailboxes is answered before
		})
	})
	p.system.Root.RequestWithCustomSender(p.pid, &Leave{}, done)
}

// end ends a process once its node has, and raft does not need it.
func (p *process) end() {
	switch {
	case !p.node.leaving.ended:
	case p.host == nil || p.ending >= 60 || p.host.Leave():
		p.left = true
		return
	default:
		p.ending++
		p.drive()
	}
	p.s.later(p, 100*time.Millisecond, "", p.end)
}

// listener is a PID whose messages a function gets.
type listener struct {
	take     func(msg any)
	watchers *[]*actor.PID // or nil
}

func (b listener) SendUserMessage(_ *actor.PID, msg any) { b.take(msg) }
func (b listener) Stop(*actor.PID)                       {}
func (b listener) Prompt()                               {}

func (b listener) SendSystemMessage(_ *actor.PID, msg any) {
	if watch, is := msg.(*actor.Watch); is && b.watchers != nil {
		*b.watchers = append(*b.watchers, watch.Watcher)
	}
	if ended, is := msg.(*actor.Terminated); is {
		b.take(ended)
	}
}

// box returns such a PID.
func (s *simulation) box(p *process, take func(msg any)) *actor.PID {
	pid, _ := p.system.ProcessRegistry.Add(listener{take: take}, "box"+p.system.ProcessRegistry.NextId())
	return pid
}

// ownerProcess is an actor that owns operations.
type ownerProcess struct {
	p        *process
	pid      *actor.PID
	watchers []*actor.PID
}

// newOwner returns an actor of a process.
func (s *simulation) newOwner(p *process) *ownerProcess {
	o := &ownerProcess{p: p}
	o.pid, _ = p.system.ProcessRegistry.Add(listener{func(any) {}, &o.watchers}, "owner"+p.system.ProcessRegistry.NextId())
	return o
}

// end terminates the actor.
func (o *ownerProcess) end() {
	o.p.system.ProcessRegistry.Remove(o.pid)
	for _, watcher := range o.watchers {
		if process, there := o.p.system.ProcessRegistry.Get(watcher); there {
			process.SendSystemMessage(watcher, &actor.Terminated{Who: o.pid})
		}
	}
}

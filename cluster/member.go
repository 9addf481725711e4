package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/cluster/internal/lease"
	"github.com/mcpactor/mcpactor/cluster/internal/node"
	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// errNoContext is the error for a nil context.
var errNoContext = errors.New("cluster: the context is nil: use context.Background")

// errUnheard is the error of a member with a store that has left without an answer of the witness.
var errUnheard = errors.New("cluster: etcd, or the hosts, did not answer: if this was the last member, sessions that only the store knows are left on their servers")

// The two modules are of one version: see package clusterapi.
const _ = clusterapi.Revision1

// Member is one member of a cluster. It is made by [Start]. Its methods may be called from any
// goroutine.
type Member struct {
	cfg         Config
	system      *actor.ActorSystem
	supervisor  *supervisor.Supervisor
	node        atomic.Pointer[actor.PID] // nil until it has started
	client      *supervisor.Client
	lease       *lease.Lease
	witness     witness
	network     *network
	logger      zerolog.Logger
	subscribers *subscribers

	stop     sync.Once
	closed   sync.Once
	stopping chan struct{}  // closed when Stop is called
	running  sync.WaitGroup // sayWaits
	done     chan struct{}  // closed when the node has left, but for the last member
}

// Start starts a supervisor in an actor system, and returns when the member has joined the
// cluster: with [Config.Hosts], when enough of them run. If ctx ends before, it stops what it has started,
// and the error says what the member has waited for. Later, ctx has no effect. An error of cfg names the fields.
func Start(ctx context.Context, system *actor.ActorSystem, cfg Config) (*Member, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	switch {
	case ctx == nil:
		return nil, errNoContext
	case system == nil:
		return nil, errors.New("cluster: system: is nil: make one with actor.NewActorSystem")
	}
	if err := cfg.setAddresses(); err != nil {
		return nil, err
	}
	if err := cfg.checkLocal(ctx); err != nil {
		return nil, err
	}
	logger := clusterapi.NewLogger(cfg.Supervisor.Logger).Logger
	length := cfg.Lease
	if len(cfg.Hosts) == 1 {
		length = lease.Forever
	}
	m := &Member{cfg: cfg, system: system, lease: lease.New(length, lease.Clock), logger: logger, stopping: make(chan struct{}), done: make(chan struct{})}
	m.subscribers = newSubscribers(m.logger, m.watch)
	m.warnWithoutTLS()
	if err := m.connect(); err != nil {
		return nil, err
	}
	placement := new(node.Placement) // of the node, which starts after the supervisor
	var err error
	if m.supervisor, err = supervisor.Start(system, m.supervisorConfig(placement)); err != nil {
		m.disconnect()
		return nil, fmt.Errorf("cluster: member %q: %w", cfg.Member, err)
	}
	joined := make(chan error, 1)
	pid, err := node.Start(m.nodeConfig(placement, func(err error) {
		select {
		case joined <- err:
		default: // it is about a later incarnation
		}
	}))
	if err != nil {
		m.disconnect()
		m.supervisor.Stop(ctx) //nolint:errcheck // it has no sessions
		return nil, fmt.Errorf("cluster: %w", err)
	}
	m.node.Store(pid)
	m.client = supervisor.NewClient(system, pid)
	m.tell(&node.Joined{Network: m.network})
	m.running.Go(m.sayWaits)
	if err := m.start(ctx, joined); err != nil {
		return nil, err
	}
	return m, nil
}

// connect makes the witness, and accepts connections. It listens first: another process that has the address has the log, too.
func (m *Member) connect() error {
	listener, err := net.Listen("tcp", m.cfg.Listen)
	if err != nil {
		return fmt.Errorf("cluster: listen: %w", err)
	}
	if m.network, err = newNetwork(&m.cfg, m.logger, m.tell); err != nil {
		return errors.Join(err, listener.Close())
	}
	if m.witness, err = m.cfg.newWitness(m.network, m.logger, m.tell); err != nil {
		m.network.close()
		return errors.Join(err, listener.Close())
	}
	m.network.accept(listener, m.witness.packet)
	return nil
}

// disconnect ends what connect has begun.
func (m *Member) disconnect() {
	m.network.close()
	m.witness.close()
	m.running.Wait()
}

// tell tells the node, once there is one.
func (m *Member) tell(msg any) {
	if pid := m.node.Load(); pid != nil {
		m.system.Root.Send(pid, msg)
	}
}

// warnWithoutTLS logs that the connections are not secure.
func (m *Member) warnWithoutTLS() {
	if m.cfg.TLS == nil {
		m.logger.Warn().Str("member", m.cfg.Member).Msg("members connect on this machine only, without encryption: set Config.TLS for others")
	}
}

// start waits until the member has joined.
func (m *Member) start(ctx context.Context, joined chan error) error {
	var err error
	select {
	case err = <-joined:
		if err == nil {
			return nil
		}
		err = fmt.Errorf("cluster: %w", err)
	case <-ctx.Done():
		err = fmt.Errorf("cluster: the member has not joined (%s): %w", m.waitsFor(m.network.Troubles()), context.Cause(ctx))
	}
	m.Stop(context.WithoutCancel(ctx)) //nolint:errcheck // it has no sessions
	return err
}

// A member that waits for others says so after firstWait, and then less and less often, up to once in lastWait. One that has its
// lease says in the same way whom it does not reach, but not before longWait: a restart takes less.
const firstWait, longWait, lastWait = 200 * time.Millisecond, 5 * time.Second, time.Minute

// sayWaits says what the member waits for, or whom it does not reach, until it stops.
func (m *Member) sayWaits() {
	held, pause := false, firstWait
	for due := time.Now().Add(pause); ; {
		select {
		case <-m.stopping:
			return
		case <-time.After(min(time.Until(due), time.Second)):
		}
		switch now := m.lease.Held(); {
		case now != held:
			held, pause, due = now, firstWait, time.Now().Add(firstWait)
			continue
		case time.Now().Before(due):
			continue
		}
		troubles := m.network.Troubles()
		switch {
		case !held:
			m.logger.Info().Str("member", m.cfg.Member).Str("for", m.waitsFor(troubles)).Msg("member waits")
		case len(troubles) == 0:
			pause = firstWait
		case pause >= longWait:
			m.logger.Info().Str("member", m.cfg.Member).Str("why", strings.Join(troubles, "; ")).Msg("member does not reach others")
		}
		pause = min(5*pause, lastWait)
		due = time.Now().Add(pause)
	}
}

// waitsFor says what a member without a lease waits for, and why it does not reach others.
func (m *Member) waitsFor(troubles []string) string {
	witness := cmp.Or(m.witness.lacks(), "all members of the view must be reached, and those that have ended be removed")
	return strings.Join(append([]string{witness}, troubles...), "; ")
}

// setAddresses replaces port 0 by a free one, because others must know it, and sets the defaults that
// depend on the port.
func (c *Config) setAddresses() error {
	if host, port, _ := net.SplitHostPort(c.Listen); port == "0" {
		addr, err := clusterapi.FreeAddr(host)
		if err != nil {
			return fmt.Errorf("cluster: listen: %w", err)
		}
		c.Listen = addr
	}
	if c.Advertise == "" {
		c.Advertise = c.Listen
	}
	if c.Member == "" {
		c.Member = c.Advertise
	}
	return nil
}

// supervisorConfig returns the configuration of the supervisor: without the lease it dials nothing,
// calls nothing and stores nothing.
func (m *Member) supervisorConfig(placement *node.Placement) supervisor.Config {
	cfg := m.cfg.Supervisor
	cfg.Name = m.cfg.Member
	shared := cfg.Store
	if shared != nil {
		shared, cfg.Store = clusterapi.LimitStore(shared), m.lease.Store(shared, placement.Has, clusterapi.IsOutcome)
	}
	if cfg.CallStore != nil {
		cfg.CallStore = m.lease.Store(cfg.CallStore, placement.Has, clusterapi.IsOutcome)
	}
	return clusterapi.WrapDialer(cfg, func(d clusterapi.Dialer) clusterapi.Dialer { return m.lease.Dialer(d, shared) })
}

// nodeConfig returns the configuration of the node.
func (m *Member) nodeConfig(placement *node.Placement, joined func(error)) node.Config {
	cfg := m.cfg.Supervisor.WithDefaults()
	return node.Config{
		Name: m.cfg.Member, Address: m.cfg.Advertise, System: m.system, Supervisor: m.supervisor.PID(), Shards: m.cfg.Shards, Logger: m.logger,
		Placement: placement, Lease: m.lease, LeaseTime: m.cfg.Lease, Ask: m.witness.ask, Joined: joined, Observe: m.supervisor.Subscribe,
		CallTimeout: cfg.CallTimeout, MaxWaiting: cfg.MaxWaitingTotal, KeepOpen: cfg.Store != nil, LeaveOpen: cfg.LeaveOpen,
	}
}

// PID returns the PID that takes the commands of package messages, for all keys.
func (m *Member) PID() *actor.PID { return m.node.Load() }

// Client returns a client for Go code that is not an actor.
func (m *Member) Client() *supervisor.Client { return m.client }

// Supervisor returns the member's own supervisor, for Reload, package health, and what
// telemetry.Instrument returns. Operations that are sent to it reach the owner of their key. All other
// commands to it, and its events, concern this member only: use [Member.PID] and [Member.Subscribe], and
// give packages toolset and debug the member.
func (m *Member) Supervisor() *supervisor.Supervisor { return m.supervisor }

// CallBook returns the records of calls, for package toolset.
func (m *Member) CallBook() *clusterapi.CallBook { return m.supervisor.CallBook() }

// Servers returns the names of the servers of this member. All members should have the same.
func (m *Member) Servers() []string { return m.supervisor.Servers() }

// Server returns the configuration of a server, or nil if there is none with the name. Read-only.
func (m *Member) Server(name string) *mcpbridge.Server { return m.supervisor.Server(name) }

// System returns the actor system that the member was started in.
func (m *Member) System() *actor.ActorSystem { return m.system }

// Flush waits until the handlers of Subscribe have returned from the events of this member so far, or ctx ends. Those of other members
// may still be on their way. A handler must not call it.
func (m *Member) Flush(ctx context.Context) {
	m.supervisor.Flush(ctx)
	m.subscribers.queue.Flush(ctx)
}

// Subscribe has handle called with each event of all members, in the order of each session,
// until cancel is called. Stamp.Supervisor names the member. Handles are called one after the other: a slow
// one delays the others, but no session, and all miss events while more than 16,384 wait. Events of a member that
// is not reached fast enough are missed as well.
func (m *Member) Subscribe(handle func(messages.Event)) (cancel func()) {
	return m.subscribers.add(handle)
}

// watch has put called with the events of all members, until end is called.
func (m *Member) watch(put func(messages.Event)) (end func()) {
	own := m.supervisor.Subscribe(put)
	m.tell(&node.Watch{Handle: put})
	return func() {
		own()
		m.tell(&node.Watch{})
	}
}

// Members returns the members in the view of this one, sorted by name, and nothing after Stop. Their counts are
// zero: see [messages.Inspect] for these. Answered is true for members that were heard in the last two leases, and for
// this one while it is in the view and has its lease: otherwise its calls wait.
func (m *Member) Members() []messages.MemberSnapshot {
	box := clusterapi.NewFuture(m.system, nil)
	defer box.Close()
	m.system.Root.RequestWithCustomSender(m.node.Load(), &node.ListMembers{}, box.PID)
	if list, ok := (<-box.Reply).(*node.Members); ok {
		return list.List
	}
	return nil
}

// Stop leaves the cluster, and stops the supervisor. Calls that run have the drain timeout.
// Calls that wait go to the next owners of their keys. With a shared store, MCP
// sessions stay open for these; the last member closes them, unless
// [supervisor.Config.LeaveOpen] is set. If ctx ends before, Stop waits for no call, and up to five seconds and a lease
// for the others. The error is that of [supervisor.Supervisor.Stop]: it names
// the sessions that could not be closed. With a shared store, it also says so if the member cannot know whether it was the last
// one. Stop may be called more than once. After it, another member may have the name.
func (m *Member) Stop(ctx context.Context) error {
	if ctx == nil {
		return errNoContext
	}
	m.stop.Do(func() {
		close(m.stopping)
		left := m.leave()
		go func() {
			defer close(m.done)
			left()
		}()
	})
	select {
	case <-m.done:
	case <-ctx.Done():
		m.tell(&node.LeaveNow{})
		select {
		case <-m.done:
		case <-time.After(shutdownTime):
		}
	}
	err := m.supervisor.Stop(ctx)
	select {
	case <-m.done:
		m.leave()() // the last member has left, and the name of the node is free
	default:
	}
	patience := m.cfg.Lease
	if ctx.Err() == nil {
		patience *= 3 // the last member has no lease before this one votes no longer
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	m.witness.leave(bounded)
	m.closed.Do(m.disconnect)
	if m.lease.Abandoned() && m.cfg.Supervisor.Store != nil && !m.cfg.Supervisor.LeaveOpen {
		err = errors.Join(err, errUnheard)
	}
	return err
}

// shutdownTime bounds how long Stop waits for a node that no longer waits for calls.
const shutdownTime = 5 * time.Second

// leave has the node leave. left waits until it has left.
func (m *Member) leave() (left func()) {
	box := clusterapi.NewFuture(m.system, nil)
	m.system.Root.RequestWithCustomSender(m.node.Load(), &node.Leave{}, box.PID)
	return func() {
		defer box.Close()
		<-box.Reply
	}
}

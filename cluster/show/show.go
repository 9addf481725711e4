package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
)

// options are the options of the show.
type options struct {
	agents int
	seed   uint64
	listen string // the address of the page, or empty
}

const (
	// callLimit is the deadline of each call. At the end the show waits for the last
	// replies a second longer.
	callLimit = 10 * time.Second
	// stopLimit is how long closing the sessions may take.
	stopLimit = 10 * time.Second
	// actLimit bounds each wait of the show for something to happen.
	actLimit = 20 * time.Second
	// look is how often the show looks whether it has happened.
	look = 50 * time.Millisecond
	// between is the time between two acts.
	between = 1500 * time.Millisecond
)

// errViolated is returned after a claim was printed that does not hold.
var errViolated = errors.New("a claim does not hold")

// run runs the show until its end or until ctx ends. It fails if a claim does not hold.
func (o options) run(ctx context.Context, out, log io.Writer) error {
	if o.seed == 0 {
		o.seed = rand.Uint64N(1_000_000) + 1
	}
	before := runtime.NumGoroutine()
	s, err := newShow(o, out, log)
	if err != nil {
		return err
	}
	claims := s.run(ctx)
	claims = append(claims, claim{"no goroutine was left over", goroutinesLeft(before)})
	s.report(out)
	if !printClaims(out, claims) {
		return errViolated
	}
	return nil
}

// show has the servers, the members and the agents.
type show struct {
	options
	out        io.Writer
	log        io.Writer // of the members
	began      time.Time
	server     *mcpServer
	store      *http.Server
	verifier   *verifier
	gateway    *gateway
	configs    []memberConfig
	members    []*process // in the order of configs
	started    []*process // all
	system     *actor.ActorSystem
	agents     []*actor.PID
	unfinished sync.WaitGroup // agents
	moves      []string       // recovery times in words, for the report
	failed     []string       // what did not happen
	complete   bool           // all acts were shown
}

// newShow starts the MCP server and the store, and chooses the addresses of the
// members.
func newShow(o options, out, log io.Writer) (*show, error) {
	s := &show{options: o, out: zerolog.SyncWriter(out), log: zerolog.SyncWriter(log), began: time.Now(), verifier: newVerifier()}
	s.gateway = newGateway(o.seed, func(scope string, f *messages.Failure) {
		s.note(false, "a call of %s failed: %s, %s", scope, f.Code, f.Detail)
	})
	var hosts []string
	for i, name := range []string{"a", "b", "c"} {
		listen, err := freeAddress(10000 * (i + 1))
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, listen)
		s.configs = append(s.configs, memberConfig{Name: name, Listen: listen})
	}
	var err error
	if s.server, err = newMCPServer(s.verifier.executed); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.server.close()
		return nil, err
	}
	s.store = &http.Server{Handler: serveStore(new(resume.Memory))}
	go s.store.Serve(listener) //nolint:errcheck // Serve returns an error when the server is closed
	for i := range s.configs {
		c := &s.configs[i]
		c.Hosts, c.Server, c.Store = hosts, s.server.url, "http://"+listener.Addr().String()
	}
	s.configs[0].Page = o.listen
	return s, nil
}

// freeAddress returns a loopback address with a port that is free, of the thousand from first
// on. Systems assign ports from 32768 on, also while a member is restarted.
func freeAddress(first int) (string, error) {
	var errs error
	for range 20 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(first+rand.IntN(1000)))
		l, err := net.Listen("tcp", address)
		if err == nil {
			return address, l.Close()
		}
		errs = errors.Join(errs, err)
	}
	return "", errs
}

// run runs the show, and returns its claims.
func (s *show) run(ctx context.Context) []claim {
	defer func() {
		for _, p := range s.started {
			p.kill()
		}
	}()
	s.note(true, "three processes join a cluster; %d agents, each with its own session; seed %d", s.options.agents, s.seed)
	s.note(false, "the members talk to each other over loopback, so that they need no TLS")
	s.members = make([]*process, len(s.configs))
	if s.startMembers(ctx, 0, 1, 2) && s.startAgents(ctx) {
		s.acts(ctx)
	}
	return s.stop()
}

// note prints a line. fault is true for what the show itself does.
func (s *show) note(fault bool, format string, args ...any) {
	mark := "  "
	if fault {
		mark = "! "
	}
	fmt.Fprintf(s.out, "%6.2fs %s%s\n", time.Since(s.began).Seconds(), mark, fmt.Sprintf(format, args...))
}

// startMembers starts members, and waits until all members know each other.
func (s *show) startMembers(ctx context.Context, which ...int) bool {
	for _, i := range which {
		p, err := startProcess(s.configs[i], s.log, s.gateway.answered, s.gateway.gone)
		if err != nil {
			return s.fail("member %s could not start: %v", s.configs[i].Name, err)
		}
		s.members[i] = p
		s.started = append(s.started, p)
	}
	limited, cancel := context.WithTimeout(ctx, joinLimit)
	defer cancel()
	for _, i := range which {
		page, err := s.members[i].waitJoined(limited)
		if err != nil {
			return ctx.Err() == nil && s.fail("%v", err)
		}
		if page != "" {
			s.note(true, "the members and their sessions are shown at %s", page)
		}
	}
	if !s.until(ctx, "all members know each other", func() bool {
		for _, p := range s.members {
			if !slices.Equal(namesOf(s.look(ctx, p)), []string{"a", "b", "c"}) {
				return false
			}
		}
		return true
	}) {
		return false
	}
	for _, i := range which {
		s.gateway.add(s.members[i])
	}
	return true
}

// startAgents starts the agents, and waits until each has a session, and each member as well.
// With few agents, all may belong to the same members: then it starts more.
func (s *show) startAgents(ctx context.Context) bool {
	s.system = actor.NewActorSystem(supervisor.WithSystemLogger(zerolog.Nop()))
	gateway := s.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return s.gateway }))
	for range s.options.agents {
		s.startAgent(gateway)
	}
	for {
		var snap *messages.Snapshot
		if !s.until(ctx, "every agent has a session", func() bool {
			if s.gateway.known() == len(s.agents) {
				snap = s.inspect(ctx)
			}
			return snap != nil
		}) {
			return false
		}
		if !slices.ContainsFunc(snap.Members, func(m messages.MemberSnapshot) bool { return m.Sessions == 0 }) {
			return true
		}
		s.note(false, "agent %d starts, because a member has no session", len(s.agents)+1)
		s.startAgent(gateway)
	}
}

// startAgent starts an agent.
func (s *show) startAgent(gateway *actor.PID) {
	number := len(s.agents) + 1
	a := &agent{
		number: number, gateway: gateway, verifier: s.verifier,
		random: rand.New(rand.NewPCG(s.seed, uint64(number))), pause: 100 * time.Millisecond, done: s.unfinished.Done,
	}
	s.unfinished.Add(1)
	s.agents = append(s.agents, s.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return a })))
}

// acts shows what happens to the sessions when members come and go, until ctx ends or an act
// fails.
func (s *show) acts(ctx context.Context) {
	s.board(ctx)
	for again := true; again; again = s.listen != "" {
		for _, act := range []func(context.Context) bool{s.killMember, s.restartMember, s.pauseMember, s.leaveMember} {
			if !s.rest(ctx) || !act(ctx) {
				return
			}
			s.board(ctx)
		}
		s.complete = s.listen == ""
		if s.listen != "" && (!s.rest(ctx) || !s.restartMember(ctx)) {
			return
		}
	}
}

// killMember kills member b.
func (s *show) killMember(ctx context.Context) bool {
	b := s.members[1]
	s.note(true, "member b is killed with its %d sessions", s.gateway.expect("b"))
	b.kill()
	return s.waitMoved(ctx, b, "was killed")
}

// restartMember starts member b again.
func (s *show) restartMember(ctx context.Context) bool {
	s.note(true, "member b starts again")
	if !s.startMembers(ctx, 1) {
		return false
	}
	return s.waitSessions(ctx, "b")
}

// waitSessions waits until a member that has joined has sessions.
func (s *show) waitSessions(ctx context.Context, member string) bool {
	return s.until(ctx, "member "+member+" has sessions", func() bool {
		snap := s.inspect(ctx)
		return snap != nil && slices.ContainsFunc(snap.Members, func(m messages.MemberSnapshot) bool { return m.Name == member && m.Sessions > 0 })
	})
}

// pauseMember stops member c until the others have removed it, and longer than its lease.
func (s *show) pauseMember(ctx context.Context) bool {
	if !canPause {
		s.note(false, "no member is paused: this system cannot pause a process")
		return true
	}
	c := s.members[2]
	before := idOf(s.look(ctx, c))
	s.note(true, "member c is paused with its %d sessions", s.gateway.expect("c"))
	began := time.Now()
	if err := pauseProcess(c.cmd.Process); err != nil {
		return s.fail("member c could not be paused: %v", err)
	}
	defer resumeProcess(c.cmd.Process) //nolint:errcheck // so that it can end
	s.sleep(ctx, 200*time.Millisecond)
	s.gateway.remove(c) // as a load balancer does that gets no answer
	removed := s.until(ctx, "the others remove member c", func() bool { return !slices.Contains(namesOf(s.look(ctx, s.members[0])), "c") })
	if removed {
		s.note(false, "the others have removed it after %v; agents wait for %d calls that it has", short(time.Since(began)), s.gateway.given(c))
	}
	if !removed || !s.waitMoved(ctx, c, "was paused") || !s.sleep(ctx, lease+time.Second-time.Since(began)) {
		return false
	}
	s.note(true, "member c runs again after %v: its lease of %v is over, so that it does nothing before it has joined again", short(time.Since(began)), lease)
	began = time.Now()
	if err := resumeProcess(c.cmd.Process); err != nil {
		return s.fail("member c could not be resumed: %v", err)
	}
	if !s.until(ctx, "member c joins again", func() bool {
		now := s.look(ctx, c)
		return idOf(now) != before && len(namesOf(now)) == 3 && slices.Contains(namesOf(s.look(ctx, s.members[0])), "c")
	}) {
		return false
	}
	s.note(false, "member c has dropped its sessions, and joined again after %v", short(time.Since(began)))
	if !s.until(ctx, "the calls that member c had are answered", func() bool { return s.gateway.given(c) == 0 }) {
		return false
	}
	s.note(false, "the calls that it had are answered after %v", short(time.Since(began)))
	s.gateway.add(c)
	return s.waitSessions(ctx, "c")
}

// leaveMember has member b leave.
func (s *show) leaveMember(ctx context.Context) bool {
	b := s.members[1]
	s.note(true, "member b leaves, and hands over its %d sessions", s.gateway.expect("b"))
	s.gateway.remove(b)
	failures := s.failures()
	if err := b.leave(); err != nil {
		return s.fail("member b could not leave: %v", err)
	}
	if !s.waitMoved(ctx, b, "left") {
		return false
	}
	if now := s.failures(); now > failures {
		s.failed = append(s.failed, fmt.Sprintf("%s failed while member b left", calls(now-failures)))
	}
	return true
}

// failures returns how many calls have failed.
func (s *show) failures() (n int) {
	s.verifier.mu.Lock()
	defer s.verifier.mu.Unlock()
	for _, count := range s.verifier.failures {
		n += count
	}
	return n
}

// waitMoved waits until the sessions of a member answer from others.
func (s *show) waitMoved(ctx context.Context, from *process, what string) bool {
	if !s.until(ctx, "the sessions answer from other members", func() bool { awaited, _ := s.gateway.moved(from); return awaited == 0 }) {
		return false
	}
	if _, waits := s.gateway.moved(from); len(waits) > 0 {
		text := fmt.Sprintf("their first calls took %v in the median, and %v at most", short(waits[len(waits)/2]), short(waits[len(waits)-1]))
		s.note(false, "%d sessions answer from other members: %s", len(waits), text)
		s.moves = append(s.moves, fmt.Sprintf("%d sessions of the member that %s answered again: %s", len(waits), what, text))
	}
	return true
}

// board shows which member holds which sessions.
func (s *show) board(ctx context.Context) {
	snap := s.inspect(ctx)
	if snap == nil {
		return
	}
	for _, m := range snap.Members {
		var agents []int
		for i := range snap.Sessions {
			if snap.Sessions[i].Supervisor == m.Name {
				n, _ := strconv.Atoi(strings.TrimPrefix(snap.Sessions[i].Key.Scope, "agent-"))
				agents = append(agents, n)
			}
		}
		slices.Sort(agents)
		s.note(false, "%s holds %2d sessions  %s", m.Name, len(agents), strings.Trim(fmt.Sprint(agents), "[]"))
	}
}

// look returns the members that a member knows.
func (s *show) look(ctx context.Context, p *process) []messages.MemberSnapshot {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	snap, err := p.ask(ctx, "members")
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(snap.Members, func(m messages.MemberSnapshot) bool { return m.Leaving })
}

// inspect returns a snapshot of the cluster, or nil.
func (s *show) inspect(ctx context.Context) *messages.Snapshot {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	snap, _ := s.members[0].ask(ctx, "inspect")
	return snap
}

// namesOf returns the names of members.
func namesOf(members []messages.MemberSnapshot) (names []string) {
	for _, m := range members {
		names = append(names, m.Name)
	}
	return names
}

// idOf returns the id under which the member that has made a list has joined, or "".
func idOf(members []messages.MemberSnapshot) string {
	for _, m := range members {
		if m.Self {
			return m.ID
		}
	}
	return ""
}

// fail notes what did not happen. It returns false.
func (s *show) fail(format string, args ...any) bool {
	s.failed = append(s.failed, fmt.Sprintf(format, args...))
	return false
}

// until waits until something has happened. It returns false if ctx ends before, or if it takes
// too long.
func (s *show) until(ctx context.Context, what string, happened func() bool) bool {
	for end := time.Now().Add(actLimit); !happened(); {
		if !s.sleep(ctx, look) {
			return false
		}
		if time.Now().After(end) {
			return s.fail("%v were not enough until %s", actLimit, what)
		}
	}
	return ctx.Err() == nil
}

// rest waits between two acts.
func (s *show) rest(ctx context.Context) bool {
	s.verifier.forget()
	return s.sleep(ctx, between)
}

// sleep waits for a time. It returns false if ctx ends before.
func (s *show) sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// stop ends the agents, the members and the servers, and returns the claims.
func (s *show) stop() []claim {
	s.note(true, "the agents finish, all sessions are closed, and the members leave one after the other")
	for _, pid := range s.agents {
		s.system.Root.Send(pid, &finish{})
	}
	finished := within(callLimit+time.Second, s.unfinished.Wait)
	var left []string
	if p := s.members[0]; p != nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
		defer cancel()
		if _, err := p.ask(ctx, "close"); err != nil {
			left = append(left, err.Error())
		}
	}
	for _, p := range s.members {
		if p == nil {
			continue
		}
		s.gateway.remove(p)
		select {
		case <-p.ended:
		default:
			if err := p.leave(); err != nil {
				left = append(left, err.Error())
			}
		}
	}
	for _, pid := range s.agents {
		s.system.Root.Stop(pid)
	}
	if n := s.server.sessions(); n > 0 && s.complete { // otherwise some may not have moved yet from a member that was killed
		left = append(left, fmt.Sprintf("the MCP server still has %d sessions", n))
	}
	s.server.close()
	s.store.Close()
	unanswered, repeated := s.verifier.check()
	if !finished {
		unanswered = append(unanswered, "some agents still wait for a reply")
	}
	s.gateway.mu.Lock()
	defer s.gateway.mu.Unlock()
	return []claim{
		{"every act was as announced, and no call failed when a member left", s.failed},
		{"every call got exactly one reply", unanswered},
		{"no call ran twice unless that was allowed", repeated},
		{"every session kept its state, wherever it went", s.gateway.reset},
		{"all members left, and no session was left on the server", left},
	}
}

// report prints the summary.
func (s *show) report(out io.Writer) {
	v := s.verifier
	v.mu.Lock()
	defer v.mu.Unlock()
	fmt.Fprintf(out, "\n%d calls, %d answered, %d replayed; slowest %v; seed %d\n", v.sentCalls, v.answered, v.replayed, short(v.slowest), s.seed)
	for _, code := range slices.SortedFunc(maps.Keys(v.failures), cmp.Compare) {
		fmt.Fprintf(out, "%d failed with %s\n", v.failures[code], code)
	}
	s.gateway.mu.Lock()
	defer s.gateway.mu.Unlock()
	if s.gateway.left > 0 {
		fmt.Fprintf(out, "%d calls were lost because the process that had them was killed\n", s.gateway.left)
	}
	fmt.Fprintf(out, "%d calls ran twice at the server, %d of them although that was not allowed\n", v.again, len(v.repeated))
	fmt.Fprintf(out, "%d times a session moved, %d times it lost its state\n", s.gateway.moves, len(s.gateway.reset))
	for _, text := range s.moves {
		fmt.Fprintln(out, text)
	}
}

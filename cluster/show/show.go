package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/mcpactor/mcpactor/cluster"
	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor/debug"
)

// options are the options of the show.
type options struct {
	agents int
	listen string // the address of the page, or empty
}

const (
	// callLimit is the deadline of each call. At the end the show waits for the last
	// replies a second longer.
	callLimit = 10 * time.Second
	// stopLimit is how long closing the sessions may take, and the leave of a member.
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
	before := goleak.IgnoreCurrent()
	s, err := newShow(o, out, log)
	if err != nil {
		return err
	}
	claims := s.run(ctx)
	var left []string
	if err := goleak.Find(before, throttles); err != nil {
		left = append(left, err.Error())
	}
	claims = append(claims, claim{"no goroutine was left over", left})
	s.report(out)
	if !printClaims(out, claims) {
		return errViolated
	}
	return nil
}

// throttles are goroutines of Proto.Actor that end by themselves later, and that nobody can end before.
var throttles = goleak.IgnoreAnyFunction("github.com/asynkron/protoactor-go/actor.NewDeadLetter.NewThrottle.func4.1")

// show has the servers, the members and the agents. Member a runs in this process, as in a program with agents, and the others
// in processes of their own.
type show struct {
	options
	out        io.Writer
	log        io.Writer // of the other members
	began      time.Time
	server     *mcpServer
	memory     resume.Memory // the store
	page       *http.Server  // nil without one
	verifier   *verifier
	configs    map[string]memberConfig // of all members, by name
	member     *cluster.Member         // a; nil until it has joined
	others     map[string]*process     // that run, or that have left
	started    []*process              // all
	agents     []*actor.PID
	unfinished sync.WaitGroup // agents
	moves      []string       // recovery times in words, for the report
	failed     []string       // what did not happen
	complete   bool           // all acts were shown
}

// newShow starts the server, and chooses the addresses of the members.
func newShow(o options, out, log io.Writer) (*show, error) {
	s := &show{
		options: o, out: zerolog.SyncWriter(out), log: zerolog.SyncWriter(log), began: time.Now(),
		configs: map[string]memberConfig{}, others: map[string]*process{},
	}
	s.verifier = newVerifier(func(scope string, f *messages.Failure) {
		s.note(false, "a call of %s failed: %s, %s", scope, f.Code, f.Detail)
	})
	var hosts []string
	for len(hosts) < 3 {
		address, err := clusterapi.FreeAddr("127.0.0.1")
		if err != nil {
			return nil, err
		}
		if !slices.Contains(hosts, address) {
			hosts = append(hosts, address)
		}
	}
	var err error
	if s.server, err = newMCPServer(s.verifier.executed, serveStore(&s.memory)); err != nil {
		return nil, err
	}
	for i, name := range []string{"a", "b", "c"} {
		s.configs[name] = memberConfig{Name: name, Listen: hosts[i], Hosts: hosts, URL: s.server.url}
	}
	return s, nil
}

// run runs the show, and returns its claims.
func (s *show) run(ctx context.Context) []claim {
	defer func() {
		for _, p := range s.started {
			p.kill()
		}
	}()
	s.note(true, "three processes join a cluster; %d agents, each with its own session", s.options.agents)
	s.note(false, "the members talk to each other over loopback, so that they need no TLS")
	if s.startMembers(ctx) && s.startAgents(ctx) {
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

// startMembers starts the members, and serves the page.
func (s *show) startMembers(ctx context.Context) bool {
	if !s.start("b") || !s.start("c") {
		return false
	}
	a := s.configs["a"]
	var err error
	if s.member, err = a.join(ctx, &s.memory); err != nil {
		return ctx.Err() == nil && s.fail("member a: %v", err)
	}
	if s.listen != "" {
		url, err := s.servePage()
		if err != nil {
			return s.fail("the page: %v", err)
		}
		s.note(true, "the members and their sessions are shown at %s", url)
	}
	return s.waitJoined(ctx, "b", "") && s.waitJoined(ctx, "c", "")
}

// start starts the process of a member.
func (s *show) start(name string) bool {
	p, err := startProcess(s.configs[name], s.log)
	if err != nil {
		return s.fail("member %s could not start: %v", name, err)
	}
	s.others[name] = p
	s.started = append(s.started, p)
	return true
}

// waitJoined waits until a member has joined under another id than before.
func (s *show) waitJoined(ctx context.Context, name, before string) bool {
	return s.until(ctx, "member "+name+" joins", func() bool {
		now := s.idOf(name)
		return now != "" && now != before
	})
}

// servePage serves the debug page of member a, and returns its URL.
func (s *show) servePage() (url string, err error) {
	l, err := net.Listen("tcp", s.listen)
	if err != nil {
		return "", err
	}
	s.page = &http.Server{Handler: debug.New(s.member, debug.Config{Actions: l.Addr().(*net.TCPAddr).IP.IsLoopback()})}
	go s.page.Serve(l) //nolint:errcheck // Serve returns an error when the server is closed
	return "http://" + l.Addr().String() + "/", nil
}

// startAgents starts the agents, and waits until each has a session, and each member as well.
// With few agents, all may belong to the same members: then it starts more.
func (s *show) startAgents(ctx context.Context) bool {
	for range s.options.agents {
		s.startAgent()
	}
	for {
		var snap *messages.Snapshot
		if !s.until(ctx, "every agent has a session", func() bool {
			if s.verifier.known() == len(s.agents) {
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
		s.startAgent()
	}
}

// startAgent starts an agent.
func (s *show) startAgent() {
	a := &agent{number: len(s.agents) + 1, member: s.member.PID(), verifier: s.verifier, done: s.unfinished.Done}
	s.unfinished.Add(1)
	s.agents = append(s.agents, s.member.System().Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return a })))
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
	s.note(true, "member b is killed with its %d sessions", s.verifier.expect("b"))
	s.others["b"].kill()
	return s.waitMoved(ctx, "was killed")
}

// restartMember starts member b again.
func (s *show) restartMember(ctx context.Context) bool {
	s.note(true, "member b starts again")
	before := s.idOf("b") // one that was killed may not be removed yet
	return s.start("b") && s.waitJoined(ctx, "b", before) && s.waitSessions(ctx, "b")
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
	c, before := s.others["c"].cmd.Process, s.idOf("c")
	s.note(true, "member c is paused with its %d sessions", s.verifier.expect("c"))
	began := time.Now()
	if err := pauseProcess(c); err != nil {
		return s.fail("member c could not be paused: %v", err)
	}
	defer resumeProcess(c) //nolint:errcheck // so that it can end
	if !s.until(ctx, "the others remove member c", func() bool { return s.idOf("c") == "" }) {
		return false
	}
	s.note(false, "the others have removed it after %v", short(time.Since(began)))
	if !s.waitMoved(ctx, "was paused") || !s.sleep(ctx, lease+time.Second-time.Since(began)) {
		return false
	}
	s.note(true, "member c runs again after %v: its lease of %v is over, so that it does nothing before it has joined again", short(time.Since(began)), lease)
	began = time.Now()
	if err := resumeProcess(c); err != nil {
		return s.fail("member c could not be resumed: %v", err)
	}
	if !s.waitJoined(ctx, "c", before) {
		return false
	}
	s.note(false, "member c has dropped its sessions, and joined again after %v", short(time.Since(began)))
	return s.waitSessions(ctx, "c")
}

// leaveMember has member b leave.
func (s *show) leaveMember(ctx context.Context) bool {
	s.note(true, "member b leaves, and hands over its %d sessions", s.verifier.expect("b"))
	failures := s.verifier.failureCount()
	if err := s.others["b"].leave(); err != nil {
		return s.fail("%v", err)
	}
	if !s.waitMoved(ctx, "left") {
		return false
	}
	if now := s.verifier.failureCount(); now > failures {
		s.fail("%d calls failed while member b left", now-failures)
	}
	return true
}

// waitMoved waits until the sessions of a member answer from others.
func (s *show) waitMoved(ctx context.Context, what string) bool {
	if !s.until(ctx, "the sessions answer from other members", func() bool { awaited, _ := s.verifier.moved(); return awaited == 0 }) {
		return false
	}
	if _, waits := s.verifier.moved(); len(waits) > 0 {
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

// inspect returns a snapshot of the cluster, or nil.
func (s *show) inspect(ctx context.Context) *messages.Snapshot {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	reply, _ := s.member.Client().Do(ctx, &messages.Inspect{Limit: -1})
	snap, _ := reply.(*messages.Snapshot)
	return snap
}

// idOf returns the id under which a member has joined, or "" if it is none.
func (s *show) idOf(name string) string {
	for _, m := range s.member.Members() {
		if m.Name == name && !m.Leaving {
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
	finished, left := true, []string(nil)
	if s.member != nil {
		finished, left = s.finish(), s.closeAll()
	}
	for _, name := range slices.Sorted(maps.Keys(s.others)) {
		if p := s.others[name]; p.runs() {
			left = violation(left, p.leave())
		}
	}
	if s.member != nil {
		left = violation(left, stopMember(s.member))
	}
	if n := s.server.sessions(); n > 0 && s.complete { // otherwise some may not have moved yet from a member that was killed
		left = append(left, fmt.Sprintf("the MCP server still has %d sessions", n))
	}
	s.server.close()
	if s.page != nil {
		s.page.Close()
	}
	unanswered, repeated := s.verifier.check()
	if !finished {
		unanswered = append(unanswered, "some agents still wait for a reply")
	}
	return []claim{
		{"every act was as announced, and no call failed when a member left", s.failed},
		{"every call got exactly one reply", unanswered},
		{"no call ran twice unless that was allowed", repeated},
		{"every session kept its state, wherever it went", s.verifier.reset},
		{"all members left, and no session was left on the server", left},
	}
}

// finish ends the agents, and reports whether each has its last reply.
func (s *show) finish() (finished bool) {
	root := s.member.System().Root
	for _, pid := range s.agents {
		root.Send(pid, &finish{})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.unfinished.Wait()
	}()
	select {
	case <-done:
		finished = true
	case <-time.After(callLimit + time.Second):
	}
	for _, pid := range s.agents {
		root.Stop(pid)
	}
	return finished
}

// closeAll closes all sessions, and returns what was not closed.
func (s *show) closeAll() (left []string) {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	closed, err := s.member.Client().CloseAll(ctx)
	if err != nil {
		return []string{err.Error()}
	}
	if len(closed.Left)+len(closed.Unanswered) > 0 {
		return []string{fmt.Sprintf("not closed: %v; no answer from %v", closed.Left, closed.Unanswered)}
	}
	return nil
}

// report prints the summary.
func (s *show) report(out io.Writer) {
	v := s.verifier
	v.mu.Lock()
	defer v.mu.Unlock()
	fmt.Fprintf(out, "\n%d calls, %d answered, %d replayed; slowest %v\n", v.sentCalls, v.answered, v.replayed, short(v.slowest))
	for _, code := range slices.SortedFunc(maps.Keys(v.failures), cmp.Compare) {
		fmt.Fprintf(out, "%d failed with %s\n", v.failures[code], code)
	}
	fmt.Fprintf(out, "%d calls ran twice at the server, %d of them although that was not allowed\n", v.again, len(v.repeated))
	fmt.Fprintf(out, "%d times a session moved, %d times it lost its state\n", v.moves, len(v.reset))
	for _, text := range s.moves {
		fmt.Fprintln(out, text)
	}
}

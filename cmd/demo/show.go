package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"golang.org/x/term"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// showCmd is the command that runs the show.
type showCmd struct {
	Duration    time.Duration `placeholder:"9s" help:"How long the agents work, from 1s to 10m. Default: 9s, and with --listen until you stop the show."`
	Agents      int           `default:"36" placeholder:"N" help:"Number of agents, from 3 to 1000. A third of them use the stdio server, with a process each. Default: 36."`
	MaxSessions int           `default:"28" placeholder:"N" help:"Maximum number of open sessions. If it is less than the number of agents, sessions are evicted. Default: 28."`
	Seed        uint64        `placeholder:"N" help:"Seed for the order of the faults and the choices of the agents. 0 picks a seed. Default: 0."`
	Listen      string        `placeholder:"ADDR" help:"Serve a page that shows the sessions live, at an address such as 127.0.0.1:8080, until you stop the show with Ctrl-C. It has no authentication, and can close sessions: use a loopback address."`
	Plain       bool          `help:"Print plain lines, even on a terminal."`
	Record      string        `hidden:"" placeholder:"FILE" help:"Record the screen as an asciicast."`
}

const (
	// callLimit is the deadline of each call. At the end the show waits for the last
	// replies a second longer.
	callLimit = 10 * time.Second
	// stopLimit is how long closing the sessions may take.
	stopLimit = 10 * time.Second
)

// Run runs the show. It fails if a claim does not hold.
func (cmd *showCmd) Run(p *cli.Program) error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	return cmd.run(ctx, p)
}

// run runs the show until its time is over or ctx ends.
func (cmd *showCmd) run(ctx context.Context, p *cli.Program) error {
	forever := cmd.Duration == 0 && cmd.Listen != ""
	if cmd.Duration == 0 {
		cmd.Duration = 9 * time.Second
	}
	switch {
	case cmd.Duration < time.Second || cmd.Duration > 10*time.Minute:
		return cli.Usagef("--duration: %v is not from 1s to 10m", cmd.Duration)
	case cmd.Agents < 3 || cmd.Agents > 1000:
		return cli.Usagef("--agents: %d is not from 3 to 1000", cmd.Agents)
	case cmd.MaxSessions < 1:
		return cli.Usagef("--max-sessions: %d is less than 1", cmd.MaxSessions)
	}
	if cmd.Seed == 0 {
		cmd.Seed = rand.Uint64N(1_000_000) + 1
	}
	if forever {
		cmd.Duration = 100 * 365 * 24 * time.Hour
	}
	before := runtime.NumGoroutine()
	s, err := newShow(cmd)
	if err != nil {
		return err
	}
	out, isFile := p.Out.(*os.File)
	var v view = newPlain(p.Out)
	ended := func([]claim) {}
	switch {
	case cmd.Record != "":
		file, err := os.Create(cmd.Record)
		if err != nil {
			return cli.Usagef("--record: %w", err)
		}
		defer file.Close()
		recorded := newCast(s, file)
		v, ended = recorded, recorded.end
	case isFile && term.IsTerminal(int(out.Fd())) && !cmd.Plain:
		v = newScreen(s, out)
	}
	var web *cli.Web
	if cmd.Listen != "" {
		if web, err = cli.Serve(cmd.Listen, cli.Site{Shown: s.sup, Supervisor: s.sup, Actions: true}); err != nil {
			s.stop(true)
			return err
		}
		s.page = web.URL
		v.note(true, "the sessions are shown at "+web.URL)
		if web.Public {
			v.note(true, "other machines may reach this page, which has no authentication")
		}
	}
	claims := s.run(ctx, v)
	web.Close()
	claims[len(claims)-1].violations = goroutinesLeft(before)
	ended(claims)
	if !s.report(p.Out, claims) {
		return cli.ErrFailed
	}
	return nil
}

// show has the agents, the servers and the supervisor between them.
type show struct {
	*showCmd
	system     *actor.ActorSystem
	sup        *supervisor.Supervisor
	http       *httpServer
	processes  *processLog
	verifier   *verifier
	random     *rand.Rand
	statuses   []atomic.Int32 // of the agents
	agents     []*actor.PID
	unfinished sync.WaitGroup // agents
	final      *messages.Snapshot
	page       string // the URL of the page, or empty
}

// newShow starts the HTTP server and the supervisor. The supervisor starts the processes of
// the stdio server.
func newShow(cmd *showCmd) (*show, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &show{showCmd: cmd, verifier: newVerifier(), random: rand.New(rand.NewPCG(cmd.Seed, 0)), statuses: make([]atomic.Int32, cmd.Agents)}
	if s.http, err = newHTTPServer(s.verifier.executed); err != nil {
		return nil, err
	}
	if s.processes, err = newProcessLog(s.verifier.executed); err != nil {
		return nil, err
	}
	s.system = actor.NewActorSystem(supervisor.WithSystemLogger(zerolog.Nop()))
	s.sup, err = supervisor.Start(s.system, dial.Wrap(supervisor.Config{
		Servers: []mcpbridge.Server{
			{Name: "web", URL: "http://" + s.http.addr},
			{Name: "stdio", Command: exe, Args: []string{"serve"}, Env: map[string]string{processLogVar: s.processes.path}},
		},
		MaxSessions: cmd.MaxSessions, MaxDials: 8, Budget: 50, BackoffBase: 50 * time.Millisecond, BackoffMax: 500 * time.Millisecond,
		CallTimeout: callLimit, DrainTimeout: time.Second, CloseTimeout: time.Second,
	}, s.verifier.watch))
	return s, err
}

// run runs the show, and returns its claims.
func (s *show) run(ctx context.Context, v view) []claim {
	working, interrupt := context.WithTimeout(ctx, s.Duration)
	defer interrupt()

	unsubscribe := s.sup.Subscribe(func(e messages.Event) { v.note(false, describe(e)) })
	defer unsubscribe()
	v.note(true, fmt.Sprintf("%d agents, 2 servers, at most %d sessions; seed %d", s.Agents, s.MaxSessions, s.Seed))
	s.startAgents()

	viewing, endView := context.WithCancel(context.Background())
	var views sync.WaitGroup
	views.Go(func() { v.run(viewing, interrupt) })
	s.injectFaults(working, v)

	v.note(true, "the agents finish")
	for _, pid := range s.agents {
		s.system.Root.Send(pid, &finish{})
	}
	finished := within(callLimit+time.Second, s.unfinished.Wait)
	claims := s.stop(finished)
	endView()
	views.Wait()
	return claims
}

func (s *show) startAgents() {
	s.unfinished.Add(s.Agents)
	for i := range s.Agents {
		a := &agent{
			number: i + 1, server: "web", supervisor: s.sup.PID(), verifier: s.verifier, status: &s.statuses[i],
			random: rand.New(rand.NewPCG(s.Seed, uint64(i)+1)), pause: 120 * time.Millisecond, done: s.unfinished.Done,
		}
		if i%3 == 0 {
			a.server = "stdio"
		}
		s.agents = append(s.agents, s.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return a })))
	}
}

// injectFaults injects one fault after the other until ctx ends.
func (s *show) injectFaults(ctx context.Context, v view) {
	faults := []func() string{
		func() string { return fmt.Sprintf("the web server forgets a session (%d)", s.http.forget(1, 0)) },
		func() string { return fmt.Sprintf("a server process is killed (%d)", s.processes.kill(1)) },
		func() string {
			return fmt.Sprintf("the web server forgets every session (%d)", s.http.forget(1<<30, s.random.IntN(len(refusals))))
		},
		func() string { return fmt.Sprintf("every server process is killed (%d)", s.processes.kill(1<<30)) },
		func() string {
			if err := s.http.restart(); err != nil {
				return "the web server could not restart: " + err.Error()
			}
			return "the web server restarts"
		},
		func() string {
			return fmt.Sprintf("the web server forgets %d sessions", s.http.forget(5, s.random.IntN(len(refusals))))
		},
	}
	order := s.random.Perm(len(faults))
	gap := min(s.Duration/time.Duration(len(faults)+2), 2*time.Second)
	tick := time.NewTicker(gap)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			v.note(true, faults[order[i%len(order)]]())
			s.processes.running()
			s.verifier.forget()
		}
	}
}

// stop stops the supervisor, the agents and the HTTP server, and returns the claims.
// finished says whether all agents have finished.
func (s *show) stop(finished bool) []claim {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	var left []string
	s.final, _ = s.sup.Client().Inspect(ctx)
	if err := s.sup.Stop(ctx); err != nil {
		left = append(left, err.Error())
	}
	for _, pid := range s.agents {
		s.system.Root.Stop(pid)
	}
	if n := s.http.sessions(); n > 0 {
		left = append(left, fmt.Sprintf("the web server still has %d sessions", n))
	}
	s.http.close()
	if err := s.processes.read(); err != nil {
		left = append(left, err.Error())
	}
	processes := s.processes.waitForExit()
	os.Remove(s.processes.path) //nolint:errcheck // the file is in the directory for temporary files

	unanswered, repeated, connections, aboveCap := s.verifier.check(s.MaxSessions)
	if !finished {
		unanswered = append(unanswered, "some agents still wait for a reply")
	}
	claims := claimsOf(s.MaxSessions)
	for i, violations := range [][]string{unanswered, repeated, connections, aboveCap, left, processes} {
		claims[i].violations = violations
	}
	return claims
}

// claimsOf returns the claims of a show that has not ended. The last one is about the whole
// process.
func claimsOf(maxSessions int) []claim {
	return []claim{
		{text: "every call got exactly one reply"},
		{text: "no call ran twice unless that was allowed"},
		{text: "no key had two connections, and all were closed"},
		{text: fmt.Sprintf("at most %d sessions were open at once", maxSessions)},
		{text: "no session was left on the server"},
		{text: "no server process was left over"},
		{text: "no goroutine was left over"},
	}
}

// claim is something that must hold at the end, with its violations.
type claim struct {
	text       string
	violations []string
}

// mark returns a sign that tells whether the claim holds.
func (c claim) mark() string {
	if len(c.violations) > 0 {
		return bad.Render("✗")
	}
	return good.Render("✓")
}

// report prints the summary and the claims, and reports whether all claims hold.
func (s *show) report(out io.Writer, claims []claim) (hold bool) {
	v := s.verifier
	v.mu.Lock()
	defer v.mu.Unlock()
	fmt.Fprintf(out, "\n%d calls, %d answered, %d replayed; slowest %v; seed %d\n", v.sentCalls, v.answered, v.replayed, short(v.slowest), s.Seed)
	if s.final != nil {
		n := s.final.Counters
		fmt.Fprintf(out, "%d dials, %d sessions opened, %d expired, %d restarts, %d evicted; %d connections broke\n", n.Dials, n.Opened, n.Expired, n.Restarts, n.Evicted, n.Lost)
	}
	for _, code := range slices.SortedFunc(maps.Keys(v.failures), cmp.Compare) {
		fmt.Fprintf(out, "%s failed with %s\n", calls(v.failures[code]), code)
	}
	return printClaims(out, claims)
}

// printClaims prints the claims, and reports whether all hold.
func printClaims(out io.Writer, claims []claim) (hold bool) {
	fmt.Fprintln(out)
	hold = true
	for _, c := range claims {
		lipgloss.Fprintf(out, "  %s  %s\n", c.mark(), c.text) //nolint:errcheck // it is standard output
		hold = hold && len(c.violations) == 0
		for _, violation := range c.violations[:min(len(c.violations), 10)] {
			fmt.Fprintf(out, "       %s\n", violation)
		}
	}
	return hold
}

// within reports whether f returns within a limit.
func within(limit time.Duration, f func()) bool {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
		return true
	case <-time.After(limit):
		return false
	}
}

// goroutinesLeft waits up to three seconds until there are no more goroutines than before,
// and describes the surplus.
func goroutinesLeft(before int) (left []string) {
	for range 150 {
		if runtime.NumGoroutine() <= before {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	stacks := make([]byte, 64<<10)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return []string{fmt.Sprintf("%d goroutines more than before\n%s", runtime.NumGoroutine()-before, stacks)}
}

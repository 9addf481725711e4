package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"golang.org/x/term"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// showCmd is the show.
type showCmd struct {
	Duration    time.Duration `default:"9s" help:"How long the agents work, from 1s to 10m. Default: 9s."`
	Agents      int           `default:"36" placeholder:"N" help:"How many agents work, from 3 to 1000. A third of them use the stdio server, a process each. Default: 36."`
	MaxSessions int           `default:"28" placeholder:"N" help:"How many sessions may be open at once. Fewer than agents, so that some are evicted. Default: 28."`
	Seed        uint64        `placeholder:"N" help:"Seed of the order of the faults and of the agents' choices. 0 picks one. Default: 0."`
	Plain       bool          `help:"Print plain lines even on a terminal."`
	Record      string        `hidden:"" placeholder:"FILE" help:"Record the screen as an asciicast."`
}

const (
	// callLimit is the deadline of each call: at the end the agents wait so long
	// for their last answers, and a little longer.
	callLimit = 10 * time.Second
	// stopLimit is how long closing the sessions may take.
	stopLimit = 10 * time.Second
)

// Run runs the show, and fails if any claim does not hold.
func (cmd *showCmd) Run(std streams) error {
	switch {
	case cmd.Duration < time.Second || cmd.Duration > 10*time.Minute:
		return &usageError{fmt.Errorf("--duration: %v is not from 1s to 10m", cmd.Duration)}
	case cmd.Agents < 3 || cmd.Agents > 1000:
		return &usageError{fmt.Errorf("--agents: %d is not from 3 to 1000", cmd.Agents)}
	case cmd.MaxSessions < 1:
		return &usageError{fmt.Errorf("--max-sessions: %d is less than 1", cmd.MaxSessions)}
	}
	if cmd.Seed == 0 {
		cmd.Seed = rand.Uint64N(1_000_000) + 1
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	before := runtime.NumGoroutine()
	s, err := newShow(cmd)
	if err != nil {
		return err
	}
	out, terminal := std.out.(*os.File)
	var shown view = newLines(std.out)
	report := std.out
	switch {
	case cmd.Record != "":
		file, err := os.Create(cmd.Record)
		if err != nil {
			return &usageError{fmt.Errorf("--record: %w", err)}
		}
		defer file.Close()
		recorded := newCast(s, file)
		shown, report = recorded, io.MultiWriter(std.out, recorded)
	case terminal && term.IsTerminal(int(out.Fd())) && !cmd.Plain:
		shown = newScreen(s, out)
	}
	claims := s.play(ctx, shown)
	claims = append(claims, claim{"no goroutine was left over", goroutinesLeft(before)})
	if !s.report(report, claims) {
		return errFailed
	}
	return nil
}

// show is the cast and the stage.
type show struct {
	*showCmd
	system  *actor.ActorSystem
	sup     *supervisor.Supervisor
	web     *web
	journal *journal
	ledger  *ledger
	random  *rand.Rand
	moods   []atomic.Int32
	agents  []*actor.PID
	working sync.WaitGroup
	final   *messages.Snapshot
}

// view shows what happens as it happens.
type view interface {
	// note shows one line. fault is true for what the director does.
	note(fault bool, text string)
	// run shows until ctx ends. It calls interrupt if the person wants to stop.
	run(ctx context.Context, interrupt func())
}

// newShow starts the servers and the supervisor.
func newShow(cmd *showCmd) (*show, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &show{showCmd: cmd, ledger: newLedger(), random: rand.New(rand.NewPCG(cmd.Seed, 0)), moods: make([]atomic.Int32, cmd.Agents)}
	if s.web, err = newWeb(s.ledger.executed); err != nil {
		return nil, err
	}
	if s.journal, err = newJournal(); err != nil {
		return nil, err
	}
	s.system = newSystem(zerolog.Nop())
	s.sup, err = supervisor.Start(s.system, supervisor.Config{
		Servers: []mcpbridge.Server{
			{Name: "web", URL: "http://" + s.web.addr},
			{Name: "stdio", Command: exe, Args: []string{"serve"}, Env: map[string]string{journalVar: s.journal.path}},
		},
		MaxSessions: cmd.MaxSessions, MaxDials: 8, Budget: 50, BackoffBase: 50 * time.Millisecond, BackoffMax: 500 * time.Millisecond,
		CallTimeout: callLimit, DrainTimeout: time.Second, CloseTimeout: time.Second,
		WrapDialer: s.ledger.watch,
	})
	return s, err
}

// play plays the show, and returns what is claimed of it.
func (s *show) play(ctx context.Context, shown view) []claim {
	working, enough := context.WithTimeout(ctx, s.Duration)
	defer enough()

	subscription := s.system.EventStream.Subscribe(func(event any) {
		if e, ok := event.(messages.Event); ok {
			shown.note(false, describe(e))
		}
	})
	defer s.system.EventStream.Unsubscribe(subscription)
	shown.note(true, fmt.Sprintf("%d agents, 2 servers, at most %d sessions; seed %d", s.Agents, s.MaxSessions, s.Seed))
	s.hire()

	viewing, over := context.WithCancel(context.Background())
	var views sync.WaitGroup
	views.Go(func() { shown.run(viewing, enough) })
	s.direct(working, shown)

	shown.note(true, "the agents finish")
	for _, pid := range s.agents {
		s.system.Root.Send(pid, &finish{})
	}
	unfinished := !within(callLimit+time.Second, s.working.Wait)
	claims := s.strike(unfinished)
	over()
	views.Wait()
	return claims
}

// hire starts the agents.
func (s *show) hire() {
	s.working.Add(s.Agents)
	for i := range s.Agents {
		a := &agent{
			number: i + 1, server: "web", supervisor: s.sup.PID(), ledger: s.ledger, mood: &s.moods[i],
			random: rand.New(rand.NewPCG(s.Seed, uint64(i)+1)), pause: 120 * time.Millisecond, done: s.working.Done,
		}
		if i%3 == 0 {
			a.server = "stdio"
		}
		s.agents = append(s.agents, s.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return a })))
	}
}

// direct lets faults in until ctx ends.
func (s *show) direct(ctx context.Context, shown view) {
	faults := []func() string{
		func() string { return fmt.Sprintf("the web server forgets %d session", s.web.forget(1, 0)) },
		func() string { return fmt.Sprintf("%d server process is killed", s.journal.kill(1)) },
		func() string {
			return fmt.Sprintf("the web server forgets all of its %d sessions", s.web.forget(1<<30, s.random.IntN(len(refusals))))
		},
		func() string { return fmt.Sprintf("%d server processes are killed", s.journal.kill(1<<30)) },
		func() string {
			if err := s.web.restart(); err != nil {
				return "the web server could not restart: " + err.Error()
			}
			return "the web server restarts"
		},
		func() string {
			return fmt.Sprintf("the web server forgets %d sessions", s.web.forget(5, s.random.IntN(len(refusals))))
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
			shown.note(true, faults[order[i%len(order)]]())
		}
	}
}

// strike ends everything, and checks what is claimed.
func (s *show) strike(unfinished bool) []claim {
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
	if n := s.web.sessions(); n > 0 {
		left = append(left, fmt.Sprintf("the web server still has %d sessions", n))
	}
	s.web.close()
	if err := s.journal.read(func(what, value string) {
		if what == "run" {
			s.ledger.executed(value)
		}
	}); err != nil {
		left = append(left, err.Error())
	}
	processes := s.journal.left()
	os.Remove(s.journal.path) //nolint:errcheck // it is in the directory for such files

	unanswered, twice, two, above := s.ledger.check(s.MaxSessions)
	if unfinished {
		unanswered = append(unanswered, "some agents still wait")
	}
	return []claim{
		{"every call got exactly one reply", unanswered},
		{"no call ran twice that must not", twice},
		{"no key had two connections, and all were closed", two},
		{fmt.Sprintf("never more than %d sessions were open", s.MaxSessions), above},
		{"no session was left on the server", left},
		{"no server process was left over", processes},
	}
}

// within reports whether f returns in time.
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

// goroutinesLeft waits a little for goroutines to end.
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

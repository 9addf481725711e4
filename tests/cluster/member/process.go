package member

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/mcpactor/mcpactor/cluster"
	"github.com/mcpactor/mcpactor/internal/leaktest"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/cluster/history"
)

const (
	// startTimeout bounds the start of a member, and leaveTimeout its leave.
	startTimeout, leaveTimeout = 30 * time.Second, 30 * time.Second
	// look is how often the process looks at its view of the cluster.
	look = 25 * time.Millisecond
)

// process is the running process.
type process struct {
	mu      sync.Mutex
	out     *bufio.Writer
	encoder *json.Encoder
}

// report writes a report. If nobody reads it, the process ends.
func (p *process) report(r *Report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.encoder.Encode(r) != nil || p.out.Flush() != nil {
		os.Exit(1)
	}
}

// Main runs the process until it has left the cluster.
func Main() error {
	p := &process{out: bufio.NewWriter(os.Stdout)}
	p.encoder = json.NewEncoder(p.out)
	err := p.run()
	if err != nil {
		p.report(&Report{Error: err.Error()})
	}
	return err
}

func (p *process) run() error {
	leave := make(chan os.Signal, 1)
	signal.Notify(leave, syscall.SIGTERM)
	in := json.NewDecoder(os.Stdin)
	var cfg Config
	if err := in.Decode(&cfg); err != nil {
		return fmt.Errorf("member: %w", err)
	}
	commands := make(chan Command)
	go read(in, commands)
	zerolog.TimeFieldFormat = "15:04:05.000"
	log := zerolog.New(zerolog.SyncWriter(os.Stderr)).Level(zerolog.InfoLevel).With().Timestamp().Logger()
	system := actor.NewActorSystem(supervisor.WithSystemLogger(log))
	before := goleak.IgnoreCurrent()
	store, closeStore, err := openStore(&cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	client := newClient(cfg.Name)
	m, err := join(ctx, system, &cfg, client, store, func(a *history.Act) { p.report(&Report{Act: a}) }, log)
	if err != nil {
		return err
	}
	a := newAgents(system, cfg.Name, m.PID(), p.report)
	watching, unwatch := context.WithCancel(context.Background())
	var watch sync.WaitGroup
	watch.Go(func() { p.watch(watching, m) })
	for {
		select {
		case c := <-commands:
			if c.Load != nil {
				a.start(c.Load)
			}
			if c.Quiet {
				p.report(&Report{Quiet: &Quiet{Calls: a.quiet()}})
			}
			continue
		case <-leave:
		}
		break
	}
	ctx, cancel = context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	err = m.Stop(ctx)
	unwatch()
	watch.Wait()
	end := &Quiet{Calls: a.quiet()}
	err = errors.Join(err, closeStore())
	client.CloseIdleConnections()
	system.Root.Stop(a.self)
	end.Leaks = leaks(append(leftByTheEngine, before))
	p.report(&Report{Quiet: end})
	return err
}

// leakTime is how long goroutines may take to end.
const leakTime = 5 * time.Second

// leaks describes the goroutines that do not end.
func leaks(ignored []goleak.Option) string {
	for end := time.Now().Add(leakTime); ; {
		left := goleak.Find(ignored...) // which waits for some of them
		switch {
		case left == nil:
			return ""
		case time.Now().After(end):
			return left.Error()
		}
	}
}

// leftByTheEngine are goroutines of Proto.Actor that end by themselves later, and that nobody can end
// before: timers of throttles.
var leftByTheEngine = append(leaktest.Throttle,
	goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
	goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
)

// read reads commands. When the test has ended, the process ends.
func read(in *json.Decoder, commands chan<- Command) {
	for {
		var c Command
		if err := in.Decode(&c); err != nil {
			if !errors.Is(err, io.EOF) {
				fmt.Fprintln(os.Stderr, err)
			}
			os.Exit(1)
		}
		commands <- c
	}
}

// watch reports each change of what the member knows of the cluster.
func (p *process) watch(ctx context.Context, m *cluster.Member) {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	var last *View
	for {
		if now := view(m); !same(last, now) {
			p.report(&Report{View: now})
			last = now
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

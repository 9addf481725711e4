package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"time"

	"github.com/mcpactor/mcpactor/internal/bench"
)

// benchCmd measures.
type benchCmd struct {
	Run    benchRunCmd    `cmd:"" default:"withargs" help:"Measure, and print a table. The default."`
	Report benchReportCmd `cmd:"" help:"Write the tables of documents from results."`
	Serve  benchServeCmd  `cmd:"" hidden:"" help:"Be the server that is measured."`
}

// benchRunCmd measures.
type benchRunCmd struct {
	Scenario   []string      `help:"Measure only what is named like this: a scenario, or a case such as 'warm/transport=http-*/callers=64'. May be repeated." placeholder:"PATTERN"`
	How        []string      `help:"Measure only the contenders that are named like this, such as 'client*'. May be repeated." placeholder:"PATTERN"`
	Rounds     int           `help:"How often each contender has its turn: 15, or 2 with --quick."`
	RoundTime  time.Duration `help:"About how long a turn takes: 200ms, or 5ms with --quick."`
	Quick      bool          `help:"Make everything small: a few seconds that show that it works, and no figures worth quoting."`
	Benchfmt   string        `help:"Write the results to a file, in the format of Go's benchmarks, for benchstat." placeholder:"FILE"`
	CPUProfile string        `name:"cpuprofile" help:"Write a CPU profile of the whole run to a file. Choose one case and one contender." placeholder:"FILE"`
	MemProfile string        `name:"memprofile" help:"Write a profile of all that was allocated to a file." placeholder:"FILE"`
	Others     string        `help:"Where the clients of other libraries are: make bench-others installs them." default:"internal/bench/others" placeholder:"DIR"`
}

// Run measures, and prints.
func (b *benchRunCmd) Run(io streams) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if b.Rounds < 0 || b.RoundTime < 0 {
		return &usageError{fmt.Errorf("--rounds and --round-time: less than nothing cannot be measured")}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	stopProfile, err := startProfile(b.CPUProfile)
	if err != nil {
		return err
	}
	report, failed := bench.Run(ctx, bench.Config{
		Scenarios: b.Scenario, How: b.How, Rounds: b.Rounds, RoundTime: b.RoundTime, Quick: b.Quick,
		Child: []string{self, "bench", "serve"}, Others: b.Others, Log: io.err,
	})
	if err := stopProfile(); err != nil {
		return err
	}
	if report == nil {
		return failed
	}
	if err := writeFile(b.MemProfile, writeAllocs); err != nil {
		return err
	}
	if err := report.WriteTable(io.out); err != nil {
		return err
	}
	if err := writeFile(b.Benchfmt, report.Write); err != nil {
		return err
	}
	return failed
}

// startProfile starts a CPU profile, unless the name of its file is empty.
func startProfile(name string) (stop func() error, err error) {
	if name == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		f.Close()
		return nil, err
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}

// writeAllocs writes a profile of all that this process has allocated.
func writeAllocs(w io.Writer) error {
	runtime.GC() // the profile is as of the last one
	return pprof.Lookup("allocs").WriteTo(w, 0)
}

// writeFile writes a file, unless its name is empty.
func writeFile(name string, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// benchReportCmd writes documents.
type benchReportCmd struct {
	File      string   `arg:"" help:"What bench --benchfmt has written."`
	Documents []string `arg:"" optional:"" help:"The Markdown files whose tables are written anew; docs/performance.md and README.md if none is named."`
}

// Run writes the tables.
func (b *benchReportCmd) Run(streams) error {
	report, err := bench.Read(b.File)
	if err != nil {
		return err
	}
	if len(b.Documents) == 0 {
		b.Documents = []string{"docs/performance.md", "README.md"}
	}
	for _, document := range b.Documents {
		if err := report.Document(document); err != nil {
			return err
		}
	}
	return nil
}

// benchServeCmd makes this program the server.
type benchServeCmd struct {
	Mode string `arg:"" enum:"stdio,http" help:"How it is reached: stdio or http."`
}

// Run serves until stdin ends.
func (b *benchServeCmd) Run(io streams) error { return bench.Serve(b.Mode, io.in, io.out) }

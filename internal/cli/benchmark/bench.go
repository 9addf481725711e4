// Package benchmark is the command bench.
package benchmark

import (
	"context"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"time"

	"github.com/mcpactor/mcpactor/internal/bench"
	"github.com/mcpactor/mcpactor/internal/cli"
)

// Bench is the command that measures.
type Bench struct {
	Run    runCmd    `cmd:"" default:"withargs" help:"Measure, and print a table. This is the default command."`
	Report reportCmd `cmd:"" help:"Update the tables in documents from results."`
	Serve  serveCmd  `cmd:"" hidden:"" help:"Run the server that is measured."`
}

// runCmd measures.
type runCmd struct {
	Scenario   []string      `help:"Measure only the scenarios or cases that match, such as 'warm/transport=http-*/callers=64'. Repeatable." placeholder:"PATTERN"`
	How        []string      `help:"Measure only the contenders that match, such as 'client*'. Repeatable." placeholder:"PATTERN"`
	Rounds     int           `help:"Number of rounds. Each contender has a turn in each round. Default: 11, or 2 with --quick."`
	RoundTime  time.Duration `help:"Approximate length of a turn. Default: 400ms, or 5ms with --quick."`
	Quick      bool          `help:"Run every case briefly, to check that it works. The figures mean nothing."`
	Benchfmt   string        `help:"Write the results to a file, in the format of Go's benchmarks, for benchstat." placeholder:"FILE"`
	CPUProfile string        `name:"cpuprofile" help:"Write a CPU profile of the whole run to a file. Select one case and one contender." placeholder:"FILE"`
	MemProfile string        `name:"memprofile" help:"Write a profile of all allocations to a file." placeholder:"FILE"`
	Others     string        `help:"Directory with the clients of other libraries, as make bench-others installs them. Default: internal/bench/others." default:"internal/bench/others" placeholder:"DIR"`
}

// Run measures, and prints the results.
func (b *runCmd) Run(p *cli.Program) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	switch {
	case b.Rounds < 0:
		return cli.Usagef("--rounds: %d is negative", b.Rounds)
	case b.RoundTime < 0:
		return cli.Usagef("--round-time: %v is negative", b.RoundTime)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	stopProfile, err := startProfile(b.CPUProfile)
	if err != nil {
		return err
	}
	report, failed := bench.Run(ctx, bench.Config{
		Scenarios: b.Scenario, How: b.How, Rounds: b.Rounds, RoundTime: b.RoundTime, Quick: b.Quick,
		Child: []string{self, "bench", "serve"}, Others: b.Others, Log: p.Err,
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
	if err := report.WriteTable(p.Out); err != nil {
		return err
	}
	if err := writeFile(b.Benchfmt, report.Write); err != nil {
		return err
	}
	return failed
}

// startProfile starts a CPU profile. An empty name starts none.
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

// writeAllocs writes a profile of all allocations of this process.
func writeAllocs(w io.Writer) error {
	runtime.GC() // the profile has what was allocated until the last collection
	return pprof.Lookup("allocs").WriteTo(w, 0)
}

// writeFile creates a file with what write writes. An empty name creates none.
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

// reportCmd updates documents.
type reportCmd struct {
	File      string   `arg:"" help:"Results that bench --benchfmt has written."`
	Documents []string `arg:"" optional:"" help:"Markdown files whose tables are updated. Default: docs/performance.md and README.md."`
}

// Run updates the tables.
func (b *reportCmd) Run() error {
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

// serveCmd is the server that is measured. The command bench starts it.
type serveCmd struct {
	Mode string `arg:"" enum:"stdio,http" help:"Transport of the server: stdio or http."`
}

// Run serves until stdin ends.
func (b *serveCmd) Run(p *cli.Program) error { return bench.Serve(b.Mode, p.In, p.Out) }

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/mcpactor/mcpactor/bench"
)

// benchCmd measures.
type benchCmd struct {
	Run    benchRunCmd    `cmd:"" default:"withargs" help:"Measure, and print a table. The default."`
	Report benchReportCmd `cmd:"" help:"Write the tables and plots of a document from results."`
	Plot   benchPlotCmd   `cmd:"" help:"Write plots of results."`
	Serve  benchServeCmd  `cmd:"" hidden:"" help:"Be the server that is measured."`
}

// benchRunCmd measures.
type benchRunCmd struct {
	Scenario  []string      `help:"Measure only what is named like this: a scenario, or a case such as 'warm/transport=http-*/callers=64'. May be repeated." placeholder:"PATTERN"`
	Rounds    int           `help:"How often each contender has its turn: 15, or 2 with --quick."`
	RoundTime time.Duration `help:"About how long a turn takes: 200ms, or 5ms with --quick."`
	Quick     bool          `help:"Make everything small: a few seconds that show that it works, and no figures worth quoting."`
	JSON      string        `help:"Write the results to a file, as JSON." placeholder:"FILE"`
	Benchfmt  string        `help:"Write the results to a file, in the format of Go's benchmarks, for benchstat." placeholder:"FILE"`
	Others    string        `help:"Where the clients of other libraries are: make bench-others installs them." default:"bench/others" placeholder:"DIR"`
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
	report, failed := bench.Run(ctx, bench.Config{
		Scenarios: b.Scenario, Rounds: b.Rounds, RoundTime: b.RoundTime, Quick: b.Quick,
		Child: []string{self, "bench", "serve"}, Others: b.Others, Log: io.err,
	})
	if report == nil {
		return failed
	}
	if err := report.WriteTable(io.out); err != nil {
		return err
	}
	if err := writeFile(b.JSON, report.WriteJSON); err != nil {
		return err
	}
	if err := writeFile(b.Benchfmt, report.WriteBenchfmt); err != nil {
		return err
	}
	return failed
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

// benchPlotCmd draws.
type benchPlotCmd struct {
	File string `arg:"" help:"What bench --json has written."`
	Dir  string `arg:"" help:"Where to write the plots, as SVG."`
}

// Run writes the plots.
func (b *benchPlotCmd) Run(streams) error {
	report, err := bench.Read(b.File)
	if err != nil {
		return err
	}
	return report.Plot(b.Dir)
}

// benchReportCmd writes a document.
type benchReportCmd struct {
	File     string `arg:"" help:"What bench --json has written."`
	Document string `arg:"" optional:"" default:"docs/performance.md" help:"The Markdown file whose tables are written anew; the plots go into a directory of its name."`
}

// Run writes the tables, and the plots beside.
func (b *benchReportCmd) Run(streams) error {
	report, err := bench.Read(b.File)
	if err != nil {
		return err
	}
	if err := report.Document(b.Document); err != nil {
		return err
	}
	return report.Plot(strings.TrimSuffix(b.Document, filepath.Ext(b.Document)))
}

// benchServeCmd makes this program the server.
type benchServeCmd struct {
	Mode string `arg:"" enum:"stdio,http" help:"How it is reached: stdio or http."`
}

// Run serves until stdin ends.
func (b *benchServeCmd) Run(io streams) error { return bench.Serve(b.Mode, io.in, io.out) }
